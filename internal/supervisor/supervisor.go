package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"rdma_exporter/internal/child"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// ErrStarted is returned by a second call of [Supervisor.Run] or [Supervisor.RunOnce].
var ErrStarted = errors.New("the supervisor was started before")

// errVanished is the cause for which a worker ends when its device has vanished.
var errVanished = errors.New("the device has vanished")

// Supervisor schedules the runs on the devices of the host. Create it with New. Its methods
// are safe for concurrent use.
type Supervisor struct {
	cfg Config
	// launch is child.Start. Tests replace it to have children that cannot be killed.
	launch func(c child.Command, out io.WriteCloser) child.Process
	random func() float64
	// runs limits probe and contract runs, and inventories the rest of a device's runs, so that
	// neither delays the other.
	runs, inventories *limiter
	// measuring is held while the bandwidth of a device is measured, and for reading while a peer is asked.
	measuring sync.RWMutex

	started  atomic.Bool
	snapshot atomic.Pointer[state.Snapshot]
	// changed has a value when the snapshot has changed, and linkChanged when a network device of a
	// port has.
	changed, linkChanged chan struct{}

	// running are the goroutines that Run waits for, and start starts a worker. over is closed
	// when none may wait for a stuck child any longer, and always in RunOnce, which once marks.
	running sync.WaitGroup
	start   func(*worker)
	over    <-chan struct{}
	once    bool
	// deadline is when the children of RunOnce must have exited. Zero means no limit.
	deadline time.Time

	mu sync.Mutex
	// closed is true if the snapshot is the last one.
	closed bool
	// leftovers are the stuck children. Probe and contract runs share a key.
	leftovers map[leftoverKey]*leftover
	// hardware is the last finished reading.
	hardware *state.Run
	// links are the earlier states of ports of devices that are absent or were not found yet.
	links map[string]state.LinkHistory
	// workers are those that have not ended, by device.
	workers map[string]*worker
	// vanished are the devices that vanished and have not returned, except those that come and go
	// with their users.
	vanished map[string]state.DeviceState
	// discovered is true if devices could be listed once.
	discovered     bool
	discoveryError string
	// startError is why the last child could not be started, and startFailed when. It is empty if
	// a later one could be.
	startError  string
	startFailed time.Time
	// awaited are the devices of the first discovery that have not been probed yet.
	awaited map[string]bool
}

// leftover is a child that was killed and has not exited. The key is the kind of its run and
// a device that waits for it.
type leftover struct {
	process child.Process
	stuck   *state.Stuck
	// exited is closed when the child has exited and is no longer in the snapshot.
	exited chan struct{}
}

type leftoverKey struct {
	kind   state.Kind
	device string
}

// New returns a supervisor that does nothing until [Supervisor.Run] is called. The error is
// from [Config.Validate].
func New(cfg Config) (*Supervisor, error) {
	cfg, err := cfg.Validate()
	if err != nil {
		return nil, err
	}
	s := &Supervisor{
		cfg:         cfg,
		launch:      child.Start,
		random:      rand.Float64,
		changed:     make(chan struct{}, 1),
		linkChanged: make(chan struct{}, 1),
		leftovers:   make(map[leftoverKey]*leftover),
		links:       make(map[string]state.LinkHistory),
		workers:     make(map[string]*worker),
		vanished:    make(map[string]state.DeviceState),
		awaited:     make(map[string]bool),
	}
	s.runs, s.inventories = newLimiter(cfg.Concurrency, &s.running), newLimiter(max(inventoryConcurrency, cfg.Concurrency), &s.running)
	maps.Copy(s.links, cfg.Links)
	s.publish()
	return s, nil
}

