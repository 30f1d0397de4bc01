package session

import (
	"cmp"
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
	err := r.Ready(a, verbs.Peer{AH: r.AH, QPN: b.Number(), PathMTU: r.MTU})
	if err == nil && a != b {
		err = r.Ready(b, verbs.Peer{AH: r.AH, QPN: a.Number(), PathMTU: r.MTU})
	}
	return err
}

// Ready takes a QP from RESET to RTS. A UD QP has no peer.
func (r Route) Ready(q verbs.QP, peer verbs.Peer) error {
	init, initMask := r.toInit(q.Type())
	rtr, rtrMask := verbs.ToRTR(q.Type(), peer)
	rts, rtsMask := verbs.ToRTS(q.Type())
	rtr.MaxDestRdAtomic, rts.MaxRdAtomic = max(rtr.MaxDestRdAtomic, r.Reads), max(rts.MaxRdAtomic, r.Reads)
	for _, to := range []verbs.QPChange{{Attr: init, Mask: initMask}, {Attr: rtr, Mask: rtrMask}, {Attr: rts, Mask: rtsMask}} {
		if err := q.Modify(to.Attr, to.Mask); err != nil {
			return fmt.Errorf("connect QPs: to %s: %w", to.Attr.State, err)
		}
	}
	return nil
}

// toInit is verbs.ToInit in the partition of the route, and with its Q_Key.
func (r Route) toInit(t verbs.QPType) (verbs.QPAttr, verbs.QPAttrMask) {
	attr, mask := verbs.ToInit(t, r.Port, verbs.AccessLocalWrite|r.Access)
	attr.PKeyIndex, attr.QKey = r.PKeyIndex, cmp.Or(r.QKey, attr.QKey)
	return attr, mask
}
