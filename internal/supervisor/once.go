package supervisor

import (
	"context"
	"errors"
	"slices"
	"time"

	"rdma_exporter/internal/state"
)

// RunOnce finds the devices and does once on each what [Supervisor.Run] does again
// and again: it runs the probes, judges the contracts, and takes the inventory when the
// children before have ended, so that what they left is found. The snapshot then
// has all of it. No more devices are worked on at the same time than Run would.
//
// A child that cannot be killed is not waited for: it is in the snapshot, and its
// device is only inventoried. A device that was found and is no more at the end
// stays in the snapshot, as not present. That devices cannot be listed is in the
// snapshot, too.
//
// With [Config.Within] it takes no longer than that. The probes and contracts that are not
// done soon enough for what follows are ended, and then the inventories: what is lacking is
// in the snapshot, as OutOfTime and in the verdicts. What has not returned when the time is
// up, whatever it waits for, is left alone with that, and changes the snapshot no more.
//
// When ctx is done the children are killed and, but for such as cannot be killed,
// waited for, and the error is that of ctx. Only one call of RunOnce or Run does
// anything; others return ErrStarted.
func (s *Supervisor) RunOnce(ctx context.Context) error {
	if !s.started.CompareAndSwap(false, true) {
		return ErrStarted
	}
	s.over = ctx.Done()
	runs, inventories := ctx, ctx
	var late <-chan time.Time
	if d := s.cfg.Within; d > 0 {
		end := time.NewTimer(d)
		defer end.Stop()
		late = end.C
		// The rest is for taking in what the last children came to.
		s.ends = time.Now().Add(d - min(settles, d/settlesPart))
		reserve := min(s.cfg.KillGrace+pipeGrace, d/4)
		var endRuns, endInventories context.CancelFunc
		inventories, endInventories = context.WithDeadlineCause(ctx, s.ends.Add(-reserve), errBudget)
		defer endInventories()
		runs, endRuns = context.WithDeadlineCause(inventories, s.ends.Add(-2*reserve), errBudget)
		defer endRuns()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.allOnce(runs, inventories)
		if ctx.Err() == nil {
			s.missing()
		}
	}()
	select {
	case <-done:
	case <-late:
		s.close()
	}
	return ctx.Err()
}

// What is kept of the time of all for taking in what the last children came to: settles, or
// with less time a part of that.
const (
	settles     = 200 * time.Millisecond
	settlesPart = 20
)

// allOnce finds the devices, and does everything once on each.
func (s *Supervisor) allOnce(runs, inventories context.Context) {
	var found []*worker
	s.discover(func(w *worker) {
		w.kept = true
		found = append(found, w)
	})
	for _, w := range found {
		s.running.Go(func() { w.once(runs, inventories) })
	}
	if s.cfg.Hardware.Interval > 0 {
		s.running.Go(func() { s.hardwareOnce(inventories) })
	}
	s.running.Wait()
}

// close takes down what has not been done of each device, and makes this the last snapshot:
// the time of all is up.
func (s *Supervisor) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.discovered && s.discoveryError == "" {
		s.discoveryError = "the devices were not listed in time"
	}
	for _, w := range s.workers {
		if !w.ran {
			w.late(w.lackingRuns(w.judge != nil)...)
		}
		if !w.done {
			w.late(w.lackingInventory()...)
		}
		if s.cfg.Hardware.Interval > 0 && s.hardware == nil && !w.isLate(state.KindHardware) {
			w.late(state.KindHardware)
		}
	}
	s.publish()
	s.closed = true
}

// hardwareOnce reads the hardware of all devices once, or takes down that there was no time
// for it.
func (s *Supervisor) hardwareOnce(ctx context.Context) {
	left := s.readOnce(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if left != nil {
		s.setHeld(left.devices, left.stuck)
	}
	for _, w := range s.workers {
		if s.hardware == nil && isBudget(ctx) {
			w.late(state.KindHardware)
		}
	}
	s.publish()
}

// missing finds out which devices are no more. If they cannot be listed any more,
// none is taken for gone.
func (s *Supervisor) missing() {
	listed, err := s.cfg.Discover()
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workers {
		if !slices.Contains(listed, w.name) {
			w.state.Present = false
			s.logVanished(w.name)
		}
	}
	s.publish()
}

// errBudget is why a run ends that takes longer than all may take.
var errBudget = errors.New("out of time")

// isBudget tells that the time of all is up.
func isBudget(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errBudget) }

// patience returns how long to wait for something that may take d: no longer than the time
// of all allows.
func (s *Supervisor) patience(d time.Duration) time.Duration {
	if s.ends.IsZero() {
		return d
	}
	return max(min(d, time.Until(s.ends)), 0)
}

