package supervisor

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"rdma_exporter/internal/state"
)

// What a zero value in a Config stands for.
const (
	defaultInterval    = time.Minute
	defaultTimeout     = 30 * time.Second
	defaultDiscovery   = 5 * time.Second
	defaultKillGrace   = 2 * time.Second
	defaultConcurrency = 2
	defaultJitter      = 0.1
	// defaultBackoff is in intervals.
	defaultBackoff = 8

	defaultContractInterval = 24 * time.Hour
	defaultContractTimeout  = time.Minute

	defaultInventoryInterval = time.Minute
	defaultInventoryTimeout  = 10 * time.Second
	// inventoryConcurrency is how many devices are taken stock of at the same time: one
	// that hangs leaves a slot to the others.
	inventoryConcurrency = 2
)

// Config says what a Supervisor does. Provider, Discover and Command must be
// set; for the rest, a zero value stands for the default.
type Config struct {
	// Provider is the provider that the children use: libibverbs or simulated.
	// It is shown in the snapshot, and changes nothing else.
	Provider string
	// Discover returns the names of the devices that the host has now, in any
	// order. It must not block on a device. It is called by one goroutine at a
	// time, which does not keep what it returns.
	Discover func() ([]string, error)
	// Command says how to start the child that probes a device. A device may
	// have any name that passes for a file's, so a name that becomes an argument
	// must not be able to pass for a flag ("--device=" + name). It is called
	// before each run, by several goroutines at a time, and must not block.
	Command func(device string, p Probing) Command
	// Contract says how the devices are held to their contracts, beside being
	// probed, and Inventory how stock is taken of them. All else here is about the
	// probes, except KillGrace, Backoff and Jitter, which are about every run, and
	// Concurrency, which is about probes and contracts.
	Contract  ContractConfig
	Inventory InventoryConfig
	// Interval is the time from the start of one run on a device to the start of
	// the next. Default: one minute.
	Interval time.Duration
	// Timeout is the longest that a child may take before it is killed. Default:
	// 30 seconds.
	Timeout time.Duration
	// Discovery is the time between two calls of Discover. Default: the smaller
	// of 5 seconds and Interval.
	Discovery time.Duration
	// Backoff is the longest pause after a run that did not end well. The pause
	// is twice the Interval after the first such run, and doubles with each that
	// follows. It is not less than Interval. Default: 8 times Interval.
	Backoff time.Duration
	// KillGrace is how long a child may take to end after it was killed before
	// it counts as stuck; half a second is added for its pipes. A time in which this
	// process is not let run counts for a tenth of that at most. Default: 2 seconds.
	KillGrace time.Duration
	// Concurrency is the most children that run at the same time, stuck ones not
	// counted. Default: 2.
	Concurrency int
	// Jitter is the most by which the start of a run differs from its schedule,
	// as a fraction of the interval, from 0 to 1; negative for none. It keeps the
	// hosts of a cluster from probing in step. Default: 0.1.
	Jitter float64
	// Sinks are handed each finished run, in this order.
	Sinks []Sink
	// Logger is told what changes. Default: nobody is.
	Logger *slog.Logger
}

// ContractConfig says when and how the devices are held to their contracts. A
// device's first contract run follows its first finished run of the probes. The
// zero value is for no contract runs.
type ContractConfig struct {
	// Command says how to start the child that judges the contracts of a device,
	// without what it is to leave out. For the rest it is like [Config].Command. Nil
	// for none.
	Command func(device string, leave LeaveOut) Command
	// Interval is the time from the start of one contract run on a device to the start
	// of the next; what has a part in what the device answers, such as its firmware,
	// makes it come sooner if it changes. Default: one day.
	Interval time.Duration
	// Timeout is the longest that a child may take before it is killed. A contract run
	// has more than one child if one of them is killed or crashes. Default: one
	// minute.
	Timeout time.Duration
}

