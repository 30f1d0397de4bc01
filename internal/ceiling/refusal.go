package ceiling

import (
	"fmt"
	"slices"
	"syscall"

	"rdma_exporter/internal/text"
	"rdma_exporter/verbs"
)

// mostPinned is more than drivers pin for one object that is no larger than those of the
// probes.
const mostPinned = 1 << 20

// Refusal tells what it was that refused one object of a type to a process that holds few,
// and says so in a line. Only EndDevice says that the device has no more of them to give.
//
// It is stricter than a climb, which has seen the device give objects until it gave no
// more: where anything else can be the reason, that is what it says, and of an errno that
// does not say by itself that something is used up it says EndError.
func Refusal(err error, t Type, m Memory, l Limits) (End, string) {
	by, said := judge(err, t, 0, l)
	if by != EndDevice {
		return by, said
	}
	errno, _ := verbs.ErrnoOf(err) // Without one, it was no refusal of the device.
	pins := t != PD && t != AH
	switch {
	case !isExhausted(errno):
		return EndError, said
	case errno == syscall.EAGAIN && l.Hidden:
		return EndError, said + "; a cgroup around that of the process can be the reason, which it does not see"
	case pins && l.Memlock >= 0 && l.Pinned+mostPinned > l.Memlock:
		return EndMemlock, fmt.Sprintf("%s; drivers hold %s in place for the process, which may have %s (RLIMIT_MEMLOCK)", said, text.Bytes(l.Pinned), text.Bytes(l.Memlock))
	case m.Available <= m.Total/100*hostReserve:
		return EndMemory, fmt.Sprintf("%s; the host has %s available", said, text.Bytes(m.Available))
	default:
		return EndDevice, said
	}
}

// TypeOf returns the type of the objects that a verb creates; false if it creates none of
// those that the kernel counts.
func TypeOf(verb verbs.Verb) (Type, bool) {
	i := slices.IndexFunc(Types(), func(t Type) bool { return t != AH && t.kind().create == verb })
	if i < 0 {
		return "", false
	}
	return Types()[i], true
}
