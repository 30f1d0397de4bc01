package probe

import (
	"errors"
	"slices"
	"syscall"

	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// memory is a kind of memory that is registered.
type memory struct {
	kind    state.RegisteredMemory
	backing verbs.Backing
	size    int
	// optional tells that no program needs the device to take it: a refusal is told, and
	// fails nothing.
	optional bool
}

// memories are all kinds.
func memories() []named[memory] {
	var all []named[memory]
	for _, m := range []memory{
		{kind: state.MemoryPage, backing: verbs.BackingPages, size: 4 << 10},
		{kind: state.MemoryMany, backing: verbs.BackingPages, size: verbs.HugePageSize},
		{kind: state.MemoryHuge, backing: verbs.BackingHugePages, size: verbs.HugePageSize},
		{kind: state.MemoryDMABuf, backing: verbs.BackingDMABuf, size: verbs.HugePageSize, optional: true},
	} {
		all = append(all, named[memory]{name: string(m.kind), size: m})
	}
	return all
}

// mr probes ibv_reg_mr(3) and ibv_reg_dmabuf_mr: memory of each kind is registered, and
// given back at once.
func (r *run) mr(s *step) {
	pd, err := r.PD()
	if err != nil {
		s.cannot("protection domain", err)
		return
	}
	all := memories()
	if !r.turn.whole {
		// Programs that take all huge pages at their start are in the way of few runs.
		all = slices.DeleteFunc(all, func(m named[memory]) bool { return m.size.kind == state.MemoryHuge })
	}
	for _, m := range sizes(r.turn, "mr", all) {
		if !s.register(pd, m.size) {
			return
		}
	}
}

// register registers memory of a kind. It tells whether nothing of it is left.
func (s *step) register(pd verbs.PD, m memory) (gone bool) {
	r := state.Registration{Memory: m.kind, Bytes: int64(m.size), Result: state.MemoryRegistered}
	defer func() { s.Registrations = append(s.Registrations, r) }()

	// A page that the hugetlb controller refuses to the process is found missing only when
	// the kernel pins it.
	missing := func(err error) bool { return m.kind == state.MemoryHuge && errors.Is(err, syscall.EFAULT) }
	var region verbs.MR
	var err error
	s.Expecting(func(err error) bool { return m.optional || missing(err) }, func() {
		region, err = pd.RegMRBackedBy(m.backing, m.size, verbs.AccessLocalWrite)
	})
	switch {
	case err == nil:
		s.done++
		r.Duration = s.LastCall().Duration
		failed := len(s.Failures)
		s.destroy(string(m.kind), "mr", region)
		return len(s.Failures) == failed
	case errors.Is(err, verbs.ErrNoBacking), missing(err):
		r.Result, r.Detail = state.MemoryUnavailable, err.Error()
	case m.optional && verbs.IsNotSupported(err):
		r.Result, r.Detail = state.MemoryNotSupported, err.Error()
	default:
		s.refused(&r, m, err)
	}
	return true
}

// refused notes what refused memory. If it is the limit of this process, nothing is wrong
// with the device, and it is skipped.
func (s *step) refused(r *state.Registration, m memory, err error) {
	r.Result, r.By, r.Detail = state.MemoryRefused, state.RefusedByDevice, err.Error()
	v := &verbs.Error{Verb: m.backing.Verb()}
	var limit *int64
	if errors.As(err, &v) {
		r.Errno, limit = verbs.ErrnoName(v.Errno), s.memlock(verbs.RegMR, v.Errno)
		switch {
		case s.refusedMemory != nil:
			r.By, r.Detail = s.refusedMemory(v, m.size)
		case limit != nil:
			r.By = state.RefusedByMemlock
		}
	}
	if r.By == state.RefusedByDevice && limit != nil && *limit < int64(m.size) {
		r.By = state.RefusedByMemlock
	}
	switch {
	case m.optional:
	case r.By == state.RefusedByMemlock:
		s.skip(string(m.kind), state.SkipNotPermitted, "%s", r.Detail)
		s.Skips[len(s.Skips)-1].Memlock = limit
	default:
		s.Failures = append(s.Failures, state.Failure{Subject: string(m.kind), Verb: string(v.Verb), Errno: r.Errno, Message: r.Detail})
	}
}
