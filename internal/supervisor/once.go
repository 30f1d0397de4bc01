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
// in the snapshot, as OutOfTime and in the verdicts.
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
	if d := s.cfg.Within; d > 0 {
		s.ends = time.Now().Add(d)
		reserve := min(s.cfg.KillGrace+pipeGrace, d/4)
		var endRuns, endInventories context.CancelFunc
		inventories, endInventories = context.WithDeadlineCause(ctx, s.ends.Add(-reserve), errBudget)
		defer endInventories()
		runs, endRuns = context.WithDeadlineCause(inventories, s.ends.Add(-2*reserve), errBudget)
		defer endRuns()
	}
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
	if err := ctx.Err(); err != nil {
		return err
	}
	s.missing(found)
	return nil
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
func (s *Supervisor) missing(found []*worker) {
	listed, err := s.cfg.Discover()
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range found {
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

// grace is how long a child may take to end once it was killed.
func (s *Supervisor) grace() time.Duration {
	grace := s.cfg.KillGrace + pipeGrace
	if s.ends.IsZero() {
		return grace
	}
	return max(min(grace, time.Until(s.ends)), 0)
}

// once does everything once: runs bounds the probes and the contracts, inventories the inventories.
func (w *worker) once(runs, inventories context.Context) {
	left := w.runsOnce(runs)
	defer w.endedSince(left)
	defer w.outOfTime(runs, inventories)
	if w.taker == nil {
		return
	}
	if res, err := w.taker.takeInventory(inventories); err == nil && res.left != nil {
		w.taker.journal.stuck(stuckState(res))
	}
}

// outOfTime takes down what there was no time for.
func (w *worker) outOfTime(runs, inventories context.Context) {
	if !isBudget(runs) {
		return
	}
	w.update(func(dev *state.DeviceState) {
		var kinds []state.Kind
		if dev.Stuck == nil { // after which nothing else follows
			if dev.Last == nil {
				kinds = append(kinds, state.KindProbe)
			}
			if w.judge != nil && (dev.Contracts == nil || w.judge.goesOn() || w.judge.cut) {
				kinds = append(kinds, state.KindContract)
			}
		}
		if w.taker != nil && isBudget(inventories) && (dev.Resources == nil || dev.Resources.Last == nil) {
			kinds = append(kinds, state.KindInventory)
		}
		w.late(kinds...)
	})
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
