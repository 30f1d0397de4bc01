package simulated

import "rdma_exporter/verbs"

// wcRemOpErr is a status that package verbs does not name (IBV_WC_REM_OP_ERR).
const wcRemOpErr verbs.WCStatus = 11

// grhLength is the size of the global route header before the data of every UD receive, in
// bytes. The simulation leaves it empty.
const grhLength = 40

func (h *hardware) execute(q *qp, w sendWork) {
	data, ok := w.data, true
	if w.wr.Flags&verbs.SendInline == 0 {
		data, ok = gather(w.wr.SGEs, func(s verbs.SGE) ([]byte, bool) { return h.local(q.pd, s, 0) })
	}
	status := verbs.WCSuccess
	var broken *qp
	switch {
	case !ok:
		status = verbs.WCLocProtErr
	case q.typ != verbs.RawPacket: // raw packets reach no receiver
		status, broken = h.deliver(q, w, data)
	}
	q.finishSend(w, status)
	if status != verbs.WCSuccess {
		switch q.typ {
		case verbs.UC, verbs.UD: // the unreliable lose their send queue only
			q.enter(verbs.SQE)
		case verbs.SRD: // the error is that of one peer, and there are others
		default:
			q.enter(verbs.Err)
		}
	}
	if broken != nil {
		broken.enter(verbs.Err)
	}
}

// gather collects the data of elements. It reports false if find has none for one.
func gather(sges []verbs.SGE, find func(verbs.SGE) ([]byte, bool)) (data []byte, ok bool) {
	for _, s := range sges {
		part, ok := find(s)
		if !ok {
			return nil, false
		}
		data = append(data, part...)
	}
	return data, true
}

// deliver returns the status with which a send completes, and the receiver that breaks over
// it, which may be nil. The sender on an unreliable QP learns nothing of failures.
func (h *hardware) deliver(q *qp, w sendWork, data []byte) (status verbs.WCStatus, broken *qp) {
	reliable := q.typ == verbs.RC || q.typ == verbs.SRD
	fails := func(status verbs.WCStatus) verbs.WCStatus {
		if reliable {
			return status
		}
		return verbs.WCSuccess
	}
	to, number := q.attr.AH, q.attr.DestQPN
	if q.typ.IsDatagram() {
		to, number = w.to, w.wr.RemoteQPN
	}
	if q.typ == verbs.UD {
		if p, ok := h.port(to.Port); ok && len(data) > p.ActiveMTU {
			return verbs.WCLocLenErr, nil
		}
		data = append(make([]byte, grhLength), data...)
	}
	peer := h.qps[number]
	if peer == nil || !h.reaches(to) || !h.listens(peer, q, w.wr.RemoteQKey) {
		return fails(verbs.WCRetryExc), nil
	}
	if len(peer.receives().posted) == 0 {
		return fails(verbs.WCRNRRetryExc), nil
	}
	switch h.receive(peer, q.number, w.wr, data, reliable) {
	case verbs.WCSuccess:
		return verbs.WCSuccess, nil
	case verbs.WCLocLenErr:
		status = verbs.WCRemInvReq
		if reliable {
			broken = peer
		}
	default:
		status, broken = wcRemOpErr, peer
	}
	if q.typ == verbs.SRD {
		broken = nil
	}
	return fails(status), broken
}

// listens reports whether a QP receives the messages of another.
func (h *hardware) listens(peer, from *qp, qkey uint32) bool {
	ready := peer.state == verbs.RTR || peer.state == verbs.RTS || peer.state == verbs.SQE
	meant := peer.attr.DestQPN == from.number && h.reaches(peer.attr.AH)
	if from.typ.IsDatagram() {
		meant = peer.attr.QKey == qkey
	}
	return ready && meant && peer.typ == from.typ &&
		(h.transport == verbs.TransportIWARP || h.partition(from, peer))
}

func (q *qp) receives() *recvQueue {
	if q.srq != nil {
		return &q.srq.queue
	}
	return &q.recvs
}

// receive puts a message into the next receive of a QP, which must have one, and completes
// it. The status is that of the receive. A message that does not fit consumes the receive of
// a reliable QP only.
func (h *hardware) receive(q *qp, source uint32, wr verbs.SendWR, message []byte, reliable bool) verbs.WCStatus {
	queue := q.receives()
	fits := uint64(len(message)) <= length(queue.posted[0].SGEs)
	if !fits && !reliable {
		return verbs.WCLocLenErr
	}
	recv := queue.pop()
	if q.srq != nil {
		q.srq.taken()
	}
	wc := verbs.WC{ID: recv.ID, SrcQP: source, Status: verbs.WCLocLenErr}
	if fits {
		wc.Status = h.scatter(queue.pd, recv.SGEs, message)
	}
	if wc.Status == verbs.WCSuccess {
		wc.ByteLen = uint32(len(message))
	}
	q.finishRecv(wc, wr.Flags&verbs.SendSolicited != 0)
	return wc.Status
}

func (h *hardware) scatter(p *pd, sges []verbs.SGE, message []byte) verbs.WCStatus {
	for _, s := range sges {
		if len(message) == 0 {
			break
		}
		part, ok := h.local(p, s, verbs.AccessLocalWrite)
		if !ok {
			return verbs.WCLocProtErr
		}
		message = message[copy(part, message):]
	}
	return verbs.WCSuccess
}
