package simulated

import (
	"slices"
	"syscall"

	"rdma_exporter/verbs"
)

// recvQueue is the receive queue of a QP or an SRQ.
type recvQueue struct {
	pd            *pd
	maxWR, maxSGE uint32
	posted        []verbs.RecvWR
}

// post adds a work request.
func (r *recvQueue) post(wr verbs.RecvWR) *failure {
	if len(wr.SGEs) > int(r.maxSGE) {
		return fail(syscall.EINVAL, "%d scatter elements are more than %d", len(wr.SGEs), r.maxSGE)
	}
	if len(r.posted) >= int(r.maxWR) {
		return fail(syscall.ENOMEM, "the receive queue is full (%d)", r.maxWR)
	}
	wr.SGEs = slices.Clone(wr.SGEs) // the caller may use its slice again
	r.posted = append(r.posted, wr)
	return nil
}

// pop takes the oldest work request; one must be there.
func (r *recvQueue) pop() verbs.RecvWR {
	wr := r.posted[0]
	r.posted = r.posted[1:]
	return wr
}
