package simulated

import (
	"encoding/binary"

	"rdma_exporter/verbs"
)

// Statuses of a completion that package verbs does not name, as enum
// ibv_wc_status numbers them.
const (
	wcRemOpErr    verbs.WCStatus = 11
	wcRemInvRdReq verbs.WCStatus = 15
	wcRespTimeout verbs.WCStatus = 20
)

const (
	grhLength  = 40      // bytes before the data of every UD receive
	maxMessage = 1 << 31 // bytes
)

// execute executes a send.
func (h *hardware) execute(q *qp, w sendWork) {
	var broken *qp
	data, status := h.gather(q, w)
	if status == verbs.WCSuccess {
		switch q.typ {
		case verbs.UD:
			status = h.datagram(q, w, data)
		case verbs.SRD:
			status = h.reliableDatagram(q, w, data)
		case verbs.RC, verbs.UC:
			status, broken = h.connected(q, w, data)
		default: // nobody receives raw packets
		}
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

// gather collects the data of a send.
func (h *hardware) gather(q *qp, w sendWork) ([]byte, verbs.WCStatus) {
	if w.wr.Flags&verbs.SendInline != 0 {
		return w.data, verbs.WCSuccess
	}
	total := uint64(0)
	for _, s := range w.wr.SGEs {
		total += uint64(s.Length)
	}
	if total > maxMessage {
		return nil, verbs.WCLocLenErr
	}
	var data []byte
	for _, s := range w.wr.SGEs {
		part, ok := h.local(q.pd, s, 0)
		if !ok {
			return nil, verbs.WCLocProtErr
		}
		if len(w.wr.SGEs) == 1 {
			return part, verbs.WCSuccess // the usual case needs no copy
		}
		data = append(data, part...)
	}
	return data, verbs.WCSuccess
}

// connected delivers a send of an RC or UC queue pair. It returns with which status it
// completes and which receiver, if any, breaks over it.
func (h *hardware) connected(q *qp, w sendWork, data []byte) (status verbs.WCStatus, broken *qp) {
	reliable := q.typ == verbs.RC
	// fails is what the sender learns: on an unreliable connection nothing.
	fails := func(status verbs.WCStatus) verbs.WCStatus {
		if reliable {
			return status
		}
		return verbs.WCSuccess
	}
	peer := h.qps[q.attr.DestQPN]
	if peer == nil || !h.connects(q, peer) {
		return fails(verbs.WCRetryExc), nil
	}
	if len(peer.receives().posted) == 0 {
		return fails(verbs.WCRNRRetryExc), nil
	}
	switch status := h.receive(peer, q.number, w.wr, data, reliable); status {
	case verbs.WCSuccess:
		return verbs.WCSuccess, nil
	case verbs.WCLocLenErr:
		if reliable {
			broken = peer
		}
		return fails(verbs.WCRemInvReq), broken
	default:
		return fails(wcRemOpErr), peer
	}
}

// ready tells whether a QP receives.
func (q *qp) ready() bool {
	return q.state == verbs.RTR || q.state == verbs.RTS || q.state == verbs.SQE
}

// connects reports whether two queue pairs are connected and can communicate.
func (h *hardware) connects(q, peer *qp) bool {
	return peer.typ == q.typ && peer.attr.DestQPN == q.number && peer.ready() &&
		h.behaviour.reaches(q.attr.AH) && h.behaviour.reaches(peer.attr.AH) &&
		(h.behaviour.transport == verbs.TransportIWARP || partition(h.behaviour.pkey(q), h.behaviour.pkey(peer)))
}

// datagram delivers a send of a UD queue pair to whoever listens. The sender
// never learns whether somebody does.
func (h *hardware) datagram(q *qp, w sendWork, data []byte) verbs.WCStatus {
	p, ok := h.behaviour.port(w.to.Port)
	if ok && len(data) > p.attr.ActiveMTU {
		return verbs.WCLocLenErr
	}
	r := h.qps[w.wr.RemoteQPN]
	if r == nil || !h.behaviour.reaches(w.to) || !h.listens(r, q, w.wr.RemoteQKey) || len(r.receives().posted) == 0 {
		return verbs.WCSuccess
	}
	packet := append(header(p, w.to, len(data)), data...)
	if h.receive(r, q.number, w.wr, packet, false) == verbs.WCLocProtErr {
		r.enter(verbs.Err)
	}
	return verbs.WCSuccess
}

// listens tells whether a QP takes the datagrams of another.
func (h *hardware) listens(r, from *qp, qkey uint32) bool {
	return r.typ == from.typ && r.attr.QKey == qkey && r.ready() && partition(h.behaviour.pkey(from), h.behaviour.pkey(r))
}

// reliableDatagram delivers a send of an SRD queue pair. The sender learns what became
// of it, with the statuses that libefa makes of those of the device (to_ibv_status in
// providers/efa/verbs.c), and both go on. No header comes before the data.
func (h *hardware) reliableDatagram(q *qp, w sendWork, data []byte) verbs.WCStatus {
	if !h.behaviour.reaches(w.to) {
		return wcRespTimeout
	}
	peer := h.qps[w.wr.RemoteQPN]
	if peer == nil || !h.listens(peer, q, w.wr.RemoteQKey) {
		return wcRemInvRdReq
	}
	if len(peer.receives().posted) == 0 {
		return verbs.WCRNRRetryExc
	}
	switch h.receive(peer, q.number, w.wr, data, true) {
	case verbs.WCSuccess:
		return verbs.WCSuccess
	case verbs.WCLocLenErr:
		return verbs.WCRemInvReq
	default:
		return verbs.WCGeneralErr
	}
}

// header returns the global route header of a datagram. Without a global address
// its bytes mean nothing.
func header(p port, to verbs.AHAttr, length int) []byte {
	grh := make([]byte, grhLength, grhLength+length)
	if !to.Global {
		return grh
	}
	const version6, nextHeader = 6 << 4, 0x1b
	grh[0] = version6
	binary.BigEndian.PutUint16(grh[4:], uint16(length))
	grh[6], grh[7] = nextHeader, to.HopLimit
	source := p.gids[to.SGIDIndex]
	copy(grh[8:], source[:])
	copy(grh[24:], to.DGID[:])
	return grh
}

// receives returns the queue from which the QP takes its receives.
func (q *qp) receives() *recvQueue {
	if q.srq != nil {
		return &q.srq.queue
	}
	return &q.recvs
}

// receive puts a message into the next receive of a QP, which must have one, and
// completes it. The status is that of the receive. A message that does not fit
// consumes the receive of a reliable connection only.
func (h *hardware) receive(q *qp, source uint32, wr verbs.SendWR, message []byte, reliable bool) verbs.WCStatus {
	queue := q.receives()
	recv := queue.posted[0]
	room := uint64(0)
	for _, s := range recv.SGEs {
		room += uint64(s.Length)
	}
	fits := uint64(len(message)) <= room
	if !fits && !reliable {
		return verbs.WCLocLenErr
	}
	queue.pop()
	if q.srq != nil {
		q.srq.taken()
	}
	wc := verbs.WC{ID: recv.ID, SrcQP: source}
	if fits {
		wc.Status = h.scatter(queue.pd, recv.SGEs, message)
	} else {
		wc.Status = verbs.WCLocLenErr
	}
	if wc.Status == verbs.WCSuccess {
		wc.ByteLen = uint32(len(message))
	}
	q.finishRecv(wc, wr.Flags&verbs.SendSolicited != 0)
	return wc.Status
}

// scatter copies a message that fits into the elements of a receive.
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
