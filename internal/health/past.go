package health

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"rdma_exporter/internal/state"
)

// Past is what a Judge remembers, and what may be kept over a restart.
type Past struct {
	// Findings are when each finding was seen, those that are gone for a short while
	// among them.
	Findings map[FindingKey]Seen
	// Ports are the numbers of the ports that were active once, by device.
	Ports map[string][]int
	// Links are how the states of ports went, by device. Nobody changes a list of them.
	Links map[string]state.LinkPast
	// Exhausted is what devices had no more of, by device. Nobody changes a list of them.
	Exhausted map[string][]Exhausted
	// Witnesses are who had which opened device, by device. Nobody changes a list of them.
	Witnesses map[string][]Witness
	// BusErrors are the errors on the PCI bus, by device. They are not kept over a restart.
	BusErrors map[string]BusErrors
}

// BusErrors are the errors of an adapter on the PCI bus that were not corrected.
type BusErrors struct {
	// First is what was counted when the device was first looked at, or began anew, and
	// Latest now.
	First, Latest state.AER
	// Grew is when there were more of them the last time; zero if there never were.
	Grew time.Time
}

// remembered is what is remembered of a device.
type remembered struct {
	// activeOnce are the ports that were active once.
	activeOnce []int
	busErrors  BusErrors
	// growth is how the objects on it grow; nil if nobody has looked yet.
	growth *Growth
	// exhausted is what it had no more of, as far as that holds.
	exhausted []Exhausted
	// left is what was left of opened devices, the latest first.
	left []Witness
}

// of returns what is remembered of a device.
func (p *Past) of(device string) remembered {
	return remembered{
		activeOnce: p.Ports[device], busErrors: p.BusErrors[device],
		exhausted: Holding(p.Exhausted[device]), left: Left(p.Witnesses[device]),
	}
}

// FindingKey is what makes two findings the same one at different times.
type FindingKey struct {
	Device  string
	Kind    Kind
	Subject string
}

// Seen is when a finding was seen first and last.
type Seen struct{ First, Last time.Time }

const (
	// findingGone is how long a finding must have been gone to be another one when it
	// comes again: what comes and goes from run to run has been there all along.
	findingGone = 10 * time.Minute
	// mostAway is how long nothing may have been judged for what was there before to go on.
	mostAway = 7 * 24 * time.Hour
	// MaxPastDevices is the most devices whose ports and links are remembered, whatever
	// names come and go.
	MaxPastDevices = 4096
	// MaxPastPorts is the most ports of each that are.
	MaxPastPorts = 256
	// MaxPastFindings is the most findings that are remembered.
	MaxPastFindings = 4096
)

// resumed returns a past as it goes on at a moment. Nobody looked since the latest of it,
// so that time does not count as time in which a finding was gone.
func (p Past) resumed(now time.Time) Past {
	went := Past{
		Findings: make(map[FindingKey]Seen, len(p.Findings)), Ports: make(map[string][]int, len(p.Ports)),
		Links: make(map[string]state.LinkPast, len(p.Links)), BusErrors: make(map[string]BusErrors),
		Exhausted: make(map[string][]Exhausted, len(p.Exhausted)), Witnesses: make(map[string][]Witness, len(p.Witnesses)),
	}
	maps.Copy(went.Links, p.Links)
	maps.Copy(went.Exhausted, p.Exhausted)
	maps.Copy(went.Witnesses, p.Witnesses)
	for device, ports := range p.Ports {
		went.Ports[device] = slices.Clone(ports)
	}
	var latest time.Time
	for _, seen := range p.Findings {
		if seen.Last.After(latest) {
			latest = seen.Last
		}
	}
	away := now.Sub(latest)
	if now.IsZero() || away > mostAway {
		return went
	}
	for key, seen := range p.Findings {
		seen.Last = seen.Last.Add(away)
		// A clock may have been wrong, and set right since.
		if seen.First.After(seen.Last) {
			seen.First = seen.Last
		}
		went.Findings[key] = seen
	}
	return went
}

// see remembers that a finding is there at a moment, and returns when it was seen.
func (p *Past) see(key FindingKey, now time.Time) Seen {
	seen, known := p.Findings[key]
	if !known || now.Sub(seen.Last) >= findingGone || seen.First.After(now) {
		seen.First = now
	}
	seen.Last = now
	p.Findings[key] = seen
	return seen
}

// stay remembers that what was found of a host was there until now, and what could not be
// found again because nothing is known of it yet is not gone.
func (p *Past) stay(h *Host, now time.Time) {
	unknown := make(map[string]*Device)
	for _, d := range h.Devices {
		for i := range d.Findings {
			key := keyOf(d.State.Name, &d.Findings[i])
			if seen, known := p.Findings[key]; known {
				seen.Last = now
				p.Findings[key] = seen
			}
		}
		unknown[d.State.Name] = d
	}
	for key, seen := range p.Findings {
		if d := unknown[key.Device]; d != nil && !d.judged(key.Kind) {
			seen.Last = now
			p.Findings[key] = seen
		}
	}
}

