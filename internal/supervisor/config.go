package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"rdma_exporter/internal/child"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// Config configures a Supervisor. Start from DefaultConfig, and set Provider, Discover and
// Command.
type Config struct {
	// Provider is the provider that the children use: libibverbs or simulated. The
	// supervisor only shows it in the snapshot.
	Provider string
	// Discover returns the names of the devices that the host has now, in any order. It
	// must not block on a device. One goroutine calls it at a time, and does not keep the
	// result.
	Discover func() ([]string, error)
	// Transient reports whether a new device comes and goes with its users, as virtual functions
	// do. It must not block. Nil means that none does.
	Transient func(device string) bool
	// Command returns how to start a child for a run of a kind on a device. A device may
	// have any file name, so a name in an argument must not be able to pass for a flag
	// ("--device=" + name). Several goroutines call it concurrently, before each run. It
	// must not block, nor modify the facts in the request.
	Command func(kind state.Kind, device string, r wire.Request) child.Command
	// Schedule is that of probe runs, Contract of contract runs. A device's first contract
	// run follows its first finished probe run, and another one comes at once if the device,
	// its software or its firmware has changed.
	Schedule
	Contract Schedule
	// Inventory is the schedule of inventories. They go on next to the other runs on a
	// device, even while a child of those is stuck. A child that was killed or crashed makes
	// the next one come sooner.
	Inventory Schedule
	// Hardware is the schedule of readings of what the kernel shows of all adapters. One
	// child reads all devices, except those that failed recently and those that a stuck
	// child still reads.
	Hardware Schedule
	// Paths is the schedule of runs that ask peers, and Bandwidth of measurements.
	Paths     Paths
	Bandwidth Bandwidth
	// CounterWidth returns the bits of a counter in a table of counters. Zero means a gauge.
	// Nil means that each counter has 64.
	CounterWidth func(table string, group state.CounterGroup, name string) int
	// WatchLinks calls handle with the interface index of each network device that changed, or
	// zero if events were lost, until ctx is done or it fails. Nil means no events.
	WatchLinks func(ctx context.Context, handle func(ifindex int)) error
	// Links are the states of ports before this process started, by device. It is not
	// modified.
	Links map[string]state.LinkHistory
	// Discovery is the time between two calls of Discover, at most Interval.
	Discovery time.Duration
	// FullInterval is the time between two full probe runs of a device, at least Interval.
	// The runs between them are short.
	FullInterval time.Duration
	// Backoff limits the pause after a run that was not ok. The pause is twice the Interval
	// after the first such run, and doubles with each that follows. It is at least Interval.
	Backoff time.Duration
	// KillGrace is how long a killed child may take to exit before it counts as stuck. Half
	// a second is added for its pipes.
	KillGrace time.Duration
	// Concurrency limits the children of probe and contract runs that run concurrently. Stuck
	// ones do not count.
	Concurrency int
	// Within limits how long RunOnce may take. Zero means no limit.
	Within time.Duration
	// Jitter is the maximum deviation of the start of a run from its schedule, as a fraction
	// of the interval, from 0 to 1. It keeps the hosts of a cluster from probing in step.
	Jitter float64
	// Observers receive each finished run, in this order.
	Observers []Observer
	// Logger logs changes. It may be nil.
	Logger *slog.Logger
}

// Schedule is how often runs of one kind start on a device, and how long they may take.
type Schedule struct {
	// Interval is the time from the start of one run to the start of the next. Zero means no
	// runs, which is not allowed for probe runs.
	Interval time.Duration
	// Timeout limits how long a child may take before it is killed. A contract run has
	// further children if one is killed or crashes.
	Timeout time.Duration
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Schedule:     Schedule{Interval: time.Minute, Timeout: 10 * time.Second},
		Contract:     Schedule{Interval: 24 * time.Hour, Timeout: time.Minute},
		Inventory:    Schedule{Interval: time.Minute, Timeout: 10 * time.Second},
		Hardware:     Schedule{Interval: 30 * time.Second, Timeout: 5 * time.Second},
		Discovery:    5 * time.Second,
		FullInterval: 15 * time.Minute,
		Backoff:      5 * time.Minute,
		KillGrace:    2 * time.Second,
		Concurrency:  2,
		Jitter:       0.1,
	}
}

const (
	// inventoryConcurrency limits the inventories that run concurrently, unless
	// Config.Concurrency is more. If one hangs, a slot is left.
	inventoryConcurrency = 2
	// pipeGrace is added to KillGrace, since a child is done when its pipes are.
	pipeGrace = 500 * time.Millisecond
	// minInterval keeps a typing error from probing a host without a break.
	minInterval = 100 * time.Millisecond
	// MinWithin is the minimum of Config.Within, if it is not zero.
	MinWithin = time.Second
)

// An Observer processes finished runs.
//
// Several goroutines call both methods, but only one at a time for one device. Both methods
// should return at once. Until they do, the device gets no further run and [Supervisor.Run]
// does not return.
type Observer interface {
	// Observe is called once for each finished run, before it is in the snapshot. It must not
	// modify the run. Runs that were cancelled, because the device vanished or the supervisor
	// ends, are not observed.
	Observe(run *state.Run)
	// Forget is called once for a device that vanished, when none of its children is left.
	// No run of this device is observed afterwards, unless it appears again.
	Forget(device string)
}

// Validate returns a usable copy of the configuration, or an error that names everything that
// is wrong with it.
func (c Config) Validate() (Config, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if err := c.Check(); err != nil {
		return Config{}, err
	}
	c.Discovery = min(c.Discovery, c.Interval)
	c.Backoff, c.FullInterval = max(c.Backoff, c.Interval), max(c.FullInterval, c.Interval)
	return c, nil
}

// Check returns an error that names each flag with an unusable value, and the allowed range.
func (c *Config) Check() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	type flag struct {
		name string
		d    time.Duration
	}
	for _, f := range []flag{
		{"contract.timeout", c.Contract.Timeout},
		{"inventory.timeout", c.Inventory.Timeout},
		{"probe.full-interval", c.FullInterval},
		{"probe.interval", c.Interval},
		{"probe.timeout", c.Timeout},
	} {
		check(f.d > 0, "--%s is %s: use a duration above 0s", f.name, f.d)
	}
	for _, f := range []flag{
		{"contract.interval", c.Contract.Interval},
		{"hardware.interval", c.Hardware.Interval},
		{"inventory.interval", c.Inventory.Interval},
	} {
		check(f.d == 0 || f.d >= minInterval, "--%s is %s: use a duration from %s, or 0s for none", f.name, f.d, minInterval)
	}
	check(c.Bandwidth.Interval == 0 || c.Bandwidth.Interval >= MinBandwidthInterval,
		"--bandwidth.schedule is %s: use a duration from %s, or 0s for none", c.Bandwidth.Interval, MinBandwidthInterval)
	check(c.Interval <= 0 || c.Interval >= minInterval, "--probe.interval is %s: use a duration from %s", c.Interval, minInterval)
	check(c.Concurrency > 0, "--probe.concurrency is %d: use a number from 1", c.Concurrency)
	check(c.Within == 0 || c.Within >= MinWithin, "--within is %s: use a duration from %s, or 0s for no limit", c.Within, MinWithin)
	return errors.Join(errs...)
}
