package verbs

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrClosed is matched by the error of a method called on an object after its
// Close succeeded.
var ErrClosed = errors.New("object is closed")

// ErrTimeout is matched by the error of a wait that reached its deadline.
var ErrTimeout = errors.New("deadline reached")

// ErrUnacknowledged is matched by the error of [CQ].Close when completion events
// of the CQ were returned but not acknowledged. ibv_destroy_cq would wait for
// their acknowledgement, for ever.
var ErrUnacknowledged = errors.New("completion events not acknowledged")

// ErrUnknownCQ is matched by the error of a wait for an event, or of a
// [Device].Measure, that received an event for a CQ which the provider does not
// know: one that was destroyed, or that never was. The event was taken and is not
// acknowledged.
var ErrUnknownCQ = errors.New("an event for a CQ that does not exist")

// ErrNUMANode is matched by the error of a buffer or a thread that the kernel does not bind to a
// NUMA node or its CPUs.
var ErrNUMANode = errors.New("the NUMA node is not available")

// ErrUnavailable is matched by the error of a provider that this build or this
// host cannot offer.
var ErrUnavailable = errors.New("provider not available")

// NoErrno stands in for the errno of a verb that failed and set none, as some
// providers do where they refuse without asking the kernel. It is above each
// number that the kernel gives an errno, and is no other errno.
const NoErrno syscall.Errno = 4095 //nolint:errname // an errno that package syscall lacks

// Error is the failure of one verb on one device. It is comparable to its
// errno: errors.Is(err, syscall.EBUSY) holds for a destroy that was refused
// because the object is in use.
type Error struct {
	// Verb is the C function that failed.
	Verb Verb
	// Device is the name of the device, as in /sys/class/infiniband; empty for a
	// verb that is on none.
	Device string
	// Errno is the positive errno; NoErrno if the verb set none.
	Errno syscall.Errno
	// Detail tells more where the errno alone would mislead; may be nil.
	Detail error
}

// Error implements error.
func (e *Error) Error() string {
	on := ""
	if e.Device != "" {
		on = " on " + e.Device
	}
	meaning := e.Errno.Error()
	if e.Errno == NoErrno {
		meaning = "it failed and set no errno"
	}
	s := fmt.Sprintf("%s%s: %s (%s)", e.Verb, on, ErrnoName(e.Errno), meaning)
	if e.Detail != nil {
		s += ": " + e.Detail.Error()
	}
	return s
}

// Unwrap returns the errno and, if there is one, the detail.
func (e *Error) Unwrap() []error {
	if e.Detail != nil {
		return []error{e.Errno, e.Detail}
	}
	return []error{e.Errno}
}

// ErrnoOf returns the errno that err carries, and whether it carries one.
func ErrnoOf(err error) (syscall.Errno, bool) {
	var errno syscall.Errno
	ok := errors.As(err, &errno)
	return errno, ok
}

// ErrnoName returns the symbol of an errno ("EBUSY"), or "errno 4242" for a
// number that has none; NoErrno is "no_errno".
func ErrnoName(errno syscall.Errno) string {
	if errno == NoErrno {
		return "no_errno"
	}
	// Linux has two names for 95; the kernel and its manuals use this one.
	if errno == syscall.EOPNOTSUPP {
		return "EOPNOTSUPP"
	}
	if name := unix.ErrnoName(errno); name != "" {
		return name
	}
	return "errno " + strconv.Itoa(int(errno))
}

// IsNotSupported reports whether err says that a device does not offer what was
// asked, rather than that it failed to do it.
func IsNotSupported(err error) bool {
	return errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) ||
		errors.Is(err, syscall.EPROTONOSUPPORT)
}
