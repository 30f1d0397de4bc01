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
	Peers func(device string) []state.Path
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
func (p *pathWorker) next(now time.Time) (next *state.Path, at time.Time) {
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
func (p *pathWorker) ask(ctx context.Context, t state.Path) {
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
	res := s.askPeer(ctx, p.w.name, t, false)
	release()
	if res.run != nil {
		p.took(res, t.Peer)
	}
	if res.left != nil {
		s.leave(state.KindAsk, []string{p.w.name}, res, p.log.log)
	}
}

// askPeer runs a child that asks a peer. Its run has a path, unless it was reduced. If the child did not
// get as far as a result, the device is to blame if a verb was.
func (s *Supervisor) askPeer(ctx context.Context, device string, t state.Path, rc bool) result {
	t.Result = state.PathControl
	res := s.runChild(ctx, task{device: device, kind: state.KindAsk, timeout: pathTime, request: wire.Request{Path: &t, RC: rc}})
	if run := res.run; run != nil && run.Path == nil && run.Reduced == nil {
		if t.Detail, t.Verb = run.Error, run.Verb; run.Verb != "" || run.FailedVerb != "" {
			t.Result, t.Suspect = state.PathSource, state.SuspectDevice
		}
		run.Path = &t
	}
	return res
}

// took delivers a finished run. The paths stay in the order of the listed peers, and those to others are
// forgotten.
func (p *pathWorker) took(res result, peer string) {
	run, cfg := res.run, &p.w.s.cfg.Paths
	p.w.inventory.childEnded(run)
	p.log.run(run, res.stderr, "Asking a peer failed", "Peers can be asked again", "Peer asked")
	listed := cfg.Peers(p.w.name)
	p.w.deliver(res, func(dev *state.DeviceState) {
		before := dev.Paths
		dev.Paths = nil
		for _, t := range listed {
			var s state.PathState
			if i := slices.IndexFunc(before, func(s state.PathState) bool { return s.Peer == t.Peer }); i >= 0 {
				s = before[i]
			}
			if t.Peer == peer && run.Path != nil {
				s = s.Next(*run.Path, run.Started)
				p.after[peer] = p.began.Add(time.Duration(min(max(s.Failures-1, 0), MaxPathSkips)) * cfg.Interval)
			}
			if s.Peer != "" {
				dev.Paths = append(dev.Paths, s)
			}
		}
	})
}

// Ask asks a peer once, for somebody who waits. A supervisor that asks does nothing else.
func (s *Supervisor) Ask(ctx context.Context, device string, t state.Path, rc bool) (found state.PathState, err error) {
	s.once, s.over = true, ctx.Done()
	switch res := s.askPeer(ctx, device, t, rc); {
	case res.run == nil:
		return found, cmp.Or(res.notStarted, errors.New("interrupted"))
	case res.run.Path != nil:
		return found.Next(*res.run.Path, res.run.Started), nil
	default:
		t.Result, t.Detail = state.PathRefused, "the device is in use, and --probe.when=idle: "+res.run.Reduced.Detail
		return found.Next(t, res.run.Started), nil
	}
}
