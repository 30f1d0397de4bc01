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
	asked          verbs.QPCap
	size           sizes[verbs.QPCap]

	state   verbs.QPState
	beenRTS bool // since it was in RESET
	beenErr bool // at any time
	attr    verbs.QPAttr
	recvs   recvQueue
	held    uint32 // slots of sends whose completions were not polled
	resets  int    // counted, because a reset frees all slots at once
}

// CreateQP implements verbs.PD (ibv_create_qp).
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
		typ: attr.Type, signalAll: attr.SignalAll, asked: attr.Cap,
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
	about := facts{typ: attr.Type, sizes: capSizes(attr.Cap)}
	err := hw.callOn(about, verbs.CreateQP, func(short int) *failure { return hw.createQP(q, short, parents) })
	if err != nil {
		return nil, err
	}
	return q, nil
}

// createQP is the effect of ibv_create_qp.
func (h *hardware) createQP(q *qp, short int, parents []*object) *failure {
	if f := h.behaviour.qpType(q.typ, q.srq != nil); f != nil {
		return f
	}
	size, f := h.behaviour.qpCap(q.asked, q.srq != nil)
	if f != nil {
		return f
	}
	if short > 0 {
		size.created = shortQP(q.asked, short, q.srq != nil)
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

// shortQP returns sizes that are smaller than those that were asked for.
func shortQP(asked verbs.QPCap, short int, withSRQ bool) verbs.QPCap {
	if withSRQ {
		asked.MaxRecvWR, asked.MaxRecvSGE = 0, 0
	}
	return verbs.QPCap{
		MaxSendWR: less(asked.MaxSendWR, short), MaxRecvWR: less(asked.MaxRecvWR, short),
		MaxSendSGE: less(asked.MaxSendSGE, short), MaxRecvSGE: less(asked.MaxRecvSGE, short),
		MaxInlineData: less(asked.MaxInlineData, short),
	}
}

// Number implements verbs.QP.
func (q *qp) Number() uint32 { return q.number }

// Type implements verbs.QP.
func (q *qp) Type() verbs.QPType { return q.typ }

// Created implements verbs.QP.
func (q *qp) Created() verbs.QPCap { return q.size.created }

// Query implements verbs.QP (ibv_query_qp).
func (q *qp) Query() (verbs.QPQuery, error) {
	if err := q.use(); err != nil {
		return verbs.QPQuery{}, err
	}
	var answer verbs.QPQuery
	err := q.dev.hw.callOn(q.facts(), verbs.QueryQP, func(short int) *failure {
		answer = verbs.QPQuery{State: q.state, Cap: q.size.queried, SignalAll: q.signalAll}
		if short > 0 {
			answer.Cap = shortQP(q.asked, short, q.srq != nil)
		}
		return nil
	})
	return answer, err
}

// Modify implements verbs.QP (ibv_modify_qp).
func (q *qp) Modify(attr verbs.QPAttr, mask verbs.QPAttrMask) error {
	if err := q.use(); err != nil {
		return err
	}
	return q.dev.hw.callOn(q.changing(attr, mask), verbs.ModifyQP, func(int) *failure {
		return q.modify(attr, mask)
	})
}

// changing returns what there is to know of a modification.
func (q *qp) changing(attr verbs.QPAttr, mask verbs.QPAttrMask) facts {
	f := q.facts()
	if mask&verbs.MaskState != 0 {
		f.to = &attr.State
	}
	if mask&verbs.MaskPort != 0 {
		f.port = attr.Port
	}
	if mask&verbs.MaskAV != 0 {
		f.by(attr.AH)
	}
	return f
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
	case verbs.RTS:
		q.beenRTS = true
	case verbs.Reset:
		q.beenRTS = false
		q.attr = verbs.QPAttr{}
		q.recvs.posted = nil
		q.held = 0
		q.resets++
	case verbs.Err:
		q.beenErr = true
		q.flushRecvs()
	}
}

// flushRecvs completes all receives of the QP's own queue as flushed.
func (q *qp) flushRecvs() {
	for len(q.recvs.posted) > 0 {
		q.finishRecv(verbs.WC{ID: q.recvs.pop().ID, Status: verbs.WCWRFlushErr}, false)
	}
}

// AttachMulticast implements verbs.QP (ibv_attach_mcast). Attaching twice is the
// same as attaching once.
func (q *qp) AttachMulticast(gid verbs.GID, lid uint16) error {
	if err := q.use(); err != nil {
		return err
	}
	hw := q.dev.hw
	g := group{gid, lid}
	return hw.call(verbs.AttachMcast, func(int) *failure {
		if f := hw.behaviour.multicast(q.typ, g); f != nil {
			return f
		}
		members, limits := hw.groups[g], hw.behaviour.attr.Limits
		switch {
		case slices.Contains(members, q):
			if hw.behaviour.breaks(multicastSingleCopy) {
				hw.groups[g] = append(members, q)
			}
			return nil
		case len(members) == 0 && len(hw.groups) >= limits.MaxMcastGroup:
			return fail(syscall.ENOMEM, "there are %d groups already, and max_mcast_grp is that", len(hw.groups))
		case len(members) >= limits.MaxMcastQP:
			return fail(syscall.ENOMEM, "%d queue pairs are attached already, and max_mcast_qp_attach is %d", len(members), limits.MaxMcastQP)
		}
		hw.groups[g] = append(members, q)
		q.groups = append(q.groups, g)
		return nil
	})
}

// DetachMulticast implements verbs.QP (ibv_detach_mcast).
func (q *qp) DetachMulticast(gid verbs.GID, lid uint16) error {
	if err := q.use(); err != nil {
		return err
	}
	hw := q.dev.hw
	g := group{gid, lid}
	return hw.call(verbs.DetachMcast, func(int) *failure {
		if f := hw.behaviour.multicast(q.typ, g); f != nil {
			return f
		}
		i := slices.Index(q.groups, g)
		if i < 0 {
			return fail(syscall.EINVAL, "the QP is not attached to %s", g)
		}
		q.groups = slices.Delete(q.groups, i, i+1)
		hw.leave(q, g)
		return nil
	})
}

// leave takes a QP out of the members of a multicast group.
func (h *hardware) leave(q *qp, g group) {
	h.groups[g] = slices.DeleteFunc(h.groups[g], func(m *qp) bool { return m == q })
	if len(h.groups[g]) == 0 {
		delete(h.groups, g)
	}
}

// Close implements verbs.QP (ibv_destroy_qp). Work that is outstanding is gone
// without completions; completions that are in a CQ stay there.
func (q *qp) Close() error {
	hw := q.dev.hw
	return q.destroy(verbs.DestroyQP, func() {
		q.enter(verbs.Reset)
		delete(hw.qps, q.number)
		for _, g := range q.groups { // of a device that lets it go while attached
			hw.leave(q, g)
		}
		q.groups = nil
	})
}
