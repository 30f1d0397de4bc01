// Package congestion says how long a port was paused, and how many CNPs it got.
package congestion

import (
	"slices"
	"time"

	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/state"
)

const (
	span         = 5 * time.Minute // The least time between two readings that are compared.
	past         = 24 * time.Hour
	usualAfter   = 6 * time.Hour // How long a port must be known to say what is usual.
	cnpsLowest   = 1e-3          // Per transmitted packet.
	cnpsMultiple = 10            // Of the usual.
	cnpsPackets  = 1e5           // Fewer transmitted packets say nothing.
)

// Port is how long a port was paused, and how many CNPs it got, between two readings.
type Port struct {
	// At is the later of the two readings, and Over the time between them.
	At   time.Time
	Over time.Duration
	// Paused is the largest share of the time in which a priority was paused, and Priority that one.
	Paused   float64
	Priority string
	// CNPs are per transmitted packet, and Usual is their mean over about a day.
	CNPs, Usual float64

	since   time.Time // The time without traffic does not count.
	members []string
	counted map[string]float64 // By metric and priority, at that time.
}

// Next returns the congestion of each port up to a reading.
func Next(before map[int]Port, at time.Time, h *state.Hardware) map[int]Port {
	after := make(map[int]Port)
	for i := range h.Ports {
		p := &h.Ports[i]
		after[p.Number] = before[p.Number].next(at, h, p)
	}
	return after
}

// next returns the congestion up to a reading. It is the same until span has passed.
func (c Port) next(at time.Time, h *state.Hardware, p *state.HardwarePort) Port {
	over := at.Sub(c.At)
	if over >= 0 && over < span {
		return c
	}
	values := counters.Values(h, p)
	n := Port{At: at, since: at, members: p.Members, counted: make(map[string]float64)}
	for _, v := range values {
		n.counted[v.Metric+v.Label] = v.Value
	}
	if over < 0 || over > past || !slices.Equal(c.members, n.members) {
		return n
	}
	grown := func(key string) float64 {
		if before, ok := c.counted[key]; ok {
			return max(n.counted[key]-before, 0) // It may have been reset.
		}
		return 0
	}
	n.since, n.Over = c.since, over
	for _, v := range values {
		share := grown(v.Metric+v.Label) / over.Seconds()
		if v.Metric == "rdma_port_pfc_paused_seconds_total" && share > n.Paused {
			n.Priority, n.Paused = v.Label, min(share, 1)
		}
	}
	packets := grown("rdma_port_transmit_packets_total")
	if packets < cnpsPackets {
		n.since, n.Usual = c.since.Add(over), c.Usual
		return n
	}
	// Drivers count one or the other.
	n.CNPs = max(grown("rdma_port_cnps_handled_total"), grown("rdma_port_cnps_received_total")) / packets
	n.Usual = c.Usual + (n.CNPs-c.Usual)*float64(over)/float64(min(at.Sub(n.since), past))
	return n
}

// Unusual reports whether the port got far more CNPs than it usually does.
func (c Port) Unusual() bool {
	return c.At.Sub(c.since) >= usualAfter && c.CNPs >= max(cnpsLowest, cnpsMultiple*c.Usual)
}
