package supervisor

import (
	"context"
	"slices"
	"sync"
	"time"

	"rdma_exporter/report"
)

// maxEnded is the most contexts of ended children that are looked for at the same
// time. A device that keeps more than that has told its story.
const maxEnded = 256

// Stocktaking is what a child of the resource audit is told. It belongs to whoever
// is told.
type Stocktaking struct {
	// Look are the contexts of children that have ended, of which nothing should be
	// left.
	Look []report.Context
	// Info is what the device last said of itself; nil if it never did. It is
	// shared.
	Info *report.Device
}

// auditor takes stock of one device, again and again, beside the runs of its
// worker and never in their way: it has slots of its own.
type auditor struct {
	w       *worker
	journal journal
	// failures counts the runs since the last one that was ok, and suspect tells that
	// the last one had to be killed at its deadline. Both are used by the auditor's
	// goroutine only, like journal.
	failures int
	suspect  bool
	// hurry has a value when something may have been left behind.
	hurry chan struct{}

	// mu guards ended.
	mu sync.Mutex
	// ended are the contexts of children that have ended and may have left something,
	// the oldest first.
	ended []report.Context
}

func newAuditor(w *worker) *auditor {
	return &auditor{
		w: w, journal: journal{log: w.journal.log}, hurry: make(chan struct{}, 1),
	}
}

// childEnded takes in a child that has ended, of whichever kind. One that did not
// end in order makes the next audit come soon.
func (a *auditor) childEnded(run *report.Run) {
	if a == nil || run == nil || run.Context == nil {
		return
	}
	a.mu.Lock()
	a.ended = append(a.ended, *run.Context)
	if more := len(a.ended) - maxEnded; more > 0 {
		a.ended = slices.Delete(a.ended, 0, more)
	}
	a.mu.Unlock()
	killed := run.Outcome == report.OutcomeTimeout || run.Outcome == report.OutcomeCrashed
	if killed || len(run.Undestroyed) > 0 {
		select {
		case a.hurry <- struct{}{}:
		default:
		}
	}
}

// look returns the contexts that the next audit is to look for.
func (a *auditor) look() []report.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.ended)
}

// verified forgets those contexts that were looked for and of which nothing is
// left.
func (a *auditor) verified(looked []report.Context, found *report.Inventory) {
	for _, i := range found.Incomplete {
		// Every object belongs to a context by way of these.
		if i.Type == "ctx" || i.Type == "pd" || i.Type == "cq" {
			return
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = slices.DeleteFunc(a.ended, func(c report.Context) bool {
		return slices.Contains(looked, c) &&
			!slices.ContainsFunc(found.Left, func(l report.Left) bool { return l.Context == c })
	})
}

// run audits until own is done. It reports whether every child has ended.
func (a *auditor) run(all, own context.Context) bool {
	cfg := &a.w.s.cfg
	due := time.Now().Add(a.w.firstDelay())
	for {
		if !a.pause(own, due) {
			return true
		}
		release, err := a.w.s.audits.acquire(own, own, a.suspect)
		if err != nil {
			return true
		}
		looked, started := a.look(), time.Now()
		res := a.w.s.runChild(own, task{
			device: a.w.name, kind: report.KindInventory, timeout: cfg.Inventory.Timeout,
			command: func() Command {
				return cfg.Inventory.Command(a.w.name, Stocktaking{Look: looked, Info: a.w.info()})
			},
		})
		release()
		if res.run != nil {
			a.take(res, looked)
		}
		if res.left != nil && !a.stuck(all, res) {
			return false
		}
		due = started.Add(cfg.Inventory.Interval).Add(a.w.jitter(cfg.Inventory.Interval))
		if a.failures > 0 {
			due = time.Now().Add(backoff(cfg.Inventory.Interval, max(cfg.Backoff, cfg.Inventory.Interval), a.failures))
		}
	}
}

// pause waits until an audit is due, or something may have been left behind. It
// reports false if ctx is done before. However often that is, there is a break
// between two audits.
func (a *auditor) pause(ctx context.Context, due time.Time) bool {
	if !pause(ctx, min(time.Until(due), a.w.s.cfg.Inventory.Interval/minPause)) {
		return false
	}
	t := time.NewTimer(time.Until(due))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-a.hurry:
		return true
	case <-ctx.Done():
		return false
	}
}

// take gives a finished audit to the sinks and puts it into the snapshot.
func (a *auditor) take(res result, looked []report.Context) {
	run := res.run
	a.suspect = run.Outcome == report.OutcomeTimeout
	if run.Outcome == report.OutcomeOK {
		a.failures = 0
	} else {
		a.failures++
	}
	if run.Inventory != nil {
		a.verified(looked, run.Inventory)
	}
	a.journal.stocktaking(run, res.stderr)
	for _, sink := range a.w.s.cfg.Sinks {
		sink.Observe(run)
	}
	a.w.update(func(state *report.DeviceState) {
		if a.w.gone {
			return
		}
		next := resources(state.Resources, run)
		if res.left != nil {
			next.Stuck = stuckState(res)
		}
		a.journal.leaked(next.Leaked)
		state.Resources = next
	})
}

// resources returns what is known after a run of the audit, of which before is
// what was known; nil for nothing.
func resources(before *report.Resources, run *report.Run) *report.Resources {
	if before == nil {
		before = new(report.Resources)
	}
	next := *before
	next.Last, next.Stuck = run.Kept(), nil
	found := run.Inventory
	if found == nil {
		return &next
	}
	next.Inventory, next.Taken = found, run.Started
	next.Leaked = leaked(before.Leaked, found.Left, run.Started)
	switch {
	case !found.PIDsVisible || len(found.Ownerless) == 0:
		next.OrphanedSince = time.Time{}
	case before.OrphanedSince.IsZero():
		next.OrphanedSince = run.Started
	}
	return &next
}

// leaked sums up what is left of ended children, by type. What was there before
// is there since then.
func leaked(before []report.Leaked, left []report.Left, now time.Time) []report.Leaked {
	var all []report.Leaked
	for _, l := range left {
		i := slices.IndexFunc(all, func(k report.Leaked) bool { return k.Type == l.Type })
		if i < 0 {
			i = len(all)
			all = append(all, report.Leaked{Type: l.Type, Since: now})
			for _, b := range before {
				if b.Type == l.Type {
					all[i].Since = b.Since
				}
			}
		}
		all[i].Objects += l.Objects
	}
	return all
}

// stuck is worker.stuck for a child of the audit.
func (a *auditor) stuck(all context.Context, res result) bool {
	stuck := stuckState(res)
	a.journal.stuck(stuck)
	a.setStuck(stuck)
	select {
	case <-res.left.done():
	case <-all.Done():
		return false
	}
	a.journal.unstuck(stuck)
	a.setStuck(nil)
	return true
}

func (a *auditor) setStuck(stuck *report.Stuck) {
	a.w.update(func(state *report.DeviceState) {
		if a.w.gone || state.Resources == nil {
			return
		}
		next := *state.Resources
		next.Stuck = stuck
		state.Resources = &next
	})
}
