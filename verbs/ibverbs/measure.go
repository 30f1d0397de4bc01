//go:build cgo && linux

package ibverbs

// #include "shim_measure.h"
import "C"

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/verbs"
)

// shim_measure.h numbers the reasons to end as package verbs does. See numbers.go.
var _ = map[bool]struct{}{
	false: {},
	verbs.StopNone == C.SHIM_STOP_NONE && verbs.StopBudget == C.SHIM_STOP_BUDGET &&
		verbs.StopMissed == C.SHIM_STOP_MISSED && verbs.StopMissing == C.SHIM_STOP_MISSING &&
		verbs.StopUnsuccessful == C.SHIM_STOP_UNSUCCESSFUL: {},
}

// measured returns the verb that shim_measure.h numbers so; not ok for none.
func measured(number uint64) (v verbs.Verb, ok bool) {
	v, ok = map[uint64]verbs.Verb{
		C.SHIM_POST_RECV: verbs.PostRecv, C.SHIM_REQ_NOTIFY_CQ: verbs.ReqNotifyCQ, C.SHIM_POST_SEND: verbs.PostSend,
		C.SHIM_GET_CQ_EVENT: verbs.GetCQEvent, C.SHIM_ACK_CQ_EVENTS: verbs.AckCQEvents, C.SHIM_POLL_CQ: verbs.PollCQ,
		C.SHIM_MODIFY_QP: verbs.ModifyQP,
	}[number]
	return v, ok
}

// longest bounds the times of a measurement, so that their sums do not overflow.
const longest = 365 * 24 * time.Hour

// Measure implements verbs.Device. The whole measurement is one call of C, in a
// thread of its own. A measurement that cannot be taken is reported as the failure of
// ibv_post_send.
func (d *device) Measure(m verbs.Measurement) (verbs.Samples, error) {
	c, used, err := d.measurement(m)
	if err != nil {
		return verbs.Samples{}, err
	}
	if err := useAll(used...); err != nil {
		return verbs.Samples{}, err
	}
	known := slices.Collect(maps.Keys(d.cqs)) // that an event may name

	sendSGEs, nsend := sgeList(m.Send.SGEs)
	recvSGEs, nrecv := sgeList(m.Recv.SGEs)
	c.send_nsge, c.recv_nsge = nsend, nrecv
	latency := make([]time.Duration, m.Samples)
	var arm []time.Duration
	if m.Channel != nil {
		arm = make([]time.Duration, m.Samples)
	}
	var s C.struct_shim_samples
	d.watched(min(m.Budget, longest)+3*min(m.Deadline, longest), func(in *uint64) {
		inThread(func() {
			C.shim_measure(&c, sendSGEs, recvSGEs, &known[0], C.size_t(len(known)),
				(*C.uint64_t)(unsafe.Pointer(in)),
				(*C.int64_t)(unsafe.Pointer(unsafe.SliceData(latency))),
				(*C.int64_t)(unsafe.Pointer(unsafe.SliceData(arm))), &s)
		})
	})
	found := verbs.Samples{
		Latency:     latency[:s.taken],
		Missed:      int(s.missed),
		Spurious:    int(s.spurious),
		Misdirected: int(s.misdirected),
		Missing:     int(s.missing),
		Stopped:     verbs.Stop(s.stop),
	}
	if m.Channel != nil {
		found.Arm = arm[:s.taken]
	}
	if s.unsuccessful != 0 {
		found.Unsuccessful = []verbs.WCStatus{verbs.WCStatus(s.status)}
	}
	return found, d.measureError(&s)
}

// inThread calls f in a thread of its own, which ends with it. The thread shares
// its table of open files with no other: where tables are shared, as between the
// threads of a Go program, each system call on a file costs a little more, which
// is some per cent of the shortest times here, and which the program that the
// figures are for need not pay.
func inThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Never unlocked: the thread must not go on to serve others.
		runtime.LockOSThread()
		// Some sandboxes refuse it, and then the figures have that cost in them.
		_ = unix.Unshare(unix.CLONE_FILES)
		f()
	}()
	<-done
}

