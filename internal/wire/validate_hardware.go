package wire

import (
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const (
	// maxName is the longest name of a device, in bytes: as long as that of a file.
	maxName = 255
	// maxCPUs is the longest list of processors, in bytes.
	maxCPUs = 1024
)

func validateHardware(h *state.Hardware) error {
	if h.Device == "" || len(h.Device) > maxName {
		return fmt.Errorf("the hardware of a device with a name of %d bytes", len(h.Device))
	}
	if len(h.Ports) > maxPorts || len(h.Interrupts) > maxItems {
		return fmt.Errorf("%w: the hardware of %.64q has %d ports and %d interrupts", ErrTooLarge, h.Device, len(h.Ports), len(h.Interrupts))
	}
	c := checked{seen: make(map[any]bool)}
	for _, w := range []string{h.Driver, h.Table} {
		c.word(w, w == "" || isLabel(w))
	}
	c.adapter(&h.Identity)
	c.counters(0, h.Counters, h.Refused)
	for i := range h.Ports {
		c.port(&h.Ports[i])
	}
	for _, i := range h.Interrupts {
		c.number(0, maxVector, i.Vector)
		c.number(0, maxCount, i.IRQ)
		c.once([2]any{"vector", i.Vector})
		for _, list := range []string{i.CPUs, i.Effective} {
			c.word(list, len(list) <= maxCPUs && strings.Trim(list, "0123456789,-") == "")
		}
	}
	if c.first != nil {
		return fmt.Errorf("the hardware of %.64q: %w", h.Device, c.first)
	}
	return nil
}

func (c *checked) adapter(a *state.Adapter) {
	c.word(a.PCI, isAddress(a.PCI))
	c.word(a.Parent, isAddress(a.Parent))
	c.word(a.Role, slices.Contains([]string{"", "pf", "vf", "sf"}, a.Role))
	c.word(a.NetnsMode, a.NetnsMode == "" || isLabel(a.NetnsMode))
	c.number(-1, maxItems, a.NUMANode)
	c.number(0, maxVector, a.VFs)
	for _, l := range []*state.PCILink{a.Link, a.Bottleneck} {
		if l != nil {
			c.word(l.Address, isAddress(l.Address))
			c.number(0, maxItems, l.Width, l.MaxWidth)
			c.rates(l.Speed, l.MaxSpeed)
		}
	}
}

func (c *checked) port(p *state.HardwarePort) {
	c.number(1, maxVector, p.Number)
	c.once([2]any{"port", p.Number})
	for _, w := range []string{p.LinkLayer, p.State, p.PhysState} {
		c.word(w, w == "" || isLabel(w))
	}
	c.rates(p.Rate, p.MaxRate, p.Speed)
	c.number(0, maxItems, p.Width)
	c.number(0, maxCount, p.Ifindex, p.MTU)
	if len(p.GIDs) > state.MaxGIDs {
		c.err(fmt.Errorf("%w: port %d has %d addresses", ErrTooLarge, p.Number, len(p.GIDs)))
	}
	for _, g := range p.GIDs {
		c.number(0, maxVector, g.Index)
		c.once([3]any{"gid", p.Number, g.Index})
		c.word(g.GID, g.GID != "" && isAddress(g.GID))
		c.word(g.Type, slices.Contains(state.GIDTypes(), g.Type))
		c.word(g.Family, g.Family == "ipv4" || g.Family == "ipv6")
	}
	if p.RoCEv2IPv4 != nil {
		c.number(0, maxVector, *p.RoCEv2IPv4)
	}
	c.counters(p.Number, p.Counters, p.Refused)
}

// counters checks those of a port, 0 for the device as a whole, and the refused ones.
func (c *checked) counters(port int, list []state.Counter, refused []state.RefusedCounters) {
	if len(list) > maxItems {
		c.err(fmt.Errorf("%w: port %d has %d counters", ErrTooLarge, port, len(list)))
	}
	for _, n := range list {
		c.word(string(n.Group), slices.Contains(state.CounterGroups(), n.Group))
		c.word(n.Name, isPrintable(n.Name))
		c.once([3]any{n.Group, port, n.Name})
	}
	for _, r := range refused {
		c.word(string(r.Group), slices.Contains(state.CounterGroups(), r.Group))
		c.word(r.Errno, r.Errno == "" || isLabel(r.Errno))
		c.once([3]any{"refused", port, r.Group})
	}
}

func (c *checked) number(least, most int, numbers ...int) {
	for _, n := range numbers {
		if n < least || n > most {
			c.err(fmt.Errorf("%d is not from %d to %d", n, least, most))
		}
	}
}

// rates checks rates and speeds, of which there is none that is larger than a count.
func (c *checked) rates(rates ...float64) {
	for _, r := range rates {
		if r < 0 || r > maxCount {
			c.err(fmt.Errorf("a rate of %v", r))
		}
	}
}

// cleanHardware makes the names fit for a label, which a driver, the firmware or whoever
// named a network device chose, and cuts the texts down to what a reader keeps of them.
func cleanHardware(h *state.Hardware) {
	name := func(names ...*string) {
		for _, s := range names {
			*s = clipTo(text.Clean(*s), maxLabel)
		}
	}
	details := func(refused []state.RefusedCounters) {
		for i := range refused {
			refused[i].Detail = clip(refused[i].Detail)
		}
	}
	named := func(counters []state.Counter) {
		for i := range counters {
			c := &counters[i]
			c.Name, c.Group = shared(c.Name), state.CounterGroup(shared(string(c.Group)))
		}
	}
	h.Failure, h.Reading = clip(h.Failure), clip(h.Reading)
	details(h.Refused)
	named(h.Counters)
	a := &h.Identity
	name(&a.Slot, &a.BoardID, &a.Model, &a.DriverVersion)
	for i := range h.Ports {
		p := &h.Ports[i]
		name(&p.Netdev, &p.Bond)
		named(p.Counters)
		for j := range p.GIDs {
			name(&p.GIDs[j].Netdev)
		}
		details(p.Refused)
	}
	for i := range h.Interrupts {
		name(&h.Interrupts[i].Name)
	}
}

// isAddress reports whether s has the form of an address, of the PCI bus or of a port, or is
// empty.
func isAddress(s string) bool {
	return len(s) <= maxLabel && strings.Trim(s, "0123456789abcdefABCDEF:.") == ""
}

// isPrintable reports whether s is a name of printable characters of ASCII, as the counters
// of drivers have.
func isPrintable(s string) bool {
	return s != "" && len(s) <= maxLabel && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
