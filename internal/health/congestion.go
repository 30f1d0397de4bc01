package health

import (
	"fmt"
	"slices"
	"time"

	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const (
	congestionSpan            = 5 * time.Minute // The least time between two readings that are compared.
	congestionPast            = 24 * time.Hour
	usualAfter                = 6 * time.Hour // How long a port must be known to say what is usual.
	pausedInfo, pausedWarning = 0.01, 0.1     // Shares of the time.
	cnpsLowest, cnpsMultiple  = 1e-3, 10      // Per transmitted packet, and of the usual.
	cnpsPackets               = 1e5           // Fewer transmitted packets say nothing.
)

// Congestion is how long a port was paused, and how many CNPs it got, between two readings.
type Congestion struct {
	at, since   time.Time // The time without traffic does not count.
	over        time.Duration
	members     []string
	counted     map[string]float64 // By metric and priority, at that time.
	paused      float64            // The largest share of the time of a priority.
	priority    string
	cnps, usual float64 // Per transmitted packet, and the mean over about a day.
}

// next returns the congestion up to a reading. It is the same until congestionSpan has passed.
func (c Congestion) next(at time.Time, h *state.Hardware, p *state.HardwarePort) Congestion {
	over := at.Sub(c.at)
	if over >= 0 && over < congestionSpan {
		return c
	}
	values := counters.Values(h, p)
	n := Congestion{at: at, since: at, members: p.Members, counted: make(map[string]float64)}
	for _, v := range values {
		n.counted[v.Metric+v.Label] = v.Value
	}
	if over < 0 || over > congestionPast || !slices.Equal(c.members, n.members) {
		return n
	}
	grown := func(key string) float64 {
		if before, ok := c.counted[key]; ok {
			return max(n.counted[key]-before, 0) // It may have been reset.
		}
		return 0
	}
	n.since, n.over = c.since, over
	for _, v := range values {
		share := grown(v.Metric+v.Label) / over.Seconds()
		if v.Metric == "rdma_port_pfc_paused_seconds_total" && share > n.paused {
			n.priority, n.paused = v.Label, min(share, 1)
		}
	}
	packets := grown("rdma_port_transmit_packets_total")
	if packets < cnpsPackets {
		n.since, n.usual = c.since.Add(over), c.usual
		return n
	}
	// Drivers count one or the other.
	n.cnps = max(grown("rdma_port_cnps_handled_total"), grown("rdma_port_cnps_received_total")) / packets
	n.usual = c.usual + (n.cnps-c.usual)*float64(over)/float64(min(at.Sub(n.since), congestionPast))
	return n
}

func (h *History) recordCongestion(d *state.DeviceState) {
	r := currentHardware(d.Hardware)
	if r == nil {
		return
	}
	ports := make(map[int]Congestion)
	for i := range r.Ports {
		p := &r.Ports[i]
		ports[p.Number] = h.Congestion[d.Name][p.Number].next(d.Hardware.Read, r, p)
	}
	put(h.Congestion, d.Name, ports)
}

func (a *assessor) congested(of string, port int) {
	c := a.congestion[port]
	var pauses, notified string
	if c.paused >= pausedInfo {
		pauses = fmt.Sprintf("priority %s of %s was paused for %s of the time", word(c.priority), of, text.Percent(int64(c.paused*1e6), 1e6))
	}
	if c.at.Sub(c.since) >= usualAfter && c.cnps >= max(cnpsLowest, cnpsMultiple*c.usual) {
		notified = fmt.Sprintf("%s got %.2g CNPs for a thousand packets sent, usually %.2g", of, c.cnps*1e3, c.usual*1e3)
	}
	if what := text.JoinWords("; ", pauses, notified); what != "" {
		a.add(observation{
			kind: FindingCongested, severity: warningIf(c.paused >= pausedWarning), subject: of, size: c.paused + c.cnps,
			message: fmt.Sprintf("In the %s up to %s %s.", text.Age(c.over), text.Moment(c.at), what),
		})
	}
}
