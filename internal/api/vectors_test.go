package api_test

import (
	"testing"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/state"
)

// TestMeasuredVectors verifies that vectors have the same usual latency as the finding, if they can be
// compared.
func TestMeasuredVectors(t *testing.T) {
	const us = time.Microsecond
	vector := func(n, port int, path state.LatencyPath, p50 time.Duration) state.Latency {
		return state.Latency{Mode: state.ModeAny, Path: path, Port: port, Vector: n, Count: 1, P50: p50, P99: p50}
	}
	loopback := func(medians ...time.Duration) (all []state.Latency) {
		for n, p50 := range medians {
			all = append(all, vector(n, 1, state.PathLoopback, p50))
		}
		return all
	}
	tests := []struct {
		name    string
		vectors []state.Latency
		full    time.Duration
		summary string
	}{
		{"one", loopback(9 * us), 20 * us, "1 of 16 measured"},
		{"alike", loopback(10*us, 11*us, 12*us), 33 * us, "3 of 16 measured, usually 11 µs"},
		{"slow", loopback(10*us, 10*us, 95*us), 95 * us, "3 of 16 measured, usually 10 µs; 1 slow"},
		{"two ways", append(loopback(10*us, 10*us), vector(2, 1, state.PathFlush, 50*us), vector(3, 1, state.PathFlush, 50*us)), 150 * us, "4 of 16 measured"},
		{"nothing went well", []state.Latency{{Mode: state.ModeAny, Path: state.PathFlush, Vector: 0, Missed: 1}}, 20 * us, "1 of 16 measured; 1 with errors"},
	}
	for _, tt := range tests {
		d := apitest.Device("mlx5_0", 16)
		d.Full = &state.Run{Started: apitest.Now(), Probes: []state.Probe{{Name: "notification", Latencies: tt.vectors}}}
		s := api.New(apitest.Evaluated(&state.Snapshot{Devices: []state.DeviceState{d}}), api.Options{Now: apitest.Now()})
		if v := s.Devices[0].MeasuredVectors(); v.Summary != tt.summary || v.Full != tt.full {
			t.Errorf("%s: %q and %v, want %q and %v", tt.name, v.Summary, v.Full, tt.summary, tt.full)
		}
	}
}
