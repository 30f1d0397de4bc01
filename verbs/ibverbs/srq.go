//go:build cgo && linux

package ibverbs

// #include "shim.h"
import "C"

import "rdma_exporter/verbs"

// srq implements verbs.SRQ (struct ibv_srq).
type srq struct {
	object
	pd      *pd
	ptr     *C.struct_ibv_srq
	created verbs.SRQAttr
}

// CreateSRQ implements verbs.PD (ibv_create_srq).
func (p *pd) CreateSRQ(attr verbs.SRQAttr) (verbs.SRQ, error) {
	s := &srq{object: object{kind: "SRQ", dev: p.dev}, pd: p}
	c := C.struct_ibv_srq_attr{
		max_wr:    C.uint32_t(attr.MaxWR),
		max_sge:   C.uint32_t(attr.MaxSGE),
		srq_limit: C.uint32_t(attr.Limit),
	}
	made, err := create[verbs.SRQ](&p.object, verbs.CreateSRQ, s, func(ns *C.int64_t) C.int {
		return C.shim_create_srq(p.ptr, &c, &s.ptr, ns)
	})
	if err == nil {
		s.created = srqAttr(c)
		p.dev.srqs[s.ptr] = s
	}
	return made, err
}

func srqAttr(c C.struct_ibv_srq_attr) verbs.SRQAttr {
	return verbs.SRQAttr{MaxWR: uint32(c.max_wr), MaxSGE: uint32(c.max_sge), Limit: uint32(c.srq_limit)}
}

// Created implements verbs.SRQ.
func (s *srq) Created() verbs.SRQAttr { return s.created }

// Query implements verbs.SRQ (ibv_query_srq).
func (s *srq) Query() (verbs.SRQAttr, error) {
	var c C.struct_ibv_srq_attr
	err := s.call(verbs.QuerySRQ, func(ns *C.int64_t) C.int {
		return C.shim_query_srq(s.ptr, &c, ns)
	})
	if err != nil {
		return verbs.SRQAttr{}, err
	}
	return srqAttr(c), nil
}

// SetLimit implements verbs.SRQ (ibv_modify_srq).
func (s *srq) SetLimit(limit uint32) error {
	return s.call(verbs.ModifySRQ, func(ns *C.int64_t) C.int {
		return C.shim_set_srq_limit(s.ptr, C.uint32_t(limit), ns)
	})
}

// PostRecv implements verbs.SRQ (ibv_post_srq_recv).
func (s *srq) PostRecv(wr verbs.RecvWR) error {
	list, n := sgeList(wr.SGEs)
	return s.call(verbs.PostSRQRecv, func(ns *C.int64_t) C.int {
		return C.shim_post_srq_recv(s.ptr, C.uint64_t(wr.ID), list, n, ns)
	})
}

// Close implements verbs.SRQ (ibv_destroy_srq).
func (s *srq) Close() error {
	forget := func() { delete(s.dev.srqs, s.ptr) } // the address may be given to the next SRQ
	return s.destroy(verbs.DestroySRQ, forget, func(ns *C.int64_t) C.int {
		return C.shim_destroy_srq(s.ptr, ns)
	})
}
