package supervisor

import (
	"context"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// maxEnded limits the contexts of exited children that one inventory looks for.
const maxEnded = 256

// inventoryWorker takes periodic inventories of one device. It has its own slots, so it never
// delays the runs of its worker. Only its goroutine uses the job and the log.
type inventoryWorker struct {
	job
	w   *worker
	log changeLogger
	// wake has a value when a child may have left something behind.
	wake chan struct{}

	// mu guards ended.
	mu sync.Mutex
	// ended are the children that have exited and may have left something, the oldest first.
	ended []state.LeakedBy
}

// childEnded records a child of any kind that has exited. If it was killed, crashed or left
// something, the next inventory comes soon. The receiver may be nil.
func (i *inventoryWorker) childEnded(run *state.Run) {
	if i == nil || run.Context == nil {
		return
	}
	i.mu.Lock()
	i.ended = append(i.ended[max(0, len(i.ended)-maxEnded+1):],
		state.LeakedBy{Context: *run.Context, Kind: run.Kind, Started: run.Started, Outcome: run.Outcome, Verb: run.Verb})
	i.mu.Unlock()
	if run.Outcome == state.OutcomeTimeout || run.Outcome == state.OutcomeCrashed || len(run.Undestroyed) > 0 {
		notify(i.wake)
	}
}

// candidates returns the contexts that the next inventory looks for.
func (i *inventoryWorker) candidates() []state.Context {
	i.mu.Lock()
	defer i.mu.Unlock()
	contexts := make([]state.Context, 0, len(i.ended))
	for _, e := range i.ended {
		contexts = append(contexts, e.Context)
	}
	return contexts
}

// verified forgets the candidates that left nothing, and returns those that left something.
func (i *inventoryWorker) verified(candidates []state.Context, found *state.Inventory) []state.LeakedBy {
	i.mu.Lock()
	defer i.mu.Unlock()
	var leakers, rest []state.LeakedBy
	for _, e := range i.ended {
		leaker := e
		for _, l := range found.Leftover {
			if l.Context == e.Context {
				leaker.Objects = append(leaker.Objects, state.TypeCount{Type: l.Type, Objects: l.Objects})
			}
		}
		if len(leaker.Objects) > 0 {
			leakers = append(leakers, leaker)
		}
		if len(leaker.Objects) > 0 || !slices.Contains(candidates, e.Context) {
			rest = append(rest, e)
		}
	}
	i.ended = rest
	return leakers
}

// traced reports whether an inventory found the context of each object.
func traced(i *state.Inventory) bool {
	return i.Enumerated("ctx") && i.Enumerated("pd") && i.Enumerated("cq")
}

// run takes inventories until ctx is done. A child that is stuck holds no object of the
// device, so only inventories wait for it.
func (i *inventoryWorker) run(ctx context.Context) {
	if !i.awaitLeftover(ctx) || !pause(ctx, i.w.s.firstDelay()) {
		return
	}
	for {
		run := i.takeOne(ctx)
		if run == nil || !i.awaitLeftover(ctx) {
			return
		}
		if !waitOrWake(ctx, i.w.s.delay(i.Interval, i.began, i.failures), i.wake, i.Interval/minPause, 0) {
			return
		}
	}
}

// takeOne waits for a slot and takes one inventory. It returns nil if ctx is done first.
func (i *inventoryWorker) takeOne(ctx context.Context) *state.Run {
	s := i.w.s
	release, err := s.inventories.acquireAs(ctx, i.hung)
	if err != nil {
		return nil
	}
	candidates := i.candidates()
	res := s.runChild(ctx, task{
		device: i.w.name, kind: i.kind, timeout: i.Timeout,
		request: wire.Request{LeakCandidates: candidates, MaxFill: i.w.info().MaxFill()},
	})
	release()
	if res.run != nil {
		i.take(res, candidates)
	}
	if res.left != nil {
		s.leave(i.kind, []string{i.w.name}, res, i.log.log)
	}
	return res.run
}

func (i *inventoryWorker) take(res result, candidates []state.Context) {
	run := res.run
	i.record(run)
	i.log.run(run, res.stderr, "Inventory of device failed", "Device can be inventoried again", "Device inventoried")
	var leakers []state.LeakedBy
	isTraced := run.Inventory != nil && traced(run.Inventory)
	if isTraced {
		leakers = i.verified(candidates, run.Inventory)
	}
	var next *state.Resources
	i.w.deliver(res, func(dev *state.DeviceState) {
		next = resources(dev.Resources, run)
		if isTraced {
			next.LeakedBy = leakers
		}
		dev.Resources = next
	})
	if next != nil {
		i.log.leaked(next.Leaked)
	}
}

// resources returns the state of a device's resources after an inventory. before may be nil.
func resources(before *state.Resources, run *state.Run) *state.Resources {
	before, next, found := copied(before), copied(before), run.Inventory
	next.Last = run.Compact()
	if found == nil {
		return next
	}
	next.Inventory, next.Taken = found, run.Started
	next.Samples = state.Sampled(before.Samples, found, run.Started)
	next.Leaked = leaked(before.Leaked, found, run.Started)
	switch {
	case !found.PIDsVisible, len(found.Ownerless) == 0 && traced(found):
		next.OrphanedSince = time.Time{}
	case len(found.Ownerless) > 0 && before.OrphanedSince.IsZero():
		next.OrphanedSince = run.Started
	}
	return next
}

// leaked sums up the objects that exited children left, by type. A type that the inventory
// could not check stays as before.
func leaked(before []state.Leaked, found *state.Inventory, now time.Time) []state.Leaked {
	index := func(list []state.Leaked, typ string) int {
		return slices.IndexFunc(list, func(l state.Leaked) bool { return l.Type == typ })
	}
	var all []state.Leaked
	for _, l := range before {
		// Without the table of domains, the owner of what belongs to one is unknown.
		if !found.Enumerated(l.Type) || !traced(found) {
			all = append(all, l)
		}
	}
	kept := len(all)
	for _, l := range found.Leftover {
		i := index(all, l.Type)
		if i >= 0 && i < kept {
			continue
		}
		if i < 0 {
			i = len(all)
			all = append(all, state.Leaked{Type: l.Type, Since: now})
			if b := index(before, l.Type); b >= 0 {
				all[i].Since = before[b].Since
			}
		}
		all[i].Objects += l.Objects
	}
	return all
}

// awaitLeftover waits until no child of an earlier inventory of the device is left. It reports
// false if ctx is done first.
func (i *inventoryWorker) awaitLeftover(ctx context.Context) bool {
	i.w.s.mu.Lock()
	left := i.w.s.leftovers[leftoverKey{i.kind, i.w.name}]
	i.w.s.mu.Unlock()
	if left == nil {
		return true
	}
	select {
	case <-left.exited:
		return true
	case <-ctx.Done():
		return false
	}
}
