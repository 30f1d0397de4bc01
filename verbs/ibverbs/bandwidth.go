//go:build cgo && linux

package ibverbs

// #include "shim_bandwidth.h"
import "C"

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/verbs"
)

// shim_bandwidth.h has the limits of package verbs. See numbers.go.
var _ = map[bool]struct{}{false: {}, verbs.MaxBandwidthQPs == C.SHIM_MAX_PAIRS && verbs.MaxBandwidthWindow == C.SHIM_MAX_WINDOW: {}}

// Bandwidth implements verbs.Device. The run is one call of C, in a thread of its own.
func (d *device) Bandwidth(r verbs.BandwidthRun) (found verbs.BandwidthResult, err error) {
	c, ok := r.CQ.(*cq)
	if err := r.Validate(); err != nil || !ok || c == nil || c.dev != d {
		return found, d.invalid(verbs.PostSend, "cannot measure bandwidth on CQ %v: %v", r.CQ, err)
	}
	used, qps := []*object{&d.object, &c.object}, make([]*C.struct_ibv_qp, len(r.QPs))
	for i := range r.QPs {
		q, ok := r.QPs[i].(*qp)
		if !ok || q == nil || q.sendCQ != c || q.typ != verbs.RC {
			return found, d.invalid(verbs.PostSend, "cannot measure bandwidth: QP %d is not an RC QP of the CQ", i)
		}
		used, qps[i] = append(used, &q.object), q.ptr
	}
	if err := useAll(used...); err != nil {
		return found, err
	}
	sge := func(s verbs.SGE, key uint32) C.struct_ibv_sge {
		return C.struct_ibv_sge{addr: C.uint64_t(s.Addr), length: C.uint32_t(s.Length), lkey: C.uint32_t(key)}
	}
	b := C.struct_shim_bandwidth{
		nqp: C.int(len(qps)), size: C.int(r.Size), window: C.int(r.Window), batch: C.int(r.Batch), read: cBool(r.Read), flags: cBool(r.Inline) * C.IBV_SEND_INLINE,
		local: sge(r.Local, r.Local.LKey), remote: sge(r.Remote, r.Remote.RKey),
		duration: C.int64_t(r.Duration), drain: C.int64_t(r.Drain), bytes: C.int64_t(r.Bytes),
	}
	d.watched(r.Duration+r.Drain, func(in *uint64) {
		inThread(func() {
			var cpus unix.CPUSet
			for _, n := range r.CPUs {
				cpus.Set(n)
			}
			if err = unix.SchedSetaffinity(0, &cpus); err == nil || len(r.CPUs) == 0 {
				C.shim_bandwidth(&b, &qps[0], c.ptr, (*C.int64_t)(unsafe.Pointer(r.Stop)), (*C.uint64_t)(unsafe.Pointer(in)))
			}
		})
	})
	if err != nil && len(r.CPUs) > 0 {
		return found, fmt.Errorf("bind a thread to CPUs %v: %w: %w", r.CPUs, verbs.ErrNUMANode, err)
	}
	if err = nil; b.err != 0 {
		err = d.failed(b.verb, syscall.Errno(b.err))
	}
	return verbs.BandwidthResult{
		Messages: int64(b.messages), Elapsed: time.Duration(b.elapsed), Status: verbs.WCStatus(b.status),
		Posting: time.Duration(b.posting), Draining: time.Duration(b.draining),
	}, err
}
