package state_test

import (
	"testing"

	"rdma_exporter/internal/state"
)

// A turn has all sizes of one kind of object, and of the others the small one.
func TestTurnCreated(t *testing.T) {
	t.Parallel()
	turn := state.Turn{Object: "qp_rc"}
	for _, tc := range []struct {
		object, profile string
		want            bool
	}{
		{"qp_rc", "small", true},
		{"qp_rc", "medium", true},
		{"qp_rc", "large", true},
		{"cq", "small", true},
		{"cq", "medium", false},
		{"cq", "large", false},
		{"comp_channel", "", true},
		{"mr", "4KiB", true},
		{"mr", "2MiB", false},
	} {
		if got := turn.Created(tc.object, tc.profile); got != tc.want {
			t.Errorf("%s %q: got %t, want %t", tc.object, tc.profile, got, tc.want)
		}
	}
}

// A turn measures the way of one port to itself on one vector, which stands for the other
// vectors, except where these are told apart; without a port it is the flush that tells.
func TestTurnMeasured(t *testing.T) {
	t.Parallel()
	onPort, onNone := state.Turn{Object: "cq", Port: 2, Vector: 3}, state.Turn{Object: "cq", Vector: 3}
	for _, tc := range []struct {
		name    string
		turn    state.Turn
		latency state.Latency
		want    bool
	}{
		{"its port and vector", onPort, state.Latency{Path: state.PathLoopback, Port: 2, Vector: 3, Mode: state.ModeAny}, true},
		{"another vector", onPort, state.Latency{Path: state.PathLoopback, Port: 2, Vector: 4, Mode: state.ModeAny}, false},
		{"another vector, solicited", onPort, state.Latency{Path: state.PathLoopback, Port: 2, Vector: 4, Mode: state.ModeSolicited}, true},
		{"another vector, polled", onPort, state.Latency{Path: state.PathLoopback, Port: 2, Vector: 4, Mode: state.ModePoll}, true},
		{"another port", onPort, state.Latency{Path: state.PathLoopback, Port: 1, Vector: 3, Mode: state.ModeAny}, false},
		{"another port, polled", onPort, state.Latency{Path: state.PathLoopback, Port: 1, Vector: 3, Mode: state.ModePoll}, false},
		{"flush beside a port", onPort, state.Latency{Path: state.PathFlush, Port: 1, Vector: 4, Mode: state.ModeAny}, true},
		{"flush alone", onNone, state.Latency{Path: state.PathFlush, Port: 1, Vector: 3, Mode: state.ModeAny}, true},
		{"flush alone, another vector", onNone, state.Latency{Path: state.PathFlush, Port: 1, Vector: 4, Mode: state.ModeAny}, false},
		{"loopback without a port", onNone, state.Latency{Path: state.PathLoopback, Port: 1, Vector: 3, Mode: state.ModeAny}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := tc.turn.Measured(&tc.latency); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// What changed while it was looked at was looked at.
func TestLooked(t *testing.T) {
	t.Parallel()
	i := state.Inventory{Incomplete: []state.Incomplete{
		{Type: "mr", Reason: state.IncompleteMaxObjects}, {Type: "qp", Reason: state.IncompleteInterrupted},
	}}
	for typ, want := range map[string]bool{"mr": false, "qp": true, "cq": true} {
		if got := i.Looked(typ); got != want {
			t.Errorf("%s: got %t, want %t", typ, got, want)
		}
	}
}
