//go:build cgo && linux

package ibverbs

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/verbs"
)

// channel implements verbs.CompChannel (struct ibv_comp_channel).
type channel struct {
	object
	ptr *C.struct_ibv_comp_channel
}

// CreateCompChannel implements verbs.Device (ibv_create_comp_channel).
func (d *device) CreateCompChannel() (verbs.CompChannel, error) {
	c := &channel{object: object{kind: "completion channel", dev: d}}
	return create[verbs.CompChannel](&d.object, verbs.CreateCompChannel, c, func(ns *C.int64_t) C.int {
		if errno := C.shim_create_comp_channel(d.ctx, &c.ptr, ns); errno != 0 {
			return errno
		}
		// ibv_get_cq_event must never wait.
		var refused syscall.Errno
		if errors.As(unix.SetNonblock(int(c.ptr.fd), true), &refused) {
			C.ibv_destroy_comp_channel(c.ptr)
		}
		return C.int(refused)
	})
}

// GetEvent implements verbs.CompChannel (ibv_get_cq_event).
func (c *channel) GetEvent(timeout time.Duration) (verbs.CQEvent, error) {
	if err := c.use(); err != nil {
		return verbs.CQEvent{}, err
	}
	deadline := time.Now().Add(timeout)
	for {
		e, ok, err := c.take()
		if ok || err != nil {
			return e, err
		}
		left := time.Until(deadline)
		if left <= 0 {
			return verbs.CQEvent{}, fmt.Errorf("completion channel of %s: no event within %s: %w", c.dev.name, timeout, verbs.ErrTimeout)
		}
		if _, err := readable(c.ptr.fd, left); err != nil {
			return verbs.CQEvent{}, fmt.Errorf("wait for an event of %s: %w", c.dev.name, err)
		}
	}
}

// readable waits until a descriptor is readable. It returns false at the end of the wait or at a signal.
func readable(fd C.int, wait time.Duration) (bool, error) {
	// Rounded up, so that the last millisecond is not spent spinning.
	ms := min((max(wait, 0)+time.Millisecond-1)/time.Millisecond, math.MaxInt32)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(ms))
	if errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return n > 0, err
}

// take returns an event if there is one.
func (c *channel) take() (e verbs.CQEvent, ok bool, err error) {
	ready, err := readable(c.ptr.fd, 0)
	if err != nil {
		return e, false, fmt.Errorf("look for an event of %s: %w", c.dev.name, err)
	}
	if !ready {
		return e, false, nil
	}
	var ptr *C.struct_ibv_cq
	var context C.uintptr_t
	err = c.dev.trace(verbs.GetCQEvent, func(ns *C.int64_t) C.int {
		return C.shim_get_cq_event(c.ptr, &ptr, &context, ns)
	})
	if err != nil {
		return e, false, err
	}
	q := c.dev.cqs[ptr]
	if q == nil {
		return e, false, c.dev.unknownCQ()
	}
	q.unacked++
	return verbs.CQEvent{CQ: q, Context: uint64(context)}, true, nil
}

// unknownCQ is the error of an event that names a CQ which is not in d.cqs.
func (d *device) unknownCQ() error {
	return fmt.Errorf("completion channel of %s: %w", d.name, verbs.ErrUnknownCQ)
}

// Close implements verbs.CompChannel (ibv_destroy_comp_channel).
func (c *channel) Close() error {
	return c.destroy(verbs.DestroyCompChannel, nil, func(ns *C.int64_t) C.int {
		return C.shim_destroy_comp_channel(c.ptr, ns)
	})
}

// cq implements verbs.CQ (struct ibv_cq).
type cq struct {
	object
	ptr     *C.struct_ibv_cq
	channel *channel // may be nil
	fields  verbs.WCFields
	entries int
	unacked int // events
}

// CreateCQ implements verbs.Device (ibv_create_cq, ibv_create_cq_ex).
func (d *device) CreateCQ(attr verbs.CQInitAttr) (verbs.CQ, error) {
	verb, _ := attr.Fields.CQVerbs()
	used := []*object{&d.object}
	channel, ok := own[*channel](d, attr.Channel, &used)
	if !ok {
		return nil, d.invalid(verb, "the completion channel is not of this device")
	}
	if err := useAll(used...); err != nil {
		return nil, err
	}
	if attr.Entries < math.MinInt32 || attr.Entries > math.MaxInt32 || attr.Vector < math.MinInt32 || attr.Vector > math.MaxInt32 {
		return nil, d.invalid(verb, "%d entries or vector %d do not fit an int", attr.Entries, attr.Vector)
	}
	q := &cq{object: object{kind: "CQ", dev: d}, channel: channel, fields: attr.Fields}
	var ch *C.struct_ibv_comp_channel
	if channel != nil {
		ch = channel.ptr
	}
	made, err := create[verbs.CQ](&d.object, verb, q, func(ns *C.int64_t) C.int {
		if q.fields != 0 {
			return C.shim_create_cq_ex(d.ctx, C.int(attr.Entries), C.uintptr_t(attr.Context), ch, C.int(attr.Vector), C.uint64_t(q.fields), &q.ptr, ns)
		}
		return C.shim_create_cq(d.ctx, C.int(attr.Entries), C.uintptr_t(attr.Context), ch, C.int(attr.Vector), &q.ptr, ns)
	})
	if err == nil {
		q.entries = int(q.ptr.cqe)
		d.cqs[q.ptr] = q
	}
	return made, err
}

