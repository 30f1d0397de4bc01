package supervisor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// maxFirstDelay is the longest pause before the first run on a device.
const maxFirstDelay = 200 * time.Millisecond

// portSettles is how long after a port went down or came back its device is probed at the
// soonest: the network device may be heard of before the driver shows it on the port.
const portSettles = time.Second

// maxEarlyFull limits how many full runs changes of ports may cause in the time of one.
const maxEarlyFull = 3

// minPause is the part of the interval that at least lies between two runs.
const minPause = 10

// job is one kind of run on a device.
type job struct {
	kind    state.Kind
	timeout time.Duration
	// due is when the next run is to start; zero while that is open.
	due time.Time
	// suspect tells that the last run of this kind, or a part of the last contract run, had
	// to be killed at its deadline.
	suspect bool
}

// worker probes one device and holds it to its contracts, one run after the other.
// It and its taker are the only ones that call the sinks for its device.
type worker struct {
	s    *Supervisor
	name string
	// cancel makes the worker end. It is set when the worker is started.
	cancel context.CancelCauseFunc
	// journal, probes, failures and judge are used by the worker's goroutine only.
	// failures counts the runs of the probes since the last one that was ok; judge
	// is nil for no contract run.
	journal  journal
	probes   job
	failures int
	judge    *judge
	// facts are what probe runs found out about the device. full is the last full run, as in
	// the snapshot, and fullOK is true if the last attempt at one was ok.
	facts  *state.Facts
	full   *state.Run
	fullOK bool
	// version is the version of the probe configuration that the current run uses, and
	// fullVersion the one of full.
	version, fullVersion int64
	// changed is true if the device is not the one that the last contract run checked.
	changed bool
	// began is when the last run of the probes started. turned has a value when a port went
	// down or came back since it was last asked.
	began  time.Time
	turned chan struct{}
	// reloaded has a value when the configuration of the probes changed.
	reloaded chan struct{}
	// taker takes inventories beside all that; nil for nobody.
	taker *taker
	// handing is held while a run of the hardware is handed to the sinks.
	handing sync.Mutex

	// turn is that of a suspect job that waits for it, or has given way to the probes; nil
	// for none.
	turn *turn
	// again tells that a port turned when the next run was due too soon to see it.
	again bool

	// state and gone are guarded by Supervisor.mu. gone tells that the device
	// vanished; it stays so if the device appears again, which another worker is
	// for.
	state state.DeviceState
	gone  bool
	// adapter is what is kept of the hardware, by whoever reads that of all devices.
	adapter adapter
	// kept tells that the device stays in the snapshot if it vanishes. It does not
	// change once the worker is there for others.
	kept bool
	// ran and done tell that RunOnce is done with the probes and contracts of the device,
	// and with all of it. They are guarded by Supervisor.mu.
	ran, done bool
}

func newWorker(s *Supervisor, name string) *worker {
	w := &worker{
		s:        s,
		name:     name,
		journal:  journal{log: s.cfg.Logger.With("device", name)},
		probes:   job{kind: state.KindProbe, timeout: s.cfg.Timeout},
		turned:   make(chan struct{}, 1),
		reloaded: make(chan struct{}, 1),
		state:    state.DeviceState{Name: name, Present: true},
	}
	w.adapter = newAdapter(journal{log: w.journal.log}, s.takeLinks(name))
	if s.cfg.Contract.Interval > 0 {
		w.judge = newJudge(s.cfg.Contract.Timeout)
	}
	if s.cfg.Inventory.Interval > 0 {
		w.taker = newTaker(w)
	}
	return w
}

// work is the worker's goroutine. It ends when own is done and no child is left,
// or, with a child that cannot be killed, when all is done. own is done when the
// device has vanished and when all is done.
func (w *worker) work(all, own context.Context) {
	defer w.cancel(nil)
	var taking sync.WaitGroup
	if w.taker != nil {
		taking.Go(func() { w.taker.run(own) })
	}
	ended := w.runAll(all, own)
	taking.Wait()
	if !ended || !errors.Is(context.Cause(own), errVanished) {
		return
	}
	w.handing.Lock()
	defer w.handing.Unlock()
	for _, sink := range w.s.cfg.Observers {
		sink.Forget(w.name)
	}
	select {
	case w.s.ended <- w:
	case <-all.Done():
	}
}

