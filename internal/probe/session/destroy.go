package session

import (
	"errors"
	"fmt"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
)

// Closer is any object of package verbs.
type Closer interface{ Close() error }

const (
	firstPause = 5 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// ErrUndestroyed is matched by the error of an object that is left.
var ErrUndestroyed = errors.New("not destroyed")

// Destroy destroys an object of a type of [state.Undestroyed]. If the device refuses, it tries
// again after pauses that double, within Options.DestroyTimeout. An object that is left is
// reported as undestroyed; the error then matches ErrUndestroyed and has the last errno.
func (s *Session) Destroy(typ string, c Closer) error {
	attempts := 1
	err := c.Close()
	for pause := firstPause; err != nil && s.retried < s.destroyTimeout; pause = min(2*pause, lastPause) {
		pause = min(pause, s.destroyTimeout-s.retried)
		start := time.Now()
		time.Sleep(pause)
		err = c.Close()
		s.retried += max(time.Since(start), pause)
		attempts++
	}
	if err == nil {
		return nil
	}
	s.undestroyed++
	errno := "unknown"
	if e, ok := verbs.ErrnoOf(err); ok {
		errno = verbs.ErrnoName(e)
	}
	_ = s.Out.Send(wire.Line{Undestroyed: &state.Undestroyed{Type: typ, Errno: errno, Attempts: attempts}})
	return fmt.Errorf("%w: refused %d times: %w", ErrUndestroyed, attempts, err)
}

// Scope destroys the objects that were created through it, the last one first.
// Use it as
//
//	scope := s.Scope()
//	defer func() { err = errors.Join(err, scope.Close()) }()
//
// A scope may be closed only once.
type Scope struct {
	s       *Session
	objects []owned
}

type owned struct {
	typ    string
	closer Closer
}

// Scope returns an empty scope.
func (s *Session) Scope() *Scope { return &Scope{s: s} }

// add adds an object to the scope unless it could not be created.
func add[T Closer](sc *Scope, typ string, object T, err error) (T, error) {
	if err == nil {
		sc.objects = append(sc.objects, owned{typ, object})
	}
	return object, err
}

// CompChannel creates a completion channel.
func (sc *Scope) CompChannel() (verbs.CompChannel, error) {
	c, err := sc.s.Device.CreateCompChannel()
	return add(sc, "comp_channel", c, err)
}

// CQ creates a completion queue.
func (sc *Scope) CQ(attr verbs.CQInitAttr) (verbs.CQ, error) {
	q, err := sc.s.Device.CreateCQ(attr)
	return add(sc, "cq", q, err)
}

// SRQ creates a shared receive queue.
func (sc *Scope) SRQ(pd verbs.PD, attr verbs.SRQAttr) (verbs.SRQ, error) {
	q, err := pd.CreateSRQ(attr)
	return add(sc, "srq", q, err)
}

// AH creates an address handle. An unreachable address is not a failure.
func (sc *Scope) AH(pd verbs.PD, attr verbs.AHAttr) (a verbs.AH, err error) {
	sc.s.Expecting(saysRefused(verbs.CreateAH), func() { a, err = pd.CreateAH(attr) })
	return add(sc, "ah", a, err)
}

// QP creates a queue pair, unless the device lacks the type.
func (sc *Scope) QP(pd verbs.PD, attr verbs.QPInitAttr) (verbs.QP, error) {
	if err := sc.s.lacks[attr.Type]; err != nil {
		return nil, &ObstacleError{Reason: state.SkipNotSupported, Detail: err.Error()}
	}
	q, err := pd.CreateQP(attr)
	return add(sc, "qp", q, err)
}

// MR registers a memory region.
func (sc *Scope) MR(pd verbs.PD, size int, access verbs.Access, node ...int) (verbs.MR, error) {
	m, err := pd.RegMR(size, access, node...)
	return add(sc, "mr", m, err)
}

// Close destroys the objects of the scope. They may have been closed before. The error names
// each that is left.
func (sc *Scope) Close() error {
	var errs []error
	for i := len(sc.objects) - 1; i >= 0; i-- {
		o := sc.objects[i]
		if err := sc.s.Destroy(o.typ, o.closer); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.typ, err))
		}
	}
	sc.objects = nil
	return errors.Join(errs...)
}
