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

// fail returns a failure with its reason in words.
func fail(errno syscall.Errno, format string, args ...any) *failure {
	return &failure{errno: errno, detail: fmt.Errorf(format, args...)}
}

// caller calls a verb in one of the ways below.
type caller func(v verbs.Verb, effect func(short int) *failure) error

// call calls a verb: the tracer is told, time passes, faults act, and only then
// has the verb its effect, which may be nil. The effect is told by how much its sizes
// must come up short.
func (h *hardware) call(v verbs.Verb, effect func(short int) *failure) error {
	return h.callOn(facts{}, v, effect)
}

// callOn is call for a verb of which there are facts.
func (h *hardware) callOn(about facts, v verbs.Verb, effect func(short int) *failure) error {
	latency := h.behaviour.latency(v)
	pass := sleep(latency)
	if h.together {
		pass = func() time.Duration { return h.debt.pass(latency) }
	}
	return run(h.tracer, h.name, v, pass, h.faulty(v, about), effect)
}

// faulty returns the faults that act on a call.
func (h *hardware) faulty(v verbs.Verb, about facts) []*countedFault {
	about.pd = h.live[kindPD] > 0
	return h.faults.next(v, about)
}

// debt is time that verbs were said to take and that has not passed yet.
type debt time.Duration

// leastSleep is the least debt that is slept off.
const leastSleep = 50 * time.Millisecond

// pass has a time pass together with those of other calls, and returns by how much less
// really passed; less than 0 if that of earlier calls passed, too.
func (d *debt) pass(t time.Duration) (missing time.Duration) {
	*d += debt(t)
	if time.Duration(*d) < leastSleep {
		return t
	}
	return t - d.settle()
}

// settle has all that is owed pass, and returns how long that took.
func (d *debt) settle() time.Duration {
	start := time.Now()
	time.Sleep(time.Duration(*d))
	*d = 0
	return time.Since(start)
}

// sleep returns what has a time pass at once.
func sleep(t time.Duration) (pass func() (missing time.Duration)) {
	return func() time.Duration {
		if t > 0 {
			time.Sleep(t)
		}
		return 0
	}
}

// run is call for a verb that may have no hardware. Its time passes by way of pass, which
// returns by how much longer than that the verb is to have taken.
func run(
	tracer verbs.Tracer, device string, v verbs.Verb, pass func() (missing time.Duration),
	acting []*countedFault, effect func(short int) *failure,
) error {
	tracer.Begin(v)
	start := time.Now()
	missing := pass()
	var f *failure
	errno, short, ignored := act(acting)
	if errno != 0 {
		f = &failure{errno: errno}
	} else if effect != nil && !ignored {
		f = effect(short)
	}
	done := verbs.Call{Verb: v, Duration: max(0, time.Since(start)+missing)}
	if f != nil {
		done.Errno = f.errno
	}
	tracer.End(done)
	if f != nil {
		return f.of(v, device)
	}
	return nil
}

// quietly is callOn, but the tracer is told only if a fault acts on the verb, in
// which it may stay. It returns by how much the profile makes the verb longer,
// too.
func (h *hardware) quietly(about facts, v verbs.Verb, effect func(short int) *failure) (time.Duration, error) {
	acting, slow := h.faulty(v, about), h.behaviour.latency(v)
	if len(acting) == 0 && slow == 0 {
		if effect != nil {
			if f := effect(0); f != nil {
				return 0, f.of(v, h.name)
			}
		}
		return 0, nil
	}
	tracer := verbs.Tracer(verbs.NopTracer{})
	if len(acting) > 0 {
		tracer = h.tracer
	}
	// Whoever measures needs the time to pass now.
	err := run(tracer, h.name, v, sleep(slow), acting, effect)
	for _, c := range acting {
		slow += c.Delay
	}
	return slow, err
}
