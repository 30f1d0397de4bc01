package bandwidth

import (
	"fmt"

	"rdma_exporter/internal/state"
)

// EvaluatePast returns a finding bandwidth_low if a port moves far less than it once did, in one direction
// with one NUMA node. The rate of the port is enough, even if it was faster. Best is as of state.BandwidthState.
func EvaluatePast(b *state.Bandwidth, best []state.BandwidthCell) (f Finding, found bool) {
	missed := 0.0
	for _, c := range b.Best() {
		for _, was := range best {
			most := was.BytesPerSecond
			for _, p := range b.Hardware.Ports {
				if p.Number == c.Port && p.Rate > 0 {
					most = min(most, p.Rate/8)
				}
			}
			if _, _, judged := fastest(b, c.Port); judged > 0 && was.SameAs(&c) && c.BytesPerSecond < enoughOfLink*most {
				f.Detail += fmt.Sprintf("port %d moves %s (%s, NUMA node %d), and has moved %s; ", c.Port, gigabits(c.BytesPerSecond), c.Operation, c.Node, gigabits(was.BytesPerSecond))
				missed = max(missed, most)
			}
		}
	}
	reason, why := cause(b, missed)
	return Finding{"bandwidth_low", b.Device, reason, f.Detail + why}, f.Detail != ""
}