// InventoryConfig says when and how stock is taken of the devices: the resource
// inventory, of what the kernel tracks. It goes on beside the other runs on a device,
// even while a child of those is stuck. The zero value is for none.
type InventoryConfig struct {
	// Command says how to start the child that takes stock of a device. For the rest
	// it is like [Config].Command. Nil for none.
	Command func(device string, s Stocktaking) Command
	// Interval is the time from the start of one inventory of a device to the start of
	// the next; a child that was killed or crashed makes it come sooner. Default: one
	// minute.
	Interval time.Duration
	// Timeout is the longest that a child may take before it is killed. Default: 10
	// seconds.
	Timeout time.Duration
}

// Probing is what a child that probes is told of the runs before it. It belongs to
// whoever is told, apart from what it points to, which nobody changes.
type Probing struct {
	// Facts are what is known of the device; nil for nothing.
	Facts *state.Facts
	// Turn is the number of the turn; nil to do everything in one run.
	Turn *int
}

// LeaveOut is what a child of a contract run is to leave out, because of what became of
// the children before it. It belongs to whoever is told.
type LeaveOut struct {
	// Judged are the contracts that the contract run is done with, in order.
	Judged []string
	// Completions are to be left out because a child ended while it tried which of
	// them the device gives.
	Completions bool
}

// A Sink takes what runs found.
//
// Both methods are called by the goroutines that schedule the device's runs:
// Observe by up to two at a time for one device, of which one hands over the runs of
// KindInventory and the other all else; Forget when neither goes on any more. They
// should return at once: while they do not, the device is not probed, a vanished
// device is not forgotten, and [Supervisor.Run] does not return.
type Sink interface {
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

// Validate returns a copy of the configuration with every default filled in, or
// an error that names everything that is wrong with it.
func (c Config) Validate() (Config, error) {
	c.Sinks = append([]Sink(nil), c.Sinks...)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	setDefault(&c.Interval, defaultInterval)
	setDefault(&c.Timeout, defaultTimeout)
	setDefault(&c.Discovery, min(defaultDiscovery, c.Interval))
	setDefault(&c.Backoff, defaultBackoff*c.Interval)
	setDefault(&c.KillGrace, defaultKillGrace)
	setDefault(&c.Concurrency, defaultConcurrency)
	setDefault(&c.Jitter, defaultJitter)
	c.Jitter = max(c.Jitter, 0)
	setDefault(&c.Contract.Interval, defaultContractInterval)
	setDefault(&c.Contract.Timeout, defaultContractTimeout)
	setDefault(&c.Inventory.Interval, defaultInventoryInterval)
	setDefault(&c.Inventory.Timeout, defaultInventoryTimeout)

	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.Provider != "", "no provider")
	check(c.Discover != nil, "no function that discovers devices")
	check(c.Command != nil, "no command for a child")
	check(c.Interval > 0, "the interval %v is not positive", c.Interval)
	check(c.Timeout > 0, "the timeout %v is not positive", c.Timeout)
	check(c.Discovery > 0, "the discovery interval %v is not positive", c.Discovery)
	check(c.Backoff >= c.Interval, "the longest back-off %v is less than the interval %v", c.Backoff, c.Interval)
	check(c.KillGrace > 0, "the grace after a kill %v is not positive", c.KillGrace)
	check(c.Concurrency > 0, "the concurrency %d is not positive", c.Concurrency)
	check(c.Jitter <= 1, "the jitter %v is more than 1", c.Jitter)
	check(c.Contract.Interval > 0, "the interval of the contract run %v is not positive", c.Contract.Interval)
	check(c.Contract.Timeout > 0, "the timeout of the contract run %v is not positive", c.Contract.Timeout)
	check(c.Inventory.Interval > 0, "the interval of the inventory %v is not positive", c.Inventory.Interval)
	check(c.Inventory.Timeout > 0, "the timeout of the inventory %v is not positive", c.Inventory.Timeout)
	for i, s := range c.Sinks {
		check(s != nil, "sink %d is nil", i)
	}
	if err := errors.Join(errs...); err != nil {
		return Config{}, fmt.Errorf("configuration of the supervisor: %w", err)
	}
	return c, nil
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}