// once does everything once: runs bounds the probes and the contracts, inventories the inventories.
func (w *worker) once(runs, inventories context.Context) {
	left := w.runsOnce(runs)
	defer w.endedSince(left)
	w.update(func(dev *state.DeviceState) {
		w.ran = true
		// Nothing follows on a child that is stuck.
		if isBudget(runs) && dev.Stuck == nil {
			w.late(w.lackingRuns(w.judge != nil && (dev.Contracts == nil || w.judge.goesOn() || w.judge.cut))...)
		}
	})
	if w.taker != nil {
		if res, err := w.taker.takeInventory(inventories); err == nil && res.left != nil {
			left := &leftover{process: res.left, stuck: stuckState(res)}
			w.taker.journal.stuck(left.stuck)
			w.update(func(*state.DeviceState) { w.s.leftovers[w.name] = left })
		}
	}
	w.update(func(*state.DeviceState) {
		w.done = true
		if isBudget(inventories) {
			w.late(w.lackingInventory()...)
		}
	})
}

// lackingRuns returns the kinds of run of which there is no result, contract runs among them
// if they are lacking. It is called with Supervisor.mu held.
func (w *worker) lackingRuns(contract bool) []state.Kind {
	var kinds []state.Kind
	if w.state.Last == nil {
		kinds = append(kinds, state.KindProbe)
	}
	if contract {
		kinds = append(kinds, state.KindContract)
	}
	return kinds
}

// lackingInventory is lackingRuns for inventories.
func (w *worker) lackingInventory() []state.Kind {
	if w.taker == nil || w.state.Resources != nil && w.state.Resources.Last != nil {
		return nil
	}
	return []state.Kind{state.KindInventory}
}

// isLate tells whether there was no time for a kind of run. It is called with Supervisor.mu
// held.
func (w *worker) isLate(kind state.Kind) bool {
	return w.state.OutOfTime != nil && slices.Contains(w.state.OutOfTime.Kinds, kind)
}

// late adds kinds of run for which there was no time. It is called with Supervisor.mu held.
func (w *worker) late(kinds ...state.Kind) {
	if before := w.state.OutOfTime; before != nil {
		kinds = slices.Concat(before.Kinds, kinds)
	}
	if len(kinds) > 0 {
		w.state.OutOfTime = &state.OutOfTime{Kinds: kinds}
	}
}

// endedSince takes back that a child is stuck, if it was one that is slow to end.
func (w *worker) endedSince(left process) {
	if left == nil {
		return
	}
	select {
	case <-left.done():
		w.update(func(dev *state.DeviceState) { dev.Stuck = nil })
	default:
	}
}

// runsOnce runs the probes and the contract run once, and returns the child that
// has not ended, after which none may follow; nil if there is none.
func (w *worker) runsOnce(ctx context.Context) (left process) {
	goesOn, left := w.runOnce(ctx, &w.probes)
	if !goesOn || w.judge == nil {
		return left
	}
	// What is left of a contract run whose child was killed takes another child.
	for goesOn, left = w.runOnce(ctx, &w.judge.job); goesOn && w.judge.goesOn(); {
		goesOn, left = w.runOnce(ctx, &w.judge.job)
	}
	if w.judge.goesOn() && isBudget(ctx) {
		w.cutShort(new(state.Run))
	}
	return left
}

// runOnce runs one child. It reports whether another one may follow, which one that
// does not end, and is then returned, forbids.
func (w *worker) runOnce(ctx context.Context, j *job) (goesOn bool, left process) {
	// Every device has to have its turn before the end comes. None of them need give way to
	// others because it hangs, unless the end comes soon.
	suspect := !w.s.ends.IsZero() && (w.probes.suspect || j.suspect)
	release, err := w.s.runs.acquireAs(ctx, suspect)
	if err != nil {
		return false, nil
	}
	res := w.s.runChild(ctx, w.task(j))
	release()
	if res.run != nil {
		w.hand(j, res)
	}
	if res.cut != nil && j.kind == state.KindContract {
		w.cutShort(res.cut)
	}
	if res.left != nil {
		w.journal.stuck(stuckState(res))
		return false, res.left
	}
	w.taker.childEnded(res.run)
	return res.run != nil, nil
}

// cutShort takes in the verdicts of a contract run for which there was no more time. There
// is none of the others, for that reason.
func (w *worker) cutShort(run *state.Run) {
	verdicts := w.judge.cutShort(run)
	w.update(func(dev *state.DeviceState) {
		contracts := state.Contracts{}
		if dev.Contracts != nil {
			contracts = *dev.Contracts
		}
		contracts.Verdicts = verdicts
		dev.Contracts = &contracts
	})
}