// Run finds and probes devices until ctx is done. Then it kills the children, waits for them
// to exit, and returns nil. A second call returns ErrStarted.
//
// No child and no goroutine is left when Run has returned, except stuck children, for which it
// waits no longer than Config.KillGrace. They wait in the kernel for something that may never
// come. The kernel ends them as soon as it can, whether or not this process still lives.
func (s *Supervisor) Run(ctx context.Context) error {
	if !s.started.CompareAndSwap(false, true) {
		return ErrStarted
	}
	s.over = ctx.Done()
	defer s.running.Wait()
	s.start = func(w *worker) {
		var deviceCtx context.Context
		deviceCtx, w.cancel = context.WithCancelCause(ctx)
		s.running.Go(func() { w.work(deviceCtx) })
	}

	s.discover()
	if s.cfg.Hardware.Interval > 0 {
		s.running.Go(func() { s.readHardware(ctx) })
		if s.cfg.WatchLinks != nil {
			s.running.Go(func() { s.watchLinks(ctx) })
		}
	}
	for pause(ctx, s.cfg.Discovery) {
		s.discover()
	}
	return nil
}

// ProbesChanged makes a full run due on each device, because the configuration of the probes
// has changed. It does not block.
func (s *Supervisor) ProbesChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workers {
		w.outdated.Store(true)
		notify(w.reloaded)
	}
}

// discover lists the devices, starts a worker for each new one, and ends the workers of those
// that have vanished.
func (s *Supervisor) discover() {
	names, err := s.cfg.Discover()
	unlisted := err != nil
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		valid := utf8.ValidString(name) // A name is a label and a value in JSON.
		if !valid && err == nil {
			err = fmt.Errorf("the name %q of a device is not UTF-8: exclude or rename it", name)
		}
		return !valid
	})
	log := s.cfg.Logger
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	defer s.publish()
	why := ""
	if err != nil {
		why = text.OneLine(err.Error(), maxError)
	}
	switch {
	case why == s.discoveryError:
	case unlisted:
		log.Warn("Cannot list the devices; the known ones are kept", "error", why)
	case err != nil:
		log.Warn("Cannot use a device", "error", why)
	default:
		log.Info("Devices can be listed again")
	}
	if s.discoveryError = why; unlisted {
		return
	}
	for name, w := range s.workers {
		if w.state.Present && !slices.Contains(names, name) {
			s.vanish(w)
		}
	}
	for _, name := range names {
		delete(s.vanished, name)
		if !s.discovered {
			s.awaited[name] = true
		}
		w, ok := s.workers[name]
		switch {
		case !ok:
			log.Info("Device found", "device", name)
			s.add(name)
		case !w.state.Present:
			// Its worker is about to end, which may take long if a child is stuck. The next
			// one starts then.
			w.state = state.DeviceState{Name: name, Present: true}
			log.Info("Device found", "device", name)
		}
	}
	s.discovered = true
}

// add starts a worker for a device. Caller holds mu.
func (s *Supervisor) add(name string) {
	w := newWorker(s, name)
	s.workers[name] = w
	s.start(w)
}

// vanish ends the worker of a device that has vanished. Caller holds mu.
func (s *Supervisor) vanish(w *worker) {
	s.leaveLinks(w)
	s.lose(w)
	w.vanished = true
	w.state.Contracts, w.state.Resources, w.state.Hardware = nil, nil, nil
	w.cancel(errVanished)
	delete(s.awaited, w.name)
}

// maxVanished limits the devices that vanished. The one that vanished first makes way.
const maxVanished = 64

// lose marks a device as vanished. Where RDMA devices belong to one network namespace, any may move
// to that of a pod. Caller holds mu.
func (s *Supervisor) lose(w *worker) {
	is := &copied(copied(w.state.Hardware).Latest).Identity
	transient := w.transient || is.Virtual() || is.NetnsMode == "exclusive"
	s.cfg.Logger.Info("Device vanished", "device", w.name, "transient", transient)
	w.state.Present = false
	if transient {
		return
	}
	w.state.Vanished = time.Now()
	s.vanished[w.name] = state.DeviceState{Name: w.name, Vanished: w.state.Vanished, Info: w.state.Info}
	if len(s.vanished) > maxVanished {
		delete(s.vanished, slices.MinFunc(slices.Collect(maps.Keys(s.vanished)), func(a, b string) int {
			return s.vanished[a].Vanished.Compare(s.vanished[b].Vanished)
		}))
	}
}

