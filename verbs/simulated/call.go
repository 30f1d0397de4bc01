package simulated

import (
	"fmt"
	"syscall"
	"time"

	"rdma_exporter/verbs"
)

// failure is why a verb fails.
type failure struct {
	errno  syscall.Errno
	detail error // may be nil
}

// of returns the failure as the error of a verb on a device.
func (f *failure) of(v verbs.Verb, device string) error {
	return &verbs.Error{Verb: v, Device: device, Errno: f.errno, Detail: f.detail}
}

func fail(errno syscall.Errno, format string, args ...any) *failure {
	return &failure{errno: errno, detail: fmt.Errorf(format, args...)}
}

// caller calls a verb in one of the ways below.
type caller func(v verbs.Verb, effect func(short int) *failure) error

// call calls a verb: the tracer sees it, time passes, faults act, and then the effect, which
// may be nil, takes place. The effect receives the amount by which its sizes come up short.
func (h *hardware) call(v verbs.Verb, effect func(short int) *failure) error {
	return h.callOn(Call{GID: -1}, v, effect)
}

// callOn is call for faults that depend on the arguments.
func (h *hardware) callOn(about Call, v verbs.Verb, effect func(short int) *failure) error {
	return run(h.tracer, h.name, v, h.behaviour.latency(v), h.faults.next(v, about), effect)
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
	done := verbs.Call{Verb: v, Duration: time.Since(start)}
	if f != nil {
		done.Errno = f.errno
	}
	tracer.End(done)
	if f != nil {
		return f.of(v, device)
	}
	return nil
}

// quietly is callOn, but the tracer sees only verbs on which a fault acts. It returns by how
// much the profile makes the verb longer.
func (h *hardware) quietly(about Call, v verbs.Verb, effect func(int) *failure) (time.Duration, error) {
	acting, slow := h.faults.next(v, about), h.behaviour.latency(v)
	tracer := verbs.Tracer(verbs.NopTracer{})
	if len(acting) > 0 {
		tracer = h.tracer
	}
	err := run(tracer, h.name, v, slow, acting, effect)
	for _, c := range acting {
		slow += c.Delay
	}
	return slow, err
}

// faults counts the calls of one device and selects those that are faulty.
type faults map[verbs.Verb][]*countedFault

type countedFault struct {
	Fault
	counter
	errno syscall.Errno
}

// counter counts what a fault may act on.
type counter struct{ after, times, seen int }

// next counts one more, and reports whether the fault acts on it.
func (c *counter) next() bool {
	acts := c.seen >= c.after && (c.times == 0 || c.seen-c.after < c.times)
	c.seen++
	return acts
}

func newFaults(list []Fault) faults {
	f, numbers := make(faults), errnos()
	for _, fault := range list {
		f[fault.Verb] = append(f[fault.Verb], &countedFault{
			Fault: fault, counter: counter{after: fault.After, times: fault.Times}, errno: numbers[fault.Errno],
		})
	}
	return f
}

// next counts a call, and returns the faults that act on it, in their order.
func (f faults) next(v verbs.Verb, about Call) []*countedFault {
	var acting []*countedFault
	for _, c := range f[v] {
		if (c.When == nil || c.When(about)) && c.next() {
			acting = append(acting, c)
		}
	}
	return acting
}

// act makes the faults of one call act. It returns the errno with which the call must fail,
// the amount by which its sizes come up short, and whether it is ignored. It does not return
// from a hang or a crash.
func act(acting []*countedFault) (errno syscall.Errno, short int, ignored bool) {
	for _, c := range acting {
		switch {
		case c.Hang:
			hang()
		case c.Crash:
			crash()
		case c.Delay > 0:
			time.Sleep(c.Delay)
		case c.errno != 0:
			return c.errno, 0, false
		case c.Ignore:
			ignored = true
		default:
			short += c.Short
		}
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
	if int64(short) >= int64(n) {
		return 0
	}
	return n - T(short)
}
