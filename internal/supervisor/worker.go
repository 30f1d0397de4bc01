package supervisor

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// maxEarlyFull limits how many full runs changes of ports may cause in the time of one.
const maxEarlyFull = 3

// worker does the probe and contract runs on one device, one child after the other.
type worker struct {
	s    *Supervisor
	name string
	// cancel makes the worker end. It is set when the worker is started.
	cancel context.CancelCauseFunc
	log    changeLogger
	probes job
	// contracts and inventory are nil if there are no such runs.
	contracts *contractRunner
	inventory *inventoryWorker
	// paths is nil if no peers are asked.
	paths *pathWorker
	// bandwidth has an interval of zero if it is not measured.
	bandwidth job
	// facts are what probe runs found out about the device. full is the last full run, as in
	// the snapshot, and fullOK is true if the last attempt at one was ok. outdated is true if the
	// configuration of the probes has changed since the last run was started.
	facts    *state.Facts
	full     *state.Run
	fullOK   bool
	outdated atomic.Bool
	// changed is true if the device is not the one that the last contract run checked.
	changed bool
	// portChanged and reloaded have a value when a port or the configuration of the probes has
	// changed.
	portChanged, reloaded chan struct{}
	// ticket is that of a suspect job that waits for its slot, or makes way for a probe run.
	ticket *ticket
	// deliverMu is held while observers process a run of the device or forget it.
	deliverMu sync.Mutex

	// Supervisor.mu guards the rest. vanished stays true if the device appears again, since
	// that one has another worker. checked is true once RunOnce needs no more contract runs.
	// transient is true if the device comes and goes with its users.
	state     state.DeviceState
	vanished  bool
	transient bool
	checked   bool
	adapter   adapter
}

func newWorker(s *Supervisor, name string) *worker {
	log := s.cfg.Logger.With("device", name)
	w := &worker{
		s:           s,
		name:        name,
		log:         changeLogger{log: log},
		probes:      job{kind: state.KindProbe, Schedule: s.cfg.Schedule},
		portChanged: make(chan struct{}, 1),
		reloaded:    make(chan struct{}, 1),
		state:       state.DeviceState{Name: name, Present: true},
		adapter:     newAdapter(log, s.takeLinks(name)),
		bandwidth:   job{kind: state.KindBandwidth, Schedule: Schedule{s.cfg.Bandwidth.Interval, bandwidthTime}},
		transient:   s.cfg.Transient != nil && s.cfg.Transient(name),
	}
	if past := s.cfg.Bandwidth.Past; past != nil {
		w.state.Bandwidth = past(name)
	}
	if s.cfg.Contract.Interval > 0 {
		w.contracts = &contractRunner{
			job: job{kind: state.KindContract, Schedule: s.cfg.Contract}, log: changeLogger{log: log}, verdicts: []state.Contract{},
		}
	}
	if s.cfg.Inventory.Interval > 0 {
		w.inventory = &inventoryWorker{
			job: job{kind: state.KindInventory, Schedule: s.cfg.Inventory}, w: w, log: changeLogger{log: log}, wake: make(chan struct{}, 1),
		}
	}
	if s.cfg.Paths.Interval > 0 {
		w.paths = &pathWorker{w: w, log: changeLogger{log: log}, after: make(map[string]time.Time)}
		w.state.Paths = s.cfg.Paths.Worked[name]
	}
	return w
}

// work is the worker's goroutine. It ends when ctx is done and no child is left, or, with a
// stuck child, when the supervisor ends.
func (w *worker) work(ctx context.Context) {
	defer w.cancel(nil)
	var inventories sync.WaitGroup // and the runs that ask peers
	if w.inventory != nil {
		inventories.Go(func() { w.inventory.run(ctx) })
	}
	if w.paths != nil {
		inventories.Go(func() { w.paths.run(ctx) })
	}
	ended := w.runAll(ctx)
	inventories.Wait()
	if !ended || !errors.Is(context.Cause(ctx), errVanished) {
		return
	}
	w.deliverMu.Lock()
	for _, o := range w.s.cfg.Observers {
		o.Forget(w.name)
	}
	w.deliverMu.Unlock()
	w.s.remove(w)
}

