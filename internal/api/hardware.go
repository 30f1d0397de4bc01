package api

import (
	"cmp"
	"math"
	"slices"
	"time"

	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// hardwareOf returns what the kernel shows of an adapter; nil if it was never asked.
func hardwareOf(s *state.HardwareState) *Hardware {
	if s == nil {
		return nil
	}
	h := &Hardware{
		Read: moment(s.Read), Failures: count(s.Failures), Failure: text.Clean(s.Failure), Reading: text.Clean(s.Reading), Next: moment(s.Next),
		Drops: dropsOf(s.Drops, 0),
	}
	read := s.Latest
	if read == nil {
		return h
	}
	h.Driver = text.Clean(read.Driver)
	h.Adapter = adapterOf(&read.Identity)
	h.Saturated, h.Refused = saturatedOf(read.Table, read.Counters), refusedOf(read.Refused)
	for i := range cut(read.Ports) {
		port := hardwarePortOf(s, &read.Ports[i])
		port.Counters, port.Saturated = countersOf(read.Table, read.Ports[i].LinkLayer, read.Ports[i].Counters), saturatedOf(read.Table, read.Ports[i].Counters)
		h.Ports = append(h.Ports, port)
	}
	for _, i := range cut(read.Interrupts) {
		h.Interrupts = append(h.Interrupts, Interrupt{
			Vector: count(i.Vector), IRQ: count(i.IRQ), Name: text.Clean(i.Name), CPUs: text.Clean(i.CPUs), Effective: text.Clean(i.Effective),
			Isolated: i.Isolated, Count: natural(i.Count),
		})
	}
	return h
}

func adapterOf(a *state.Adapter) *Adapter {
	adapter := &Adapter{
		PCI: text.Clean(a.PCI), Slot: text.Clean(a.Slot), BoardID: text.Clean(a.BoardID), Model: text.Clean(a.Model),
		DriverVersion: text.Clean(a.DriverVersion), Role: text.Clean(a.Role), Parent: text.Clean(a.Parent), VFs: count(a.VFs),
		NetnsMode: text.Clean(a.NetnsMode), Link: pciLinkOf(a.Link), Bottleneck: pciLinkOf(a.Bottleneck),
	}
	if a.NUMANode >= 0 {
		adapter.NUMANode = new(a.NUMANode)
	}
	if e := a.AER; e != nil {
		adapter.AER = &AER{Correctable: natural(e.Correctable), Nonfatal: natural(e.Nonfatal), Fatal: natural(e.Fatal)}
	}
	return adapter
}

func pciLinkOf(l *state.PCILink) *PCILink {
	if l == nil {
		return nil
	}
	return &PCILink{
		Address: text.Clean(l.Address), Speed: whole(l.Speed), MaxSpeed: whole(l.MaxSpeed), Width: count(l.Width), MaxWidth: count(l.MaxWidth),
	}
}

func hardwarePortOf(s *state.HardwareState, p *state.HardwarePort) HardwarePort {
	port := HardwarePort{
		Number: p.Number, LinkLayer: text.Clean(p.LinkLayer), State: text.Clean(p.State), PhysState: text.Clean(p.PhysState),
		Rate: whole(p.Rate), MaxRate: whole(p.MaxRate), Width: count(p.Width), Speed: whole(p.Speed),
		Netdev: text.Clean(p.Netdev), Bond: text.Clean(p.Bond), MTU: count(p.MTU),
		GIDs: len(p.GIDs), GIDTypes: gidTypesOf(p.GIDs), Drops: dropsOf(s.Drops, p.Number), Refused: refusedOf(p.Refused),
	}
	for _, g := range p.GIDs {
		if g.Index == 0 {
			port.GID = text.Clean(g.GID)
		}
	}
	if i := p.RoCEv2IPv4; i != nil && *i >= 0 {
		port.RoCEv2IPv4 = new(*i)
	}
	if p.TemperatureCelsius != nil {
		port.Temperature = new(*p.TemperatureCelsius)
	}
	for i := range s.Links {
		if l := &s.Links[i]; l.Port == p.Number {
			port.GIDChanges, port.Link = natural(l.GIDChanges), linkOf(l)
		}
	}
	return port
}

// refusedOf returns the groups of counters that could not be read.
func refusedOf(all []state.RefusedCounters) []RefusedCounters {
	var refused []RefusedCounters
	for _, r := range cut(all) {
		refused = append(refused, RefusedCounters{Group: groupOf(r.Group), Errno: text.Clean(r.Errno), Detail: text.Clean(r.Detail)})
	}
	return refused
}

// countersOf returns what the counters of a port say under the names that all drivers share.
func countersOf(table, linkLayer string, all []state.Counter) []Counter {
	var known []Counter
	for _, v := range cut(counters.Of(table, linkLayer, cut(all))) {
		known = append(known, Counter{Metric: v.Metric, Counter: text.Clean(v.Counter), Priority: v.Priority, Value: natural(v.Value)})
	}
	return known
}

// saturatedOf returns the names of the counters that say nothing any more.
func saturatedOf(table string, all []state.Counter) []string {
	var names []string
	for _, c := range cut(all) {
		if counters.Saturated(table, c) {
			names = append(names, text.Clean(c.Name))
		}
	}
	return names
}

func linkOf(l *state.Link) *Link {
	link := &Link{Active: l.Active, Since: moment(l.Since), Ups: natural(l.Ups), Downs: natural(l.Downs)}
	for _, at := range cut(l.Recent) {
		link.Recent = append(link.Recent, moment(at))
	}
	slices.SortFunc(link.Recent, time.Time.Compare)
	return link
}

// gidTypesOf counts addresses by type and network device.
func gidTypesOf(gids []state.GID) []GIDCount {
	var counts []GIDCount
	for _, g := range gids {
		c := GIDCount{Type: text.Clean(g.Type), Netdev: text.Clean(g.Netdev)}
		i := slices.IndexFunc(counts, func(o GIDCount) bool { return o.Type == c.Type && o.Netdev == c.Netdev })
		if i < 0 {
			i, counts = len(counts), append(counts, c)
		}
		counts[i].GIDs++
	}
	slices.SortFunc(counts, func(a, b GIDCount) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Netdev, b.Netdev)) })
	return cut(counts)
}

// dropsOf returns which counters of a port were lower than the time before, 0 for those of
// the device as a whole.
func dropsOf(all []state.CounterDrop, port int) []CounterDrop {
	var drops []CounterDrop
	for _, d := range cut(all) {
		if d.Port == port {
			drops = append(drops, CounterDrop{Group: groupOf(d.Group), Counter: text.Clean(d.Name), Resets: natural(d.Resets), Wraps: natural(d.Wraps)})
		}
	}
	return drops
}

func groupOf(g state.CounterGroup) state.CounterGroup {
	return state.CounterGroup(text.Clean(string(g)))
}

// natural returns a count as a status has it: no more than 2^63-1.
func natural(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// whole returns a rate as a status has it: a whole number that is not negative.
func whole(f float64) int64 {
	switch {
	case !(f > 0):
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	default:
		return int64(f)
	}
}
