package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/collector"
	"rdma_exporter/internal/hardware"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/supervisor"
)

type switches struct {
	on map[string]*bool
	// contract, inventory and hardware are true if the flag of the interval was given.
	contract, inventory, hardware bool
}

func (c *switches) add(app *kingpin.Application) {
	c.on = make(map[string]*bool)
	onOff := map[bool]string{true: "on", false: "off"}
	for _, p := range collector.Parts() {
		if p.Name == collector.Vectors || p.Name == collector.Verbs {
			continue // The collector of latency includes vectors, and verbs are always on.
		}
		c.on[p.Name] = app.Flag("collector."+p.Name, fmt.Sprintf("Collector %s (%s by default): %s.", p.Name, onOff[p.On], p.Help)).
			Default(fmt.Sprint(p.On)).Bool()
	}
}

func (c *switches) choice() collector.Choice {
	choice := make(collector.Choice)
	for name, on := range c.on {
		choice[name] = *on
	}
	choice[collector.Vectors], choice[collector.Verbs] = choice[collector.Latency], true
	return choice
}

// choose leaves out measurements that no collector shows.
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
	o.hardware.Without = hardware.Parts{
		Counters: !on[collector.Counters] && !on[collector.RawCounters],
		Adapter:  !on[collector.Adapter], GIDs: !on[collector.GIDs], InterruptCounts: !on[collector.Interrupts],
	}
	if !on[collector.Latency] {
		o.probe.Notification.Samples = 0
	}
	o.probe.NoMemory = !on[collector.Memory]
	o.inventory.NoOwners, o.inventory.NoCgroups = !on[collector.Owners], !on[collector.Cgroups]
	return errors.Join(errs...)
}

func (o *options) metrics(host func() *health.Host) collector.Options {
	return collector.Options{Host: host, Collectors: o.collectors.choice(), Asked: o.probe.Asked, Sizes: o.probe.Sizes, Light: o.when == whenIdle}
}