// runAll runs child after child until ctx is done or, in RunOnce, nothing is due. It returns
// false if a stuck child is left.
func (w *worker) runAll(ctx context.Context) bool {
	w.probes.due = time.Now().Add(w.s.firstDelay())
	if w.bandwidth.Interval > 0 {
		w.bandwidth.due = w.bandwidthDue()
	}
	for {
		j := w.await(ctx)
		if j == nil {
			return true
		}
		release, err := w.acquire(ctx, j)
		if err != nil {
			if ctx.Err() != nil {
				return true
			}
			// A probe run has become due and goes first, or the device cannot be measured yet.
			if j.due = time.Now(); errors.Is(err, errBusy) {
				j.due = j.due.Add(bandwidthWait)
			}
			continue
		}
		res := w.s.runChild(ctx, w.task(j))
		release()
		switch {
		case res.run == nil && j.kind == state.KindContract:
			w.contracts.partial = res.partial
		case res.run == nil:
		case j.kind == state.KindContract:
			w.deliver(res, w.contractRun(res))
		case j.kind == state.KindBandwidth:
			w.deliver(res, w.measured(res.run))
		default:
			w.deliver(res, w.probed(res))
		}
		if res.left != nil && !w.awaitExit(res) {
			return false
		}
		if res.run == nil {
			return true // The run was cancelled, since ctx is done, or RunOnce could start no child.
		}
		w.inventory.childEnded(res.run)
		w.schedule(j, res.run)
	}
}

// await waits until a job is due, and returns it. It returns nil if ctx is done first, or
// nothing will be due.
func (w *worker) await(ctx context.Context) *job {
	for {
		j := w.next()
		if j.due.IsZero() {
			return nil
		}
		due := time.NewTimer(time.Until(j.due))
		select {
		case <-due.C:
			return j
		case <-w.portChanged:
			w.expediteProbe()
		case <-w.reloaded:
			w.probes.due = time.Now()
		case <-ctx.Done():
			due.Stop()
			return nil
		}
		due.Stop()
	}
}

// next returns the job that is due first. If several are due at the same time, that is the probe run.
func (w *worker) next() *job {
	first, others := &w.probes, []*job{&w.bandwidth}
	if w.contracts != nil {
		others = append(others, &w.contracts.job)
	}
	for _, j := range others {
		if !j.due.IsZero() && (first.due.IsZero() || j.due.Before(first.due)) {
			first = j
		}
	}
	return first
}

// expediteProbe makes the next probe run come soon after a change of a port, since only a
// probe run reports the state of a port. A port that flaps at most doubles the number of runs,
// and a device that keeps failing keeps its pauses.
func (w *worker) expediteProbe() {
	soon := w.probes.began.Add(w.s.cfg.Interval / 2) //nolint:mnd // a half
	if w.probes.failures <= 1 && !w.probes.hung && soon.Before(w.probes.due) {
		w.probes.due = soon
	}
}

func (w *worker) task(j *job) task {
	var r wire.Request
	if j.kind == state.KindContract {
		r = w.contracts.request()
	} else if j == &w.probes {
		w.fullOK = !w.outdated.Swap(false) && w.fullOK
		r = wire.Request{Facts: w.facts, Short: !w.fullDue()}
	}
	return task{device: w.name, kind: j.kind, timeout: j.Timeout, request: r}
}

// acquire waits for a slot. A suspect contract run stops waiting when a probe run of its
// device is due, and returns an error. It keeps its ticket. Otherwise results of probes would
// grow old because contract runs of other devices hang. If the probes are suspect, too, they
// would wait for the same slot.
func (w *worker) acquire(ctx context.Context, j *job) (release func(), err error) {
	if j == &w.bandwidth {
		return w.acquireAlone(ctx)
	}
	// In RunOnce, a contract run on a device whose probes hang must not take the time of others.
	suspect := j.hung || w.s.once && w.probes.hung
	if !suspect {
		return w.s.runs.acquire(ctx, ctx, nil)
	}
	if w.ticket == nil {
		w.ticket = w.s.runs.queue(ctx)
	}
	patient := ctx
	if j.kind == state.KindContract && !w.probes.hung && !w.s.once {
		var cancel context.CancelFunc
		patient, cancel = context.WithDeadline(ctx, w.probes.due)
		defer cancel()
	}
	release, err = w.s.runs.acquire(ctx, patient, w.ticket)
	if err == nil {
		w.ticket = nil
	}
	return release, err
}

// deliver gives a finished run to the observers and changes the state of the device.
func (w *worker) deliver(res result, change func(*state.DeviceState)) {
	w.observe(res.run)
	w.update(func(dev *state.DeviceState) {
		if w.vanished {
			return
		}
		isNew := dev.Info == nil
		dev.Info = cmp.Or(res.run.Info, dev.Info)
		if isNew && dev.NodeGUID() != "" { // One that vanished with this GUID was renamed.
			maps.DeleteFunc(w.s.vanished, func(_ string, was state.DeviceState) bool { return was.NodeGUID() == dev.NodeGUID() })
		}
		change(dev)
	})
}

