package simulated

import (
	"slices"
	"syscall"

	"rdma_exporter/verbs"
)

// qp implements verbs.QP (struct ibv_qp).
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
	held   uint32 // slots of sends whose completions were not polled
	resets int    // counted, because a reset frees all slots at once
}

func (p *pd) CreateQP(attr verbs.QPInitAttr) (verbs.QP, error) {
	if err := p.use(); err != nil {
		return nil, err
	}
	send, ok1 := attr.SendCQ.(*cq)
	recv, ok2 := attr.RecvCQ.(*cq)
	if !ok1 || !ok2 || send.dev != p.dev || recv.dev != p.dev {
		return nil, p.invalid(verbs.CreateQP, "a QP needs a send CQ and a receive CQ of the same device")
	}
	q := &qp{
		object: object{kind: kindQP, dev: p.dev}, pd: p, sendCQ: send, recvCQ: recv,
		typ: attr.Type, signalAll: attr.SignalAll, requested: attr.Cap,
	}
	parents := []*object{&p.object, &send.object, &recv.object}
	if attr.SRQ != nil {
		s, ok := attr.SRQ.(*srq)
		if !ok || s.dev != p.dev {
			return nil, p.invalid(verbs.CreateQP, "the SRQ is not of this device")
		}
		q.srq = s
		parents = append(parents, &s.object)
	}
	if attr.Type < verbs.RC || attr.Type > verbs.SRD {
		return nil, p.invalid(verbs.CreateQP, "%s is not a type of QP", attr.Type)
	}
	if !slices.Contains(p.dev.hw.behaviour.qpTypes(), attr.Type) {
		f := fail(syscall.EOPNOTSUPP, "the driver has no %s queue pairs", attr.Type)
		return nil, f.of(verbs.CreateQP, p.dev.hw.name)
	}
	if err := useAll(parents...); err != nil {
		return nil, err
	}
	hw := p.dev.hw
	parents = append(parents, &p.dev.object)
	about := Call{QPType: attr.Type, Inline: int(attr.Cap.MaxInlineData), GID: -1}
	return create[verbs.QP](&p.object, about, verbs.CreateQP, q, func(short int) *failure { return hw.createQP(q, short, parents) })
}

// createQP is the effect of ibv_create_qp.
func (h *hardware) createQP(q *qp, short int, parents []*object) *failure {
	if f := h.behaviour.qpType(q.typ, q.srq != nil); f != nil {
		return f
	}
	size, f := h.behaviour.qpCap(q.requested, q.srq != nil)
	if f != nil {
		return f
	}
	if short > 0 {
		size.created = shortQP(q.requested, short, q.srq != nil)
		size.real, size.queried = size.created, size.created
	}
	entries := int(size.real.MaxSendWR) + int(size.real.MaxRecvWR)
	if f := h.admit(&q.object, entries, parents...); f != nil {
		return f
	}
	q.size = size
	q.recvs = recvQueue{pd: q.pd, maxWR: size.real.MaxRecvWR, maxSGE: size.real.MaxRecvSGE}
	q.number = h.nextQPN()
	h.qps[q.number] = q
	return nil
}

// nextQPN returns the number of the next QP.
func (h *hardware) nextQPN() uint32 {
	const numbers = 1<<24 - 1 // the largest one means multicast
	for {
		h.lastQPN = (h.lastQPN + 1) % numbers
		if _, taken := h.qps[h.lastQPN]; !taken && h.lastQPN > 1 { // 0 and 1 are management QPs
			return h.lastQPN
		}
	}
}

// shortQP returns sizes below those requested.
func shortQP(requested verbs.QPCap, short int, withSRQ bool) verbs.QPCap {
	if withSRQ {
		requested.MaxRecvWR, requested.MaxRecvSGE = 0, 0
	}
	return verbs.QPCap{
		MaxSendWR: less(requested.MaxSendWR, short), MaxRecvWR: less(requested.MaxRecvWR, short),
		MaxSendSGE: less(requested.MaxSendSGE, short), MaxRecvSGE: less(requested.MaxRecvSGE, short),
		MaxInlineData: less(requested.MaxInlineData, short),
	}
}

func (q *qp) Number() uint32 { return q.number }

func (q *qp) Type() verbs.QPType { return q.typ }

func (q *qp) Created() verbs.QPCap { return q.size.created }

func (q *qp) Query() (verbs.QPQuery, error) {
	return query(&q.object, q.about(), verbs.QueryQP, func(short int) (verbs.QPQuery, *failure) {
		size := q.size.queried
		if short > 0 {
			size = shortQP(q.requested, short, q.srq != nil)
		}
		return verbs.QPQuery{State: q.state, Cap: size, SignalAll: q.signalAll}, nil
	})
}

func (q *qp) Modify(attr verbs.QPAttr, mask verbs.QPAttrMask) error {
	return q.callOn(q.changing(attr, mask), verbs.ModifyQP, func(int) *failure {
		return q.modify(attr, mask)
	})
}

// about describes a call on the QP to a fault.
func (q *qp) about() Call {
	return Call{QPType: q.typ, State: q.state, Port: q.attr.Port, GID: -1}.by(q.attr.AH)
}

// changing describes a modification to a fault.
func (q *qp) changing(attr verbs.QPAttr, mask verbs.QPAttrMask) Call {
	c := q.about()
	if mask&verbs.MaskState != 0 {
		c.To = attr.State
	}
	if mask&verbs.MaskPort != 0 {
		c.Port = attr.Port
	}
	if mask&verbs.MaskAV != 0 {
		c = c.by(attr.AH)
	}
	return c
}

// by returns the call with an address.
func (c Call) by(a verbs.AHAttr) Call {
	if a.Port > 0 {
		c.Port = a.Port
	}
	if a.Global {
		c.GID = a.SGIDIndex
	}
	return c
}

// modify is the effect of ibv_modify_qp.
func (q *qp) modify(attr verbs.QPAttr, mask verbs.QPAttrMask) *failure {
	if f := checkTransition(q.typ, q.state, attr.State, mask); f != nil {
		return f
	}
	if f := q.dev.hw.behaviour.qpAttr(q, attr, mask); f != nil {
		return f
	}
	q.attr = merge(q.attr, attr, mask)
	q.enter(attr.State)
	return nil
}

// enter changes the state of the QP, with what that does to its work.
func (q *qp) enter(next verbs.QPState) {
	q.state = next
	switch next {
	case verbs.Reset:
		q.attr = verbs.QPAttr{}
		q.recvs.posted = nil
		q.held = 0
		q.resets++
	case verbs.Err:
		q.flushRecvs()
	}
}

// flushRecvs completes all receives of the QP's own queue as flushed.
func (q *qp) flushRecvs() {
	for len(q.recvs.posted) > 0 {
		q.finishRecv(verbs.WC{ID: q.recvs.pop().ID, Status: verbs.WCWRFlushErr}, false)
	}
}

// Close implements verbs.QP (ibv_destroy_qp). Work that is outstanding is gone
// without completions; completions that are in a CQ stay there.
func (q *qp) Close() error {
	hw := q.dev.hw
	return q.destroy(verbs.DestroyQP, func() {
		q.enter(verbs.Reset)
		delete(hw.qps, q.number)
	})
}
