package collector

import (
	"iter"
	"strconv"

	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/state"
)

// maxCounters is how many raw counters of a port are exposed.
const maxCounters = 512

func declareCounter(t *table) {
	t.about("Counters")
	t.of(Counters)
	for _, c := range counters.Metrics() {
		labels := []string{"device", "port"}
		if c.Label != "" {
			labels = append(labels, c.Label)
		}
		help := c.Help + "."
		if c.Rare {
			help += " Absent until first non-zero."
		}
		t.counter(c.Name, c.Unit, help, labels...)
	}
	t.gauge("rdma_port_counter_saturated", "1 or 0",
		"1 while a counter is stuck at its maximum, so that its value is unknown; its own metric is then absent. Absent until that first happens.", "device", "port", "counter")
	t.counter("rdma_port_counter_decreases_total", "decreases",
		"How often a counter was lower than before, by the likely cause. Absent until that first happens.", "device", "port", "counter", "how")
	t.of(RawCounters)
	t.counter("rdma_port_counter_total", "what the counter counts",
		"Port counters named by the InfiniBand specification (counters/ in sysfs), in the driver's names and units. Values that can go down are left out.", "device", "port", "counter")
	t.counter("rdma_port_hw_counter_total", "what the counter counts",
		"Port and device counters named by the driver (hw_counters/ in sysfs, rdma statistic), and those of the network device, in the driver's names and units. Values that can go down are left out.", "device", "port", "counter")
}

// addCounters adds port counters under names common to all drivers.
func addCounters(b *builder, name string, r *state.Hardware) {
	for i := range r.Ports {
		p := &r.Ports[i]
		for _, v := range counters.Values(r, p) {
			addCounted(b, name, strconv.Itoa(p.Number), v)
		}
	}
	for port, all := range countersOf(r) {
		for _, c := range all {
			if counters.Saturated(r.Table, c) {
				b.sparse("rdma_port_counter_saturated", 1, name, port, c.Name)
			}
		}
	}
	b.ended("rdma_port_counter_saturated")
}

// countersOf returns the raw counters by label of the port, those of the device first.
func countersOf(r *state.Hardware) iter.Seq2[string, []state.Counter] {
	return func(yield func(string, []state.Counter) bool) {
		ok := yield("", r.Counters)
		for i := 0; ok && i < len(r.Ports); i++ {
			ok = yield(strconv.Itoa(r.Ports[i].Number), r.Ports[i].Counters)
		}
	}
}

func addCounted(b *builder, name, port string, v counters.Value) {
	f := b.byName[v.Metric]
	if f == nil {
		return
	}
	values := []string{name, port, v.Label}[:len(f.labels)]
	if v.Rare {
		b.sparse(v.Metric, v.Value, values...)
	} else {
		b.gauge(v.Metric, v.Value, values...)
	}
}

// addRawCounters adds counters under their driver's names.
func addRawCounters(b *builder, name string, r *state.Hardware) {
	if b.byName["rdma_port_counter_total"].off {
		return
	}
	for port, all := range countersOf(r) {
		exposed := 0
		for _, c := range all {
			if counters.Level(r.Table, c.Group, c.Name) || counters.Saturated(r.Table, c) {
				continue
			}
			if exposed == maxCounters {
				b.dropped++
				continue
			}
			exposed++
			metric := "rdma_port_hw_counter_total"
			if c.Group == state.GroupPort {
				metric = "rdma_port_counter_total"
			}
			b.counter(metric, c.Value, name, port, c.Name)
		}
	}
}
