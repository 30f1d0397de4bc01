package supervisor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

const (
	// pathPause is the time between the starts of two runs on a device, so that no minute has
	// the packets and queue pairs of more than one.
	pathPause = time.Minute
	// madeUp is how long after its slot a run is made up for: then the lease of the responder, which
	// is a minute from the slot, is over.
	madeUp = pathPause + 5*time.Second
	// pathTime limits how long a child asks: three requests, address handles, and packets.
	pathTime = 45 * time.Second
	// MaxPathSkips limits the slots that a pair skips after failures.
	MaxPathSkips = 2
)

// Paths is the schedule of the runs that ask peers.
type Paths struct {
	// Interval is the time between two runs on a pair. Zero means none.
	Interval time.Duration
	// Peers returns the targets of a device. It must be safe for concurrent use and not block.
	Peers func(device string) []wire.PathTarget
	// Slot returns when a peer is to be asked next after a time: once in an Interval.
	Slot func(peer string, after time.Time) time.Time
	// Worked has when pairs of each device last worked, before this process started.
	Worked map[string][]state.PathState
}

// pathWorker asks the peers of one device. Only its goroutine uses it.
type pathWorker struct {
	w     *worker
	log   changeLogger
	began time.Time
	// after is when the next slot of a peer may come. After failures, that is later.
	after map[string]time.Time
}

// run asks each peer in its slot, until ctx is done.
func (p *pathWorker) run(ctx context.Context) {
	for {
		target, at := p.next(time.Now())
		// Peers may change, and the clock may be set, so no wait is long.
		if !pause(ctx, min(max(time.Until(at), time.Second), pathPause)) {
			return
		}
		if target != nil && !time.Now().Before(at) {
			p.ask(ctx, *target)
		}
	}
}

// next returns the target whose slot comes next, and when. A slot in the pause after the last run
// is made up for.
func (p *pathWorker) next(now time.Time) (next *wire.PathTarget, at time.Time) {
	cfg := &p.w.s.cfg.Paths
	at = now.Add(pathPause)
	for _, t := range cfg.Peers(p.w.name) {
		after := p.after[t.Peer]
		if age := now.Sub(after); age < -MaxPathSkips*cfg.Interval || age > 2*cfg.Interval {
			after = now // It was never asked, or the clock was set.
			p.after[t.Peer] = now
		}
		if slot := cfg.Slot(t.Peer, after); next == nil || slot.Before(at) {
			next, at = &t, slot
		}
	}
	if earliest := p.began.Add(pathPause); at.Before(earliest) {
		if at = at.Add(madeUp); at.Before(earliest) {
			at = earliest
		}
	}
	return next, at
}

// ask runs one child. A device is left alone if its probes hang, a child is left, or a bandwidth is
// measured.
func (p *pathWorker) ask(ctx context.Context, t wire.PathTarget) {
	s := p.w.s
	left := func(kind state.Kind) bool { return s.leftovers[leftoverKey{kind, p.w.name}] != nil }
	s.mu.Lock()
	hangs := left(state.KindAsk) || left(state.KindProbe) || copied(p.w.state.Last).Outcome == state.OutcomeTimeout
	s.mu.Unlock()
	p.began = time.Now()
	p.after[t.Peer] = p.began
	if hangs || !s.measuring.TryRLock() {
		return
	}
	defer s.measuring.RUnlock()
	release, err := s.inventories.acquireAs(ctx, false)
	if err != nil {
		return
	}
	res := s.runChild(ctx, pathTask(p.w.name, t))
	release()
	if res.run != nil {
		p.took(res, t)
	}
	if res.left != nil {
		s.leave(state.KindAsk, []string{p.w.name}, res, p.log.log)
	}
}

// foundBy returns what a run found. Of a child that did not get as far as a result, the device is
// to blame if a verb was. Nil means that the run was reduced.
func foundBy(run *state.Run, t wire.PathTarget) *state.Path {
	if run.Path != nil || run.Reduced != nil {
		return run.Path
	}
	p := &state.Path{Peer: t.Peer, Rail: t.Rail, ToR: t.ToR, PeerToR: t.PeerToR, Result: state.PathControl, Detail: run.Error, Verb: run.Verb}
	if run.Verb != "" || run.FailedVerb != "" {
		p.Result, p.Suspect = state.PathSource, state.SuspectDevice
	}
	return p
}

// took delivers a finished run.
func (p *pathWorker) took(res result, t wire.PathTarget) {
	run, cfg := res.run, &p.w.s.cfg.Paths
	run.Path = foundBy(run, t)
	p.w.inventory.childEnded(run)
	p.log.run(run, res.stderr, "Asking a peer failed", "Peers can be asked again", "Peer asked")
	listed := cfg.Peers(p.w.name)
	p.w.deliver(res, func(dev *state.DeviceState) {
		dev.Paths = nextPaths(dev.Paths, run, listed)
		skip := min(max(pathTo(t.Peer, dev.Paths).Failures-1, 0), MaxPathSkips)
		p.after[t.Peer] = p.began.Add(time.Duration(skip) * cfg.Interval)
	})
}

// nextPaths returns the paths after a run, in the order of the listed peers.
func nextPaths(before []state.PathState, run *state.Run, listed []wire.PathTarget) (after []state.PathState) {
	for _, t := range listed {
		s := pathTo(t.Peer, before)
		if run.Path != nil && run.Path.Peer == t.Peer {
			s = s.Next(*run.Path, run.Started)
		}
		if s.Peer != "" {
			after = append(after, s)
		}
	}
	return after
}

// pathTo returns the path to a peer. It is empty if the peer was not asked yet.
func pathTo(peer string, all []state.PathState) (s state.PathState) {
	if i := slices.IndexFunc(all, func(s state.PathState) bool { return s.Peer == peer }); i >= 0 {
		s = all[i]
	}
	return s
}

func pathTask(device string, t wire.PathTarget) task {
	return task{device: device, kind: state.KindAsk, timeout: pathTime, request: wire.Request{Path: t}}
}

// Ask asks a peer once, for somebody who waits. The run has a path unless it was reduced. A
// supervisor that asks does nothing else.
func (s *Supervisor) Ask(ctx context.Context, device string, t wire.PathTarget) (*state.Run, error) {
	s.once, s.over = true, ctx.Done()
	res := s.runChild(ctx, pathTask(device, t))
	if res.run == nil {
		return nil, cmp.Or(res.notStarted, errors.New("interrupted"))
	}
	res.run.Path = foundBy(res.run, t)
	return res.run, nil
}
