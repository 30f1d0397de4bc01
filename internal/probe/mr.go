package probe

import (
	"errors"

	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// mr probes ibv_reg_mr(3) with memory of each kind, which is deregistered at once.
func (r *run) mr(s *step) {
	pd, err := r.PD()
	if err != nil {
		s.cannot(state.Subject{Object: "pd"}, err)
		return
	}
	if s.register(pd, state.MemoryPage, 4<<10) {
		s.register(pd, state.MemoryMany, 2<<20)
	}
}

// register reports whether nothing is left of the memory that it registered.
func (s *step) register(pd verbs.PD, kind state.RegisteredMemory, size int) (gone bool) {
	r := state.Registration{Memory: kind, Bytes: int64(size), Result: state.MemoryRegistered}
	defer func() { s.Registrations = append(s.Registrations, r) }()

	region, err := pd.RegMR(size, verbs.AccessLocalWrite)
	if err != nil {
		s.refused(&r, err)
		return true
	}
	s.done++
	r.Duration = s.LastCall().Duration
	failed := len(s.Failures)
	s.destroy(state.Subject{Object: string(kind)}, "mr", region)
	return len(s.Failures) == failed
}

// refused records what refused memory, which fails the probe.
func (s *step) refused(r *state.Registration, err error) {
	r.Result, r.By, r.Detail = state.MemoryRefused, state.RefusedByDevice, err.Error()
	v := &verbs.Error{Verb: verbs.RegMR}
	var limit *int64
	if errors.As(err, &v) {
		r.Errno, limit = verbs.ErrnoName(v.Errno), s.memlock(verbs.RegMR, v.Errno)
		switch {
		case s.refusedMemory != nil:
			r.By, r.Detail = s.refusedMemory(v, int(r.Bytes))
		case limit != nil:
			r.By = state.RefusedByMemlock
		}
	}
	if r.By == state.RefusedByDevice && limit != nil && *limit < r.Bytes {
		r.By = state.RefusedByMemlock
	}
	f := state.Failure{Subject: state.Subject{Object: string(r.Memory)}, Verb: string(v.Verb), Errno: r.Errno, Message: r.Detail}
	if r.By == state.RefusedByMemlock {
		f.Memlock = limit
	}
	s.Failures = append(s.Failures, f)
}