// remove removes a worker that has ended, and starts another if the device has appeared again.
func (s *Supervisor) remove(w *worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.workers, w.name)
	if w.state.Present {
		s.add(w.name)
	}
	s.publish()
}

// leave records a stuck child until it exits or the supervisor ends. The devices get no
// further run of the kind until then.
func (s *Supervisor) leave(kind state.Kind, devices []string, res result, log *slog.Logger) *leftover {
	stuck := &state.Stuck{PID: res.left.PID(), Verb: res.verb, Since: res.killed}
	left := &leftover{res.left, stuck, make(chan struct{})}
	log.Warn("A killed child does not end; its work on the device waits until it does", "pid", stuck.PID, "verb", stuck.Verb)
	change := func(f func(leftoverKey)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, name := range devices {
			f(leftoverKey{kind, name})
		}
		s.publish()
	}
	change(func(k leftoverKey) { s.leftovers[k] = left })
	s.running.Go(func() {
		select {
		case <-res.left.Done():
		case <-s.over:
			return
		}
		log.Info("The killed child has ended",
			"pid", stuck.PID, "verb", stuck.Verb, "after", time.Since(stuck.Since).Round(time.Millisecond))
		change(func(k leftoverKey) { delete(s.leftovers, k) })
		close(left.exited)
	})
	return left
}

// Snapshot returns the current state of the devices. It is never nil and never blocks. Callers
// must not modify it. It can be called before and after Run, too.
func (s *Supervisor) Snapshot() *state.Snapshot { return s.snapshot.Load() }

// Changed returns a channel that has a value when the snapshot has changed since the last one was
// received.
func (s *Supervisor) Changed() <-chan struct{} { return s.changed }

// publish makes a snapshot of the current state, unless the last one was made. Caller holds
// mu.
func (s *Supervisor) publish() {
	if s.closed {
		return
	}
	snap := &state.Snapshot{
		Provider:       s.cfg.Provider,
		Ready:          s.discovered && len(s.awaited) == 0,
		Devices:        make([]state.DeviceState, 0, len(s.workers)),
		DiscoveryError: s.discoveryError,
		StartError:     s.startError,
		Hardware:       s.hardware,
	}
	for _, w := range s.workers {
		// A stuck child holds its device in the kernel, so it matters even if the device has
		// vanished. RunOnce keeps each device that it found.
		if w.state.Present || s.once || s.leftovers[leftoverKey{state.KindProbe, w.name}] != nil {
			snap.Devices = append(snap.Devices, w.state)
		}
	}
	for name, d := range s.vanished {
		if !slices.ContainsFunc(snap.Devices, func(d state.DeviceState) bool { return d.Name == name }) {
			snap.Devices = append(snap.Devices, d)
		}
	}
	for key, left := range s.leftovers {
		i := slices.IndexFunc(snap.Devices, func(d state.DeviceState) bool { return d.Name == key.device })
		if i < 0 {
			if key.kind != state.KindInventory {
				continue // It does not outlive the device.
			}
			i = len(snap.Devices)
			snap.Devices = append(snap.Devices, state.DeviceState{Name: key.device})
		}
		switch dev := &snap.Devices[i]; {
		case key.kind == state.KindProbe, key.kind == state.KindAsk && dev.Stuck == nil:
			dev.Stuck = left.stuck
		case key.kind == state.KindAsk:
		case key.kind == state.KindInventory:
			dev.Resources = copied(dev.Resources)
			dev.Resources.Stuck = left.stuck
		case dev.Present:
			dev.Hardware = copied(dev.Hardware)
			dev.Hardware.Stuck = left.stuck
		}
	}
	slices.SortFunc(snap.Devices, func(a, b state.DeviceState) int { return strings.Compare(a.Name, b.Name) })
	s.snapshot.Store(snap)
	notify(s.changed)
}

// copied returns a copy of v, or a new zero value if v is nil.
func copied[T any](v *T) *T {
	next := new(T)
	if v != nil {
		*next = *v
	}
	return next
}
