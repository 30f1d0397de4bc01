package supervisor

import (
	"context"
	"errors"
	"time"

	"rdma_exporter/report"
)

// maxFirstDelay is the longest pause before the first run on a device.
const maxFirstDelay = 200 * time.Millisecond

// minPause is the part of the interval that at least lies between two runs.
const minPause = 10

// worker probes one device, one run after the other. It is the only one that
// calls the sinks for its device.
type worker struct {
	s    *Supervisor
	name string
	// cancel makes the worker end. It is set when the worker is started.
	cancel context.CancelCauseFunc
	// journal and failures are used by the worker's goroutine only. failures
	// counts the runs since the last one that was ok.
	journal  journal
	failures int
	// suspect tells that the last child had to be killed at its deadline.
	suspect bool

	// state and gone are guarded by Supervisor.mu. gone tells that the device
	// vanished; it stays so if the device appears again, which another worker is
	// for.
	state report.DeviceState
	gone  bool
}

func newWorker(s *Supervisor, name string) *worker {
	return &worker{
		s:       s,
		name:    name,
		journal: journal{log: s.cfg.Logger.With("device", name)},
		state:   report.DeviceState{Name: name, Present: true},
	}
}

// work is the worker's goroutine. It ends when own is done and no child is left,
// or, with a child that cannot be killed, when all is done. own is done when the
// device has vanished and when all is done.
func (w *worker) work(all, own context.Context) {
	defer w.cancel(nil)
	ended := w.probe(all, own)
	if !ended || !errors.Is(context.Cause(own), errVanished) {
		return
	}
	for _, sink := range w.s.cfg.Sinks {
		sink.Forget(w.name)
	}
	select {
	case w.s.ended <- w:
	case <-all.Done():
	}
}

// probe runs child after child until own is done. It reports whether every child
// has ended.
func (w *worker) probe(all, own context.Context) bool {
	for delay := w.firstDelay(); pause(own, delay); {
		release, err := w.acquire(own)
		if err != nil {
			return true
		}
		res := w.s.runChild(own, w.name)
		release()
		if res.run != nil {
			w.hand(res)
		}
		if res.left != nil && !w.stuck(all, res) {
			return false
		}
		if res.run != nil {
			delay = w.nextDelay(res)
		}
	}
	return true
}

// acquire waits for a slot. Devices that hang use up their whole timeout at each
// run; however many there are, they leave all slots but one to the others.
func (w *worker) acquire(ctx context.Context) (release func(), err error) {
	suspect := w.suspect
	if suspect {
		if err := w.s.suspect.acquire(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.s.slots.acquire(ctx); err != nil {
		if suspect {
			w.s.suspect.release()
		}
		return nil, err
	}
	return func() {
		w.s.slots.release()
		if suspect {
			w.s.suspect.release()
		}
	}, nil
}

// hand gives a finished run to the sinks and puts it into the snapshot.
func (w *worker) hand(res result) {
	run := res.run
	w.suspect = run.Outcome == report.OutcomeTimeout
	if run.Outcome == report.OutcomeOK {
		w.failures = 0
	} else {
		w.failures++
	}
	w.journal.run(run, res.stderr)
	for _, sink := range w.s.cfg.Sinks {
		sink.Observe(run)
	}
	w.update(func(state *report.DeviceState) {
		if res.left != nil {
			state.Stuck = stuckState(res)
		}
		if w.gone {
			return
		}
		kept := *run
		kept.Calls = nil // thousands, which only the sinks count
		state.Last = &kept
		state.Failures = w.failures
		if run.Info != nil {
			state.Info = run.Info
		}
		if run.Outcome == report.OutcomeOK {
			state.LastSuccess = run.Started
		}
		delete(w.s.awaited, w.name)
	})
}

// stuck waits for the end of a child that was killed and has not ended. Without
// end it returns only when all is done, and then reports false.
func (w *worker) stuck(all context.Context, res result) bool {
	stuck := stuckState(res)
	w.journal.stuck(stuck)
	w.update(func(state *report.DeviceState) { state.Stuck = stuck })
	select {
	case <-res.left.done():
	case <-all.Done():
		return false
	}
	w.journal.unstuck(stuck)
	w.update(func(state *report.DeviceState) { state.Stuck = nil })
	return true
}

func stuckState(res result) *report.Stuck {
	return &report.Stuck{PID: res.left.pid(), Verb: res.verb, Since: res.killed}
}

// update changes the state and publishes it.
func (w *worker) update(change func(*report.DeviceState)) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	change(&w.state)
	w.s.publish()
}

// firstDelay keeps the devices of a host from starting at the very same moment.
func (w *worker) firstDelay() time.Duration {
	most := min(maxFirstDelay, time.Duration(w.s.cfg.Jitter*float64(w.s.cfg.Interval)))
	return time.Duration(w.s.random() * float64(most))
}

// nextDelay is the pause from now to the next run. After a run that was ok, the
// interval counts from that run's start. After any other it is longer and counts
// from its end, so that a device that uses up its timeout leaves room for the
// others.
func (w *worker) nextDelay(res result) time.Duration {
	cfg := &w.s.cfg
	jitter := time.Duration(cfg.Jitter * float64(cfg.Interval) * (2*w.s.random() - 1))
	if w.failures == 0 {
		// A run that takes longer than the interval must not follow on itself.
		return max(cfg.Interval+jitter-time.Since(res.run.Started), cfg.Interval/minPause)
	}
	return backoff(cfg.Interval, cfg.Backoff, w.failures) + jitter
}

// backoff doubles interval n times, up to most.
func backoff(interval, most time.Duration, n int) time.Duration {
	for ; n > 0 && interval < most; n-- {
		if interval > most/2 {
			return most
		}
		interval *= 2
	}
	return interval
}

// pause waits for d, and reports false if ctx is done before.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
