package terminal

import (
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/text"
)

// ports writes how the ports are: what they said of themselves in the last run, with what
// the kernel tells of them.
func (p *page) ports(s *api.Status, d *api.Device) {
	var kernel []api.HardwarePort
	if d.Hardware != nil {
		kernel = slices.Clone(d.Hardware.Ports)
	}
	for _, port := range d.Ports {
		words := []span{p.of(plain, fmt.Sprintf(", %s, MTU %d", port.LinkLayer, port.ActiveMTU))}
		if i := slices.IndexFunc(kernel, func(k api.HardwarePort) bool { return k.Number == port.Number }); i >= 0 {
			words = append(words, p.link(s, &kernel[i])...)
			kernel = slices.Delete(kernel, i, i+1)
		}
		p.port(port.Number, port.State, words)
	}
	for i := range kernel {
		k := &kernel[i]
		p.port(k.Number, joined(", ", k.Now(), k.LinkLayer), p.link(s, k))
	}
}

func (p *page) port(number int, state string, words []span) {
	style := good
	if first, _, _ := strings.Cut(state, ","); first != "active" {
		style = odd
	}
	p.labelled(fmt.Sprintf("Port %d", number), append([]span{p.of(style, state)}, words...)...)
}

// link says what the kernel tells of a port.
func (p *page) link(s *api.Status, port *api.HardwarePort) []span {
	rate := plain
	if port.Slow() {
		rate = odd
	}
	var spans []span
	if port.Netdev != "" {
		spans = append(spans, p.of(plain, ", "+port.Netdev))
	}
	if port.Rate > 0 {
		spans = append(spans, p.of(plain, ", "), p.of(rate, port.Moves()))
	}
	if port.GIDs > 0 {
		spans = append(spans, p.of(plain, ", GIDs: "+port.Addresses()))
	}
	if l := port.Link; l != nil && l.Downs > 0 {
		words := "; " + text.Count(l.Downs, "change", "changes") + " to down"
		if n := len(l.Recent); n > 0 {
			words += ", " + text.Ago(s.Generated, l.Recent[n-1])
		}
		spans = append(spans, p.of(plain, words))
	}
	return spans
}

// hardware writes which adapter a device is, and what its counters tell of errors.
func (p *page) hardware(d *api.Device) {
	h := d.Hardware
	if h == nil {
		return
	}
	if h.Failure != "" {
		words := "read incompletely: " + h.Failure
		if h.Reading != "" {
			words += "; " + h.Reading + " did not return"
		}
		p.labelled("Hardware", p.of(odd, words))
	}
	if a := h.Adapter; a != nil {
		p.adapter(h.Driver, a)
	}
	lines := countersText("the device", &api.HardwarePort{Saturated: h.Saturated, Refused: h.Refused})
	for i := range h.Ports {
		lines = append(lines, countersText(fmt.Sprintf("port %d", h.Ports[i].Number), &h.Ports[i])...)
	}
	for i, line := range lines {
		p.labelled(ownersLabel("Counters", i), p.of(plain, line))
	}
}

func (p *page) adapter(driver string, a *api.Adapter) {
	var spans []span
	add := func(s style, words string) {
		if words == "" {
			return
		}
		if len(spans) > 0 {
			spans = append(spans, p.of(plain, ", "))
		}
		spans = append(spans, p.of(s, words))
	}
	add(plain, a.PCI)
	if a.Slot != "" {
		add(plain, "slot "+a.Slot)
	}
	if a.NUMANode != nil {
		add(plain, fmt.Sprintf("NUMA node %d", *a.NUMANode))
	}
	if l := a.Link; l != nil {
		if l.Below() {
			add(odd, "PCI "+tied(l.Words())+" of "+tied(l.MostWords()))
		} else {
			add(plain, "PCI "+tied(l.Words()))
		}
	}
	if l := a.Bottleneck; l != nil {
		add(odd, "no more than "+tied(l.Words())+" at "+l.Address)
	}
	add(plain, joined(" ", driver, a.DriverVersion))
	add(plain, a.BoardID)
	add(plain, a.Function())
	if e := a.AER; e != nil && e.Harmful() {
		add(odd, fmt.Sprintf("PCI errors: %s nonfatal, %s fatal", text.Number(e.Nonfatal), text.Number(e.Fatal)))
	}
	if len(spans) > 0 {
		p.labelled("Adapter", spans...)
	}
}

// countersText tells in a line of the counters of a port, or of the device, that tell of
// errors, and of those that tell nothing; there is none if there are no such counters.
func countersText(of string, port *api.HardwarePort) []string {
	var words []string
	for i := range port.Counters {
		if c := &port.Counters[i]; c.Wrong() && c.Value != 0 {
			words = append(words, text.Number(c.Value)+" "+c.Words())
		}
	}
	for _, name := range port.Saturated {
		words = append(words, name+" saturated")
	}
	for _, r := range port.Refused {
		words = append(words, joined(" ", string(r.Group), "refused", r.Errno))
	}
	if len(words) == 0 {
		return nil
	}
	return []string{of + ": " + strings.Join(words, ", ")}
}