// runAll runs child after child until own is done. It reports whether every child
// has ended.
func (w *worker) runAll(all, own context.Context) bool {
	w.probes.due = time.Now().Add(w.s.firstDelay())
	for {
		j := w.await(own)
		if j == nil {
			return true
		}
		release, err := w.acquire(own, j)
		if err != nil {
			if own.Err() != nil {
				return true
			}
			// The probes have become due meanwhile, and go first.
			j.due = time.Now()
			continue
		}
		res := w.s.runChild(own, w.task(j))
		release()
		if res.run != nil {
			w.hand(j, res)
		}
		if res.left != nil && !w.stuck(all, res) {
			return false
		}
		w.taker.childEnded(res.run)
		if res.run != nil {
			w.schedule(j, res.run)
			if w.again && j == &w.probes {
				w.again = false
				w.portTurned()
			}
		}
	}
}

// await waits until a job is due, and returns it; nil if ctx is done before.
func (w *worker) await(ctx context.Context) *job {
	for {
		j := w.next()
		due := time.NewTimer(time.Until(j.due))
		select {
		case <-due.C:
			return j
		case <-w.turned:
			due.Stop()
			w.hasten()
		case <-w.reloaded:
			due.Stop()
			w.probes.due = time.Now()
		case <-ctx.Done():
			due.Stop()
			return nil
		}
	}
}

// portTurned tells that a port of the device went down or came back. It does not block.
func (w *worker) portTurned() {
	select {
	case w.turned <- struct{}{}:
	default:
	}
}

// hasten makes the next run of the probes come soon, as a port went down or came back:
// what is told of a port is what a run found. A port that does so again and again brings
// twice as many runs at most, and a device that keeps failing has its pauses.
func (w *worker) hasten() {
	interval := w.s.cfg.Interval
	settled := time.Now().Add(min(portSettles, interval/minPause))
	soon := settled
	if half := w.began.Add(interval / 2); half.After(soon) { //nolint:mnd // a half
		soon = half
	}
	switch {
	case w.failures > 1 || w.probes.suspect:
	case soon.Before(w.probes.due):
		w.probes.due = soon
	case w.probes.due.Before(settled):
		// The run that is due may be too early to see it.
		w.again = true
	}
}

// next returns the job that is due first; of two at once, the probes.
func (w *worker) next() *job {
	if a := w.judge; a != nil && !a.due.IsZero() && a.due.Before(w.probes.due) {
		return &a.job
	}
	return &w.probes
}

// task returns what the child of a job is to do.
func (w *worker) task(j *job) task {
	t := task{device: w.name, kind: j.kind, timeout: j.timeout}
	if j.kind == state.KindContract {
		t.command = func() Command { return w.s.cfg.Command(j.kind, w.name, w.judge.request()) }
	} else {
		w.version = w.s.probesVersion.Load()
		r := wire.Request{Facts: w.facts, Short: !w.fullDue()}
		t.command = func() Command { return w.s.cfg.Command(j.kind, w.name, r) }
	}
	return t
}

// acquire waits for a slot. A suspect contract run stops waiting for its turn, and keeps it,
// when the probes of its device are due, with an error: what the probes measure must not
// grow old because contract runs hang elsewhere. Probes that are suspect, too, would wait for
// the same turn.
func (w *worker) acquire(ctx context.Context, j *job) (release func(), err error) {
	if !j.suspect {
		return w.s.runs.acquire(ctx, ctx, nil)
	}
	if w.turn == nil {
		w.turn = w.s.runs.queue(ctx)
	}
	patient := ctx
	if j.kind == state.KindContract && !w.probes.suspect {
		var cancel context.CancelFunc
		patient, cancel = context.WithDeadline(ctx, w.probes.due)
		defer cancel()
	}
	release, err = w.s.runs.acquire(ctx, patient, w.turn)
	if err == nil {
		w.turn = nil
	}
	return release, err
}

