package session

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"rdma_exporter/report"
	"rdma_exporter/verbs"
)

// Route is how a port reaches itself.
type Route struct {
	Port int
	AH   verbs.AHAttr
	// MTU is in bytes.
	MTU int
}

// ObstacleError is the error that says that something cannot be had on this device,
// and why; it is no failure of the device.
type ObstacleError struct {
	Reason report.SkipReason
	// Detail says it in words.
	Detail string
}

// Error implements error.
func (o *ObstacleError) Error() string { return o.Detail }

func obstacle(reason report.SkipReason, format string, args ...any) error {
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
		return &ObstacleError{Reason: report.SkipNotSupported, Detail: err.Error()}
	case errors.Is(err, os.ErrPermission):
		return &ObstacleError{Reason: report.SkipNotPermitted, Detail: err.Error()}
	}
	return nil
}

// MayNotPin reports whether the error of registering memory says that the process
// may not pin any, or no more: by RLIMIT_MEMLOCK, which is EPERM if it is 0.
func MayNotPin(err error) bool {
	return errors.Is(err, syscall.ENOMEM) || errors.Is(err, os.ErrPermission)
}

// Loopback returns how a port reaches itself. The error is an *ObstacleError if there
// is no way.
func (s *Session) Loopback(number int) (Route, error) {
	if t := s.Device.Transport(); t == verbs.TransportIWARP {
		return Route{}, obstacle(report.SkipNotSupported, "%s connects through a connection manager only", t)
	}
	port, err := s.Device.QueryPort(number)
	if err != nil {
		return Route{}, fmt.Errorf("query port %d: %w", number, err)
	}
	if port.State != verbs.PortActive {
		return Route{}, obstacle(report.SkipPortDown, "port %d is %s", number, port.State)
	}
	table, err := s.Device.GIDTable()
	if err != nil {
		return Route{}, fmt.Errorf("query the GID table: %w", err)
	}
	ah, err := verbs.ToSelf(number, port, table)
	if err != nil {
		return Route{}, obstacle(report.SkipNeeds, "no way from port %d to itself: %v", number, err)
	}
	return Route{Port: number, AH: ah, MTU: port.ActiveMTU}, nil
}

// Connect takes two RC QPs from RESET to RTS, each as the other's peer.
func Connect(a, b verbs.QP, r Route) error {
	for _, q := range []verbs.QP{a, b} {
		if err := q.Modify(verbs.ToInit(verbs.RC, r.Port, verbs.AccessLocalWrite)); err != nil {
			return fmt.Errorf("connect two QPs: to INIT: %w", err)
		}
	}
	for _, q := range []struct{ self, peer verbs.QP }{{a, b}, {b, a}} {
		peer := verbs.Peer{AH: r.AH, QPN: q.peer.Number(), PathMTU: r.MTU}
		if err := q.self.Modify(verbs.ToRTR(verbs.RC, peer)); err != nil {
			return fmt.Errorf("connect two QPs: to RTR: %w", err)
		}
	}
	for _, q := range []verbs.QP{a, b} {
		if err := q.Modify(verbs.ToRTS(verbs.RC)); err != nil {
			return fmt.Errorf("connect two QPs: to RTS: %w", err)
		}
	}
	return nil
}

// Break takes a QP of the given type from RESET to ERR, by way of INIT on a port,
// which need not be active: what is posted then completes as flushed.
func Break(q verbs.QP, port int) error {
	if err := q.Modify(verbs.ToInit(q.Type(), port, verbs.AccessLocalWrite)); err != nil {
		return fmt.Errorf("bring a QP into the error state: to INIT: %w", err)
	}
	if err := q.Modify(verbs.ToError()); err != nil {
		return fmt.Errorf("bring a QP into the error state: %w", err)
	}
	return nil
}
