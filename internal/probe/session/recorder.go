package session

import (
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
)

// recorder writes each verb to the report.
type recorder struct {
	out *wire.Writer
	// expected tells which failures are provoked on purpose; nil for none.
	expected func(error) bool
}

// Begin implements verbs.Tracer. An error stays with the writer.
func (r *recorder) Begin(v verbs.Verb) { _ = r.out.Begin(string(v)) }

// End implements verbs.Tracer.
func (r *recorder) End(c verbs.Call) {
	call := state.Call{Verb: string(c.Verb), Duration: c.Duration}
	if c.Errno != 0 {
		call.Errno = verbs.ErrnoName(c.Errno)
		call.Expected = r.expected != nil && r.expected(c.Errno)
	}
	_ = r.out.Call(call)
}
