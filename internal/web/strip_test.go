package web

import (
	"math"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/state"
)

// TestVectorsView makes sure that the strip tells what is usual as the finding does, and
// what it leaves out.
func TestVectorsView(t *testing.T) {
	const us = 1e-6
	vector := func(n, port int, path state.LatencyPath, p50 time.Duration) state.VectorLatency {
		return state.VectorLatency{Latency: state.Latency{Path: path, Port: port, Vector: n, Count: 1, P50: p50, P99: p50}}
	}
	loopback := func(medians ...time.Duration) (all []state.VectorLatency) {
		for n, p50 := range medians {
			all = append(all, vector(n, 1, state.PathLoopback, p50))
		}
		return all
	}
	const micro = time.Microsecond
	tests := []struct {
		name        string
		vectors     []state.VectorLatency
		of          int
		usual, full float64
		undrawn     string
	}{
		{"one", loopback(9 * micro), 1, 0, 9 * us, ""},
		{"alike", loopback(10*micro, 11*micro, 12*micro), 256, 11 * us, 33 * us, ""},
		{"quick", loopback(micro, micro), 257, 1 * us, 21 * us, "Vector 256 is not drawn."},
		{"slow", loopback(10*micro, 10*micro, 95*micro), 1024, 10 * us, 95 * us, "Vectors 256 to 1023 are not drawn."},
		{
			"two ways", append(loopback(10*micro, 10*micro), vector(2, 1, state.PathFlush, 50*micro), vector(3, 1, state.PathFlush, 50*micro)),
			4, 0, 150 * us, "",
		},
		{"nothing went well", []state.VectorLatency{{Latency: state.Latency{Path: state.PathFlush, Vector: 0, Missed: 1}}}, 1, 0, 0, ""},
		{"for ever", loopback(math.MaxInt64, math.MaxInt64), 2, math.MaxInt64 / 1e9, math.MaxInt64 / 1e9, ""},
	}
	for _, tt := range tests {
		d := apitest.Device("mlx5_0", tt.of)
		d.Notification.Vectors = tt.vectors
		s := api.Of(apitest.Judged(&state.Snapshot{Devices: []state.DeviceState{d}}), api.Options{Now: apitest.Now()})
		v := vectorsOf(&s.Devices[0])
		near := func(a, b float64) bool { return math.Abs(a-b) <= 2e-9*max(1, b) }
		if !near(v.Usual, tt.usual) || !near(v.Full, tt.full) || v.Undrawn() != tt.undrawn {
			t.Errorf("%s: usual %g, full %g, %q, want %g, %g, %q", tt.name, v.Usual, v.Full, v.Undrawn(), tt.usual, tt.full, tt.undrawn)
		}
		if said := strings.Contains(v.Summary(), "usually"); said != (tt.usual > 0) {
			t.Errorf("%s: %s", tt.name, v.Summary())
		}
	}
}

func TestLookOf(t *testing.T) {
	for class, words := range map[string][]string{
		"ok":       {"ok", "holds", "active", "active_defer"},
		"info":     {"info"},
		"unknown":  {"unknown", "skipped"},
		"warning":  {"warning", "down", "violated", "anything"},
		"critical": {"critical", "failed", "timeout", "crashed"},
	} {
		for _, word := range words {
			if got := lookOf(word); got.class != class || got.symbol == "" {
				t.Errorf("%s: got %+v, want %s", word, got, class)
			}
		}
	}
}
