package main

import (
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/links"
	"rdma_exporter/internal/supervisor"
)

// supervise checks what is configured about the devices. It returns the configuration of a
// supervisor without observers and logger, and the commands of its children. It starts nothing.
func (o *options) supervise() (s supervisor.Config, children *commands, err error) {
	o.include, o.exclude = wholeName(o.include), wholeName(o.exclude)
	if err := o.loadConfig(); err != nil {
		return s, nil, err
	}
	if err := o.checkTime(); err != nil {
		return s, nil, err
	}
	discover, settings, err := discoverer(o)
	if err != nil {
		return s, nil, err
	}
	children = newCommands(settings)
	if settings.parsed != nil { // A reload may change it.
		discover = filter(children.simulatedNames, o.include, o.exclude)
	}
	s = o.schedule
	s.Provider, s.Discover, s.Command, s.CounterWidth = o.provider, discover, children.start, counters.Width
	if o.provider == providerLibibverbs {
		s.Transient = supervisor.SysfsTransient(o.hardware.Sysfs)
		if o.collectors.choice()[collector.Links] {
			s.WatchLinks = links.Watch
		}
	}
	s, err = s.Validate()
	return s, children, err
}

// byHand returns what runs on the devices that the command line names, and their names.
func (o *options) byHand() (s *supervisor.Supervisor, names []string, children *commands, err error) {
	config, children, err := o.supervise()
	if err == nil {
		names, err = config.Discover()
	}
	if err == nil {
		s, err = supervisor.New(config)
	}
	return s, names, children, err
}

func (o *options) settings() settings {
	s := settings{Provider: o.provider, Probe: o.probe, When: o.when, Inventory: o.inventory, Hardware: o.hardware, Audit: auditsOnce(o.command), Quick: o.quick, Anyway: o.bandwidth.anyway, Peers: o.path.config}
	// Measuring notification leaves time for the rest of a run, such as destroying objects.
	if free := o.schedule.Timeout - o.probe.DestroyTimeout; free > 0 {
		n := &s.Probe.Notification
		n.Budget, n.Deadline = min(free/4, time.Minute), min(max(free/16, 10*time.Millisecond), 10*time.Second) //nolint:mnd // with 10 deadlines, seven eighths
	}
	// The rest is for the end of the report, so that a slow child reports what it has.
	s.Inventory.Budget = o.schedule.Inventory.Timeout / 5 * 4
	s.Hardware.Budget = o.schedule.Hardware.Timeout / 5 * 4
	return s
}