// hand gives a finished run to the sinks and puts it into the snapshot.
func (w *worker) hand(j *job, res result) {
	run := res.run
	take := w.probed
	if j.kind == state.KindContract {
		take = w.contractRun
	}
	change := take(res)
	for _, sink := range w.s.cfg.Observers {
		sink.Observe(run)
	}
	w.update(func(dev *state.DeviceState) {
		if res.left != nil {
			dev.Stuck = stuckState(res)
		}
		if w.gone {
			return
		}
		if run.Info != nil {
			dev.Info = run.Info
		}
		change(dev)
	})
}

// probed takes in a run of the probes. It returns how the device's state changes,
// which is called with Supervisor.mu held.
func (w *worker) probed(res result) (change func(*state.DeviceState)) {
	run := res.run
	w.probes.suspect = run.Outcome == state.OutcomeTimeout
	if run.Outcome == state.OutcomeOK {
		w.failures = 0
	} else {
		w.failures++
	}
	compact := run.Compact()
	w.journal.run(compact, res.stderr)
	w.learn(compact)
	waits := w.judge != nil && !w.judge.goesOn() && w.judge.due.IsZero()
	return func(dev *state.DeviceState) {
		dev.Last, dev.Full = compact, w.full
		if waits {
			dev.Contracts = putOff(dev.Contracts, run.Reduced)
		}
		dev.Failures = w.failures
		if run.Outcome == state.OutcomeOK {
			dev.LastSuccess = run.Started
		}
		delete(w.s.awaited, w.name)
	}
}

// learn notes what a probe run means for the depth of the next ones.
func (w *worker) learn(run *state.Run) {
	if f := run.Facts; f != nil {
		if w.facts != nil && w.facts.Identity != f.Identity {
			w.full, w.changed = nil, true
			w.journal.changed(w.facts.Identity.Changes(f.Identity))
		}
		w.facts = f
	}
	if run.Depth != state.DepthFull {
		return
	}
	w.fullOK = run.Outcome == state.OutcomeOK
	if run.Finished() {
		w.full, w.fullVersion = run, w.version
	}
}

// fullDue reports whether the next probe run must be full.
func (w *worker) fullDue() bool {
	if w.full == nil || !w.fullOK || w.fullVersion != w.s.probesVersion.Load() {
		return true
	}
	age, info := time.Since(w.full.Started), w.info()
	ports := func(d *state.Device) []state.Port {
		if d == nil {
			return nil
		}
		return d.Ports
	}
	// A port that flaps must not make every run a full one.
	moved := !slices.Equal(ports(info), ports(w.full.Info))
	return age >= w.s.cfg.FullInterval || moved && age >= w.s.cfg.FullInterval/maxEarlyFull
}

// judged is probed for a contract run. What the run itself did not live to
// say, the verdict on the contract that ended it, is added to it.
func (w *worker) contractRun(res result) (change func(*state.DeviceState)) {
	a := w.judge
	if reduced := res.run.Reduced; reduced != nil && res.run.Outcome == state.OutcomeOK {
		a.children = 0
		return func(dev *state.DeviceState) { dev.Contracts = putOff(dev.Contracts, reduced) }
	}
	a.take(res)
	w.journal.contractRun(res.run, res.stderr)
	if !a.goesOn() {
		w.journal.contractEnd(a)
	}
	contracts := &state.Contracts{Last: res.run.Compact(), Verdicts: a.verdicts}
	// What an earlier child of the contract run could not destroy was not destroyed in it,
	// and the events that came in it are of this contract run.
	contracts.Last.Contracts, contracts.Last.Undestroyed, contracts.Last.Events = nil, a.undestroyed, a.events
	return func(dev *state.DeviceState) { dev.Contracts = contracts }
}

