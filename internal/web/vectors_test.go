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

// TestVectorsView verifies that the strip has the same usual latency as the finding, and says
// what it leaves out.
func TestVectorsView(t *testing.T) {
	const us, micro = time.Microsecond, time.Microsecond
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
		name        string
		vectors     []state.Latency
		of          int
		usual, full time.Duration
		undrawn     string
	}{
		{"one", loopback(9 * micro), 1, 0, 9 * us, ""},
		{"alike", loopback(10*micro, 11*micro, 12*micro), 256, 11 * us, 33 * us, ""},
		{"quick", loopback(micro, micro), 257, 1 * us, 21 * us, "Only the first 256 vectors are drawn."},
		{"slow", loopback(10*micro, 10*micro, 95*micro), 1024, 10 * us, 95 * us, "Only the first 256 vectors are drawn."},
		{
			"two ways", append(loopback(10*micro, 10*micro), vector(2, 1, state.PathFlush, 50*micro), vector(3, 1, state.PathFlush, 50*micro)),
			4, 0, 150 * us, "",
		},
		{"nothing went well", []state.Latency{{Mode: state.ModeAny, Path: state.PathFlush, Vector: 0, Missed: 1}}, 1, 0, 0, ""},
		{"for ever", loopback(math.MaxInt64, math.MaxInt64), 2, math.MaxInt64, math.MaxInt64, ""},
	}
	for _, tt := range tests {
		d := apitest.Device("mlx5_0", tt.of)
		d.Full = &state.Run{Started: apitest.Now(), Probes: []state.Probe{{Name: "notification", Latencies: tt.vectors}}}
		s := api.New(apitest.Evaluated(&state.Snapshot{Devices: []state.DeviceState{d}}), api.Options{Now: apitest.Now()})
		v := vectorsOf(&s.Devices[0])
		if v.Usual != tt.usual || v.Full != tt.full || v.Undrawn() != tt.undrawn {
			t.Errorf("%s: usual %v, full %v, %q, want %v, %v, %q", tt.name, v.Usual, v.Full, v.Undrawn(), tt.usual, tt.full, tt.undrawn)
		}
		if said := strings.Contains(v.Summary(), "usually"); said != (tt.usual > 0) {
			t.Errorf("%s: %s", tt.name, v.Summary())
		}
	}
}

func TestBadgeStyleOf(t *testing.T) {
	for class, words := range map[string][]string{
		"ok":       {"ok", "holds", "active", "active_defer"},
		"info":     {"info"},
		"unknown":  {"unknown", "skipped"},
		"warning":  {"warning", "down", "violated", "anything"},
		"critical": {"critical", "failed", "timeout", "crashed"},
	} {
		for _, word := range words {
			if got := badgeStyleOf(word); got.class != class || got.symbol == "" {
				t.Errorf("%s: got %+v, want %s", word, got, class)
			}
		}
	}
}
