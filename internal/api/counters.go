package api

import (
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Counters are the counters of a device.
type Counters struct {
	// NotZero are those of its ports that are not zero.
	NotZero []Counter
	// Odd describes counters that could not be read or no longer count, and Drops those that
	// were lower than before.
	Odd, Drops []string
}

// Counter is a counter of a port under the name that all drivers share.
type Counter struct {
	counters.Value
	Port int
}

// CountersOf returns the counters of the last reading, which must not be absent. Nil means that there
// is nothing to show.
func CountersOf(h *state.HardwareState) *Counters {
	c := new(Counters)
	port := func(n int) string {
		if n == 0 {
			return "the device"
		}
		return fmt.Sprintf("port %d", n)
	}
	add := func(n int, raw []state.Counter, refused []state.RefusedCounters) {
		for _, r := range refused {
			c.Odd = append(c.Odd, "The kernel refuses to read "+text.JoinWords(": ", fmt.Sprintf("%s of %s", r.Group, port(n)), r.Errno, r.Detail))
		}
		for _, one := range raw {
			if counters.Saturated(h.Latest.Table, one) {
				c.Odd = append(c.Odd, fmt.Sprintf("%s of %s is saturated and no longer counts", one.Name, port(n)))
			}
		}
	}
	add(0, h.Latest.Counters, h.Latest.Refused)
	for i := range h.Latest.Ports {
		p := &h.Latest.Ports[i]
		add(p.Number, p.Counters, p.Refused)
		for _, v := range counters.Values(h.Latest, p) {
			if v.Value != 0 {
				c.NotZero = append(c.NotZero, Counter{v, p.Number})
			}
		}
	}
	for _, d := range h.Drops {
		c.Drops = append(c.Drops, fmt.Sprintf("%s (%s) of %s was less than before: %s, %s.", d.Name, d.Group, port(d.Port),
			text.Plural(int64(d.Resets), "reset"), text.Count(int64(d.Wraps), "time at its maximum", "times at its maximum")))
	}
	if c.Summary() == "" {
		return nil
	}
	return c
}

// Summary returns how many counters there are of each sort.
func (c *Counters) Summary() string {
	return text.JoinWords(", ", text.Some(len(c.NotZero), "not zero"), text.Some(len(c.Odd), "saturated or refused"),
		text.Some(len(c.Drops), "less than before"))
}

// Name returns the name of the metric in words.
func (c Counter) Name() string {
	words := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(c.Metric, "rdma_port_"), "_total"), "_", " ")
	switch {
	case c.Label >= "0" && c.Label <= "7":
		words += " of priority " + c.Label
	case c.Label != "":
		words += " (" + c.Label + ")"
	}
	return words
}

// Count returns the value with its unit.
func (c Counter) Count() string {
	count := int64(min(c.Value.Value, 1<<62))
	switch {
	case c.countsBytes():
		return text.Bytes(count)
	case strings.HasSuffix(c.Metric, "_seconds_total"):
		return text.Seconds(c.Value.Value)
	default:
		return text.Number(count)
	}
}

func (c Counter) countsBytes() bool { return strings.HasSuffix(c.Metric, "_bytes_total") }

// IsError reports whether it counts errors, as opposed to traffic, congestion control and
// corrected errors.
func (c Counter) IsError() bool {
	name := strings.TrimPrefix(c.Metric, "rdma_port_")
	return !c.countsBytes() && name != "receive_packets_total" && name != "transmit_packets_total" &&
		!slices.ContainsFunc([]string{"cnps_", "ecn_", "pause_", "pfc_", "transmit_wait_", "fec_corrected_", "pci_stalled_"}, func(prefix string) bool {
			return strings.HasPrefix(name, prefix)
		})
}
