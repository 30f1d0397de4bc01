package simulated

import (
	"fmt"
	"syscall"
	"time"

	"rdma_exporter/verbs"
)

type failure struct {
	errno  syscall.Errno
	detail error // may be nil
}

func (f *failure) of(v verbs.Verb, device string) error {
	return &verbs.Error{Verb: v, Device: device, Errno: f.errno, Detail: f.detail}
}

func fail(errno syscall.Errno, format string, args ...any) *failure {
	return &failure{errno: errno, detail: fmt.Errorf(format, args...)}
}

// caller calls a verb: hardware.call or hardware.quietly.
type caller func(v verbs.Verb, about Call, effect func(short int) *failure) error

// call calls a verb: the tracer sees it, time passes, faults act, and then the effect, which
// may be nil, takes place. The effect receives the amount by which its sizes come up short.
func (h *hardware) call(v verbs.Verb, about Call, effect func(short int) *failure) error {
	return run(h.tracer, h.name, v, h.latency(v), h.acting(v, about), effect)
}

// quietly is call, but the tracer sees only verbs on which a fault acts. It adds the time
// that the profile makes the verb take to hardware.delays.
func (h *hardware) quietly(v verbs.Verb, about Call, effect func(int) *failure) error {
	acting := h.acting(v, about)
	tracer := verbs.Tracer(verbs.NopTracer{})
	if len(acting) > 0 {
		tracer = h.tracer
	}
	h.delays += h.latency(v)
	for _, f := range acting {
		h.delays += f.Delay
	}
	return run(tracer, h.name, v, h.latency(v), acting, effect)
}

// run is call for a verb without a device as well.
func run(tracer verbs.Tracer, device string, v verbs.Verb, latency time.Duration, acting []*countedFault, effect func(short int) *failure) error {
	tracer.Begin(v)
	start := time.Now()
	if latency > 0 {
		time.Sleep(latency)
	}
	var f *failure
	errno, short, ignored := act(acting)
	if errno != 0 {
		f = &failure{errno: errno}
	} else if effect != nil && !ignored {
		f = effect(short)
	}
	done := verbs.Call{Verb: v, Began: time.Duration(start.UnixNano()), Duration: time.Since(start)}
	if f == nil {
		tracer.End(done)
		return nil
	}
	done.Errno = f.errno
	tracer.End(done)
	return f.of(v, device)
}

type countedFault struct {
	Fault
	seen  int
	errno syscall.Errno
}

// counts adds a call or event, and reports whether a fault acts on it.
func counts(seen *int, after, times int) bool {
	*seen++
	return *seen > after && (times == 0 || *seen <= after+times)
}

// acting counts a call, and returns the faults that act on it.
func (h *hardware) acting(v verbs.Verb, about Call) (acting []*countedFault) {
	for _, f := range h.faults {
		if f.Verb == v && (f.When == nil || f.When(about)) && counts(&f.seen, f.After, f.Times) {
			acting = append(acting, f)
		}
	}
	return acting
}

// act makes the faults of one call act. It does not return from a hang or a crash.
func act(acting []*countedFault) (errno syscall.Errno, short int, ignored bool) {
	for _, f := range acting {
		switch {
		case f.Hang:
			hang()
		case f.Crash:
			crash()
		case f.errno != 0:
			return f.errno, 0, false
		}
		time.Sleep(f.Delay)
		ignored = ignored || f.Ignore
		short += f.Short
	}
	return 0, short, ignored
}

// hang never returns. It sleeps, because Go's runtime reports a deadlock if the last
// goroutine waits for nothing.
func hang() {
	for {
		time.Sleep(time.Hour)
	}
}

// less returns n less the amount by which a fault makes it short, but not below 0.
func less[T int | uint32](n T, short int) T {
	return T(max(0, int64(n)-int64(short)))
}
