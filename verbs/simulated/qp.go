package simulated

import (
	"slices"
	"syscall"

	"rdma_exporter/verbs"
)

type qp struct {
	object
	pd             *pd
	sendCQ, recvCQ *cq
	srq            *srq // may be nil
	typ            verbs.QPType
	number         uint32
	signalAll      bool
	requested      verbs.QPCap
	size           sizes[verbs.QPCap]

	state  verbs.QPState
	attr   verbs.QPAttr
	recvs  recvQueue
	resets int // counted, because a reset frees all slots of the send queue
}

func (p *pd) CreateQP(attr verbs.QPInitAttr) (verbs.QP, error) {
	if err := p.use(); err != nil {
		return nil, err
	}
	parents := []*object{&p.object}
	send, ok1 := own[*cq](p.dev, attr.SendCQ, &parents)
	recv, ok2 := own[*cq](p.dev, attr.RecvCQ, &parents)
	shared, ok3 := own[*srq](p.dev, attr.SRQ, &parents)
	if !ok1 || !ok2 || !ok3 || send == nil || recv == nil {
		return nil, p.invalid(verbs.CreateQP, "a QP needs a send CQ and a receive CQ, and all objects must be of one device")
	}
	q := &qp{
		object: object{kind: kindQP, dev: p.dev}, pd: p, sendCQ: send, recvCQ: recv, srq: shared,
		typ: attr.Type, signalAll: attr.SignalAll, requested: attr.Cap,
	}
	if attr.Type < verbs.RC || attr.Type > verbs.SRD {
		return nil, p.invalid(verbs.CreateQP, "%s is not a type of QP", attr.Type)
	}
	if !slices.Contains(p.dev.QPTypes(), attr.Type) {
		return nil, fail(syscall.EOPNOTSUPP, "the driver has no %s queue pairs", attr.Type).of(verbs.CreateQP, p.dev.name)
	}
	if err := use(parents...); err != nil {
		return nil, err
	}
	parents = append(parents, &p.dev.object)
	about := Call{QPType: attr.Type, Inline: int(attr.Cap.MaxInlineData)}
	return create[verbs.QP](&p.object, verbs.CreateQP, about, q, func(short int) (f *failure) {
		hw := p.dev.hardware
		if f := hw.qpType(q.typ, q.srq != nil); f != nil {
			return f
		}
		if q.size, f = hw.qpCap(q.requested, q.srq != nil); f != nil {
			return f
		}
		if short > 0 {
			q.size.created = q.short(short)
			q.size.real, q.size.queried = q.size.created, q.size.created
		}
		actual := q.size.real
		if f := hw.admit(&q.object, int(actual.MaxSendWR)+int(actual.MaxRecvWR), parents...); f != nil {
			return f
		}
		q.recvs = recvQueue{pd: q.pd, maxWR: actual.MaxRecvWR, maxSGE: actual.MaxRecvSGE}
		hw.lastQPN = (hw.lastQPN + 1) % (1<<24 - 1) // the largest one means multicast
		q.number = hw.lastQPN
		hw.qps[q.number] = q
		return nil
	})
}

func (q *qp) short(by int) verbs.QPCap {
	c := q.requested
	if q.srq != nil {
		c.MaxRecvWR, c.MaxRecvSGE = 0, 0
	}
	for _, n := range []*uint32{&c.MaxSendWR, &c.MaxRecvWR, &c.MaxSendSGE, &c.MaxRecvSGE, &c.MaxInlineData} {
		*n = less(*n, by)
	}
	return c
}

func (q *qp) Number() uint32 { return q.number }

func (q *qp) Type() verbs.QPType { return q.typ }

func (q *qp) Created() verbs.QPCap { return q.size.created }

func (q *qp) Query() (verbs.QPQuery, error) {
	return query(&q.object, verbs.QueryQP, q.about(), func(short int) (verbs.QPQuery, *failure) {
		size := q.size.queried
		if short > 0 {
			size = q.short(short)
		}
		return verbs.QPQuery{State: q.state, Cap: size, SignalAll: q.signalAll}, nil
	})
}

func (q *qp) Modify(attr verbs.QPAttr, mask verbs.QPAttrMask) error {
	return q.call(verbs.ModifyQP, q.changing(attr, mask), func(int) *failure { return q.modify(attr, mask) })
}

func (q *qp) about() Call {
	return Call{QPType: q.typ, State: q.state, Port: q.attr.Port}.by(q.attr.AH)
}

func (q *qp) changing(attr verbs.QPAttr, mask verbs.QPAttrMask) Call {
	next := qp{typ: q.typ, state: q.state, attr: merge(q.attr, attr, mask)}
	c := next.about()
	if mask&verbs.MaskState != 0 {
		c.To = attr.State
	}
	return c
}

func (c Call) by(a verbs.AHAttr) Call {
	if a.Port > 0 {
		c.Port = a.Port
	}
	if a.Global {
		c.GID, c.Global = a.SGIDIndex, true
	}
	return c
}

// Close implements verbs.QP (ibv_destroy_qp). Outstanding work is gone without completions.
// Completions in a CQ stay there.
func (q *qp) Close() error {
	return q.destroy(verbs.DestroyQP, func() {
		q.enter(verbs.Reset)
		delete(q.dev.qps, q.number)
	})
}
