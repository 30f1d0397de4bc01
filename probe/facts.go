package probe

import (
	"errors"
	"slices"
	"strings"

	"rdma_exporter/report"
	"rdma_exporter/verbs"
)

// facts are what is known of the device that need not be asked again.
type facts struct {
	report.Facts
	// told is how much of it the report, of this run or an earlier one, has; negative
	// for not even the identity.
	told int
}

// factsOf returns the facts that are given if they are those of the device as it is
// now, and tells whether they are.
func (r *run) factsOf(given *report.Facts) (facts, bool) {
	f := facts{told: -1}
	var known bool
	if f.Facts, known = given.Of(r.Identity(r.driver.Kernel)); known {
		f.told = f.count()
	}
	return f, known
}

func (f *facts) count() int { return len(f.Absent) + len(f.Inline) }

// tellFacts reports the facts, if there are new ones.
func (r *run) tellFacts() {
	if n := r.facts.count(); n > r.facts.told {
		r.facts.told = n
		_ = r.Out.Facts(r.facts.Facts)
	}
}

// recall takes over what is known of the type, and tells whether anything is.
func (q *qpProbe) recall() bool {
	if a := q.run.absent(q.typ); a != nil {
		q.lacking = true
		q.Skips = append(q.Skips, *a)
		q.lacks(*a)
		return true
	}
	if m := q.inlineOf(q.typ); m != nil {
		q.works, q.inline = true, int(m.Bytes)
		q.Inline = append(q.Inline, *m)
		if q.turn.whole {
			// What could not be sent is not forgotten because the size is known.
			q.inlineMax = append(q.inlineMax, inlineMax{typ: q.typ, bytes: q.inline})
		}
		return true
	}
	return false
}

// learnAbsent notes that the device does not have the type, as was just reported.
func (q *qpProbe) learnAbsent() {
	a := q.Skips[len(q.Skips)-1]
	q.facts.Absent = append(q.facts.Absent, a)
	q.lacks(a)
}

// lacks has nobody else ask for the type.
func (q *qpProbe) lacks(a report.Skip) {
	if a.Reason != report.SkipNotPermitted {
		q.Lacks(q.typ, errors.New(strings.TrimPrefix(a.Detail, notEvenSmallest)))
	}
}

// learnInline notes the most inline data of the type, if that was just found.
func (q *qpProbe) learnInline() {
	if n := len(q.Inline); n > 0 && q.Inline[n-1].Type == q.label {
		q.facts.Inline = append(q.facts.Inline, q.Inline[n-1])
	}
}

// absent returns as what it is reported that the device does not have a type of QP; nil
// if that is not known.
func (r *run) absent(t verbs.QPType) *report.Skip {
	i := slices.IndexFunc(r.facts.Absent, func(s report.Skip) bool { return s.Subject == t.Label() })
	if i < 0 {
		return nil
	}
	return &r.facts.Absent[i]
}

// inlineOf returns the most inline data of a type of QP; nil if that is not known.
func (r *run) inlineOf(t verbs.QPType) *report.InlineMax {
	i := slices.IndexFunc(r.facts.Inline, func(m report.InlineMax) bool { return m.Type == t.Label() })
	if i < 0 {
		return nil
	}
	return &r.facts.Inline[i]
}
