//go:build cgo && linux

package ibverbs

// #include "shim.h"
import "C"

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"rdma_exporter/verbs"
)

// qp implements verbs.QP (struct ibv_qp).
type qp struct {
	object
	pd             *pd
	sendCQ, recvCQ *cq
	srq            *srq // may be nil
	ptr            *C.struct_ibv_qp
	typ            verbs.QPType
	number         uint32
	created        verbs.QPCap
}

// CreateQP implements verbs.PD (ibv_create_qp; of SRD, efadv_create_qp_ex).
func (p *pd) CreateQP(attr verbs.QPInitAttr) (verbs.QP, error) {
	used := []*object{&p.object}
	send, ok1 := own[*cq](p.dev, attr.SendCQ, &used)
	recv, ok2 := own[*cq](p.dev, attr.RecvCQ, &used)
	shared, ok3 := own[*srq](p.dev, attr.SRQ, &used)
	if !ok1 || !ok2 || !ok3 || send == nil || recv == nil {
		return nil, p.dev.invalid(verbs.CreateQP, "a QP needs a send CQ and a receive CQ, and all objects must be of one device")
	}
	typ, ok := map[verbs.QPType]C.int{
		verbs.RC: C.IBV_QPT_RC, verbs.UC: C.IBV_QPT_UC, verbs.UD: C.IBV_QPT_UD, verbs.RawPacket: C.IBV_QPT_RAW_PACKET,
	}[attr.Type]
	var srd C.shim_efa_create_qp
	switch {
	case attr.Type == verbs.SRD:
		var why error
		if srd, why = srdOf(p.dev.library); why != nil {
			return nil, &verbs.Error{Verb: verbs.CreateQP, Device: p.dev.name, Errno: syscall.EOPNOTSUPP, Detail: why}
		}
	case !ok:
		return nil, p.dev.invalid(verbs.CreateQP, "%s is not a type of QP", attr.Type)
	}
	if err := useAll(used...); err != nil {
		return nil, err
	}
	init := C.struct_ibv_qp_init_attr{
		send_cq: send.ptr, recv_cq: recv.ptr, qp_type: uint32(typ), sq_sig_all: cBool(attr.SignalAll),
		cap: C.struct_ibv_qp_cap{
			max_send_wr:     C.uint32_t(attr.Cap.MaxSendWR),
			max_recv_wr:     C.uint32_t(attr.Cap.MaxRecvWR),
			max_send_sge:    C.uint32_t(attr.Cap.MaxSendSGE),
			max_recv_sge:    C.uint32_t(attr.Cap.MaxRecvSGE),
			max_inline_data: C.uint32_t(attr.Cap.MaxInlineData),
		},
	}
	if shared != nil {
		init.srq = shared.ptr
	}
	// C writes to ptr, so it must not be part of a Go value that holds Go pointers.
	var ptr *C.struct_ibv_qp
	q := &qp{object: object{kind: "QP", dev: p.dev}, pd: p, sendCQ: send, recvCQ: recv, srq: shared, typ: attr.Type}
	made, err := create[verbs.QP](&p.object, verbs.CreateQP, q, func(ns *C.int64_t) C.int {
		if srd != nil {
			return C.shim_create_srd(srd, p.ptr, &init, &ptr, ns)
		}
		return C.shim_create_qp(p.ptr, &init, &ptr, ns)
	})
	if err == nil {
		q.ptr, q.number, q.created = ptr, uint32(ptr.qp_num), qpCap(init.cap)
	}
	return made, err
}

// isEFA reports whether a library of this file is that of efa: libefa-rdmav34.so, or what
// that is a link to, libefa.so.1.
func isEFA(library string) bool {
	rest, ok := strings.CutPrefix(filepath.Base(library), "libefa")
	return ok && (strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "."))
}

// srdOf returns what creates SRD QPs on the devices of a library, or why there is
// nothing.
func srdOf(library string) (C.shim_efa_create_qp, error) {
	if !isEFA(library) {
		return nil, fmt.Errorf("only efa has %s queue pairs", verbs.SRD)
	}
	file := C.CString(library)
	defer C.free(unsafe.Pointer(file))
	create := C.shim_efa(file)
	if create == nil {
		return nil, fmt.Errorf("%s has no efadv_create_qp_ex (EFA_1.1), which libefa of rdma-core 26 and later has: "+
			"install a newer one (Debian: ibverbs-providers, Red Hat: libibverbs, SUSE: libefa1)", library)
	}
	return create, nil
}

func qpCap(c C.struct_ibv_qp_cap) verbs.QPCap {
	return verbs.QPCap{
		MaxSendWR:     uint32(c.max_send_wr),
		MaxRecvWR:     uint32(c.max_recv_wr),
		MaxSendSGE:    uint32(c.max_send_sge),
		MaxRecvSGE:    uint32(c.max_recv_sge),
		MaxInlineData: uint32(c.max_inline_data),
	}
}

// Number implements verbs.QP.
func (q *qp) Number() uint32 { return q.number }

// Type implements verbs.QP.
func (q *qp) Type() verbs.QPType { return q.typ }

// Created implements verbs.QP.
func (q *qp) Created() verbs.QPCap { return q.created }

