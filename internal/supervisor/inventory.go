package supervisor

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// maxEnded limits the contexts of ended children that one inventory looks for.
const maxEnded = 256

// taker takes periodic inventories of one device. It has its own slots, so it never delays the
// runs of its worker.
type taker struct {
	w       *worker
	journal journal
	// failures counts the runs since the last one that was ok. suspect is true if the last
	// one was killed at its deadline. Only the taker's goroutine uses them and journal.
	failures int
	suspect  bool
	// hurry has a value when something may have been left behind.
	hurry chan struct{}

	// mu guards ended.
	mu sync.Mutex
	// ended are the children that have ended and may have left something, the oldest first.
	ended []state.LeakedBy
}

func newTaker(w *worker) *taker {
	return &taker{
		w: w, journal: journal{log: w.journal.log}, hurry: make(chan struct{}, 1),
	}
}

// childEnded records a child of any kind that has ended. If it was killed, crashed or left
// something, the next inventory comes soon.
func (a *taker) childEnded(run *state.Run) {
	if a == nil || run == nil || run.Context == nil {
		return
	}
	a.mu.Lock()
	a.ended = append(a.ended, state.LeakedBy{Context: *run.Context, Kind: run.Kind, Started: run.Started, Outcome: run.Outcome, Verb: run.Verb})
	if more := len(a.ended) - maxEnded; more > 0 {
		a.ended = slices.Delete(a.ended, 0, more)
	}
	a.mu.Unlock()
	killed := run.Outcome == state.OutcomeTimeout || run.Outcome == state.OutcomeCrashed
	if killed || len(run.Undestroyed) > 0 {
		select {
		case a.hurry <- struct{}{}:
		default:
		}
	}
}

// look returns the contexts that the next inventory looks for.
func (a *taker) look() []state.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	contexts := make([]state.Context, 0, len(a.ended))
	for i := range a.ended {
		contexts = append(contexts, a.ended[i].Context)
	}
	return contexts
}

// leakedBy returns the children that left something, according to an inventory.
func (a *taker) leakedBy(found *state.Inventory) []state.LeakedBy {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []state.LeakedBy
	for _, l := range found.Leftover {
		i := slices.IndexFunc(all, func(b state.LeakedBy) bool { return b.Context == l.Context })
		if i < 0 {
			e := slices.IndexFunc(a.ended, func(b state.LeakedBy) bool { return b.Context == l.Context })
			if e < 0 {
				continue
			}
			i, all = len(all), append(all, a.ended[e])
		}
		all[i].Objects = append(slices.Clip(all[i].Objects), state.TypeCount{Type: l.Type, Objects: l.Objects})
	}
	return all
}

// traced reports whether an inventory found the context of each object.
func traced(i *state.Inventory) bool {
	return i.Enumerated("ctx") && i.Enumerated("pd") && i.Enumerated("cq")
}

// verified forgets the contexts of which nothing is left.
func (a *taker) verified(looked []state.Context, found *state.Inventory) {
	if !traced(found) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = slices.DeleteFunc(a.ended, func(b state.LeakedBy) bool {
		return slices.Contains(looked, b.Context) &&
			!slices.ContainsFunc(found.Leftover, func(l state.Leftover) bool { return l.Context == b.Context })
	})
}

// run inventories until own is done. A child that cannot be killed is left to the supervisor.
// It holds no object of the device, so only inventories wait for it.
func (a *taker) run(own context.Context) {
	cfg := &a.w.s.cfg
	if !a.awaitLeftover(own) || !pause(own, a.w.s.firstDelay()) {
		return
	}
	for {
		res, err := a.takeInventory(own)
		if err != nil {
			return
		}
		if res.left != nil {
			left := &leftover{process: res.left, stuck: stuckState(res)}
			a.journal.stuck(left.stuck)
			a.w.s.leave(left, a.journal.log, func() { a.w.s.leftovers[a.w.name] = left }, func() { delete(a.w.s.leftovers, a.w.name) })
			if !a.awaitLeftover(own) {
				return
			}
		}
		if res.run == nil {
			return // It was given up, since own is done.
		}
		interval := cfg.Inventory.Interval
		next := a.w.s.regular(res.run.Started, interval)
		if a.failures > 0 {
			next = backoff(interval, max(cfg.Backoff, interval), a.failures) + a.w.s.jitter(interval)
		}
		// Inventories never follow each other without a pause.
		least := interval / minPause
		if !pause(own, least) || !a.hurried(own, next-least) {
			return
		}
	}
}