// Entries implements verbs.CQ.
func (q *cq) Entries() int { return q.entries }

// Resize implements verbs.CQ (ibv_resize_cq).
func (q *cq) Resize(entries int) error {
	if err := q.use(); err != nil {
		return err
	}
	if entries < math.MinInt32 || entries > math.MaxInt32 {
		return q.dev.invalid(verbs.ResizeCQ, "%d entries do not fit an int", entries)
	}
	err := q.dev.trace(verbs.ResizeCQ, func(ns *C.int64_t) C.int {
		return C.shim_resize_cq(q.ptr, C.int(entries), ns)
	})
	if err == nil {
		q.entries = int(q.ptr.cqe)
	}
	return err
}

// maxPoll bounds the memory of one Poll.
const maxPoll = 4096

// Poll implements verbs.CQ (ibv_poll_cq, ibv_start_poll).
func (q *cq) Poll(n int) ([]verbs.WC, error) {
	_, verb := q.fields.CQVerbs()
	if err := q.use(); err != nil {
		return nil, err
	}
	if n <= 0 {
		return nil, q.dev.invalid(verb, "asked for %d completions", n)
	}
	n = min(n, maxPoll)
	wcs := make([]C.struct_ibv_wc, n)
	timestamps := make([]C.uint64_t, n)
	var got C.int
	err := q.dev.trace(verb, func(ns *C.int64_t) C.int {
		if q.fields != 0 {
			return C.shim_poll_cq_ex(q.ptr, C.uint64_t(q.fields), C.int(n), &wcs[0], &timestamps[0], &got, ns)
		}
		return C.shim_poll_cq(q.ptr, C.int(n), &wcs[0], &got, ns)
	})
	if err != nil {
		return nil, err
	}
	// A broken provider could say that it wrote more than there is room for.
	wcs = wcs[:min(int(got), n)]
	out := make([]verbs.WC, 0, len(wcs))
	for i := range wcs {
		w := &wcs[i]
		out = append(out, verbs.WC{
			ID: uint64(w.wr_id), Status: verbs.WCStatus(w.status), ByteLen: uint32(w.byte_len),
			QPNum: uint32(w.qp_num), SrcQP: uint32(w.src_qp), Timestamp: uint64(timestamps[i]),
		})
	}
	return out, nil
}

// ReqNotify implements verbs.CQ (ibv_req_notify_cq).
func (q *cq) ReqNotify(solicitedOnly bool) error {
	return q.call(verbs.ReqNotifyCQ, func(ns *C.int64_t) C.int {
		return C.shim_req_notify_cq(q.ptr, cBool(solicitedOnly), ns)
	})
}

// AckEvents implements verbs.CQ (ibv_ack_cq_events).
func (q *cq) AckEvents(n int) error {
	if err := q.use(); err != nil {
		return err
	}
	if n < 0 || n > q.unacked {
		return q.dev.invalid(verbs.AckCQEvents, "%d events, of which %d are not acknowledged", n, q.unacked)
	}
	if n == 0 {
		return nil
	}
	q.unacked -= n
	return q.dev.trace(verbs.AckCQEvents, func(ns *C.int64_t) C.int {
		C.shim_ack_cq_events(q.ptr, C.uint(n), ns)
		return 0
	})
}

// Close implements verbs.CQ (ibv_destroy_cq).
func (q *cq) Close() error {
	if !q.closed && q.unacked > 0 {
		return &verbs.Error{
			Verb: verbs.DestroyCQ, Device: q.dev.name, Errno: syscall.EBUSY,
			Detail: fmt.Errorf("%d %w", q.unacked, verbs.ErrUnacknowledged),
		}
	}
	forget := func() { delete(q.dev.cqs, q.ptr) } // the address may be given to the next CQ
	return q.destroy(verbs.DestroyCQ, forget, func(ns *C.int64_t) C.int {
		return C.shim_destroy_cq(q.ptr, ns)
	})
}

func cBool(b bool) C.int {
	if b {
		return 1
	}
	return 0
}
