package probe

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
)

// step collects what one probe finds.
type step struct {
	*run
	state.Probe
	// done is the number of objects that were created and looked at.
	done int
}

// step runs one probe and reports it.
func (r *run) step(name string, f func(*step)) {
	s := &step{run: r, Probe: state.Probe{Name: name}}
	start := time.Now()
	f(s)
	s.Duration = time.Since(start)
	switch {
	case len(s.Failures) > 0:
		s.Status = state.StatusFailed
	case s.done == 0:
		s.Status = state.StatusSkipped
	default:
		s.Status = state.StatusOK
	}
	_ = r.Out.Send(wire.Line{Probe: &s.Probe}) // the writer keeps its first error, and Run returns it
}

// fail notes that a verb failed.
func (s *step) fail(subject state.Subject, err error) {
	f := state.Failure{Subject: subject, Message: err.Error()}
	var verr *verbs.Error
	if errors.As(err, &verr) {
		f.Verb = string(verr.Verb)
	}
	if errno, ok := verbs.ErrnoOf(err); ok {
		f.Errno = verbs.ErrnoName(errno)
		f.Memlock = s.memlock(verbs.Verb(f.Verb), errno)
		f.Message += s.memlockHint(f.Memlock)
	}
	s.Failures = append(s.Failures, f)
}

// memlock returns the limit on locked memory, in bytes, where it can be why a verb
// failed; nil where it cannot.
func (r *run) memlock(verb verbs.Verb, errno syscall.Errno) *int64 {
	if !r.locksMemory || !slices.Contains([]verbs.Verb{verbs.RegMR, verbs.CreateCQ, verbs.CreateSRQ, verbs.CreateQP}, verb) {
		return nil
	}
	locked, ok := lockedMemoryLimit()
	limit := clampInt64(locked)
	// The kernel says EPERM to a process that may lock nothing at all.
	if !ok || errno != syscall.ENOMEM && (errno != syscall.EPERM || limit > 0) {
		return nil
	}
	return &limit
}

// memlockHint tells once of a limit on locked memory that can be the cause; nil is
// none.
func (r *run) memlockHint(limit *int64) string {
	if limit == nil || r.hinted {
		return ""
	}
	r.hinted = true
	return fmt.Sprintf(" (RLIMIT_MEMLOCK is %d KiB: raise it if the adapter pins its queues)", *limit>>10)
}

// skip notes that something could not be probed, and why.
func (s *step) skip(subject state.Subject, reason state.SkipReason, format string, args ...any) {
	s.Skips = append(s.Skips, state.Skip{Subject: subject, Reason: reason, Detail: fmt.Sprintf(format, args...)})
}

// skipped notes a skip if err says that the device does not offer or the process
// may not do what was asked, and tells whether it did.
func (s *step) skipped(subject state.Subject, err error) bool {
	switch {
	case verbs.IsNotSupported(err):
		s.skip(subject, state.SkipNotSupported, "%v", err)
	case errors.Is(err, os.ErrPermission):
		s.skip(subject, state.SkipNotPermitted, "%v", err)
	default:
		return false
	}
	return true
}

// cannot notes that something could not be had: a skip if it is not offered, else
// a failure.
func (s *step) cannot(subject state.Subject, err error) {
	if verbs.IsNotSupported(err) {
		s.skip(subject, state.SkipNotSupported, "%v", err)
	} else {
		s.fail(subject, err)
	}
}

// clamp returns the configured size, or the device's limit if that is less, and
// notes it. A limit of zero or less says nothing.
func (s *step) clamp(subject state.Subject, attribute string, configured int, limitName string, limit int) int {
	if limit <= 0 || configured <= limit {
		return configured
	}
	s.cut(state.Clamp{
		Subject: subject, Attribute: attribute, Limit: limitName,
		Configured: int64(configured), Used: int64(limit),
	})
	return limit
}

// cut notes a size that was cut down.
func (s *step) cut(c state.Clamp) { s.Clamps = append(s.Clamps, c) }

// atLeast notes a failure if less was given than asked, unless the driver is known for
// that.
func (s *step) atLeast(subject state.Subject, verb verbs.Verb, attribute string, asked, given int64) {
	if given >= asked {
		return
	}
	message := fmt.Sprintf("asked for %s %d, given %d", attribute, asked, given)
	promise := map[verbs.Verb]string{
		verbs.CreateCQ: "cq_at_least_requested", verbs.CreateSRQ: "srq_at_least_requested", verbs.CreateQP: "qp_at_least_requested",
	}[verb]
	if fact, ok := s.driver.Explains(promise, attribute, asked-given); ok {
		s.known(subject, message, fact)
		return
	}
	s.Failures = append(s.Failures, state.Failure{Subject: subject, Verb: string(verb), Message: message})
}

// known notes what the driver is known for.
func (s *step) known(subject state.Subject, message string, fact errata.Erratum) {
	s.Known = append(s.Known, state.KnownShortfall{
		Subject: subject, Message: message, Contract: fact.Contract, Fact: fact.What, Source: fact.Source,
	})
}

// measure calls create and notes what memory it cost the process, if anybody asks.
func (s *step) measure(subject state.Subject, create func() error) error {
	if s.cfg.NoMemory {
		return create()
	}
	var created error
	cost, err := s.Device.Cost(func() { created = create() })
	if created != nil {
		return created
	}
	if err != nil {
		s.skip(subject, state.SkipNeeds, "memory: %v", err)
		return nil
	}
	s.Memory = append(s.Memory, state.Memory{
		Object: subject.Kind(), Profile: subject.Profile,
		Virtual: clampInt64(cost.Virtual), Locked: clampInt64(cost.Locked),
	})
	return nil
}

// destroy destroys an object of a probe: a refusal is a failure of the probe.
func (s *step) destroy(subject state.Subject, typ string, c session.Closer) {
	if err := s.Destroy(typ, c); err != nil {
		s.fail(subject, err)
	}
}
