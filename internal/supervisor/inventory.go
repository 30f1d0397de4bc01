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

// maxEnded is the most contexts of ended children that are looked for at the same
// time. A device that keeps more than that has told its story.
const maxEnded = 256

// taker inventories one device, again and again, beside the runs of its
// worker and never in their way: it has slots of its own.
type taker struct {
	w       *worker
	journal journal
	// failures counts the runs since the last one that was ok, and suspect tells that
	// the last one had to be killed at its deadline. Both are used by the taker's
	// goroutine only, like journal.
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

// childEnded takes in a child that has ended, of whichever kind. One that did not
// end in order makes the next inventory come soon.
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

// look returns the contexts that the next inventory is to look for.
func (a *taker) look() []state.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	contexts := make([]state.Context, 0, len(a.ended))
	for i := range a.ended {
		contexts = append(contexts, a.ended[i].Context)
	}
	return contexts
}

// leakedBy returns the children that have left something by an inventory.
func (a *taker) leakedBy(found *state.Inventory) []state.LeakedBy {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []state.LeakedBy
	for _, l := range found.Left {
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

// traced reports whether an inventory could tell of each object which context it
// belongs to.
func traced(i *state.Inventory) bool { return i.Looked("ctx") && i.Looked("pd") && i.Looked("cq") }

// verified forgets those contexts that were looked for and of which nothing is
// left.
func (a *taker) verified(looked []state.Context, found *state.Inventory) {
	if !traced(found) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = slices.DeleteFunc(a.ended, func(b state.LeakedBy) bool {
		return slices.Contains(looked, b.Context) &&
			!slices.ContainsFunc(found.Left, func(l state.Left) bool { return l.Context == b.Context })
	})
}

// run inventories until own is done. A child that cannot be killed is left to the
// supervisor when own is done: what it holds is no object of the device, so that
// nobody but inventories needs to wait for it.
func (a *taker) run(own context.Context) {
	cfg := &a.w.s.cfg
	if !a.inherit(own) || !pause(own, a.w.s.firstDelay()) {
		return
	}
	for {
		res, err := a.takeInventory(own)
		if err != nil {
			return
		}
		if res.left != nil && !a.stuck(own, res) {
			return
		}
		if res.run == nil {
			return // It was given up, since own is done.
		}
		interval := cfg.Inventory.Interval
		next := a.w.s.regular(res.run.Started, interval)
		if a.failures > 0 {
			next = backoff(interval, max(cfg.Backoff, interval), a.failures) + a.w.s.jitter(interval)
		}
		// Nothing is so urgent that inventories follow on each other.
		least := interval / minPause
		if !pause(own, least) || !a.hurried(own, next-least) {
			return
		}
	}
}

// takeInventory inventories once: it waits for a slot and for the end of the child, or until
// own is done, which is an error if there was no slot before.
func (a *taker) takeInventory(own context.Context) (result, error) {
	release, err := a.w.s.inventories.acquireAs(own, a.suspect)
	if err != nil {
		return result{}, err
	}
	looked := a.look()
	res := a.w.s.runChild(own, task{
		device: a.w.name, kind: state.KindInventory, timeout: a.w.s.cfg.Inventory.Timeout,
		command: func() Command {
			return a.w.s.cfg.Command(state.KindInventory, a.w.name, wire.Request{Look: looked, MaxFill: a.w.info().MaxFill()})
		},
	})
	release()
	if res.run != nil {
		a.take(res, looked)
	}
	return res, nil
}

// hurried waits for d, or until something may have been left behind, and reports
// false if ctx is done before.
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

// take gives a finished inventory to the sinks and puts it into the snapshot.
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
	for _, sink := range a.w.s.cfg.Sinks {
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
		if res.left != nil {
			next.Stuck = stuckState(res)
		}
		dev.Resources, left, known = next, next.Leaked, true
	})
	if known {
		a.journal.leaked(left)
	}
}

// resources returns what is known after an inventory, of which before is
// what was known; nil for nothing.
func resources(before *state.Resources, run *state.Run) *state.Resources {
	if before == nil {
		before = new(state.Resources)
	}
	next := *before
	next.Last, next.Stuck = run.Kept(), nil
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

// leaked sums up what is left of ended children, by type. What was there before
// is there since then, and still is if nobody could look.
func leaked(before []state.Leaked, found *state.Inventory, now time.Time) []state.Leaked {
	var all []state.Leaked
	for _, l := range before {
		// What belongs to a domain cannot be told without the table of domains.
		if !found.Looked(l.Type) || !traced(found) {
			all = append(all, l)
		}
	}
	kept := len(all)
	for _, l := range found.Left {
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

// stuck waits for the end of a child that was killed and has not ended. If own is
// done before, it leaves the child to the supervisor, and reports false.
func (a *taker) stuck(own context.Context, res result) bool {
	left := &leftover{process: res.left, stuck: stuckState(res)}
	a.journal.stuck(left.stuck)
	if a.waitFor(own, left) {
		a.journal.unstuck(left.stuck)
		return true
	}
	s, name := a.w.s, a.w.name
	s.leave(left, a.journal.log, func() { s.leftovers[name] = left }, func() { delete(s.leftovers, name) })
	return false
}

// inherit waits for the end of a child that the last taker of a device of this
// name left. It reports false if own is done before.
func (a *taker) inherit(own context.Context) bool {
	left := a.w.s.leftover(a.w.name)
	return left == nil || a.waitFor(own, left)
}

// waitFor waits for the end of a child, and shows it until then. It reports false if
// own is done before.
func (a *taker) waitFor(own context.Context, left *leftover) bool {
	a.setStuck(left.stuck)
	select {
	case <-left.process.done():
		a.setStuck(nil)
		return true
	case <-own.Done():
		return false
	}
}

func (a *taker) setStuck(stuck *state.Stuck) {
	a.w.update(func(dev *state.DeviceState) {
		if a.w.gone {
			return
		}
		next := new(state.Resources)
		if dev.Resources != nil {
			*next = *dev.Resources
		}
		next.Stuck = stuck
		dev.Resources = next
	})
}

// leftover is a child that was killed and has not ended: of the inventory, when its device
// has vanished or the supervisor ends, or of the hardware.
type leftover struct {
	process process
	stuck   *state.Stuck
	// devices are those that a child of the hardware holds.
	devices []string
}

// leftover returns the child that the inventory of a device of this name left; nil for
// none.
func (s *Supervisor) leftover(name string) *leftover {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leftovers[name]
}

// leave calls begin, and when the child that is left over has ended, end, both with mu
// held. It is waited for by a goroutine of Run, for as long as that goes on.
func (s *Supervisor) leave(left *leftover, log *slog.Logger, begin, end func()) {
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
	})
}
