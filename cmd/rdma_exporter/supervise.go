package main

import (
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/links"
	"rdma_exporter/internal/supervisor"
)

// supervise checks everything that was configured about the devices, and returns
// what a supervisor needs to know of them, all but its sinks and its logger, and what
// tells it how to start children. It starts nothing.
func (o *options) supervise() (supervisor.Config, *commands, error) {
	o.include, o.exclude = whole(o.include), whole(o.exclude)
	if err := o.loadConfig(); err != nil {
		return supervisor.Config{}, nil, err
	}
	if err := o.checkTime(); err != nil {
		return supervisor.Config{}, nil, err
	}
	discover, profile, err := discoverer(o)
	if err != nil {
		return supervisor.Config{}, nil, err
	}
	children, err := newCommands(o.settings(), profile)
	if err != nil {
		return supervisor.Config{}, nil, err
	}
	if profile != nil {
		discover = filter(children.simulatedNames, o.include, o.exclude)
	}
	s := o.schedule
	s.Provider, s.Discover, s.Command, s.CounterWidth = o.provider, discover, children.start, counters.Width
	if o.provider == providerLibibverbs && o.collectors.choice()[collector.Links] {
		s.WatchLinks = links.Watch
	}
	s, err = s.Validate()
	return s, children, err
}

// settings are what the flags and the configuration file tell each child.
func (o *options) settings() settings {
	s := settings{Provider: o.provider, Probe: o.probe, When: o.when, Inventory: o.inventory, Hardware: o.hardware}
	// All that measuring notification may take fits into a run, beside destroying objects.
	if free := o.schedule.Timeout - o.probe.DestroyTimeout; free > 0 {
		n := &s.Probe.Notification
		n.Budget, n.Deadline = min(free/4, time.Minute), min(max(free/16, 10*time.Millisecond), 10*time.Second) //nolint:mnd // with 10 deadlines, seven eighths
	}
	// The rest is for the end of the report, so that an inventory that takes long tells
	// what it found so far.
	s.Inventory.Budget = o.schedule.Inventory.Timeout / 5 * 4
	s.Hardware.Budget = o.schedule.Hardware.Timeout / 5 * 4
	return s
}
