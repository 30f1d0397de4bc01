package supervisor

import (
	"slices"

	"rdma_exporter/internal/state"
)

// keepRest returns the probes by a light run and, of what it did not look at, by those
// before. It changes neither list.
func keepRest(before, now []state.Probe) []state.Probe {
	now = slices.Clone(now)
	for i := range now {
		p := &now[i]
		if b := slices.IndexFunc(before, func(b state.Probe) bool { return b.Name == p.Name }); b >= 0 {
			keep(p, &before[b])
		}
	}
	return carried(before, now, func(p state.Probe) string { return p.Name }, keepAll)
}

// keep adds to what a probe of a light run found what it had found before and did not
// look at. What failed before fails until it is looked at again.
func keep(p, before *state.Probe) {
	looked := subjects(p)
	left := func(subject string) bool { return !slices.Contains(looked, subject) }

	p.CQs = carried(before.CQs, p.CQs, cqKey, keepAll)
	p.QPs = carried(before.QPs, p.QPs, qpKey, keepAll)
	p.Inline = carried(before.Inline, p.Inline, func(i state.InlineMax) string { return i.Type }, keepAll)
	p.Memory = carried(before.Memory, p.Memory, memoryKey, keepAll)
	p.Clamps = carried(before.Clamps, p.Clamps, clampKey,
		func(c state.Clamp) bool { return left(c.Subject + " " + c.Profile) })
	p.Known = carried(before.Known, p.Known, knownKey,
		func(k state.KnownShortfall) bool { return left(k.Subject) })
	p.Skips = carried(before.Skips, p.Skips, skipKey,
		func(s state.Skip) bool { return left(s.Subject) })
	p.Failures = carried(before.Failures, p.Failures, func(f state.Failure) string { return f.Subject + " " + f.Verb + " " + f.Message },
		func(f state.Failure) bool { return left(f.Subject) })
	if len(p.Failures) > 0 {
		p.Status = state.StatusFailed
	}
}

// subjects returns what a probe of a light run looked at, in the words of failures,
// skips and clamps: the whole probe among them.
func subjects(p *state.Probe) []string {
	looked := []string{""}
	for _, c := range p.CQs {
		looked = append(looked, c.Profile, "cq "+c.Profile)
	}
	for _, q := range p.QPs {
		looked = append(looked, q.Type, q.Type+" "+q.Profile, "qp_"+q.Type+" "+q.Profile, "cq", "protection domain")
	}
	return looked
}

// keepAll has everything kept.
func keepAll[T any](T) bool { return true }
