package supervisor

import (
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
	// MaxPathSkips limits the slots that a pair skips after failures.
	MaxPathSkips = 2
)

// Paths is the schedule of the runs that ask peers.
type Paths struct {
	// Schedule is that of each pair. An Interval of zero means none.
	Schedule
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
	// last is when a peer was asked or left out, and skip counts the slots in which it is still
	// left out after failures.
	last map[string]time.Time
	skip map[string]int
}

// run asks each peer in its slot, until ctx is done or a child is stuck.
func (p *pathWorker) run(ctx context.Context) {
	cfg := p.w.s.cfg.Paths
	for {
		target, at := p.next(cfg, time.Now())
		// Peers may change, and the clock may be set, so no wait is long.
		if !pause(ctx, min(max(time.Until(at), time.Second), pathPause)) {
			return
		}
		if now := time.Now(); target != nil && !now.Before(at) {
			p.last[target.Peer] = now
			if p.skip[target.Peer] > 0 {
				p.skip[target.Peer]--
			} else if !p.ask(ctx, *target, cfg.Timeout) {
				return
			}
		}
	}
}

// next returns the target whose slot comes next, and when. A slot in the pause after the last run
// is made up for.
func (p *pathWorker) next(cfg Paths, now time.Time) (next *wire.PathTarget, at time.Time) {
	for _, t := range cfg.Peers(p.w.name) {
		last := p.last[t.Peer]
		if age := now.Sub(last); age < 0 || age > 2*cfg.Interval {
			last = now // It was never asked, or the clock was set.
			p.last[t.Peer] = now
		}
		if slot := cfg.Slot(t.Peer, last); next == nil || slot.Before(at) {
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

// ask runs one child, and reports whether the next one can follow. A device whose probes hang is
// left alone.
func (p *pathWorker) ask(ctx context.Context, t wire.PathTarget, timeout time.Duration) bool {
	s := p.w.s
	s.mu.Lock()
	hangs := s.leftovers[leftoverKey{state.KindProbe, p.w.name}] != nil || copied(p.w.state.Last).Outcome == state.OutcomeTimeout
	s.mu.Unlock()
	p.began = time.Now()
	if hangs {
		return true
	}
	release, err := s.inventories.acquireAs(ctx, false)
	if err != nil {
		return false
	}
	res := s.runChild(ctx, task{device: p.w.name, kind: state.KindAsk, timeout: timeout, request: wire.Request{Path: &t}})
	release()
	if res.run != nil {
		p.took(res, t)
	}
	if res.left == nil {
		return res.run != nil
	}
	left := s.leave(state.KindAsk, []string{p.w.name}, res, p.log.log)
	select {
	case <-left.exited:
		return true
	case <-ctx.Done():
		return false
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
	run := res.run
	run.Path = foundBy(run, t)
	p.w.inventory.childEnded(run)
	p.log.run(run, res.stderr, "Asking a peer failed", "Peers can be asked again", "Peer asked")
	listed := p.w.s.cfg.Paths.Peers(p.w.name)
	p.w.deliver(res, func(dev *state.DeviceState) {
		dev.Paths = nextPaths(dev.Paths, run, listed)
		p.skip[t.Peer] = 0
		for _, s := range dev.Paths {
			if s.Peer == t.Peer {
				p.skip[t.Peer] = min(max(s.Failures-1, 0), MaxPathSkips)
			}
		}
	})
}

// nextPaths returns the paths after a run, in the order of the listed peers. A run that does not
// know the device of the peer takes the place of one that did.
func nextPaths(before []state.PathState, run *state.Run, listed []wire.PathTarget) (after []state.PathState) {
	for _, t := range listed {
		i := slices.IndexFunc(before, func(s state.PathState) bool { return s.Peer == t.Peer })
		var was state.PathState
		if i >= 0 {
			was = before[i]
		}
		switch {
		case run.Path != nil && run.Path.Peer == t.Peer:
			found := *run.Path
			if found.PeerDevice == "" {
				found.PeerDevice, found.PeerRail = was.PeerDevice, was.PeerRail
			} else if was.PeerDevice != found.PeerDevice {
				was = state.PathState{}
			}
			after = append(after, was.Next(found, run.Started))
		case i >= 0:
			after = append(after, was)
		}
	}
	return after
}

// Ask asks a peer once, for somebody who waits, and returns the run. It has a path unless it was
// reduced. A supervisor that
// asks does nothing else.
func (s *Supervisor) Ask(ctx context.Context, device string, t wire.PathTarget) (*state.Run, error) {
	s.once, s.over = true, ctx.Done()
	res := s.runChild(ctx, task{device: device, kind: state.KindAsk, timeout: s.cfg.Paths.Timeout, request: wire.Request{Path: &t}})
	switch {
	case res.run != nil:
		res.run.Path = foundBy(res.run, t)
		return res.run, nil
	case res.notStarted != nil:
		return nil, res.notStarted
	default:
		return nil, errors.New("interrupted")
	}
}
