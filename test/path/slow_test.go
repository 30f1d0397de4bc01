//go:build vm

package path

import (
	"testing"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/test/running"
)

// TestSlow verifies that a path is slow in the third run in a row in which its packets are delayed.
// A run sends three packets in each of two flows.
func TestSlow(t *testing.T) {
	newBed(t)
	target := respond(t, "").Listening(t)
	var s state.PathState
	next := func(want state.PathResult) func() bool {
		return func() bool { // A run of this machine may take too long, and the responder have no packets left.
			found, _ := ask(t, target)
			s = s.Next(found.Path, found.At)
			t.Logf("%s, late %d times: round trip %s, usually %s; %s", s.Result, s.Late, s.RTTMedian, s.Usual, s.Detail)
			return s.Result == want
		}
	}
	running.Eventually(t, "the path works", next(state.PathOK))
	usual := s.Usual
	running.Command(t, "modprobe", "sch_netem")
	running.Command(t, "tc", "qdisc", "add", "dev", "pa", "root", "netem", "delay", "700ms")
	running.Eventually(t, "the path is slow", next(state.PathSlow))
	if s.Sent != 6 || s.Flows != 2 || s.Suspect != state.SuspectPath || s.Failed() || s.Late != 3 || s.Usual != usual || s.RTTMedian < 700*time.Millisecond {
		t.Errorf("%+v", s)
	}
}
