package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
)

// parsed returns what a command line says, and what it is told if it is wrong.
func parsed(t *testing.T, args ...string) (*options, int, string) {
	t.Helper()
	var told bytes.Buffer
	o, _, status := parse(args, stdio{out: &told, err: &told})
	return o, status, told.String()
}

// received returns what a child is told, which has settings of its own without that.
func received(t *testing.T, o *options) settings {
	t.Helper()
	c := newCommands(o.settings())
	child, _, _ := parsed(t, "probe", "--device=x")
	in := running.Must(readInput(child, bytes.NewReader(c.start(state.KindProbe, "x", wire.Request{}).Stdin)))(t)
	return in.Settings
}

// What a collector would show is not measured while it is off.
func TestCollectors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args string
		// less are what is left out of what is done by default, and more what is added.
		less, more string
	}{
		{"", "", ""},
		{"--no-collector.sizes", "", ""},
		{"--collector.memory", "", "memory"},
		{"--collector.limits --collector.verb-histograms --collector.owner-pids", "", ""},
		{"--no-collector.latency", "samples", ""},
		{"--no-collector.contracts", "contracts", ""},
		{"--no-collector.contracts --contract.interval=0", "contracts", ""},
		{"--no-collector.inventory", "inventory", ""},
		{"--no-collector.owners", "owners", ""},
		{"--collector.cgroups", "", "cgroups"},
		{"--no-collector.counters", "hw_counters", ""},
		{"--no-collector.counters --collector.raw-counters", "", ""},
		{"--no-collector.adapter --no-collector.gids", "adapter gids", ""},
		{"--collector.interrupts", "", "interrupts"},
		{"--no-collector.counters --no-collector.links --no-collector.adapter --no-collector.gids", "hardware hw_counters adapter gids", ""},
		{"--no-collector.counters --no-collector.adapter --no-collector.gids", "hw_counters adapter gids", ""},
		{"audit --no-collector.contracts --no-collector.inventory --collector.memory", "contracts inventory", "memory"},
	} {
		o, status, told := parsed(t, strings.Fields(tc.args)...)
		if status != exitOK || o == nil {
			t.Errorf("%s: status %d: %s", tc.args, status, told)
			continue
		}
		s := received(t, o)
		for what, got := range map[string]bool{
			"samples": s.Probe.Notification.Samples > 0, "memory": !s.Probe.NoMemory,
			"owners": !s.Inventory.NoOwners, "cgroups": !s.Inventory.NoCgroups,
			"contracts": o.schedule.Contract.Interval > 0, "inventory": o.schedule.Inventory.Interval > 0,
			"hardware": o.schedule.Hardware.Interval > 0, "hw_counters": !s.Hardware.Without.Counters, "adapter": !s.Hardware.Without.Adapter,
			"interrupts": !s.Hardware.Without.InterruptCounts, "gids": !s.Hardware.Without.GIDs,
		} {
			want := what != "memory" && what != "cgroups" && what != "interrupts"
			if strings.Contains(tc.less, what) || strings.Contains(tc.more, what) {
				want = !want
			}
			if got != want {
				t.Errorf("%s: %s is done: %t, want %t", tc.args, what, got, want)
			}
		}
	}
	o, _, _ := parsed(t, "--contract.interval=1h", "--no-collector.sizes", "--collector.limits")
	on := o.metrics(nil).Collectors
	if o.schedule.Contract.Interval != time.Hour || on[collector.Sizes] || !on[collector.Limits] || on[collector.Memory] || !on[collector.Vectors] {
		t.Errorf("interval %s, collectors %v", o.schedule.Contract.Interval, on)
	}
}

// A schedule of what is switched off is a mistake.
func TestCollectorsContradicted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"contract", "inventory"} {
		off := map[string]string{"contract": "contracts", "inventory": "inventory"}[name]
		_, status, told := parsed(t, "--no-collector."+off, "--"+name+".interval=1h")
		if status != exitUsage || strings.Count(told, "\n") != 1 || !strings.Contains(told, "--"+name+".interval") || !strings.Contains(told, "--no-collector."+off) {
			t.Errorf("status %d: %s", status, told)
		}
	}
	all := []string{"--no-collector.counters", "--no-collector.links", "--no-collector.adapter", "--no-collector.gids", "--hardware.interval=1m"}
	if _, status, told := parsed(t, all...); status != exitUsage || !strings.Contains(told, "--hardware.interval has no effect with --no-collector.counters") {
		t.Errorf("status %d: %s", status, told)
	}
	if _, status, told := parsed(t, all[1:]...); status != exitOK {
		t.Errorf("status %d: %s", status, told)
	}
}
