package api

import (
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/text"
)

// Words is what a counter counts, as people read it: retransmitted packets.
func (c *Counter) Words() string {
	name := strings.TrimSuffix(strings.TrimPrefix(c.Metric, "rdma_port_"), "_total")
	words := strings.ReplaceAll(name, "_", " ")
	if c.Priority != "" {
		words += " of priority " + c.Priority
	}
	return words
}

// Bytes tells that it counts bytes.
func (c *Counter) Bytes() bool { return strings.HasSuffix(c.Metric, "_bytes_total") }

// Wrong tells that it counts what goes wrong: neither what is moved, nor how a network that
// is in order keeps congestion down, nor what was corrected.
func (c *Counter) Wrong() bool {
	if c.Bytes() {
		return false
	}
	name := strings.TrimPrefix(c.Metric, "rdma_port_")
	return name != "receive_packets_total" && name != "transmit_packets_total" &&
		!slices.ContainsFunc([]string{"cnps_", "ecn_", "pause_", "pfc_", "transmit_wait_", "fec_corrected_"}, func(of string) bool { return strings.HasPrefix(name, of) })
}

// Below tells that a link has less than the device at its lower end could have.
func (l *PCILink) Below() bool {
	return l.Speed > 0 && l.Speed < l.MaxSpeed || l.Width > 0 && l.Width < l.MaxWidth
}

// Harmful tells that errors were not corrected.
func (e *AER) Harmful() bool { return e.Nonfatal > 0 || e.Fatal > 0 }

// Now is the state that a port is in: that of the last change, if it came after the reading.
func (p *HardwarePort) Now() string {
	switch {
	case p.Link == nil || p.Link.Active == (p.State == "active"):
		return p.State
	case p.Link.Active:
		return "active"
	default:
		return "down"
	}
}

// Words says what a link to the PCI bus has.
func (l *PCILink) Words() string { return pciWords(l.Speed, l.Width) }

// MostWords says what it could have.
func (l *PCILink) MostWords() string { return pciWords(l.MaxSpeed, l.MaxWidth) }

func pciWords(speed int64, width int) string {
	if speed <= 0 || width <= 0 {
		return "not known"
	}
	return text.Rate(speed, "T/s") + " × " + text.Number(width)
}

// Function says which function of the adapter it is; empty if that is not known.
func (a *Adapter) Function() string {
	words := map[string]string{"pf": "physical (pf)", "vf": "virtual (vf)", "sf": "scalable (sf)"}[a.Role]
	if words == "" {
		words = a.Role
	}
	if a.Parent != "" {
		words += " of " + a.Parent
	}
	if a.VFs > 0 {
		words += " with " + text.Plural(a.VFs, "virtual function")
	}
	return strings.TrimSpace(words)
}

// Slow tells that a port moves less than it could, while it is active.
func (p *HardwarePort) Slow() bool { return p.Now() == "active" && p.Rate < p.MaxRate }

// Moves says what a port moves, and what it could move if that is more.
func (p *HardwarePort) Moves() string {
	if p.Rate == 0 {
		return "not known"
	}
	words := text.Rate(p.Rate, "b/s")
	if p.Rate < p.MaxRate {
		words += " of " + text.Rate(p.MaxRate, "b/s")
	}
	if p.Width > 0 {
		words += ", " + text.Plural(p.Width, "lane")
	}
	return words
}

// Addresses says how many GIDs a port has, and which is the one of RoCE v2 over IPv4.
func (p *HardwarePort) Addresses() string {
	words := text.Number(p.GIDs)
	switch {
	case p.RoCEv2IPv4 != nil:
		words += fmt.Sprintf(", RoCE v2 over IPv4 at index %d", *p.RoCEv2IPv4)
	case p.LinkLayer == "Ethernet":
		words += ", no RoCE v2 over IPv4"
	}
	if p.GIDChanges > 0 {
		words += ", changed " + text.Count(p.GIDChanges, "time", "times")
	}
	return words
}
