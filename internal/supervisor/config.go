package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// Config says what a Supervisor does. Start from DefaultConfig, and set Provider,
// Discover and Command.
type Config struct {
	// Provider is the provider that the children use: libibverbs or simulated.
	// It is shown in the snapshot, and changes nothing else.
	Provider string
	// Discover returns the names of the devices that the host has now, in any
	// order. It must not block on a device. It is called by one goroutine at a
	// time, which does not keep what it returns.
	Discover func() ([]string, error)
	// Command says how to start a child for a run of some kind on a device, and what it
	// is asked. A device may have any name that passes for a file's, so a name that
	// becomes an argument must not be able to pass for a flag ("--device=" + name). It is
	// called before each run, by several goroutines at a time, and must not block. The
	// request is its own, apart from the facts, which nobody changes.
	Command func(kind state.Kind, device string, r wire.Request) Command
	// Schedule is that of the probes, Contract that of the runs which hold a device to
	// its contracts, and Inventory that of the looks into the kernel's tables. A device's
	// first contract run follows its first finished run of the probes, and another one
	// comes at once when what has a part in its answers has changed, such as its
	// firmware. An inventory goes on beside the other runs on a device, even while a child
	// of those is stuck; a child that was killed or crashed makes it come sooner.
	Schedule
	Contract  Schedule
	Inventory Schedule
	// Hardware is that of readings of what the kernel tells of all adapters without opening
	// them. One child reads all devices, those left out that failed a short while ago, and
	// those that a child reads which cannot be killed.
	Hardware Schedule
	// CounterWidth returns how many bits a counter has by a table of counters, 0 for one that
	// goes up and down; nil for 64 of each.
	CounterWidth func(table string, group state.CounterGroup, name string) int
	// WatchLinks calls a function with what the kernel tells of network devices, one event
	// after the other, until ctx is done or it cannot any more; nil for nothing.
	WatchLinks func(ctx context.Context, tell func(state.LinkEvent)) error
	// Links is how the states of ports went before, by device. Nobody changes it.
	Links map[string]state.LinkHistory
	// Discovery is the time between two calls of Discover; more than Interval counts as
	// Interval.
	Discovery time.Duration
	// FullInterval is the time between two full probe runs of a device; the runs between
	// them are short. Less than Interval counts as Interval.
	FullInterval time.Duration
	// Backoff is the longest pause after a run that did not end well. The pause
	// is twice the Interval after the first such run, and doubles with each that
	// follows. Less than Interval counts as Interval.
	Backoff time.Duration
	// KillGrace is how long a child may take to end after it was killed before
	// it counts as stuck. Half a second is added for its pipes.
	KillGrace time.Duration
	// Concurrency is the most children of probes and contracts that run at the same time,
	// stuck ones not counted.
	Concurrency int
	// Within is the longest that RunOnce may take; 0 for as long as it takes.
	Within time.Duration
	// Jitter is the most by which the start of a run differs from its schedule,
	// as a fraction of the interval, from 0 to 1. It keeps the hosts of a cluster from
	// probing in step.
	Jitter float64
	// Observers are handed each finished run, in this order.
	Observers []Observer
	// Changed is called whenever the snapshot is another one; nil for nobody. It must not
	// block.
	Changed func()
	// Logger is told what changes; nil for nobody.
	Logger *slog.Logger
}

// Schedule says how often something is done to a device.
type Schedule struct {
	// Interval is the time from the start of one run on a device to the start of the
	// next; 0 for none at all, which the probes cannot have.
	Interval time.Duration
	// Timeout is the longest that a child may take before it is killed. A contract run
	// has more than one child if one of them is killed or crashes.
	Timeout time.Duration
}

// DefaultConfig returns what holds unless somebody says otherwise.
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
	// inventoryConcurrency is how many devices are inventoried at the same time: one
	// that hangs leaves a slot to the others.
	inventoryConcurrency = 2
	// minInterval keeps a slip of the pen from probing a host without a break.
	minInterval = 100 * time.Millisecond
	// MinWithin is the least that Config.Within can be, if it is not 0: the least time in
	// which anything can be found out.
	MinWithin = time.Second
)

// A Observer takes what runs found.
//
// Both methods are called by the goroutines that schedule the device's runs:
// Observe by up to three at a time for one device, of which one hands over the runs of
// KindInventory, one those of KindHardware and the third all else; Forget when none goes
// on any more. They
// should return at once: while they do not, the device is not probed, a vanished
// device is not forgotten, and [Supervisor.Run] does not return.
type Observer interface {
	// Observe is called once for each finished run, of whichever kind, before it is
	// in the snapshot. The run is shared: neither side changes it any more. A run that
	// was given up because its device vanished or the supervisor ends is not
	// observed.
	Observe(run *state.Run)
	// Forget is called once for a device that vanished, when no child of it is
	// left. Nothing of this device is observed afterwards, unless it appears
	// again.
	Forget(device string)
}

// Validate returns a copy of the configuration that can be used, or an error that names
// everything that is wrong with it.
func (c Config) Validate() (Config, error) {
	c.Observers = append([]Observer(nil), c.Observers...)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	errs := []error{c.Check()}
	if c.Provider == "" || c.Discover == nil || c.Command == nil || slices.Contains(c.Observers, nil) {
		errs = append(errs, errors.New("the supervisor has no provider, no function that discovers devices, no command for a child, or a sink that is nil"))
	}
	if err := errors.Join(errs...); err != nil {
		return Config{}, err
	}
	c.Discovery, c.Backoff, c.FullInterval = min(c.Discovery, c.Interval), max(c.Backoff, c.Interval), max(c.FullInterval, c.Interval)
	return c, nil
}

// Check returns an error that names each flag whose value cannot be used, with the range
// that can.
func (c *Config) Check() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	for _, t := range []struct {
		flag string
		d    time.Duration
	}{
		{"contract.timeout", c.Contract.Timeout},
		{"discovery.interval", c.Discovery},
		{"inventory.timeout", c.Inventory.Timeout},
		{"probe.full-interval", c.FullInterval},
		{"probe.interval", c.Interval},
		{"probe.max-backoff", c.Backoff},
		{"probe.timeout", c.Timeout},
	} {
		check(t.d > 0, "--%s is %s: use a duration above 0s", t.flag, t.d)
	}
	check(c.Interval <= 0 || c.Interval >= minInterval, "--probe.interval is %s: use a duration from %s", c.Interval, minInterval)
	check(c.Contract.Interval == 0 || c.Contract.Interval >= minInterval, "--contract.interval is %s: use a duration from %s, or 0s for none", c.Contract.Interval, minInterval)
	check(c.Hardware.Interval == 0 || c.Hardware.Interval >= minInterval, "--hardware.interval is %s: use a duration from %s, or 0s for none", c.Hardware.Interval, minInterval)
	check(c.Inventory.Interval == 0 || c.Inventory.Interval >= minInterval, "--inventory.interval is %s: use a duration from %s, or 0s for none", c.Inventory.Interval, minInterval)
	check(c.Concurrency > 0, "--probe.concurrency is %d: use a number from 1", c.Concurrency)
	check(c.Jitter >= 0 && c.Jitter <= 1, "--probe.jitter is %v: use a number from 0 to 1", c.Jitter) // not a number is neither
	check(c.Within == 0 || c.Within >= MinWithin, "--within is %s: use a duration from %s, or 0s for no limit", c.Within, MinWithin)
	check(c.KillGrace > 0, "the grace after a kill %s is not positive", c.KillGrace)
	return errors.Join(errs...)
}
