package probe

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// facts are results of earlier runs that need not be requested again.
type facts struct {
	state.Facts
	// changed is true if no report has all of them yet.
	changed bool
}

// factsOf returns the given facts if they are about the device as it is now, and reports
// whether they are.
func (r *run) factsOf(given *state.Facts) (facts, bool) {
	f, same := given.Of(r.Identity(r.driver.Kernel))
	return facts{f, !same}, same
}

func (r *run) reportFacts() {
	if r.facts.changed {
		r.facts.changed = false
		_ = r.Out.Send(wire.Line{Facts: &r.facts.Facts})
	}
}

// recall uses the facts about the type, and reports whether there are any.
func (q *qpProbe) recall() bool {
	if i := slices.IndexFunc(q.facts.Absent, func(s state.Skip) bool { return s.Subject.QPType == q.label }); i >= 0 {
		q.lacking = true
		q.Skips = append(q.Skips, q.facts.Absent[i])
		q.markAbsent(q.facts.Absent[i])
		return true
	}
	i := slices.IndexFunc(q.facts.Inline, func(m state.InlineMax) bool { return m.Type == q.label })
	if i < 0 {
		return false
	}
	m := q.facts.Inline[i]
	q.works, q.inline = true, int(m.Bytes)
	q.Inline = append(q.Inline, m)
	if q.depth == state.DepthFull {
		// The size is known, and may still be too large to send.
		q.inlineMax = append(q.inlineMax, inlineMax{typ: q.typ, bytes: q.inline})
	}
	return true
}

// learnAbsent records that the device lacks the type, for the reason of the last skip.
func (q *qpProbe) learnAbsent() {
	a := q.Skips[len(q.Skips)-1]
	q.facts.Absent, q.facts.changed = append(q.facts.Absent, a), true
	q.markAbsent(a)
}

// markAbsent keeps the rest of the run from requesting the type.
func (q *qpProbe) markAbsent(a state.Skip) {
	if a.Reason != state.SkipNotPermitted {
		q.Lacks(q.typ, errors.New(strings.TrimPrefix(a.Detail, notEvenSmallest)))
	}
}

// among returns a digest of the addresses of all ports, from which a run chooses: another
// address, or a port that came up, may be better.
func among(loopbacks []*method) string {
	digest := sha256.New()
	for _, w := range loopbacks {
		for _, c := range w.candidates {
			fmt.Fprintf(digest, "%d %q\n", w.port, w.name(c))
		}
	}
	return hex.EncodeToString(digest.Sum(nil)[:8])
}

// recallMethod moves the known candidate to the front.
func (n *notification) recallMethod(w *method, among string) {
	w.among = among
	i := slices.IndexFunc(n.facts.Methods, func(k state.KnownMethod) bool {
		return k.Path == w.path && k.Port == w.port && k.Among == among
	})
	if i < 0 {
		return
	}
	known := n.facts.Methods[i].Method
	if c := slices.IndexFunc(w.candidates, func(c candidate) bool { return w.name(c) == known.By }); c >= 0 {
		w.known = &known
		w.candidates = slices.Concat(w.candidates[c:c+1], w.candidates[:c], w.candidates[c+1:])
	}
}

// learnMethod records the candidate that is taken after others failed, and returns it for the
// report. If it was known, the report keeps why better ones do not work.
func (n *notification) learnMethod(w *method, port int, found state.Method, failed int) state.Method {
	if w.known != nil && found.By == w.known.By && failed == 0 {
		found.InsteadOf = w.known.InsteadOf
		return found
	}
	// On the flush path the port is known once the candidate is.
	k := state.KnownMethod{Method: found, Among: w.among}
	k.Port = port
	n.facts.Methods = slices.DeleteFunc(n.facts.Methods, func(o state.KnownMethod) bool { return o.Path == k.Path && o.Port == port })
	n.facts.Methods, n.facts.changed = append(n.facts.Methods, k), true
	return found
}
