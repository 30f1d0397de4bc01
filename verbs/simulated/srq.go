package simulated

import (
	"slices"

	"rdma_exporter/verbs"
)

// srq implements verbs.SRQ (struct ibv_srq).
type srq struct {
	object
	requested, created, queried verbs.SRQAttr
	queue                       recvQueue
	limit                       uint32 // below which an event is raised; 0 if it is not armed
}

func (p *pd) CreateSRQ(attr verbs.SRQAttr) (verbs.SRQ, error) {
	hw := p.dev.hw
	s := &srq{object: object{kind: kindSRQ, dev: p.dev}, requested: attr}
	return create[verbs.SRQ](&p.object, Call{GID: -1}, verbs.CreateSRQ, s, func(short int) *failure {
		size, f := hw.behaviour.srq(attr)
		if f != nil {
			return f
		}
		if short > 0 {
			size.created = shortSRQ(attr, short)
			size.real = size.created
		}
		if f := hw.admit(&s.object, int(size.real.MaxWR), &p.dev.object, &p.object); f != nil {
			return f
		}
		s.created, s.queried = size.created, size.queried
		s.queue = recvQueue{pd: p, maxWR: size.real.MaxWR, maxSGE: size.real.MaxSGE}
		return nil
	})
}

// shortSRQ returns sizes below those requested.
func shortSRQ(requested verbs.SRQAttr, short int) verbs.SRQAttr {
	return verbs.SRQAttr{MaxWR: less(requested.MaxWR, short), MaxSGE: less(requested.MaxSGE, short)}
}

func (s *srq) Created() verbs.SRQAttr { return s.created }

func (s *srq) Query() (verbs.SRQAttr, error) {
	return query(&s.object, Call{GID: -1}, verbs.QuerySRQ, func(short int) (verbs.SRQAttr, *failure) {
		if short > 0 {
			return shortSRQ(s.requested, short), nil
		}
		return verbs.SRQAttr{MaxWR: s.queried.MaxWR, MaxSGE: s.queried.MaxSGE, Limit: s.limit}, nil
	})
}

func (s *srq) SetLimit(limit uint32) error {
	return s.call(verbs.ModifySRQ, func(int) *failure {
		if f := above("srq_limit", int64(limit), int(s.queue.maxWR)); f != nil {
			return f
		}
		s.limit = limit
		return nil
	})
}

// taken raises the event of the limit, if the work request that was taken is one too many.
func (s *srq) taken() {
	var reached bool
	if reached, s.limit = s.dev.hw.behaviour.reachesLimit(s.limit, len(s.queue.posted)); reached {
		s.dev.events = append(s.dev.events, verbs.AsyncEvent{Type: verbs.EventSRQLimitReached, SRQ: s})
	}
}

func (s *srq) PostRecv(wr verbs.RecvWR) error {
	return s.call(verbs.PostSRQRecv, func(int) *failure { return s.queue.post(wr) })
}

func (s *srq) Close() error {
	return s.destroy(verbs.DestroySRQ, func() {
		s.queue.posted = nil
		s.dev.events = slices.DeleteFunc(s.dev.events, func(e verbs.AsyncEvent) bool { return e.SRQ == s })
	})
}
