package supervisor

import (
	"context"
	"slices"

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
// When ctx is done the children are killed and, but for such as cannot be killed,
// waited for, and the error is that of ctx. Only one call of RunOnce or Run does
// anything; others return ErrStarted.
func (s *Supervisor) RunOnce(ctx context.Context) error {
	if !s.started.CompareAndSwap(false, true) {
		return ErrStarted
	}
	s.over = ctx.Done()
	var found []*worker
	s.discover(func(w *worker) {
		w.kept = true
		found = append(found, w)
	})
	for _, w := range found {
		s.running.Go(func() { w.once(ctx) })
	}
	s.running.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	s.missing(found)
	return nil
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

// once does everything once.
func (w *worker) once(ctx context.Context) {
	left := w.runsOnce(ctx)
	defer w.endedSince(left)
	if w.taker == nil {
		return
	}
	if res, err := w.taker.takeInventory(ctx); err == nil && res.left != nil {
		w.taker.journal.stuck(stuckState(res))
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
	return left
}

// runOnce runs one child. It reports whether another one may follow, which one that
// does not end, and is then returned, forbids.
func (w *worker) runOnce(ctx context.Context, j *job) (goesOn bool, left process) {
	// Every device has to have its turn before the end comes: none of them need give
	// way to others because it hangs.
	release, err := w.s.runs.acquire(ctx, ctx, false)
	if err != nil {
		return false, nil
	}
	res := w.s.runChild(ctx, w.task(j))
	release()
	if res.run != nil {
		w.hand(j, res)
	}
	if res.left != nil {
		w.journal.stuck(stuckState(res))
		return false, res.left
	}
	w.taker.childEnded(res.run)
	return res.run != nil, nil
}
