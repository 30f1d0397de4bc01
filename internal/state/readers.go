package state

import (
	"cmp"
	"slices"
	"time"
)

// Finished reports whether the run came to its probes and was neither killed nor crashed.
// The run may be nil.
func (r *Run) Finished() bool {
	return r != nil && (r.Outcome == OutcomeOK || r.Outcome == OutcomeFailed) && len(r.Probes) > 0
}

// ProbeResult is the state of one probe of a device.
type ProbeResult struct {
	Name string
	// Detail is from the last full run, or from Last if no full run covers the probe. Sizes,
	// inline data, memory, clamps, known shortfalls and vectors are read from it.
	Detail *Probe
	// Latest is from the last run. Nil means that it did not cover the probe.
	Latest *Probe
	// Status is that of Latest. It is failed if either failed, and empty if the last run
	// was to cover the probe and did not reach it.
	Status Status
}

// Probes returns each probe that the last full run or the last run covered.
func (d *DeviceState) Probes() []ProbeResult {
	var results []ProbeResult
	latest := make(map[string]*Probe)
	last := cmp.Or(d.Last, new(Run)).Probes
	for i := range last {
		latest[last[i].Name] = cmp.Or(latest[last[i].Name], &last[i])
	}
	for _, run := range []*Run{d.Full, d.Last} {
		for i := range cmp.Or(run, new(Run)).Probes {
			p := ProbeResult{Name: run.Probes[i].Name, Detail: &run.Probes[i], Latest: latest[run.Probes[i].Name]}
			switch {
			case slices.ContainsFunc(results, func(r ProbeResult) bool { return r.Name == p.Name }):
				continue
			case p.Detail.Status == StatusFailed:
				p.Status = StatusFailed
			case p.Latest != nil:
				p.Status = p.Latest.Status
			case d.Last.Finished():
				p.Status = p.Detail.Status
			}
			results = append(results, p)
		}
	}
	return results
}

// Runs returns the runs that the result is from, the latest first, without repetition.
func (p ProbeResult) Runs() []*Probe {
	if p.Latest == nil || p.Latest == p.Detail {
		return []*Probe{p.Detail}
	}
	return []*Probe{p.Latest, p.Detail}
}

// Duration returns the time that the latest run of the probe took.
func (p ProbeResult) Duration() time.Duration { return p.Runs()[0].Duration }

// Failures returns those of the last run, and those of the last full run that it did not
// repeat: they stand until the next full run.
func (p ProbeResult) Failures() []Failure {
	return both(p, func(p *Probe) []Failure { return p.Failures }, func(a, b Failure) bool {
		return a.Subject.Equal(b.Subject) && a.Verb == b.Verb && a.Errno == b.Errno
	})
}

// Skips returns those of the last run, and those of the last full run that it did not
// repeat. Each run looks at all ports, so that only its own ports are down.
func (p ProbeResult) Skips() []Skip {
	skips := both(p, func(p *Probe) []Skip { return p.Skips }, func(a, b Skip) bool {
		return a.Subject.Equal(b.Subject) && a.Reason == b.Reason
	})
	latest := p.Runs()[0]
	return slices.DeleteFunc(skips, func(s Skip) bool {
		return s.Reason == SkipPortDown && !slices.ContainsFunc(latest.Skips, func(l Skip) bool { return l.Subject.Equal(s.Subject) })
	})
}

// both returns the items of the latest run, and those of the full one unless one of the
// latest replaces it.
func both[T any](p ProbeResult, items func(*Probe) []T, replaces func(latest, full T) bool) []T {
	runs := p.Runs()
	all := slices.Clone(items(runs[0]))
	for _, full := range runs[1:] {
		for _, item := range items(full) {
			if !slices.ContainsFunc(items(runs[0]), func(latest T) bool { return replaces(latest, item) }) {
				all = append(all, item)
			}
		}
	}
	return all
}

// Vectors returns the measurement that stands for each completion vector, from the last
// full run.
func (d *DeviceState) Vectors() []Latency {
	return cmp.Or(d.Full, new(Run)).Vectors()
}

// Queried reports whether the last run queried a port.
func (d *DeviceState) Queried(port int) bool {
	return d.Last != nil && d.Last.Info != nil &&
		slices.ContainsFunc(d.Last.Info.Ports, func(p Port) bool { return p.Number == port })
}

// Ports returns the ports as the last run found them, or by the last reading of the hardware if it could not query the
// device. They are nil while neither is known.
func (d *DeviceState) Ports() (ports []Port) {
	switch h := d.Hardware; {
	case d.Last != nil && d.Last.Info != nil:
		return d.Last.Info.Ports
	case d.Last != nil && h != nil && h.Latest != nil && h.Failures == 0:
		for _, p := range h.Latest.Ports {
			ports = append(ports, Port{Number: p.Number, State: p.State, LinkLayer: p.LinkLayer})
		}
	}
	return ports
}

// ShowsSizes reports whether the last full run requested the given sizes, see
// [Run.Sizes]. Only then its actual sizes may be shown next to them.
func (d *DeviceState) ShowsSizes(sizes string) bool { return d.Full != nil && d.Full.Sizes == sizes }
