package supervisor

import (
	"context"
	"math"
	"time"

	"rdma_exporter/internal/state"
)

const (
	// maxFirstDelay limits the pause before the first run on a device.
	maxFirstDelay = 200 * time.Millisecond
	// minPause is the part of the interval that lies between two runs at least.
	minPause = 10
)

// job is one kind of run on a device.
type job struct {
	Schedule
	kind state.Kind
	// due is when the next run starts. Zero means that this is open.
	due time.Time
	// began is when the last run started.
	began time.Time
	// failures counts the runs since the last one that was ok.
	failures int
	// hung is true if the last run was killed at its deadline, which makes the device suspect.
	hung bool
}

func (j *job) record(run *state.Run) {
	j.began, j.hung = run.Started, run.Outcome == state.OutcomeTimeout
	j.failures++
	if run.Outcome == state.OutcomeOK {
		j.failures = 0
	}
}

// backoff doubles an interval n times, up to a maximum that is no less than the interval.
func backoff(interval, most time.Duration, n int) time.Duration {
	return time.Duration(min(float64(interval)*math.Exp2(float64(n)), float64(max(most, interval))))
}

// delay returns the pause from now to the next run. After a run that was ok, the interval
// counts from its start. After any other it is longer and counts from its end, so that a
// device that uses up its timeout leaves room for the others.
func (s *Supervisor) delay(interval time.Duration, began time.Time, failures int) time.Duration {
	jitter := time.Duration(s.cfg.Jitter * float64(interval) * (2*s.random() - 1))
	if failures > 0 {
		return backoff(interval, s.cfg.Backoff, failures) + jitter
	}
	// A run that takes longer than the interval must not follow on itself.
	return max(interval+jitter-time.Since(began), interval/minPause)
}

// firstDelay keeps the devices of a host from starting at the very same moment.
func (s *Supervisor) firstDelay() time.Duration {
	if s.once {
		return 0
	}
	return time.Duration(s.random() * float64(min(maxFirstDelay, time.Duration(s.cfg.Jitter*float64(s.cfg.Interval)))))
}

// notify puts a value into a channel with room for one, unless there is one.
func notify(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// pause waits for d, and reports false if ctx is done first.
func pause(ctx context.Context, d time.Duration) bool { return waitOrWake(ctx, d, nil, 0, 0) }

// waitOrWake waits for d, and reports false if ctx is done first. A value in wake ends the
// wait after settle, but not before least.
func waitOrWake(ctx context.Context, d time.Duration, wake <-chan struct{}, least, settle time.Duration) bool {
	began := time.Now()
	for {
		t := time.NewTimer(d - time.Since(began))
		select {
		case <-t.C:
			return true
		case <-wake:
			d = min(d, max(least, time.Since(began)+settle))
		case <-ctx.Done():
			t.Stop()
			return false
		}
		t.Stop()
	}
}