// Query implements verbs.QP (ibv_query_qp).
func (q *qp) Query() (verbs.QPQuery, error) {
	var attr C.struct_ibv_qp_attr
	var init C.struct_ibv_qp_init_attr
	err := q.call(verbs.QueryQP, func(ns *C.int64_t) C.int {
		return C.shim_query_qp(q.ptr, &attr, &init, ns)
	})
	if err != nil {
		return verbs.QPQuery{}, err
	}
	return verbs.QPQuery{
		State:     verbs.QPState(attr.qp_state),
		Cap:       qpCap(attr.cap),
		SignalAll: init.sq_sig_all != 0,
	}, nil
}

// Modify implements verbs.QP (ibv_modify_qp).
func (q *qp) Modify(attr verbs.QPAttr, mask verbs.QPAttrMask) error {
	if err := q.use(); err != nil {
		return err
	}
	c, err := q.convertAttr(attr, mask)
	if err != nil {
		return err
	}
	return q.dev.trace(verbs.ModifyQP, func(ns *C.int64_t) C.int {
		return C.shim_modify_qp(q.ptr, &c, C.int(mask), ns)
	})
}

// convertAttr returns the attributes as C has them.
func (q *qp) convertAttr(attr verbs.QPAttr, mask verbs.QPAttrMask) (C.struct_ibv_qp_attr, error) {
	if attr.Port < 0 || attr.Port > math.MaxUint8 {
		return C.struct_ibv_qp_attr{}, q.dev.invalid(verbs.ModifyQP, "port %d is not from 1 to 255", attr.Port)
	}
	c := C.struct_ibv_qp_attr{
		qp_state:           C.enum_ibv_qp_state(attr.State),
		path_mtu:           mtuEnum(attr.PathMTU),
		qkey:               C.uint32_t(attr.QKey),
		rq_psn:             C.uint32_t(attr.RQPSN),
		sq_psn:             C.uint32_t(attr.SQPSN),
		dest_qp_num:        C.uint32_t(attr.DestQPN),
		qp_access_flags:    C.uint(attr.Access),
		pkey_index:         C.uint16_t(attr.PKeyIndex),
		max_rd_atomic:      C.uint8_t(attr.MaxRdAtomic),
		max_dest_rd_atomic: C.uint8_t(attr.MaxDestRdAtomic),
		min_rnr_timer:      C.uint8_t(attr.MinRNRTimer),
		port_num:           C.uint8_t(attr.Port),
		timeout:            C.uint8_t(attr.Timeout),
		retry_cnt:          C.uint8_t(attr.RetryCount),
		rnr_retry:          C.uint8_t(attr.RNRRetry),
	}
	if mask&verbs.MaskPathMTU != 0 && c.path_mtu == 0 {
		return c, q.dev.invalid(verbs.ModifyQP, "%d bytes is no MTU", attr.PathMTU)
	}
	if mask&verbs.MaskAV != 0 {
		if err := q.dev.setAHAttr(&c.ah_attr, verbs.ModifyQP, attr.AH); err != nil {
			return c, err
		}
	}
	return c, nil
}

// sgeList converts scatter/gather elements. The result holds no Go pointer.
func sgeList(sges []verbs.SGE) (*C.struct_ibv_sge, C.int) {
	if len(sges) == 0 {
		return nil, 0
	}
	list := make([]C.struct_ibv_sge, len(sges))
	for i, s := range sges {
		list[i] = C.struct_ibv_sge{addr: C.uint64_t(s.Addr), length: C.uint32_t(s.Length), lkey: C.uint32_t(s.LKey)}
	}
	return &list[0], C.int(len(list))
}

// convertSend returns a send work request for C, without its
// scatter/gather elements, and the address handle that it needs; nil if none.
func (q *qp) convertSend(wr verbs.SendWR) (C.struct_shim_send, *ah, error) {
	c := C.struct_shim_send{
		id:          C.uint64_t(wr.ID),
		flags:       C.uint(wr.Flags),
		remote_qpn:  C.uint32_t(wr.RemoteQPN),
		remote_qkey: C.uint32_t(wr.RemoteQKey),
	}
	if !q.typ.IsDatagram() {
		return c, nil, nil
	}
	// Providers read the address handle without looking.
	a, ok := wr.AH.(*ah)
	if !ok || a == nil || a.dev != q.dev {
		return c, nil, q.dev.invalid(verbs.PostSend, "a send on a %s QP needs an address handle of the same device", q.typ)
	}
	c.ah = a.ptr
	return c, a, nil
}

// PostSend implements verbs.QP (ibv_post_send).
func (q *qp) PostSend(wr verbs.SendWR) error {
	if err := q.use(); err != nil {
		return err
	}
	c, address, err := q.convertSend(wr)
	if err != nil {
		return err
	}
	if address != nil {
		if err := address.use(); err != nil {
			return err
		}
	}
	list, n := sgeList(wr.SGEs)
	return q.dev.trace(verbs.PostSend, func(ns *C.int64_t) C.int {
		return C.shim_post_send(q.ptr, &c, list, n, ns)
	})
}

// PostRecv implements verbs.QP (ibv_post_recv).
func (q *qp) PostRecv(wr verbs.RecvWR) error {
	list, n := sgeList(wr.SGEs)
	return q.call(verbs.PostRecv, func(ns *C.int64_t) C.int {
		return C.shim_post_recv(q.ptr, C.uint64_t(wr.ID), list, n, ns)
	})
}

// Close implements verbs.QP (ibv_destroy_qp).
func (q *qp) Close() error {
	return q.destroy(verbs.DestroyQP, nil, func(ns *C.int64_t) C.int {
		return C.shim_destroy_qp(q.ptr, ns)
	})
}
