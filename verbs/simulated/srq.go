package simulated

import (
	"slices"
	"syscall"

	"rdma_exporter/verbs"
)

type srq struct {
	object
	requested verbs.SRQAttr
	size      sizes[verbs.SRQAttr]
	queue     recvQueue
	limit     uint32 // below which an event is raised; 0 if it is not armed
}

func (p *pd) CreateSRQ(attr verbs.SRQAttr) (verbs.SRQ, error) {
	s := &srq{object: object{kind: kindSRQ, dev: p.dev}, requested: attr}
	return create[verbs.SRQ](&p.object, verbs.CreateSRQ, Call{}, s, func(short int) (f *failure) {
		if s.size, f = p.dev.srq(attr); f != nil {
			return f
		}
		if short > 0 {
			s.size.created = s.short(short)
			s.size.real = s.size.created
		}
		s.queue = recvQueue{pd: p, maxWR: s.size.real.MaxWR, maxSGE: s.size.real.MaxSGE}
		return p.dev.admit(&s.object, int(s.size.real.MaxWR), &p.dev.object, &p.object)
	})
}

func (s *srq) short(by int) verbs.SRQAttr {
	return verbs.SRQAttr{MaxWR: less(s.requested.MaxWR, by), MaxSGE: less(s.requested.MaxSGE, by)}
}

func (s *srq) Created() verbs.SRQAttr { return s.size.created }

func (s *srq) Query() (verbs.SRQAttr, error) {
	return query(&s.object, verbs.QuerySRQ, Call{}, func(short int) (verbs.SRQAttr, *failure) {
		if short > 0 {
			return s.short(short), nil
		}
		return verbs.SRQAttr{MaxWR: s.size.queried.MaxWR, MaxSGE: s.size.queried.MaxSGE, Limit: s.limit}, nil
	})
}

func (s *srq) SetLimit(limit uint32) error {
	return s.call(verbs.ModifySRQ, Call{}, func(int) *failure {
		if f := above("srq_limit", int64(limit), int(s.queue.maxWR)); f != nil {
			return f
		}
		s.limit = limit
		return nil
	})
}

// taken raises the event of the limit, if the work request that was taken is one too many.
func (s *srq) taken() {
	below := s.limit
	if s.dev.breaks("srq_limit_event") && below > 0 {
		below--
	}
	if len(s.queue.posted) >= int(below) {
		return
	}
	if !s.dev.breaks("srq_limit_disarmed") {
		s.limit = 0
	}
	s.dev.events = append(s.dev.events, verbs.AsyncEvent{Type: verbs.EventSRQLimitReached, SRQ: s})
}

func (s *srq) PostRecv(wr verbs.RecvWR) error {
	return s.call(verbs.PostSRQRecv, Call{}, func(int) *failure { return s.queue.post(wr) })
}

func (s *srq) Close() error {
	return s.destroy(verbs.DestroySRQ, func() {
		s.queue.posted = nil
		s.dev.events = slices.DeleteFunc(s.dev.events, func(e verbs.AsyncEvent) bool { return e.SRQ == s })
	})
}

type recvQueue struct {
	pd            *pd
	maxWR, maxSGE uint32
	posted        []verbs.RecvWR
}

func (r *recvQueue) post(wr verbs.RecvWR) *failure {
	if len(wr.SGEs) > int(r.maxSGE) {
		return fail(syscall.EINVAL, "%d scatter elements are more than %d", len(wr.SGEs), r.maxSGE)
	}
	if len(r.posted) >= int(r.maxWR) {
		return fail(syscall.ENOMEM, "the receive queue is full (%d)", r.maxWR)
	}
	wr.SGEs = slices.Clone(wr.SGEs) // the caller may use its slice again
	r.posted = append(r.posted, wr)
	return nil
}

// pop takes the oldest work request, which must exist.
func (r *recvQueue) pop() verbs.RecvWR {
	wr := r.posted[0]
	r.posted = r.posted[1:]
	return wr
}
