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
	// expected tells which failures are provoked on purpose; nil for none.
	expected func(error) bool
	// exhausted is that of the options.
	exhausted func(*verbs.Error) (state.Refused, bool)
	// created are the objects of each type, by the verb that creates them.
	created map[verbs.Verb]created
	// last is the latest call.
	last verbs.Call
}

// created are the objects of a type that were created.
type created struct {
	// held is how many of them there are, and most how many there were at once.
	held, most int
	// refused is that the device had no more of them to give; nil if it had.
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

// count counts what is created and destroyed, and asks about what was refused.
//
// Where fewer were held than the device gave at once in the same run, it was the size that
// was refused, or the moment has passed: that does not count.
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
		if o.held++; o.held > o.most {
			o.most, o.refused = o.held, nil
		}
	case o.held == o.most && o.refused == nil:
		if refused, exhausted := r.exhausted(&verbs.Error{Verb: c.Verb, Device: r.device, Errno: c.Errno}); exhausted {
			o.refused = &refused
		}
	}
	if r.created == nil {
		r.created = make(map[verbs.Verb]created)
	}
	r.created[by] = o
}

// tell reports of which objects the device had no more.
func (r *recorder) tell() {
	for _, by := range slices.Sorted(maps.Keys(r.created)) {
		if refused := r.created[by].refused; refused != nil {
			_ = r.out.Send(wire.Line{Refused: refused})
		}
	}
}
