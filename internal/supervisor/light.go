package supervisor

import (
	"slices"

	"rdma_exporter/internal/report"
)

// keepRest returns the probes by a light run and, of what it did not look at, by those
// before. It changes neither list.
func keepRest(before, now []report.Probe) []report.Probe {
	now = slices.Clone(now)
	for i := range now {
		p := &now[i]
		if b := slices.IndexFunc(before, func(b report.Probe) bool { return b.Name == p.Name }); b >= 0 {
			keep(p, &before[b])
		}
	}
	return carried(before, now, func(p report.Probe) string { return p.Name }, keepAll)
}

// keep adds to what a probe of a light run found what it had found before and did not
// look at. What failed before fails until it is looked at again.
func keep(p, before *report.Probe) {
	looked := subjects(p)
	left := func(subject string) bool { return !slices.Contains(looked, subject) }

	p.CQs = carried(before.CQs, p.CQs, func(c report.CQSize) string { return c.Profile }, keepAll)
	p.QPs = carried(before.QPs, p.QPs, func(q report.QPSize) string { return q.Type + " " + q.Profile }, keepAll)
	p.Inline = carried(before.Inline, p.Inline, func(i report.InlineMax) string { return i.Type }, keepAll)
	p.Memory = carried(before.Memory, p.Memory, func(m report.Memory) string { return m.Object + " " + m.Profile }, keepAll)
	p.Clamps = carried(before.Clamps, p.Clamps, func(c report.Clamp) string { return c.Subject + " " + c.Profile + " " + c.Attribute },
		func(c report.Clamp) bool { return left(c.Subject + " " + c.Profile) })
	p.Known = carried(before.Known, p.Known, func(k report.KnownShortfall) string { return k.Subject + " " + k.Message },
		func(k report.KnownShortfall) bool { return left(k.Subject) })
	p.Skips = carried(before.Skips, p.Skips, func(s report.Skip) string { return s.Subject + " " + string(s.Reason) },
		func(s report.Skip) bool { return left(s.Subject) })
	p.Failures = carried(before.Failures, p.Failures, func(f report.Failure) string { return f.Subject + " " + f.Verb + " " + f.Message },
		func(f report.Failure) bool { return left(f.Subject) })
	if len(p.Failures) > 0 {
		p.Status = report.StatusFailed
	}
}

// subjects returns what a probe of a light run looked at, in the words of failures,
// skips and clamps: the whole probe among them.
func subjects(p *report.Probe) []string {
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
