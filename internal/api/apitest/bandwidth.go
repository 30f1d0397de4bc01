package apitest

import (
	"time"

	"rdma_exporter/internal/state"
)

// Bandwidth returns what was measured of a device before it was in use.
func Bandwidth() *state.BandwidthState {
	run := &state.Run{Outcome: state.OutcomeOK, Started: Now().Add(-50 * time.Hour), Bandwidth: &state.Bandwidth{Hardware: new(state.Hardware), Skipped: "port 2 is down"}}
	for i, rate := range []float64{24.6e9, 24.1e9, 18.3e9} {
		run.Bandwidth.Cells = append(run.Bandwidth.Cells, state.BandwidthCell{
			Port: 1, Node: i / 2, Operation: []string{"write", "read"}[i%2], Size: state.LargeMessage, QPs: 1, BytesPerSecond: rate,
		})
	}
	s := state.BandwidthState{}.Next(run)
	s = s.Next(&state.Run{
		Outcome: state.OutcomeOK, Started: Now().Add(-26 * time.Hour), Reduced: &state.Reduced{Detail: "trainer (process 4711) holds queue pairs"},
	})
	return &s
}
