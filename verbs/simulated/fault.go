package simulated

import (
	"syscall"
	"time"

	"rdma_exporter/verbs"
)

// faults counts the calls of one device and says which of them are faulty.
type faults map[verbs.Verb][]*countedFault

type countedFault struct {
	Fault
	counter
	errno syscall.Errno
}

// counter counts what a fault may act on.
type counter struct {
	after, times, seen int
}

// next counts one more, and reports whether the fault acts on it.
func (c *counter) next() bool {
	acts := c.seen >= c.after && (c.times == 0 || c.seen-c.after < c.times)
	c.seen++
	return acts
}

func newFaults(list []Fault) faults {
	f := make(faults)
	for _, fault := range list {
		errno, _ := errnoNumber(fault.Errno)
		f[fault.Verb] = append(f[fault.Verb], &countedFault{
			Fault: fault, counter: counter{after: fault.After, times: fault.Times}, errno: errno,
		})
	}
	return f
}

// next counts a call, of which there are facts, and returns the faults that act on
// it, in their order. A fault counts the calls that it is about.
func (f faults) next(v verbs.Verb, about facts) []*countedFault {
	var acting []*countedFault
	for _, c := range f[v] {
		if c.When.holds(about) && c.next() {
			acting = append(acting, c)
		}
	}
	return acting
}

// act lets the faults of one call act. It returns the errno that the call must
// fail with, by how much its sizes come up short, and whether it does nothing. It
// does not return from a hang or a crash.
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

// hang never returns. It sleeps rather than waiting for nothing: the latter
// would have the runtime end a process without other goroutines as deadlocked.
func hang() {
	for {
		time.Sleep(time.Hour)
	}
}

// less returns n less the number that a fault makes it short by.
func less[T int | uint32](n T, short int) T {
	if int64(short) >= int64(n) {
		return 0
	}
	return n - T(short)
}
