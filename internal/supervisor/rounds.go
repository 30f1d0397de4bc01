package supervisor

import (
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// rounds is what a worker keeps of the runs of the probes for those to come: a run
// neither asks again for what is known to be refused, nor does it do everything.
type rounds struct {
	// facts are what is known of the device; nil for nothing.
	facts *state.Facts
	// whole tells that there was no run that was ok since the device became what it is:
	// runs do everything, so that what fails does not wait for its turn to fail again.
	whole bool
	// turn is the number of the next turn. It is the same until it went well.
	turn int
	// probes are the probes by the latest runs that had their turn.
	probes []state.Probe
}

// request returns what the next run is told.
func (r *rounds) request() wire.Request {
	p := wire.Request{Facts: r.facts}
	if !r.whole {
		turn := r.turn
		p.Turn = &turn
	}
	return p
}

// take takes in a finished run. It returns what is kept of it, to which it adds what
// earlier runs found and this one left out; and how the device has changed, if it is
// another than before.
func (r *rounds) take(run *state.Run) (kept *state.Run, changes []string) {
	if f := run.Facts; f != nil {
		if r.facts == nil || r.facts.Identity != f.Identity {
			if r.facts != nil {
				changes = r.facts.Identity.Changes(f.Identity)
			}
			r.whole, r.turn, r.probes = true, 0, nil
		}
		r.facts = f
	}
	kept = run.Kept()
	if done := run.Outcome == state.OutcomeOK || run.Outcome == state.OutcomeFailed; done && run.Light != nil && run.Info != nil {
		kept.Probes = keepRest(r.probes, kept.Probes)
	}
	if run.Turn != nil {
		for i := range kept.Probes {
			p := &kept.Probes[i]
			if b := slices.IndexFunc(r.probes, func(b state.Probe) bool { return b.Name == p.Name }); b >= 0 {
				carry(p, &r.probes[b], run.Turn)
			}
		}
	}
	switch run.Outcome {
	case state.OutcomeOK:
		r.whole, r.probes = r.whole && run.Light != nil, kept.Probes
		if run.Turn != nil {
			r.turn++
		}
	case state.OutcomeFailed:
		r.probes = kept.Probes
	default: // It did not come to its end, so what it lacks need not be lacking.
	}
	return kept, changes
}

// carry adds to what a probe found what it had found before and did not look at in this
// turn.
func carry(p, before *state.Probe, t *state.Turn) {
	p.CQs = carried(before.CQs, p.CQs, cqKey,
		func(c state.CQSize) bool { return !t.Created("cq", c.Profile) })
	p.SRQs = carried(before.SRQs, p.SRQs, func(s state.SRQSize) string { return s.Profile },
		func(s state.SRQSize) bool { return !t.Created("srq", s.Profile) })
	p.QPs = carried(before.QPs, p.QPs, qpKey,
		func(q state.QPSize) bool { return !t.Created("qp_"+q.Type, q.Profile) })
	p.InlineSends = carried(before.InlineSends, p.InlineSends, func(s state.InlineSend) string { return s.Type },
		func(state.InlineSend) bool { return true })
	p.Memory = carried(before.Memory, p.Memory, memoryKey,
		func(m state.Memory) bool { return !t.Created(m.Object, m.Profile) })
	p.Registrations = carried(before.Registrations, p.Registrations, func(r state.Registration) string { return string(r.Memory) },
		func(r state.Registration) bool { return !t.Created("mr", string(r.Memory)) })
	p.Clamps = carried(before.Clamps, p.Clamps, clampKey,
		func(c state.Clamp) bool { return !t.Created(c.Subject, c.Profile) })
	p.Known = carried(before.Known, p.Known, knownKey,
		func(k state.KnownShortfall) bool { return !t.Created(objectOf(p.Name, k.Subject)) })

	// Of a port that no longer reaches itself nothing is known any more.
	reached := func(port int) bool {
		subject := fmt.Sprintf("%s port %d", state.PathLoopback, port)
		return !slices.ContainsFunc(p.Skips, func(s state.Skip) bool { return s.Subject == subject }) &&
			!slices.ContainsFunc(p.Failures, func(f state.Failure) bool { return f.Subject == subject })
	}
	p.Ways = carried(before.Ways, p.Ways, func(w state.Way) string { return fmt.Sprint(w.Path, w.Port) },
		func(w state.Way) bool {
			return w.Path == state.PathLoopback && w.Port != t.Port && reached(w.Port)
		})
	p.Latencies = carried(before.Latencies, p.Latencies, func(l state.Latency) string { return fmt.Sprint(l.Path, l.Mode, l.Port, l.Vector) },
		func(l state.Latency) bool {
			return !t.Measured(&l) && (l.Path != state.PathLoopback || reached(l.Port))
		})
	p.Skips = carried(before.Skips, p.Skips, skipKey,
		func(s state.Skip) bool {
			if !t.Created(objectOf(p.Name, s.Subject)) {
				return true
			}
			var path, mode string
			var port int
			n, _ := fmt.Sscanf(s.Subject, "%s %s port %d", &path, &mode, &port)
			return n == 3 && port != t.Port && reached(port)
		})
}

// objectOf returns the kind of object and the profile that a probe means by a subject.
func objectOf(probe, subject string) (object, profile string) {
	if typ, profile, ok := strings.Cut(subject, " "); ok {
		return probe + "_" + typ, profile
	}
	return probe, subject
}

// maxCarried is the most items of a list that are kept of earlier runs and this one
// together, whatever children invent.
const maxCarried = 4096

// carried returns the items of this run and those of before that are kept, in the place
// that each had before. Items with the same key are the same. It changes neither list.
func carried[T any](before, now []T, key func(T) string, keep func(T) bool) []T {
	latest := make(map[string]T, len(now))
	for _, v := range now {
		latest[key(v)] = v
	}
	var list []T
	for _, b := range before {
		k := key(b)
		if v, ok := latest[k]; ok {
			list = append(list, v)
			delete(latest, k)
		} else if keep(b) {
			list = append(list, b)
		}
	}
	for _, v := range now {
		if k := key(v); len(latest) > 0 {
			if _, left := latest[k]; left {
				list = append(list, v)
				delete(latest, k)
			}
		}
	}
	if len(list) > maxCarried {
		return now
	}
	return list
}

// What tells items of a list apart.
func cqKey(c state.CQSize) string            { return c.Profile }
func qpKey(q state.QPSize) string            { return q.Type + " " + q.Profile }
func memoryKey(m state.Memory) string        { return m.Object + " " + m.Profile }
func clampKey(c state.Clamp) string          { return c.Subject + " " + c.Profile + " " + c.Attribute }
func knownKey(k state.KnownShortfall) string { return k.Subject + " " + k.Message }
func skipKey(s state.Skip) string            { return s.Subject + " " + string(s.Reason) }
