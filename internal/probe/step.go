package probe

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
)

// step collects the results of one probe.
type step struct {
	*run
	state.Probe
	// done counts the objects that were created.
	done int
}

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
	_ = r.Out.Send(wire.Line{Probe: &s.Probe})
}

// fail records a failure.
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

// memlock returns the limit on locked memory, in bytes, if it can be why a verb failed.
func (r *run) memlock(verb verbs.Verb, errno syscall.Errno) *int64 {
	locking := []verbs.Verb{verbs.RegMR, verbs.CreateCQ, verbs.CreateSRQ, verbs.CreateQP}
	var l unix.Rlimit
	if !r.locksMemory || !slices.Contains(locking, verb) || verbs.LocksFreely() ||
		unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l) != nil || l.Cur == unix.RLIM_INFINITY {
		return nil
	}
	// The kernel returns EPERM to a process that may lock nothing at all.
	if errno != syscall.ENOMEM && (errno != syscall.EPERM || l.Cur > 0) {
		return nil
	}
	return new(clampInt64(l.Cur))
}

// memlockHint mentions the limit on locked memory once in a run. Nil means that it is not the
// cause.
func (r *run) memlockHint(limit *int64) string {
	if limit == nil || r.hinted {
		return ""
	}
	r.hinted = true
	return fmt.Sprintf(" (RLIMIT_MEMLOCK is %d KiB: raise it if the adapter pins its queues)", *limit>>10)
}

// skip records that something could not be probed.
func (s *step) skip(subject state.Subject, reason state.SkipReason, format string, args ...any) {
	s.Skips = append(s.Skips, state.Skip{Subject: subject, Reason: reason, Detail: fmt.Sprintf(format, args...)})
}

// skipOrFail records a skip if the device does not offer, or the process may not do, what
// was requested. Otherwise it records a failure.
func (s *step) skipOrFail(subject state.Subject, err error) {
	if o := session.ObstacleOf(err); o != nil {
		s.skip(subject, o.Reason, "%s", o.Detail)
	} else {
		s.fail(subject, err)
	}
}

// cannot records a skip if the device does not offer what was requested, otherwise a failure.
func (s *step) cannot(subject state.Subject, err error) {
	if verbs.IsNotSupported(err) {
		s.skip(subject, state.SkipNotSupported, "%v", err)
	} else {
		s.fail(subject, err)
	}
}

// clamp returns the configured size, or the device's limit if that is less, which it records.
// A limit of zero or less means unknown.
func (s *step) clamp(subject state.Subject, attribute string, configured int, limitName string, limit int) int {
	if limit <= 0 || configured <= limit {
		return configured
	}
	s.noteClamp(subject, attribute, configured, limitName, limit)
	return limit
}

func (s *step) noteClamp(subject state.Subject, attribute string, configured int, limitName string, used int) {
	s.Clamps = append(s.Clamps, state.Clamp{
		Subject: subject, Attribute: attribute, Limit: limitName, Configured: int64(configured), Used: int64(used),
	})
}

// atLeast records a failure if a size is less than requested, or the erratum of the driver.
func (s *step) atLeast(subject state.Subject, verb verbs.Verb, attribute string, requested, actual int64) {
	if actual >= requested {
		return
	}
	message := fmt.Sprintf("asked for %s %d, given %d", attribute, requested, actual)
	promise := map[verbs.Verb]string{
		verbs.CreateCQ: "cq_at_least_requested", verbs.CreateSRQ: "srq_at_least_requested", verbs.CreateQP: "qp_at_least_requested",
	}[verb]
	if erratum, ok := s.driver.Explains(promise, attribute, requested-actual); ok {
		s.known(subject, message, erratum)
		return
	}
	s.Failures = append(s.Failures, state.Failure{Subject: subject, Verb: string(verb), Message: message})
}

func (s *step) known(subject state.Subject, message string, e errata.Erratum) {
	s.Known = append(s.Known, state.KnownShortfall{
		Subject: subject, Message: message, Contract: e.Contract, Fact: e.What, Source: e.Source,
	})
}

// measure calls create and records the memory that it costs the process.
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

func (s *step) destroy(subject state.Subject, typ string, c session.Closer) {
	if err := s.Destroy(typ, c); err != nil {
		s.fail(subject, err)
	}
}
