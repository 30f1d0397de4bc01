package supervisor

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/state"
)

// ErrStarted is returned by a second call of [Supervisor.Run].
var ErrStarted = errors.New("the supervisor was started before")

// errVanished is the cause for which a worker ends when its device is no more.
var errVanished = errors.New("the device has vanished")

// Supervisor probes the devices of the host, holds them to their contracts and
// inventories them. Create it with New. Its methods are safe for concurrent use.
type Supervisor struct {
	cfg    Config
	launch launcher
	random func() float64
	// runs is the lane of all children but those of the inventory, which have
	// inventories: they are never in the way of the others.
	runs, inventories *lane

	started atomic.Bool
	// probesVersion counts the changes of the configuration of the probes.
	probesVersion atomic.Int64
	snapshot      atomic.Pointer[state.Snapshot]
	// ended tells the goroutine of Run which worker has ended.
	ended chan *worker

	// rejected are the unusable names of the last discovery; only the goroutine
	// of Run uses it.
	rejected []string

	// running are the goroutines that Run waits for, and over is closed when they are
	// to end.
	running sync.WaitGroup
	over    <-chan struct{}
	// ends is when the children of RunOnce have to be done; zero if there is no limit.
	ends time.Time

	mu sync.Mutex
	// closed tells that the snapshot is the last one.
	closed bool
	// leftovers are children of inventories that cannot be killed, by device.
	leftovers map[string]*leftover
	// held are the children that read the hardware and cannot be killed, by each device
	// that is not read meanwhile; hardware is the last finished reading.
	held     map[string]*state.Stuck
	hardware *state.Run
	// links is how the states of ports went before, of devices that are not there, or were
	// not found yet.
	links map[string]state.LinkHistory
	// workers are the workers that have not ended, by device. Only the goroutine
	// of Run adds and removes some.
	workers map[string]*worker
	// discovered tells that devices could be listed once.
	discovered     bool
	discoveryError string
	// awaited are the devices found at first that have not been probed yet.
	awaited map[string]bool
}

// New returns a supervisor that does nothing until [Supervisor.Run] is called.
// The error is that of [Config.Validate].
func New(cfg Config) (*Supervisor, error) {
	cfg, err := cfg.Validate()
	if err != nil {
		return nil, err
	}
	s := &Supervisor{
		cfg:         cfg,
		launch:      launch,
		random:      rand.Float64,
		runs:        newLane(cfg.Concurrency),
		inventories: newLane(inventoryConcurrency),
		ended:       make(chan *worker),
		leftovers:   make(map[string]*leftover),
		links:       make(map[string]state.LinkHistory),
		held:        make(map[string]*state.Stuck),
		workers:     make(map[string]*worker),
		awaited:     make(map[string]bool),
	}
	maps.Copy(s.links, cfg.Links)
	s.publish()
	return s, nil
}

// Run finds and probes devices until ctx is done. Then it kills the children,
// waits for them to end, and returns nil. A second call returns ErrStarted.
//
// No child and no goroutine is left when Run has returned, but for children that
// cannot be killed: those are waited for as [Config].KillGrace says. They
// wait in the kernel for something that need not ever come, nobody can hurry
// them, and a process that waited for them could not be restarted. The kernel
// ends them as soon as it can, whether or not this process still lives.
func (s *Supervisor) Run(ctx context.Context) error {
	if !s.started.CompareAndSwap(false, true) {
		return ErrStarted
	}
	s.over = ctx.Done()
	defer s.running.Wait()
	start := func(w *worker) {
		own, cancel := context.WithCancelCause(ctx)
		w.cancel = cancel
		s.running.Go(func() { w.work(ctx, own) })
	}

	s.discover(start)
	if s.cfg.Hardware.Interval > 0 {
		s.running.Go(func() { s.readHardware(ctx) })
		if s.cfg.WatchLinks != nil {
			s.running.Go(func() { s.watchLinks(ctx) })
		}
	}
	tick := time.NewTicker(s.cfg.Discovery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.discover(start)
		case w := <-s.ended:
			s.remove(w, start)
		}
	}
}

// ProbesChanged makes a full run due on each device, because the configuration of the
// probes has changed. It does not block.
func (s *Supervisor) ProbesChanged() {
	s.probesVersion.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workers {
		select {
		case w.reloaded <- struct{}{}:
		default:
		}
	}
}

// discover lists the devices, starts a worker for each that is new, and ends the
// workers of those that are no more.
func (s *Supervisor) discover(start func(*worker)) {
	found, err := s.cfg.Discover()
	names, rejected := sift(found)
	if err == nil && !slices.Equal(rejected, s.rejected) {
		s.rejected = rejected
		s.logRejected(rejected)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	defer s.publish()
	if err != nil {
		s.discoveryFailed(oneLine(err.Error(), maxError))
		return
	}
	s.discoveryWorks()
	for name, w := range s.workers {
		if w.state.Present && !slices.Contains(names, name) {
			s.vanished(w)
		}
	}
	for _, name := range names {
		if !s.discovered {
			s.awaited[name] = true
		}
		w, ok := s.workers[name]
		switch {
		case !ok:
			s.logAppeared(name)
			s.add(name, start)
		case !w.state.Present:
			// Its worker is about to end, which may take long if a child is stuck.
			// The next one starts when it has.
			w.state = state.DeviceState{Name: name, Present: true, Stuck: w.state.Stuck}
			s.logAppeared(name)
		}
	}
	s.discovered = true
}

// add starts a worker for a device. It is called with mu held.
func (s *Supervisor) add(name string, start func(*worker)) {
	w := newWorker(s, name)
	s.workers[name] = w
	start(w)
}

// vanished ends the worker of a device that is no more. It is called with mu
// held.
func (s *Supervisor) vanished(w *worker) {
	s.leaveLinks(w)
	w.state.Present = false
	w.state.Contracts, w.state.Resources, w.state.Hardware = nil, nil, nil
	w.gone = true
	w.cancel(errVanished)
	delete(s.awaited, w.name)
	s.logVanished(w.name)
}

// remove takes out a worker that has ended, and starts another if the device has
// appeared again since.
func (s *Supervisor) remove(w *worker, start func(*worker)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.workers, w.name)
	if w.state.Present {
		s.add(w.name, start)
	}
	s.publish()
}
