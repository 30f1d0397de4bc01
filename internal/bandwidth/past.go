package bandwidth

import (
	"fmt"

	"rdma_exporter/internal/state"
)

// EvaluatePast returns a finding bandwidth_low if a port moves far less than it once did, in one direction
// with one NUMA node. The rate of the port is enough, even if it was faster.
func EvaluatePast(b *state.Bandwidth, large []state.BandwidthCell) (f Finding, found bool) {
	missed := 0.0
	for _, c := range large {
		most := c.Best
		for _, p := range b.Hardware.Ports {
			if p.Number == c.Port && p.Rate > 0 {
				most = min(most, p.Rate/8)
			}
		}
		if _, _, judged := fastest(b, c.Port); judged > 0 && c.BytesPerSecond < enoughOfLink*most {
			f.Detail += fmt.Sprintf("port %d moves %s (%s, NUMA node %d), and has moved %s; ", c.Port, gigabits(c.BytesPerSecond), c.Operation, c.Node, gigabits(c.Best))
			missed = max(missed, most)
		}
	}
	reason, why := cause(b, missed)
	return Finding{"bandwidth_low", b.Device, reason, f.Detail + why}, f.Detail != ""
}
