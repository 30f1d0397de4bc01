package simulated

import (
	"syscall"

	"rdma_exporter/verbs"
)

// xrcd implements verbs.XRCD (struct ibv_xrcd).
type xrcd struct {
	object
}

// OpenXRCD implements verbs.Device (ibv_open_xrcd).
func (d *device) OpenXRCD() (verbs.XRCD, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	x := &xrcd{object{kind: kindXRCD, dev: d}}
	err := d.hw.call(verbs.OpenXRCD, func(int) *failure {
		if !d.hw.behaviour.attr.XRC {
			return fail(syscall.EOPNOTSUPP, "the device has no extended reliable connections")
		}
		return d.hw.admit(&x.object, 0, &d.object)
	})
	if err != nil {
		return nil, err
	}
	return x, nil
}

// parents returns the PD and the CQ with which to create something, if they are of the
// device of the domain.
func (x *xrcd) parents(v verbs.Verb, p verbs.PD, q verbs.CQ) (*pd, *cq, error) {
	domain, ok1 := p.(*pd)
	queue, ok2 := q.(*cq)
	if !ok1 || !ok2 || domain.dev != x.dev || queue.dev != x.dev {
		return nil, nil, x.invalid(v, "a protection domain and a CQ of the same device are needed")
	}
	return domain, queue, useAll(&x.object, &domain.object, &queue.object)
}

// CreateSRQ implements verbs.XRCD (ibv_create_srq_ex).
func (x *xrcd) CreateSRQ(p verbs.PD, q verbs.CQ, attr verbs.SRQAttr) (verbs.SRQ, error) {
	domain, queue, err := x.parents(verbs.CreateSRQEx, p, q)
	if err != nil {
		return nil, err
	}
	hw := x.dev.hw
	s := &srq{object: object{kind: kindSRQ, dev: x.dev}, pd: domain, asked: attr}
	err = hw.call(verbs.CreateSRQEx, func(int) *failure {
		l := hw.behaviour.attr.Limits
		f := first(above("max_wr", int64(attr.MaxWR), l.MaxSRQWR), above("max_sge", int64(attr.MaxSGE), l.MaxSRQSGE))
		if f != nil {
			return f
		}
		if f := hw.admit(&s.object, int(attr.MaxWR), &x.dev.object, &x.object, &domain.object, &queue.object); f != nil {
			return f
		}
		s.created = verbs.SRQAttr{MaxWR: hw.behaviour.xrcSize(attr.MaxWR), MaxSGE: attr.MaxSGE}
		s.queried = s.created
		s.queue = recvQueue{pd: domain, maxWR: attr.MaxWR, maxSGE: attr.MaxSGE}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// xrcSize returns the work requests that the creation of an SRQ of an XRC domain writes
// back.
func (b *behaviour) xrcSize(asked uint32) uint32 {
	if b.breaks(xrcAtLeastRequested) {
		return less(asked, 1)
	}
	return asked
}

// xrcQP implements verbs.XRCQP (struct ibv_qp).
type xrcQP struct {
	object
	number uint32
	size   verbs.QPCap
}

// CreateRecvQP implements verbs.XRCD (ibv_create_qp_ex).
func (x *xrcd) CreateRecvQP() (verbs.XRCQP, error) {
	if err := x.use(); err != nil {
		return nil, err
	}
	return x.qp(verbs.QPCap{}, &x.object)
}

// CreateSendQP implements verbs.XRCD (ibv_create_qp_ex).
func (x *xrcd) CreateSendQP(p verbs.PD, sent verbs.CQ, size verbs.QPCap) (verbs.XRCQP, error) {
	domain, queue, err := x.parents(verbs.CreateQPEx, p, sent)
	if err != nil {
		return nil, err
	}
	return x.qp(size, &domain.object, &queue.object)
}

// qp creates a QP.
func (x *xrcd) qp(size verbs.QPCap, parents ...*object) (verbs.XRCQP, error) {
	hw := x.dev.hw
	q := &xrcQP{object: object{kind: kindQP, dev: x.dev}}
	q.size = verbs.QPCap{MaxSendWR: size.MaxSendWR, MaxSendSGE: size.MaxSendSGE, MaxInlineData: size.MaxInlineData}
	err := hw.call(verbs.CreateQPEx, func(int) *failure {
		l := hw.behaviour.attr.Limits
		f := first(
			above("max_send_wr", int64(size.MaxSendWR), l.MaxQPWR), above("max_send_sge", int64(size.MaxSendSGE), l.MaxSGE),
			above("max_inline_data", int64(size.MaxInlineData), hw.behaviour.profile.MaxInlineData),
		)
		if f != nil {
			return f
		}
		if f := hw.admit(&q.object, int(size.MaxSendWR), append(parents, &x.dev.object)...); f != nil {
			return f
		}
		q.number = hw.nextQPN()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return q, nil
}

// Close implements verbs.XRCD (ibv_close_xrcd).
func (x *xrcd) Close() error { return x.destroy(verbs.CloseXRCD, func() {}) }

// Number implements verbs.XRCQP.
func (q *xrcQP) Number() uint32 { return q.number }

// Created implements verbs.XRCQP.
func (q *xrcQP) Created() verbs.QPCap { return q.size }

// Close implements verbs.XRCQP (ibv_destroy_qp).
func (q *xrcQP) Close() error { return q.destroy(verbs.DestroyQP, func() {}) }
