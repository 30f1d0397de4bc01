package session

import (
	"maps"
	"slices"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
)

// recorder writes each verb to the report.
type recorder struct {
	out    *wire.Writer
	device string
	// expected reports whether a failure is provoked. Nil means that none is.
	expected  func(error) bool
	exhausted func(*verbs.Error) (state.Refused, bool)
	// created has the objects of each type by the verb that creates them.
	created map[verbs.Verb]created
	last    verbs.Call
}

type created struct {
	// held counts the objects of a type, and max is its maximum.
	held, max int
	// refused is not nil if the device had no more of them.
	refused *state.Refused
}

// Begin implements verbs.Tracer. An error stays with the writer.
func (r *recorder) Begin(v verbs.Verb) { _ = r.out.Send(wire.Line{Begin: string(v)}) }

// End implements verbs.Tracer.
func (r *recorder) End(c verbs.Call) {
	r.last = c
	call := state.Call{Verb: string(c.Verb), Duration: c.Duration}
	if c.Errno != 0 {
		call.Errno = verbs.ErrnoName(c.Errno)
		call.Expected = r.expected != nil && r.expected(c.Errno)
	}
	_ = r.out.Send(wire.Line{Call: &call})
	if r.exhausted != nil && !call.Expected {
		r.count(c)
	}
}

// count counts what is created and destroyed. A refusal counts only if as many objects are
// held as ever in the run; otherwise it was for the size.
func (r *recorder) count(c verbs.Call) {
	by, destroyed := map[verbs.Verb]verbs.Verb{
		verbs.DeallocPD: verbs.AllocPD, verbs.DeregMR: verbs.RegMR, verbs.DestroyCQ: verbs.CreateCQ,
		verbs.DestroySRQ: verbs.CreateSRQ, verbs.DestroyQP: verbs.CreateQP,
	}[c.Verb]
	if !destroyed {
		by = c.Verb
	}
	o := r.created[by]
	switch {
	case destroyed && c.Errno == 0:
		o.held--
	case destroyed:
	case c.Errno == 0:
		if o.held++; o.held > o.max {
			o.max, o.refused = o.held, nil
		}
	case o.held == o.max && o.refused == nil:
		if refused, exhausted := r.exhausted(&verbs.Error{Verb: c.Verb, Device: r.device, Errno: c.Errno}); exhausted {
			o.refused = &refused
		}
	}
	r.created[by] = o
}

// reportRefused reports the types that the device had no more of.
func (r *recorder) reportRefused() {
	for _, by := range slices.Sorted(maps.Keys(r.created)) {
		if refused := r.created[by].refused; refused != nil {
			_ = r.out.Send(wire.Line{Refused: refused})
		}
	}
}
