package simulated

import (
	"syscall"

	"rdma_exporter/verbs"
)

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
	return q.call(verbs.PostSend, q.sending(w), func(int) *failure { return q.dev.postSend(q, w) })
}

func (q *qp) work(wr verbs.SendWR) (sendWork, error) {
	w := sendWork{wr: wr}
	if !q.typ.IsDatagram() {
		return w, nil
	}
	var used []*object
	a, ok := own[*ah](q.dev, wr.AH, &used)
	if !ok || a == nil {
		return w, q.invalid(verbs.PostSend, "a send on a %s QP needs an address handle of the same device", q.typ)
	}
	w.to = a.attr
	return w, a.use()
}

func (q *qp) sending(w sendWork) Call {
	c := q.about().by(w.to)
	if w.wr.Flags&verbs.SendInline != 0 {
		c.Inline = int(length(w.wr.SGEs))
	}
	return c
}

func length(sges []verbs.SGE) (total uint64) {
	for _, s := range sges {
		total += uint64(s.Length)
	}
	return total
}

func (h *hardware) postSend(q *qp, w sendWork) *failure {
	size := q.size.real
	switch n := len(w.wr.SGEs); {
	case q.state < verbs.RTS:
		return fail(syscall.EINVAL, "the QP is in %s", q.state)
	case n > int(size.MaxSendSGE):
		return fail(syscall.EINVAL, "%d gather elements are more than %d", n, size.MaxSendSGE)
	case q.held() >= size.MaxSendWR:
		return fail(syscall.ENOMEM, "the send queue is full (%d)", size.MaxSendWR)
	}
	if w.wr.Flags&verbs.SendInline != 0 {
		if total := length(w.wr.SGEs); total > uint64(size.MaxInlineData) {
			return fail(syscall.EINVAL, "%d bytes of inline data are more than %d", total, size.MaxInlineData)
		}
		var ok bool
		if w.data, ok = gather(w.wr.SGEs, h.inline); !ok {
			return fail(syscall.EFAULT, "the inline data is in no memory region")
		}
	}
	if q.state != verbs.RTS {
		q.finishSend(w, verbs.WCWRFlushErr)
		return nil
	}
	h.execute(q, w)
	return nil
}

func (q *qp) PostRecv(wr verbs.RecvWR) error {
	return q.call(verbs.PostRecv, q.about(), func(int) *failure { return q.postRecv(wr) })
}

func (q *qp) postRecv(wr verbs.RecvWR) *failure {
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
		q.enter(verbs.Err) // which flushes it
	}
	return nil
}

// held counts the slots of the send queue whose completions were not polled.
func (q *qp) held() (n uint32) {
	for _, c := range q.sendCQ.queue {
		if c.sender == q && c.resets == q.resets {
			n++
		}
	}
	return n
}

func (q *qp) finishSend(w sendWork, status verbs.WCStatus) {
	if q.signalAll || w.wr.Flags&verbs.SendSignaled != 0 || status != verbs.WCSuccess || q.dev.breaks("qp_sq_sig_all") {
		wc := verbs.WC{ID: w.wr.ID, Status: status, QPNum: q.number}
		q.sendCQ.complete(completion{wc: wc, sender: q, resets: q.resets}, false)
	}
}

func (q *qp) finishRecv(wc verbs.WC, solicited bool) {
	wc.QPNum = q.number
	q.recvCQ.complete(completion{wc: wc}, solicited)
}
