// Package session is common to probe and contract runs: it opens and closes the device,
// reports each verb before and after the call, and reports each object that is left.
//
// A session is used by one goroutine.
package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/procfs"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
)

// Options says which device to open and where to report.
type Options struct {
	// Provider returns the provider of the devices, which calls the tracer for each verb.
	Provider func(verbs.Tracer) verbs.Provider
	// Device is the name of the device.
	Device string
	// Vectors selects the completion vectors of CQs.
	Vectors Vectors
	// DestroyTimeout limits the time that the session spends on repeating refused destructions.
	DestroyTimeout time.Duration
	// Opened, if not nil, is called as soon as the device is open.
	Opened func()
	// Exhausted, if not nil, is called as soon as a verb failed. It reports whether the device
	// has no more objects of a type.
	Exhausted func(*verbs.Error) (state.Refused, bool)
	// Ended, if not nil, is called with the error of the work, or nil, before the report is ended. It
	// returns the error that the report then has.
	Ended func(error) error
	// Out takes the report.
	Out *wire.Writer
}

// Session is one device, opened.
type Session struct {
	// Device is the device. Run closes it.
	Device verbs.Device
	// Attr are its attributes.
	Attr verbs.DeviceAttr
	// Vectors are the completion vectors of CQs. If any will do, use the first.
	Vectors []int
	// Out takes the report. It keeps its first error, which Run returns, so callers may ignore
	// the errors of its methods.
	Out *wire.Writer

	events []state.Events

	rec   *recorder
	pd    verbs.PD // nil until it is needed
	ports queries[verbs.PortAttr]
	pkeys queries[uint16]
	gids  queries[[]verbs.GIDEntry] // one, for all ports
	// lacks has the error for each type of QP that the device does not have.
	lacks map[verbs.QPType]error

	destroyTimeout time.Duration
	// retried is the time spent so far on repeating refused destructions.
	retried time.Duration
	// undestroyed counts the objects that could not be destroyed.
	undestroyed int
}

// Run opens a device, queries it, calls f, closes it, and ends the report. The end of the
// report has the error of any of these. Run returns an error only if the report could not be
// written or ctx ended, which f must check.
func Run(ctx context.Context, o Options, f func(context.Context, *Session) error) error {
	err := run(ctx, o, f)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("work on %s: %w", o.Device, err)
	}
	if o.Ended != nil {
		err = o.Ended(err)
	}
	end := wire.End{MaxRSS: maxRSS()}
	if err != nil {
		end.Error = err.Error()
		var failed *verbs.Error
		if errors.As(err, &failed) {
			end.Verb, end.Errno = string(failed.Verb), verbs.ErrnoName(failed.Errno)
		}
	}
	if err := o.Out.Send(wire.Line{End: &end}); err != nil {
		return fmt.Errorf("work on %s: %w", o.Device, err)
	}
	return nil
}

func run(ctx context.Context, o Options, f func(context.Context, *Session) error) error {
	rec := &recorder{out: o.Out, device: o.Device, exhausted: o.Exhausted, created: make(map[verbs.Verb]created)}
	defer rec.reportRefused()
	dev, err := o.Provider(rec).Open(o.Device)
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("open the device: %w, as uid %d and gid %d", err, os.Geteuid(), os.Getegid())
	case err != nil:
		return fmt.Errorf("open the device: %w", err)
	}
	if o.Opened != nil {
		o.Opened()
	}
	s := &Session{
		Device: dev, Out: o.Out, rec: rec, destroyTimeout: o.DestroyTimeout, lacks: make(map[verbs.QPType]error),
		ports: make(queries[verbs.PortAttr]), pkeys: make(queries[uint16]), gids: make(queries[[]verbs.GIDEntry]),
	}
	s.Attr, err = dev.Query()
	switch {
	case err != nil:
		err = fmt.Errorf("query the device: %w", err)
	case s.Attr.Ports == 0:
		err = errors.New("query the device: it says that it has no port")
	default:
		s.Vectors = o.Vectors.Of(dev.CompletionVectors())
		err = f(ctx, s)
	}
	s.reportEvents()
	if left := s.undestroyed; s.pd != nil {
		// Other objects that are left may use it.
		if pdErr := s.Destroy("pd", s.pd); pdErr != nil && left == 0 {
			err = errors.Join(err, fmt.Errorf("protection domain: %w", pdErr))
		}
	}
	// While objects are left, libibverbs must not close the device; the end of the
	// process will.
	if s.undestroyed > 0 {
		return err
	}
	if closeErr := s.Destroy("ctx", dev); closeErr != nil {
		return errors.Join(err, fmt.Errorf("close the device: %w", closeErr))
	}
	return err
}

// PD returns the session's protection domain. Nothing may be armed or posted before it: some
// libraries map their doorbell page for the first domain of a process, and write to it in any
// case.
func (s *Session) PD() (verbs.PD, error) {
	if s.pd == nil {
		pd, err := s.Device.AllocPD()
		if err != nil {
			return nil, err
		}
		s.pd = pd
	}
	return s.pd, nil
}

// LastCall returns the last call of a verb.
func (s *Session) LastCall() verbs.Call { return s.rec.last }

// Expecting calls f. Failures for which expected returns true are reported as provoked.
func (s *Session) Expecting(expected func(error) bool, f func()) {
	before := s.rec.expected
	s.rec.expected = expected
	defer func() { s.rec.expected = before }()
	f()
}

// Tolerating calls f. All failures are reported as provoked.
func (s *Session) Tolerating(f func()) { s.Expecting(func(error) bool { return true }, f) }

// maxRSS returns the peak resident memory of this process (VmHWM), in bytes. Zero means
// unknown.
func maxRSS() int64 {
	self, err := procfs.Self()
	if err != nil {
		return 0
	}
	status, err := self.NewStatus()
	if err != nil {
		return 0
	}
	return int64(min(status.VmHWM, 1<<63-1))
}