// observe gives a run to the observers, unless the device has vanished.
func (w *worker) observe(run *state.Run) {
	w.deliverMu.Lock()
	defer w.deliverMu.Unlock()
	w.s.mu.Lock()
	vanished := w.vanished
	w.s.mu.Unlock()
	if vanished {
		return
	}
	for _, o := range w.s.cfg.Observers {
		o.Observe(run)
	}
}

// probed processes a probe run. It returns how the state of the device changes.
func (w *worker) probed(res result) (change func(*state.DeviceState)) {
	run := res.run
	w.probes.record(run)
	compact := run.Compact()
	w.log.probed(compact, res.stderr)
	w.learn(compact)
	waits := w.contracts != nil && !w.contracts.goesOn() && w.contracts.due.IsZero() && !w.s.once
	return func(dev *state.DeviceState) {
		dev.Last, dev.Full, dev.Failures = compact, w.full, w.probes.failures
		if waits {
			dev.Contracts = putOff(dev.Contracts, run.Reduced)
		}
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
			w.log.log.Info("Device or its software changed; everything about it is probed anew",
				"changes", strings.Join(w.facts.Identity.Changes(f.Identity), "; "))
		}
		w.facts = f
	}
	if run.Depth != state.DepthFull {
		return
	}
	w.fullOK = run.Outcome == state.OutcomeOK
	if run.Finished() {
		w.full = run
	}
}

func (w *worker) fullDue() bool {
	if w.full == nil || !w.fullOK {
		return true
	}
	ports := func(d *state.Device) []state.Port {
		if d == nil {
			return nil
		}
		return d.Ports
	}
	age, moved := time.Since(w.full.Started), !slices.Equal(ports(w.info()), ports(w.full.Info))
	// A port that flaps must not make every run a full one.
	return age >= w.s.cfg.FullInterval || moved && age >= w.s.cfg.FullInterval/maxEarlyFull
}

// contractRun processes a run of a child that checks contracts. It returns how the state of
// the device changes.
func (w *worker) contractRun(res result) (change func(*state.DeviceState)) {
	c := w.contracts
	if reduced := res.run.Reduced; reduced != nil && res.run.Outcome == state.OutcomeOK {
		c.children = 0
		return func(dev *state.DeviceState) { dev.Contracts = putOff(dev.Contracts, reduced) }
	}
	c.take(res)
	contracts := &state.Contracts{Last: res.run.Compact(), Verdicts: c.verdicts}
	// These are of all children of the contract run.
	contracts.Last.Contracts, contracts.Last.Undestroyed, contracts.Last.Events = nil, c.undestroyed, c.events
	return func(dev *state.DeviceState) { dev.Contracts = contracts }
}

// putOff returns a copy of contracts whose next run waits for the reason r. Nil means that it
// does not wait.
func putOff(before *state.Contracts, r *state.Reduced) *state.Contracts {
	if before == nil && r == nil {
		return nil
	}
	after := copied(before)
	if after.PutOff = r; before == nil {
		after.Verdicts = []state.Contract{}
	}
	return after
}

// awaitExit waits until a killed child has exited. It returns false if the supervisor ends
// first. RunOnce does not wait.
func (w *worker) awaitExit(res result) bool {
	if w.ticket != nil {
		w.ticket.end()
		w.ticket = nil
	}
	left := w.s.leave(state.KindProbe, []string{w.name}, res, w.log.log)
	select {
	case <-left.exited:
		return true
	case <-w.s.over:
		return false
	}
}

func (w *worker) update(change func(*state.DeviceState)) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	change(&w.state)
	w.s.publish()
}

// info returns what the device last reported about itself. Nil means nothing.
func (w *worker) info() *state.Device {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.state.Info
}

func (w *worker) schedule(j *job, run *state.Run) {
	now, c, once := time.Now(), w.contracts, w.s.once
	switch {
	case j == &w.bandwidth:
		j.due = w.bandwidthDue()
	case j.kind == state.KindContract && c.goesOn():
		// The next child starts at once, unless a probe run is already due.
		j.due = now
	case once, j.kind == state.KindContract && run.Reduced != nil:
		j.due = time.Time{}
	default:
		j.due = now.Add(w.s.delay(j.Interval, j.began, j.failures))
	}
	if c == nil || j != &w.probes || c.goesOn() || run.Reduced != nil && !once {
		return // A contract run that was put off waits for a probe run that finds the device idle.
	}
	if c.due.IsZero() || w.changed {
		c.due, w.changed = now, false
	}
}
