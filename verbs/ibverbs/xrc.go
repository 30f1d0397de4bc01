//go:build cgo && linux

package ibverbs

// #include "shim.h"
import "C"

import "rdma_exporter/verbs"

// xrcd implements verbs.XRCD (struct ibv_xrcd).
type xrcd struct {
	object
	ptr *C.struct_ibv_xrcd
}

// OpenXRCD implements verbs.Device (ibv_open_xrcd).
func (d *device) OpenXRCD() (verbs.XRCD, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	x := &xrcd{object: object{kind: "XRC domain", dev: d}}
	err := d.trace(verbs.OpenXRCD, func(ns *C.int64_t) C.int { return C.shim_open_xrcd(d.ctx, &x.ptr, ns) })
	if err != nil {
		return nil, err
	}
	d.live++
	return x, nil
}

// parents returns the PD and the CQ with which to create something, if they are of the
// device of the domain.
func (x *xrcd) parents(v verbs.Verb, p verbs.PD, q verbs.CQ) (*pd, *cq, error) {
	domain, ok1 := p.(*pd)
	queue, ok2 := q.(*cq)
	if !ok1 || !ok2 || domain == nil || queue == nil || domain.dev != x.dev || queue.dev != x.dev {
		return nil, nil, x.dev.invalid(v, "a protection domain and a CQ of the same device are needed")
	}
	return domain, queue, useAll(&x.object, &domain.object, &queue.object)
}

// CreateSRQ implements verbs.XRCD (ibv_create_srq_ex).
func (x *xrcd) CreateSRQ(p verbs.PD, q verbs.CQ, attr verbs.SRQAttr) (verbs.SRQ, error) {
	domain, queue, err := x.parents(verbs.CreateSRQEx, p, q)
	if err != nil {
		return nil, err
	}
	s := &srq{object: object{kind: "SRQ", dev: x.dev}, pd: domain}
	c := C.struct_ibv_srq_attr{
		max_wr:    C.uint32_t(attr.MaxWR),
		max_sge:   C.uint32_t(attr.MaxSGE),
		srq_limit: C.uint32_t(attr.Limit),
	}
	err = x.dev.trace(verbs.CreateSRQEx, func(ns *C.int64_t) C.int {
		return C.shim_create_xrc_srq(domain.ptr, x.ptr, queue.ptr, &c, &s.ptr, ns)
	})
	if err != nil {
		return nil, err
	}
	s.created = srqAttr(c)
	x.dev.live++
	x.dev.srqs[s.ptr] = s
	return s, nil
}

// CreateRecvQP implements verbs.XRCD (ibv_create_qp_ex).
func (x *xrcd) CreateRecvQP() (verbs.XRCQP, error) {
	if err := x.use(); err != nil {
		return nil, err
	}
	q := &xrcQP{object: object{kind: "QP", dev: x.dev}}
	err := x.dev.trace(verbs.CreateQPEx, func(ns *C.int64_t) C.int {
		return C.shim_create_xrc_recv(x.dev.ctx, x.ptr, &q.ptr, ns)
	})
	return q.created(C.struct_ibv_qp_cap{}, err)
}

// CreateSendQP implements verbs.XRCD (ibv_create_qp_ex).
func (x *xrcd) CreateSendQP(p verbs.PD, sent verbs.CQ, size verbs.QPCap) (verbs.XRCQP, error) {
	domain, queue, err := x.parents(verbs.CreateQPEx, p, sent)
	if err != nil {
		return nil, err
	}
	q := &xrcQP{object: object{kind: "QP", dev: x.dev}}
	c := C.struct_ibv_qp_cap{
		max_send_wr:     C.uint32_t(size.MaxSendWR),
		max_send_sge:    C.uint32_t(size.MaxSendSGE),
		max_inline_data: C.uint32_t(size.MaxInlineData),
	}
	err = x.dev.trace(verbs.CreateQPEx, func(ns *C.int64_t) C.int {
		return C.shim_create_xrc_send(domain.ptr, queue.ptr, &c, &q.ptr, ns)
	})
	return q.created(c, err)
}

// Close implements verbs.XRCD (ibv_close_xrcd).
func (x *xrcd) Close() error {
	return x.destroy(verbs.CloseXRCD, func(ns *C.int64_t) C.int { return C.shim_close_xrcd(x.ptr, ns) })
}

// xrcQP implements verbs.XRCQP (struct ibv_qp).
type xrcQP struct {
	object
	ptr  *C.struct_ibv_qp
	size verbs.QPCap
	// number is kept: it can be asked for after Close.
	number uint32
}

// created returns the QP, unless it was not created.
func (q *xrcQP) created(c C.struct_ibv_qp_cap, err error) (verbs.XRCQP, error) {
	if err != nil {
		return nil, err
	}
	q.size, q.number = qpCap(c), uint32(q.ptr.qp_num)
	q.dev.live++
	return q, nil
}

// Number implements verbs.XRCQP.
func (q *xrcQP) Number() uint32 { return q.number }

// Created implements verbs.XRCQP.
func (q *xrcQP) Created() verbs.QPCap { return q.size }

// Close implements verbs.XRCQP (ibv_destroy_qp).
func (q *xrcQP) Close() error {
	return q.destroy(verbs.DestroyQP, func(ns *C.int64_t) C.int { return C.shim_destroy_qp(q.ptr, ns) })
}
