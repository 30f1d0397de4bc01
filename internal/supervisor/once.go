package supervisor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"rdma_exporter/internal/state"
)

// RunOnce finds the devices and does on each, once, what [Supervisor.Run] does periodically:
// a probe run, a contract run, and then an inventory, so that it finds what the children
// before have left. The limits of concurrency are those of Run. The snapshot then has all of
// it.
//
// RunOnce does not wait for a stuck child. The child is in the snapshot, and its device is only
// inventoried. A device that has vanished at the end stays in the snapshot, as not present. If
// devices cannot be listed, the snapshot says so.
//
// With [Config.Within] it takes no longer than that. It ends probe and contract runs early
// enough for the inventories, and then those. Missing results are in the snapshot, as
// OutOfTime and in the verdicts. If something does not return in time, RunOnce leaves it
// behind, and the snapshot does not change any more.
//
// When ctx is done, it kills the children, waits for those that are not stuck, and returns the
// error of ctx. A second call returns ErrStarted.
func (s *Supervisor) RunOnce(ctx context.Context) error {
	if !s.started.CompareAndSwap(false, true) {
		return ErrStarted
	}
	over := make(chan struct{})
	close(over)
	s.over, s.once = over, true
	runs, inventories := ctx, ctx
	var late <-chan time.Time
	if d := s.cfg.Within; d > 0 {
		end := time.NewTimer(d)
		defer end.Stop()
		late = end.C
		// The rest is for processing the results of the last children.
		s.deadline = time.Now().Add(d - min(settles, d/settlesPart))
		reserve := min(s.cfg.KillGrace+pipeGrace, d/4)
		var endRuns, endInventories context.CancelFunc
		inventories, endInventories = context.WithDeadlineCause(ctx, s.deadline.Add(-reserve), errBudget)
		defer endInventories()
		runs, endRuns = context.WithDeadlineCause(inventories, s.deadline.Add(-2*reserve), errBudget)
		defer endRuns()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.allOnce(runs, inventories)
		if ctx.Err() == nil {
			s.markVanished()
		}
	}()
	select {
	case <-done:
	case <-late:
	}
	s.close(late != nil && ctx.Err() == nil)
	return ctx.Err()
}

// The time that is reserved for processing the results of the last children is settles, or a
// part of the total if that is less.
const (
	settles     = 200 * time.Millisecond
	settlesPart = 20
)

func (s *Supervisor) allOnce(runs, inventories context.Context) {
	var found []*worker
	s.start = func(w *worker) { found = append(found, w) }
	s.discover()
	for _, w := range found {
		s.running.Go(func() { w.onceOnly(runs, inventories) })
	}
	if s.cfg.Hardware.Interval > 0 {
		s.running.Go(func() { s.readOnce(inventories) })
	}
	s.running.Wait()
}

// close makes this the last snapshot. If time was limited, it records what is missing.
func (s *Supervisor) close(limited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limited && !s.discovered && s.discoveryError == "" {
		s.discoveryError = "the devices were not listed in time"
	}
	maps.DeleteFunc(s.leftovers, func(_ leftoverKey, l *leftover) bool {
		return within(0, l.process.Done()) // It was only slow to exit.
	})
	for _, w := range s.workers {
		if kinds := w.missing(); limited && len(kinds) > 0 && s.startError == "" {
			w.state.OutOfTime = &state.OutOfTime{Kinds: kinds}
		}
	}
	s.publish()
	s.closed = true
}

// missing returns the kinds of run without a result. Caller holds mu.
func (w *worker) missing() (kinds []state.Kind) {
	dev := &w.state
	add := func(missing bool, kind state.Kind) {
		if missing {
			kinds = append(kinds, kind)
		}
	}
	// Nothing follows on a stuck child.
	stuck := w.s.leftovers[leftoverKey{state.KindProbe, w.name}] != nil
	add(dev.Last == nil && !stuck, state.KindProbe)
	add(w.contracts != nil && !w.checked && !stuck, state.KindContract)
	add(w.inventory != nil && (dev.Resources == nil || dev.Resources.Last == nil), state.KindInventory)
	add(w.s.cfg.Hardware.Interval > 0 && w.s.hardware == nil, state.KindHardware)
	return kinds
}

// markVanished marks the devices that have vanished. If they cannot be listed any more, none
// counts as vanished.
func (s *Supervisor) markVanished() {
	listed, err := s.cfg.Discover()
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workers {
		if !slices.Contains(listed, w.name) {
			s.lose(w)
		}
	}
}

// errBudget is the cause for which a run is cancelled when the time of RunOnce is up.
var errBudget = errors.New("out of time")

func isBudget(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errBudget) }

// remaining returns d, or less if RunOnce must end earlier.
func (s *Supervisor) remaining(d time.Duration) time.Duration {
	if s.deadline.IsZero() {
		return d
	}
	return max(min(d, time.Until(s.deadline)), 0)
}

// onceOnly does everything once. The contexts bound the probe and contract runs, and the
// inventories.
func (w *worker) onceOnly(runs, inventories context.Context) {
	w.runAll(runs)
	c := w.contracts
	isCut := c != nil && (c.goesOn() || c.partial != nil)
	if isCut && isBudget(runs) {
		c.cutShort()
	}
	w.update(func(dev *state.DeviceState) {
		w.checked = !isBudget(runs) || dev.Contracts != nil && !isCut
		if isCut && isBudget(runs) {
			dev.Contracts = copied(dev.Contracts)
			dev.Contracts.Verdicts = c.verdicts
		}
	})
	if w.paths != nil {
		// More runs at once would exceed the queue pairs of a minute.
		peers := w.s.cfg.Paths.Peers(w.name)
		for i, t := range peers {
			if i == 0 || i == len(peers)-1 {
				w.paths.ask(runs, t)
			}
		}
	}
	if w.inventory != nil {
		w.inventory.takeOne(inventories)
	}
}
