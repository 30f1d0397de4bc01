package simulated

import (
	"syscall"

	"rdma_exporter/verbs"
)

// sendWork is a send work request that was accepted.
type sendWork struct {
	wr verbs.SendWR
	// to is where a datagram goes.
	to verbs.AHAttr
	// data are the inline data, which are copied when they are posted.
	data []byte
}

func (q *qp) PostSend(wr verbs.SendWR) error {
	if err := q.use(); err != nil {
		return err
	}
	w, err := q.work(wr)
	if err != nil {
		return err
	}
	hw := q.dev.hw
	return hw.callOn(q.sending(w), verbs.PostSend, func(int) *failure { return hw.postSend(q, w) })
}

// work returns what a send work request needs to be posted.
func (q *qp) work(wr verbs.SendWR) (sendWork, error) {
	w := sendWork{wr: wr}
	if q.typ.IsDatagram() {
		a, ok := wr.AH.(*ah)
		if !ok || a == nil || a.dev != q.dev {
			return w, q.invalid(verbs.PostSend, "a send on a %s QP needs an address handle of the same device", q.typ)
		}
		if err := a.use(); err != nil {
			return w, err
		}
		w.to = a.attr
	}
	return w, nil
}

// sending describes a send to a fault.
func (q *qp) sending(w sendWork) Call {
	c := q.about().by(w.to)
	if w.wr.Flags&verbs.SendInline != 0 {
		for _, s := range w.wr.SGEs {
			c.Inline += int(s.Length)
		}
	}
	return c
}

// postSend is the effect of ibv_post_send.
func (h *hardware) postSend(q *qp, w sendWork) *failure {
	if q.state < verbs.RTS {
		return fail(syscall.EINVAL, "the QP is in %s", q.state)
	}
	if n := len(w.wr.SGEs); n > int(q.size.real.MaxSendSGE) {
		return fail(syscall.EINVAL, "%d gather elements are more than %d", n, q.size.real.MaxSendSGE)
	}
	if q.held >= q.size.real.MaxSendWR {
		return fail(syscall.ENOMEM, "the send queue is full (%d)", q.size.real.MaxSendWR)
	}
	if w.wr.Flags&verbs.SendInline != 0 {
		var f *failure
		if w.data, f = h.inlineData(q, w.wr.SGEs); f != nil {
			return f
		}
	}
	if q.state != verbs.RTS {
		q.finishSend(w, verbs.WCWRFlushErr)
		return nil
	}
	h.execute(q, w)
	return nil
}

func (h *hardware) inlineData(q *qp, sges []verbs.SGE) ([]byte, *failure) {
	total := uint64(0)
	for _, s := range sges {
		total += uint64(s.Length)
	}
	if total > uint64(q.size.real.MaxInlineData) {
		return nil, fail(syscall.EINVAL, "%d bytes of inline data are more than %d", total, q.size.real.MaxInlineData)
	}
	data := make([]byte, 0, total)
	for _, s := range sges {
		part, ok := h.inline(s)
		if !ok {
			return nil, fail(syscall.EFAULT, "the inline data is in no memory region")
		}
		data = append(data, part...)
	}
	return data, nil
}

func (q *qp) PostRecv(wr verbs.RecvWR) error {
	hw := q.dev.hw
	return q.callOn(q.about(), verbs.PostRecv, func(int) *failure { return hw.postRecv(q, wr) })
}

// postRecv is the effect of ibv_post_recv.
func (h *hardware) postRecv(q *qp, wr verbs.RecvWR) *failure {
	switch {
	case q.srq != nil:
		return fail(syscall.EINVAL, "the QP has an SRQ")
	case q.state == verbs.Reset:
		return fail(syscall.EINVAL, "the QP is in %s", q.state)
	}
	if f := q.recvs.post(wr); f != nil {
		return f
	}
	if q.state == verbs.Err {
		q.flushRecvs()
	}
	return nil
}

func (q *qp) finishSend(w sendWork, status verbs.WCStatus) {
	if !q.dev.hw.behaviour.signals(q.signalAll, w.wr.Flags, status) {
		return
	}
	wc := verbs.WC{ID: w.wr.ID, Status: status, QPNum: q.number}
	q.held++
	life := q.resets
	q.sendCQ.complete(completion{wc: wc, retire: func() {
		if q.resets == life {
			q.held--
		}
	}}, false)
}

func (q *qp) finishRecv(wc verbs.WC, solicited bool) {
	wc.QPNum = q.number
	q.recvCQ.complete(completion{wc: wc}, solicited)
}
