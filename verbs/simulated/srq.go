package simulated

import (
	"slices"

	"rdma_exporter/verbs"
)

// srq implements verbs.SRQ (struct ibv_srq).
type srq struct {
	object
	pd      *pd
	asked   verbs.SRQAttr
	created verbs.SRQAttr
	queried verbs.SRQAttr
	queue   recvQueue
	limit   uint32 // below which an event is raised; 0 if it is not armed
}

// CreateSRQ implements verbs.PD (ibv_create_srq).
func (p *pd) CreateSRQ(attr verbs.SRQAttr) (verbs.SRQ, error) {
	if err := p.use(); err != nil {
		return nil, err
	}
	hw := p.dev.hw
	s := &srq{object: object{kind: kindSRQ, dev: p.dev}, pd: p, asked: attr}
	err := hw.call(verbs.CreateSRQ, func(short int) *failure {
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
	if err != nil {
		return nil, err
	}
	return s, nil
}

// shortSRQ returns sizes that are smaller than those that were asked for.
func shortSRQ(asked verbs.SRQAttr, short int) verbs.SRQAttr {
	return verbs.SRQAttr{MaxWR: less(asked.MaxWR, short), MaxSGE: less(asked.MaxSGE, short)}
}

// Created implements verbs.SRQ.
func (s *srq) Created() verbs.SRQAttr { return s.created }

// Query implements verbs.SRQ (ibv_query_srq).
func (s *srq) Query() (verbs.SRQAttr, error) {
	if err := s.use(); err != nil {
		return verbs.SRQAttr{}, err
	}
	var attr verbs.SRQAttr
	err := s.dev.hw.call(verbs.QuerySRQ, func(short int) *failure {
		attr = s.queried
		attr.Limit = s.limit
		if short > 0 {
			attr = shortSRQ(s.asked, short)
		}
		return nil
	})
	return attr, err
}

// SetLimit implements verbs.SRQ (ibv_modify_srq).
func (s *srq) SetLimit(limit uint32) error {
	if err := s.use(); err != nil {
		return err
	}
	return s.dev.hw.call(verbs.ModifySRQ, func(int) *failure {
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

// PostRecv implements verbs.SRQ (ibv_post_srq_recv).
func (s *srq) PostRecv(wr verbs.RecvWR) error {
	if err := s.use(); err != nil {
		return err
	}
	return s.dev.hw.call(verbs.PostSRQRecv, func(int) *failure { return s.queue.post(wr) })
}

// Close implements verbs.SRQ (ibv_destroy_srq).
func (s *srq) Close() error {
	return s.destroy(verbs.DestroySRQ, func() {
		s.queue.posted = nil
		s.dev.events = slices.DeleteFunc(s.dev.events, func(e verbs.AsyncEvent) bool { return e.SRQ == s })
	})
}
