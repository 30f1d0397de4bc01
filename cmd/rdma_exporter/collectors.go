package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/collector"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/supervisor"
)

// switches are the flags that switch collectors on and off.
type switches struct {
	on map[string]*bool
	// contract, inventory and hardware tell that the interval was given for what can be off.
	contract, inventory, hardware bool
}

// add adds the flags.
func (c *switches) add(app *kingpin.Application) {
	c.on = make(map[string]*bool)
	for _, p := range collector.Parts() {
		if p.Name == collector.Vectors || p.Name == collector.Verbs {
			continue // Vectors go with the latency, and verbs are always on.
		}
		c.on[p.Name] = app.Flag("collector."+p.Name, fmt.Sprintf("Collector %s (%s by default): %s.", p.Name, onOff(p.On), p.Help)).
			Default(fmt.Sprint(p.On)).Bool()
	}
}

// choice returns which collectors are on.
func (c *switches) choice() collector.Choice {
	choice := make(collector.Choice)
	for name, on := range c.on {
		choice[name] = *on
	}
	choice[collector.Vectors], choice[collector.Verbs] = choice[collector.Latency], true
	return choice
}

// choose leaves out what nobody would see, where it costs: what is off is not measured
// either.
func (o *options) choose() error {
	on := o.collectors.choice()
	var errs []error
	off := func(flag string, given bool, schedule *supervisor.Schedule, names ...string) {
		if slices.ContainsFunc(names, func(name string) bool { return on[name] }) {
			return
		}
		if given && schedule.Interval != 0 {
			errs = append(errs, fmt.Errorf("--%s has no effect with --no-collector.%s: drop one of them", flag, strings.Join(names, " --no-collector.")))
		}
		schedule.Interval = 0
	}
	off("contract.interval", o.collectors.contract, &o.schedule.Contract, collector.Contracts)
	off("inventory.interval", o.collectors.inventory, &o.schedule.Inventory, collector.Inventory)
	off("hardware.interval", o.collectors.hardware, &o.schedule.Hardware,
		collector.Counters, collector.RawCounters, collector.Links, collector.Adapter, collector.Interrupts, collector.GIDs)
	o.hardware.NoCounters = !on[collector.Counters] && !on[collector.RawCounters]
	o.hardware.NoAdapter, o.hardware.NoInterrupts, o.hardware.NoGIDs = !on[collector.Adapter], !on[collector.Interrupts], !on[collector.GIDs]
	if !on[collector.Latency] {
		o.probe.Notification.Samples = 0
	}
	o.probe.NoMemory = !on[collector.Memory]
	o.inventory.NoOwners, o.inventory.NoCgroups = !on[collector.Owners], !on[collector.Cgroups]
	return errors.Join(errs...)
}

// metrics returns what the flags say about the metrics of a host's devices.
func (o *options) metrics(host func() *health.Host) collector.Options {
	return collector.Options{Host: host, Collectors: o.collectors.choice(), Asked: o.probe.Asked, Sizes: o.probe.Sizes, Light: o.when == whenIdle}
}

// onOff says whether something is on.
func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