// putOff returns what is known of the contracts while a contract run waits for the reason r;
// nil for none. It does not change what was known before.
func putOff(before *state.Contracts, r *state.Reduced) *state.Contracts {
	if before == nil && r == nil {
		return nil
	}
	after := &state.Contracts{Verdicts: []state.Contract{}}
	if before != nil {
		*after = *before
	}
	after.PutOff = r
	return after
}

// stuck waits for the end of a child that was killed and has not ended. Without
// end it returns only when all is done, and then reports false.
func (w *worker) stuck(all context.Context, res result) bool {
	if w.turn != nil {
		w.turn.end()
		w.turn = nil
	}
	stuck := stuckState(res)
	w.journal.stuck(stuck)
	w.update(func(dev *state.DeviceState) { dev.Stuck = stuck })
	select {
	case <-res.left.done():
	case <-all.Done():
		return false
	}
	w.journal.unstuck(stuck)
	w.update(func(dev *state.DeviceState) { dev.Stuck = nil })
	return true
}

func stuckState(res result) *state.Stuck {
	return &state.Stuck{PID: res.left.pid(), Verb: res.verb, Since: res.killed}
}

// update changes the state and publishes it.
func (w *worker) update(change func(*state.DeviceState)) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	change(&w.state)
	w.s.publish()
}

// info returns what the device last said of itself; nil if it never did.
func (w *worker) info() *state.Device {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.state.Info
}

// schedule says when a job is due again, now that a run of it is over.
func (w *worker) schedule(j *job, run *state.Run) {
	now := time.Now()
	if j.kind == state.KindContract {
		// What is left of a contract run waits for nothing but the probes, if they were
		// due before.
		j.due = now
		switch {
		case w.judge.goesOn():
		case run.Reduced != nil:
			j.due = time.Time{}
		default:
			j.due = now.Add(w.s.regular(w.judge.began, w.s.cfg.Contract.Interval))
		}
	} else {
		w.began = run.Started
		j.due = now.Add(w.nextDelay(run))
	}
	// A contract run that was put off waits for a run that finds the device idle.
	if w.judge != nil && !w.judge.goesOn() && run.Reduced == nil && (w.judge.due.IsZero() || w.changed) {
		w.judge.due, w.changed = now, false
	}
}

// firstDelay keeps the devices of a host from starting at the very same moment.
func (s *Supervisor) firstDelay() time.Duration {
	most := min(maxFirstDelay, time.Duration(s.cfg.Jitter*float64(s.cfg.Interval)))
	return time.Duration(s.random() * float64(most))
}

// nextDelay is the pause from now to the next run of the probes. After a run that
// was ok, the interval counts from that run's start. After any other it is longer
// and counts from its end, so that a device that uses up its timeout leaves room
// for the others.
func (w *worker) nextDelay(run *state.Run) time.Duration {
	cfg := &w.s.cfg
	if w.failures == 0 {
		return w.s.regular(run.Started, cfg.Interval)
	}
	return backoff(cfg.Interval, cfg.Backoff, w.failures) + w.s.jitter(cfg.Interval)
}

// regular is the pause from now to the next run if the last one started at began.
func (s *Supervisor) regular(began time.Time, interval time.Duration) time.Duration {
	// A run that takes longer than the interval must not follow on itself.
	return max(interval+s.jitter(interval)-time.Since(began), interval/minPause)
}

// jitter is by how much a run starts late, or early if it is negative.
func (s *Supervisor) jitter(interval time.Duration) time.Duration {
	return time.Duration(s.cfg.Jitter * float64(interval) * (2*s.random() - 1))
}

// backoff doubles interval n times, up to most.
func backoff(interval, most time.Duration, n int) time.Duration {
	for ; n > 0 && interval < most; n-- {
		if interval > most/2 {
			return most
		}
		interval *= 2
	}
	return interval
}

// pause waits for d, and reports false if ctx is done before.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
