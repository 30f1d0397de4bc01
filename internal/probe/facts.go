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
	"rdma_exporter/verbs"
)

// facts are what is known of the device that need not be asked again.
type facts struct {
	state.Facts
	// news tells that no report has all of it yet.
	news bool
}

// factsOf returns the facts that are given if they are those of the device as it is
// now, and tells whether they are.
func (r *run) factsOf(given *state.Facts) (facts, bool) {
	known, same := given.Of(r.Identity(r.driver.Kernel))
	return facts{known, !same}, same
}

// tellFacts reports the facts, if there are new ones.
func (r *run) tellFacts() {
	if r.facts.news {
		r.facts.news = false
		_ = r.Out.Send(wire.Line{Facts: &r.facts.Facts})
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
		if q.depth == state.DepthFull {
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
	q.facts.Absent, q.facts.news = append(q.facts.Absent, a), true
	q.lacks(a)
}

// lacks has nobody else ask for the type.
func (q *qpProbe) lacks(a state.Skip) {
	if a.Reason != state.SkipNotPermitted {
		q.Lacks(q.typ, errors.New(strings.TrimPrefix(a.Detail, notEvenSmallest)))
	}
}

// learnInline notes the most inline data of the type, if that was just found.
func (q *qpProbe) learnInline() {
	if n := len(q.Inline); n > 0 && q.Inline[n-1].Type == q.label {
		q.facts.Inline, q.facts.news = append(q.facts.Inline, q.Inline[n-1]), true
	}
}

// absent returns as what it is reported that the device does not have a type of QP; nil
// if that is not known.
func (r *run) absent(t verbs.QPType) *state.Skip {
	i := slices.IndexFunc(r.facts.Absent, func(s state.Skip) bool { return s.Subject.QPType == t.Label() })
	if i < 0 {
		return nil
	}
	return &r.facts.Absent[i]
}

// inlineOf returns the most inline data of a type of QP; nil if that is not known.
func (r *run) inlineOf(t verbs.QPType) *state.InlineMax {
	i := slices.IndexFunc(r.facts.Inline, func(m state.InlineMax) bool { return m.Type == t.Label() })
	if i < 0 {
		return nil
	}
	return &r.facts.Inline[i]
}

// among returns a digest of the addresses of all ports, from which the ways of a run are
// chosen: another address, or a port that came up, can make a better one.
func among(loopbacks []*way) string {
	digest := sha256.New()
	for _, w := range loopbacks {
		for _, c := range w.candidates {
			fmt.Fprintf(digest, "%d %q\n", w.port, w.name(c))
		}
	}
	return hex.EncodeToString(digest.Sum(nil)[:8])
}

// recallWay has the way that is known be tried first.
func (n *notification) recallWay(w *way, among string) {
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

// learnWay notes the way that is taken, and returns it as it is reported: with why no
// better one is, if that was found out before. Failed are how many were tried first.
func (n *notification) learnWay(w *way, port int, found state.Method, failed int) state.Method {
	if w.known != nil && found.By == w.known.By && failed == 0 {
		found.InsteadOf = w.known.InsteadOf
		return found
	}
	// On the flush path the port is known once the way is.
	k := state.KnownMethod{Method: found, Among: w.among}
	k.Port = port
	n.facts.Methods = slices.DeleteFunc(n.facts.Methods, func(o state.KnownMethod) bool { return o.Path == k.Path && o.Port == port })
	n.facts.Methods, n.facts.news = append(n.facts.Methods, k), true
	return found
}