// measureError returns what ended a measurement, if that is a failure.
func (d *device) measureError(s *C.struct_shim_samples) error {
	errno := syscall.Errno(s.err)
	if errno == 0 {
		return nil
	}
	if s.strange != 0 {
		return d.unknownCQ()
	}
	return d.failed(s.verb, errno)
}

// failed returns the error of a verb that shim_measure.h numbers so.
func (d *device) failed(number C.int, errno syscall.Errno) error {
	v, ok := measured(uint64(number))
	if !ok {
		return fmt.Errorf("wait for an event of %s: %w", d.name, errno)
	}
	// The tracer sees no verb of a measurement that goes well. A failure is traced
	// like any other, without a duration, which was not measured.
	d.tracer.Begin(v)
	d.tracer.End(verbs.Call{Verb: v, Errno: errno})
	return &verbs.Error{Verb: v, Device: d.name, Errno: errno}
}

// measurement checks what to measure, and returns it for C, without the scatter/gather elements,
// with all its objects.
func (d *device) measurement(m verbs.Measurement) (c C.struct_shim_measurement, used []*object, err error) {
	used = []*object{&d.object}
	var mine [6]bool
	var sender, receiver *qp
	var of, other *cq
	var ch, bystander *channel
	sender, mine[0] = own[*qp](d, m.Sender, &used)
	receiver, mine[1] = own[*qp](d, m.Receiver, &used)
	of, mine[2] = own[*cq](d, m.CQ, &used)
	other, mine[3] = own[*cq](d, m.Other, &used)
	ch, mine[4] = own[*channel](d, m.Channel, &used)
	bystander, mine[5] = own[*channel](d, m.Bystander, &used)
	err = m.Validate()
	switch {
	case slices.Contains(mine[:], false):
		err = errors.New("an object is not of this device")
	case err == nil && ch != nil && ch != of.channel:
		err = errors.New("the completion channel is not that of the CQ")
	}
	if err != nil {
		return c, nil, d.invalid(verbs.PostSend, "cannot measure: %w", err)
	}
	c.cq = of.ptr
	if sender != nil {
		c.sender = sender.ptr
		send, address, err := sender.convertSend(m.Send)
		if err != nil {
			return c, nil, err
		}
		if address != nil {
			used = append(used, &address.object)
		}
		c.send = send
	}
	if receiver != nil {
		c.receiver = receiver.ptr
	}
	if m.Init != nil {
		if c.init, err = receiver.convertAttr(m.Init.Attr, m.Init.Mask); err != nil {
			return c, nil, err
		}
		c.flush_recvs, c.init_mask = 1, C.int(m.Init.Mask)
	}
	if other != nil {
		c.other = other.ptr
	}
	if ch != nil {
		c.channel = ch.ptr
	}
	if bystander != nil {
		c.bystander = bystander.ptr
	}
	c.solicited_only = cBool(m.SolicitedOnly)
	c.status = C.int(m.Status)
	c.warmup, c.samples, c.max_missed = C.int(m.Warmup), C.int(m.Samples), verbs.MaxMissed
	c.deadline, c.budget = C.int64_t(min(m.Deadline, longest)), C.int64_t(min(max(m.Budget, 0), longest))
	return c, used, nil
}

// watched calls f, and names the verb in which f still is a second after the
// time that it may take, so that a process which is killed in there has told.
// f keeps the word up to date as struct shim_run says.
func (d *device) watched(limit time.Duration, f func(in *uint64)) {
	in := new(uint64)
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() { watch(d.tracer, in, limit, time.Second, done) })
	defer watcher.Wait()
	defer close(done)
	f(in)
}

// watch begins to look at the word after a time, and then looks at it at
// intervals, until it is done. A verb that was called before one look and has not
// returned at the next hangs: the tracer sees it begin, once. That is why
// a process that was merely suspended accuses none.
func watch(tracer verbs.Tracer, in *uint64, after, interval time.Duration, done <-chan struct{}) {
	timer := time.NewTimer(after)
	defer timer.Stop()
	var before uint64
	for {
		select {
		case <-done:
			return
		case <-timer.C:
		}
		now := atomic.LoadUint64(in)
		if v, ok := measured(now & (1<<C.SHIM_VERB_BITS - 1)); ok && now == before {
			tracer.Begin(v)
			return
		}
		before = now
		timer.Reset(interval)
	}
}
