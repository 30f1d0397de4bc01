package session

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// ObstacleError says why something is not available on this device. It is not a device
// failure.
type ObstacleError struct {
	Reason state.SkipReason
	Detail string
}

// Error implements error.
func (o *ObstacleError) Error() string { return o.Detail }

func obstacle(reason state.SkipReason, format string, args ...any) error {
	return &ObstacleError{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// ObstacleOf returns the obstacle that an error means: the device does not offer, or the
// process may not do, what was requested. Nil means that the error is a failure.
func ObstacleOf(err error) *ObstacleError {
	var o *ObstacleError
	switch {
	case errors.As(err, &o):
		return o
	case verbs.IsNotSupported(err):
		return &ObstacleError{Reason: state.SkipNotSupported, Detail: err.Error()}
	case errors.Is(err, os.ErrPermission):
		return &ObstacleError{Reason: state.SkipNotPermitted, Detail: err.Error()}
	}
	return nil
}

// MayNotPin reports whether registering memory failed because of RLIMIT_MEMLOCK. The errno is
// EPERM if that is 0.
func MayNotPin(err error) bool {
	return errors.Is(err, syscall.ENOMEM) || errors.Is(err, os.ErrPermission)
}

// Connect takes two QPs of one type from RESET to RTS, each as the other's peer. They may be
// the same. UD QPs have no peer.
func Connect(a, b verbs.QP, r Route) error {
	list := []struct{ self, peer verbs.QP }{{a, b}, {b, a}}
	if a == b {
		list = list[:1]
	}
	for _, q := range list {
		if err := q.self.Modify(r.toInit(q.self.Type())); err != nil {
			return fmt.Errorf("connect QPs: to INIT: %w", err)
		}
	}
	for _, q := range list {
		peer := verbs.Peer{AH: r.AH, QPN: q.peer.Number(), PathMTU: r.MTU}
		attr, mask := verbs.ToRTR(q.self.Type(), peer)
		attr.MaxDestRdAtomic = max(attr.MaxDestRdAtomic, r.Reads)
		if err := q.self.Modify(attr, mask); err != nil {
			return fmt.Errorf("connect QPs: to RTR: %w", err)
		}
	}
	for _, q := range list {
		attr, mask := verbs.ToRTS(q.self.Type())
		attr.MaxRdAtomic = max(attr.MaxRdAtomic, r.Reads)
		if err := q.self.Modify(attr, mask); err != nil {
			return fmt.Errorf("connect QPs: to RTS: %w", err)
		}
	}
	return nil
}

// toInit is verbs.ToInit in the partition of the route.
func (r Route) toInit(t verbs.QPType) (verbs.QPAttr, verbs.QPAttrMask) {
	attr, mask := verbs.ToInit(t, r.Port, verbs.AccessLocalWrite|r.Access)
	attr.PKeyIndex = r.PKeyIndex
	return attr, mask
}
