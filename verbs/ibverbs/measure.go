//go:build cgo && linux

package ibverbs

// #include "shim_measure.h"
import "C"

import (
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
	switch number {
	case C.SHIM_POST_RECV:
		return verbs.PostRecv, true
	case C.SHIM_REQ_NOTIFY_CQ:
		return verbs.ReqNotifyCQ, true
	case C.SHIM_POST_SEND:
		return verbs.PostSend, true
	case C.SHIM_GET_CQ_EVENT:
		return verbs.GetCQEvent, true
	case C.SHIM_ACK_CQ_EVENTS:
		return verbs.AckCQEvents, true
	case C.SHIM_POLL_CQ:
		return verbs.PollCQ, true
	case C.SHIM_MODIFY_QP:
		return verbs.ModifyQP, true
	default:
		return "", false
	}
}

// longest bounds the times of a measurement, so that their sums do not overflow.
const longest = 365 * 24 * time.Hour

// Measure implements verbs.Device. The whole measurement is one call of C, in a
// thread of its own. A measurement that cannot be taken is reported as the failure of
// ibv_post_send.
func (d *device) Measure(m verbs.Measurement) (verbs.Samples, error) {
	t, used, err := d.measurement(m)
	if err != nil {
		return verbs.Samples{}, err
	}
	if err := useAll(used...); err != nil {
		return verbs.Samples{}, err
	}
	known := slices.Collect(maps.Keys(d.cqs)) // that an event may name

	c := t.c
	sendSGEs, nsend := sgeList(m.Send.SGEs)
	recvSGEs, nrecv := sgeList(m.Recv.SGEs)
	c.send_nsge, c.recv_nsge = nsend, nrecv
	latency := make([]time.Duration, m.Samples)
	var arm []time.Duration
	if t.channel != nil {
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
	if t.channel != nil {
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

// target is what a measurement works on.
type target struct {
	cq, other          *cq      // other may be nil
	channel, bystander *channel // either may be nil
	// c lacks the scatter/gather elements.
	c C.struct_shim_measurement
}

// measurement checks what to measure, and returns it with all its objects.
func (d *device) measurement(m verbs.Measurement) (t target, used []*object, err error) {
	used = []*object{&d.object}
	refuse := func(format string, args ...any) (target, []*object, error) {
		return target{}, nil, d.invalid(verbs.PostSend, "cannot measure: "+format, args...)
	}
	sender, ok := m.Sender.(*qp)
	switch {
	case m.Init != nil:
		if m.Sender != nil || m.Receiver == nil || m.Other != nil {
			return refuse("receives are flushed on a receiver alone")
		}
	case !ok || sender == nil || sender.dev != d:
		return refuse("there is no sender, or it is not of this device")
	default:
		used = append(used, &sender.object)
		t.c.sender = sender.ptr
	}
	if m.Receiver != nil {
		receiver, ok := m.Receiver.(*qp)
		if !ok || receiver == nil || receiver.dev != d {
			return refuse("the receiver is not of this device")
		}
		used = append(used, &receiver.object)
		t.c.receiver = receiver.ptr
		if m.Init != nil {
			if t.c.init, err = receiver.convertAttr(m.Init.Attr, m.Init.Mask); err != nil {
				return target{}, nil, err
			}
			t.c.flush_recvs, t.c.init_mask = 1, C.int(m.Init.Mask)
		}
	}
	if t.cq, ok = m.CQ.(*cq); !ok || t.cq == nil || t.cq.dev != d {
		return refuse("there is no CQ, or it is not of this device")
	}
	used = append(used, &t.cq.object)
	t.c.cq = t.cq.ptr
	if m.Other != nil {
		if t.other, ok = m.Other.(*cq); !ok || t.other == nil || t.other.dev != d {
			return refuse("the other CQ is not of this device")
		}
		if t.other == t.cq {
			return refuse("the completions of one sample cannot be told apart on one CQ")
		}
		used = append(used, &t.other.object)
		t.c.other = t.other.ptr
	}
	if m.Channel != nil {
		if t.channel, ok = m.Channel.(*channel); !ok || t.channel == nil || t.channel != t.cq.channel {
			return refuse("the completion channel is not that of the CQ")
		}
		used = append(used, &t.channel.object)
		t.c.channel = t.channel.ptr
	}
	if m.Bystander != nil {
		if t.bystander, ok = m.Bystander.(*channel); !ok || t.bystander == nil || t.bystander.dev != d {
			return refuse("the bystander is not of this device")
		}
		if t.bystander == t.channel {
			return refuse("the bystander is the completion channel itself")
		}
		used = append(used, &t.bystander.object)
		t.c.bystander = t.bystander.ptr
	}
	if err := m.Validate(); err != nil {
		return refuse("%w", err)
	}
	if sender != nil {
		send, address, err := sender.convertSend(m.Send)
		if err != nil {
			return target{}, nil, err
		}
		if address != nil {
			used = append(used, &address.object)
		}
		t.c.send = send
	}
	t.c.solicited_only = cBool(m.SolicitedOnly)
	t.c.status = C.int(m.Status)
	t.c.warmup, t.c.samples, t.c.max_missed = C.int(m.Warmup), C.int(m.Samples), verbs.MaxMissed
	t.c.deadline, t.c.budget = C.int64_t(min(m.Deadline, longest)), C.int64_t(min(max(m.Budget, 0), longest))
	return t, used, nil
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
