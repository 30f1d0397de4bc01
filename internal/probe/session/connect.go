package session

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// ObstacleError is the error that says that something cannot be had on this device,
// and why; it is no failure of the device.
type ObstacleError struct {
	Reason state.SkipReason
	// Detail says it in words.
	Detail string
}

// Error implements error.
func (o *ObstacleError) Error() string { return o.Detail }

func obstacle(reason state.SkipReason, format string, args ...any) error {
	return &ObstacleError{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// ObstacleOf returns the obstacle that an error is or stands for: the device
// does not offer, or the process may not do, what was asked. It is nil for any
// other error.
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

// MayNotPin reports whether the error of registering memory says that the process
// may not pin any, or no more: by RLIMIT_MEMLOCK, which is EPERM if it is 0.
func MayNotPin(err error) bool {
	return errors.Is(err, syscall.ENOMEM) || errors.Is(err, os.ErrPermission)
}

// Connect takes two QPs of one type from RESET to RTS, each as the other's peer. They
// may be the same; those of UD have no peer.
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
		if err := q.self.Modify(verbs.ToRTR(q.self.Type(), peer)); err != nil {
			return fmt.Errorf("connect QPs: to RTR: %w", err)
		}
	}
	for _, q := range list {
		if err := q.self.Modify(verbs.ToRTS(q.self.Type())); err != nil {
			return fmt.Errorf("connect QPs: to RTS: %w", err)
		}
	}
	return nil
}

// toInit is verbs.ToInit in the partition of the route.
func (r Route) toInit(t verbs.QPType) (verbs.QPAttr, verbs.QPAttrMask) {
	attr, mask := verbs.ToInit(t, r.Port, verbs.AccessLocalWrite)
	attr.PKeyIndex = r.PKeyIndex
	return attr, mask
}
