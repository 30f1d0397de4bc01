package session

import "rdma_exporter/verbs"

// XRCD opens a domain of extended reliable connections.
func (sc *Scope) XRCD() (verbs.XRCD, error) {
	x, err := sc.s.Device.OpenXRCD()
	return add(sc, "xrcd", x, err)
}

// XRCSRQ creates a shared receive queue of a domain.
func (sc *Scope) XRCSRQ(x verbs.XRCD, pd verbs.PD, cq verbs.CQ, attr verbs.SRQAttr) (verbs.SRQ, error) {
	q, err := x.CreateSRQ(pd, cq, attr)
	return add(sc, "srq", q, err)
}

// XRCRecvQP creates a receiving queue pair of a domain.
func (sc *Scope) XRCRecvQP(x verbs.XRCD) (verbs.XRCQP, error) {
	q, err := x.CreateRecvQP()
	return add(sc, "qp", q, err)
}

// XRCSendQP creates a sending queue pair.
func (sc *Scope) XRCSendQP(x verbs.XRCD, pd verbs.PD, cq verbs.CQ, size verbs.QPCap) (verbs.XRCQP, error) {
	q, err := x.CreateSendQP(pd, cq, size)
	return add(sc, "qp", q, err)
}