// takeInventory waits for a slot and takes one inventory. It returns an error if own is done
// before there is a slot.
func (a *taker) takeInventory(own context.Context) (result, error) {
	release, err := a.w.s.inventories.acquireAs(own, a.suspect)
	if err != nil {
		return result{}, err
	}
	looked := a.look()
	res := a.w.s.runChild(own, task{
		device: a.w.name, kind: state.KindInventory, timeout: a.w.s.cfg.Inventory.Timeout,
		command: func() Command {
			return a.w.s.cfg.Command(state.KindInventory, a.w.name, wire.Request{LeakCandidates: looked, MaxFill: a.w.info().MaxFill()})
		},
	})
	release()
	if res.run != nil {
		a.take(res, looked)
	}
	return res, nil
}

// hurried waits for d, or until a child may have left something. It reports false if ctx is
// done first.
func (a *taker) hurried(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
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

// take gives a finished inventory to the sinks and adds it to the snapshot.
func (a *taker) take(res result, looked []state.Context) {
	run := res.run
	a.suspect = run.Outcome == state.OutcomeTimeout
	if run.Outcome == state.OutcomeOK {
		a.failures = 0
	} else {
		a.failures++
	}
	if run.Inventory != nil {
		a.verified(looked, run.Inventory)
	}
	a.journal.inventoried(run, res.stderr)
	for _, sink := range a.w.s.cfg.Observers {
		sink.Observe(run)
	}
	var left []state.Leaked
	var by []state.LeakedBy
	if run.Inventory != nil {
		by = a.leakedBy(run.Inventory)
	}
	known := false
	a.w.update(func(dev *state.DeviceState) {
		if a.w.gone {
			return
		}
		next := resources(dev.Resources, run)
		if run.Inventory != nil && traced(run.Inventory) {
			next.LeakedBy = by
		}
		dev.Resources, left, known = next, next.Leaked, true
	})
	if known {
		a.journal.leaked(left)
	}
}

// resources returns the state of a device's resources after an inventory. before may be nil.
func resources(before *state.Resources, run *state.Run) *state.Resources {
	if before == nil {
		before = new(state.Resources)
	}
	next := *before
	next.Last = run.Compact()
	found := run.Inventory
	if found == nil {
		return &next
	}
	next.Inventory, next.Taken = found, run.Started
	next.Samples = state.Sampled(before.Samples, found, run.Started)
	next.Leaked = leaked(before.Leaked, found, run.Started)
	switch {
	case !found.PIDsVisible, len(found.Ownerless) == 0 && traced(found):
		next.OrphanedSince = time.Time{}
	case len(found.Ownerless) == 0:
		// It could not tell.
	case before.OrphanedSince.IsZero():
		next.OrphanedSince = run.Started
	}
	return &next
}

// leaked sums up the objects that ended children left, by type. A type that the inventory
// could not check stays as before.
func leaked(before []state.Leaked, found *state.Inventory, now time.Time) []state.Leaked {
	var all []state.Leaked
	for _, l := range before {
		// Without the table of domains, the owner of what belongs to one is unknown.
		if !found.Enumerated(l.Type) || !traced(found) {
			all = append(all, l)
		}
	}
	kept := len(all)
	for _, l := range found.Leftover {
		if slices.ContainsFunc(all[:kept], func(k state.Leaked) bool { return k.Type == l.Type }) {
			continue
		}
		i := slices.IndexFunc(all, func(k state.Leaked) bool { return k.Type == l.Type })
		if i < 0 {
			i = len(all)
			all = append(all, state.Leaked{Type: l.Type, Since: now})
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

// awaitLeftover waits until no child of an earlier inventory is left, of this worker or of one
// before it. It reports false if own is done first.
func (a *taker) awaitLeftover(own context.Context) bool {
	a.w.s.mu.Lock()
	left := a.w.s.leftovers[a.w.name]
	a.w.s.mu.Unlock()
	if left == nil {
		return true
	}
	select {
	case <-left.gone:
		return true
	case <-own.Done():
		return false
	}
}

// leftover is a child that was killed and has not ended, of an inventory or of the hardware.
type leftover struct {
	process process
	stuck   *state.Stuck
	// devices are those that a child of the hardware holds.
	devices []string
	// gone is closed when the child has ended and is not shown any longer.
	gone chan struct{}
}

// leave calls begin, and end when the child has ended, both with mu held. A goroutine of Run
// waits for the child.
func (s *Supervisor) leave(left *leftover, log *slog.Logger, begin, end func()) {
	left.gone = make(chan struct{})
	show := func(f func()) {
		s.mu.Lock()
		defer s.mu.Unlock()
		f()
		s.publish()
	}
	show(begin)
	s.running.Go(func() {
		select {
		case <-left.process.done():
		case <-s.over:
			return
		}
		journal := journal{log: log}
		journal.unstuck(left.stuck)
		show(end)
		close(left.gone)
	})
}