// forget removes what has been gone for long and, of more than there may be, what was
// seen first last: what is oldest is worth most.
func (p *Past) forget(now time.Time) {
	maps.DeleteFunc(p.Findings, func(_ FindingKey, seen Seen) bool { return now.Sub(seen.Last) >= findingGone })
	if len(p.Findings) <= MaxPastFindings {
		return
	}
	keys := slices.SortedFunc(maps.Keys(p.Findings), func(a, b FindingKey) int {
		return cmp.Or(p.Findings[a].First.Compare(p.Findings[b].First), compareKeys(a, b))
	})
	for _, key := range keys[MaxPastFindings:] {
		delete(p.Findings, key)
	}
}

// compareKeys puts keys in an order.
func compareKeys(a, b FindingKey) int {
	return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Subject, b.Subject))
}

// Sorted returns the keys of the findings, in order.
func (p Past) Sorted() []FindingKey {
	return slices.SortedFunc(maps.Keys(p.Findings), compareKeys)
}

// clone returns a copy that shares nothing with p.
func (p Past) clone() Past {
	c := Past{
		Findings: maps.Clone(p.Findings), Ports: maps.Clone(p.Ports), Links: maps.Clone(p.Links), BusErrors: maps.Clone(p.BusErrors),
		Exhausted: maps.Clone(p.Exhausted), Witnesses: maps.Clone(p.Witnesses),
	}
	for device, ports := range c.Ports {
		c.Ports[device] = slices.Clone(ports)
	}
	return c
}

// keyOf returns the key of a finding.
func keyOf(device string, f *Finding) FindingKey {
	return FindingKey{Device: device, Kind: f.Kind, Subject: cmp.Or(f.about, f.Subject)}
}

// take takes in what is known of a device now.
func (p *Past) take(d *state.DeviceState) {
	p.takeLinks(d)
	p.takeBusErrors(d)
	p.takeExhausted(d)
	p.takeWitnesses(d)
	if d.Last == nil || d.Last.Info == nil {
		return
	}
	before := p.Ports[d.Name]
	after := before
	for _, port := range d.Last.Info.Ports {
		if isActive(port) && !slices.Contains(after, port.Number) && len(after) < MaxPastPorts {
			after = append(slices.Clip(after), port.Number)
		}
	}
	if len(after) == len(before) || before == nil && len(p.Ports) >= MaxPastDevices {
		return
	}
	slices.Sort(after)
	p.Ports[d.Name] = after
}

// takeLinks takes in how the links of a device went.
func (p *Past) takeLinks(d *state.DeviceState) {
	before, known := p.Links[d.Name]
	h := d.Hardware
	if h == nil || len(h.Links) == 0 || !known && len(p.Links) >= MaxPastDevices {
		return
	}
	now := state.LinkPast{Links: h.Links, PCI: before.PCI, BoardID: before.BoardID}
	if h.Latest != nil {
		now.PCI = cmp.Or(h.Latest.Identity.PCI, now.PCI)
		now.BoardID = cmp.Or(h.Latest.Identity.BoardID, now.BoardID)
	}
	p.Links[d.Name] = now
}

// away remembers since when devices are not there, of a snapshot that has all that are, and
// forgets the links of those that have been away for long.
func (p *Past) away(s *state.Snapshot, now time.Time) {
	if !s.Ready || s.DiscoveryError != "" || now.IsZero() {
		return
	}
	there := make(map[string]bool, len(s.Devices))
	for i := range s.Devices {
		there[s.Devices[i].Name] = s.Devices[i].Present
	}
	for name, past := range p.Links {
		switch {
		case there[name]: // It is as takeLinks has it, once its links are known.
		case past.Away.IsZero(), past.Away.After(now): // A clock was set right since.
			past.Away = now
			p.Links[name] = past
		case past.Forgotten(now):
			delete(p.Links, name)
		}
	}
}

// takeBusErrors takes in the errors on the PCI bus.
func (p *Past) takeBusErrors(d *state.DeviceState) {
	if d.Hardware == nil || d.Hardware.Latest == nil || d.Hardware.Latest.Identity.AER == nil {
		return
	}
	now := *d.Hardware.Latest.Identity.AER
	before, known := p.BusErrors[d.Name]
	switch was := before.Latest; {
	case !known && len(p.BusErrors) >= MaxPastDevices:
		return
	case !known, now.Nonfatal < was.Nonfatal, now.Fatal < was.Fatal:
		before = BusErrors{First: now}
	case now.Nonfatal > was.Nonfatal, now.Fatal > was.Fatal:
		before.Grew = d.Hardware.Read
	}
	before.Latest = now
	p.BusErrors[d.Name] = before
}

// isActive tells whether a port can be used.
func isActive(p state.Port) bool { return p.State == "active" || p.State == "active_defer" }
