package web

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/text"
)

// fact is something that is known of an adapter.
type fact struct {
	Name, Value string
	// Odd tells that it is not as it should be.
	Odd bool
}

// linkView is a port as the kernel tells of it.
type linkView struct {
	api.HardwarePort
	// Layer is its link layer with the temperature of its module, Changes how often its
	// state changed.
	Layer, Changes string
	// Last is when it went down last; zero if that is not known.
	Last time.Time
}

// countersView is what the ports of a device counted that is not zero.
type countersView struct {
	Summary string
	Rows    []counterRow
	// Odd are sentences about what could not be read or counts no more, and Drops about
	// what was less than before.
	Odd, Drops []string
}

// counterRow is a counter of a port, or of the device as a whole.
type counterRow struct {
	api.Counter
	Port string
}

// adapterOf says which adapter it is, and where in the host.
func adapterOf(h *api.Hardware) []fact {
	a := h.Adapter
	if a == nil {
		return nil
	}
	var facts []fact
	add := func(odd bool, name string, words ...string) {
		if value := joined(" ", words...); value != "" {
			facts = append(facts, fact{name, value, odd})
		}
	}
	node := ""
	if a.NUMANode != nil {
		node = strconv.Itoa(*a.NUMANode)
	}
	add(false, "PCI address", a.PCI)
	add(false, "Slot", a.Slot)
	add(false, "NUMA node", node)
	if l := a.Link; l != nil {
		add(l.Below(), "PCI link", pciLink(l))
	}
	if l := a.Bottleneck; l != nil {
		add(true, "PCI bottleneck", pciLink(l)+",", "at", l.Address)
	}
	add(false, "Kernel driver", h.Driver, a.DriverVersion)
	add(false, "Board", joined(", ", a.BoardID, a.Model))
	add(false, "Function", a.Function())
	if e := a.AER; e != nil {
		add(e.Harmful(), "PCI errors", fmt.Sprintf("%s correctable, %s nonfatal, %s fatal",
			text.Number(e.Correctable), text.Number(e.Nonfatal), text.Number(e.Fatal)))
	}
	add(false, "Network namespaces", a.NetnsMode)
	return facts
}

// joined joins those of the words that there are.
func joined(separator string, words ...string) string {
	var all []string
	for _, w := range words {
		if w != "" {
			all = append(all, w)
		}
	}
	return strings.Join(all, separator)
}

// pciLink says what a link has, and what it could have if that is more.
func pciLink(l *api.PCILink) string {
	words := l.Words()
	if l.Below() {
		words += " of " + l.MostWords()
	}
	return words
}

// linksOf returns the ports as the kernel tells of them.
func linksOf(h *api.Hardware) []linkView {
	var links []linkView
	for _, p := range h.Ports {
		v := linkView{HardwarePort: p, Layer: cmp.Or(p.LinkLayer, "not known"), Changes: "not known"}
		if t := p.Temperature; t != nil {
			v.Layer += fmt.Sprintf(", module %.0f °C", *t)
		}
		if l := p.Link; l != nil {
			v.Changes = fmt.Sprintf("%s up, %s down", text.Number(l.Ups), text.Number(l.Downs))
			if n := len(l.Recent); n > 0 {
				v.Last = l.Recent[n-1]
			}
		}
		links = append(links, v)
	}
	return links
}

// countersOf returns what was counted; nil if there is nothing to tell.
func countersOf(h *api.Hardware) *countersView {
	var v countersView
	saturated, refused := 0, 0
	add := func(port string, p *api.HardwarePort) {
		for _, c := range p.Counters {
			if c.Value != 0 {
				v.Rows = append(v.Rows, counterRow{c, port})
			}
		}
		of := "the device"
		if port != "" {
			of = "port " + port
		}
		for _, r := range p.Refused {
			v.Odd = append(v.Odd, "The kernel refuses to read "+joined(": ", fmt.Sprintf("%s of %s", r.Group, of), r.Errno, r.Detail))
		}
		for _, name := range p.Saturated {
			v.Odd = append(v.Odd, fmt.Sprintf("%s of %s is saturated and no longer counts", name, of))
		}
		saturated, refused = saturated+len(p.Saturated), refused+len(p.Refused)
		for _, d := range p.Drops {
			v.Drops = append(v.Drops, fmt.Sprintf("%s (%s) of %s was less than before: %s, %s.", d.Counter, d.Group, of,
				text.Plural(d.Resets, "reset"), text.Count(d.Wraps, "time at its maximum", "times at its maximum")))
		}
	}
	add("", &api.HardwarePort{Saturated: h.Saturated, Refused: h.Refused, Drops: h.Drops})
	for i := range h.Ports {
		add(strconv.Itoa(h.Ports[i].Number), &h.Ports[i])
	}
	var words []string
	if n := len(v.Rows); n > 0 {
		words = append(words, fmt.Sprintf("%d not zero", n))
	}
	if saturated > 0 {
		words = append(words, fmt.Sprintf("%d saturated", saturated))
	}
	if refused > 0 {
		words = append(words, text.Plural(refused, "group")+" refused")
	}
	if n := len(v.Drops); n > 0 {
		words = append(words, fmt.Sprintf("%d less than before", n))
	}
	if len(words) == 0 {
		return nil
	}
	v.Summary = strings.Join(words, ", ")
	return &v
}
