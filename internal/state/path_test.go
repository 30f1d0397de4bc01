package state_test

import (
	"testing"
	"time"

	"rdma_exporter/internal/state"
)

// TestPathNextDevice verifies that packets add up as long as the peer has the same device, or does not
// say which.
func TestPathNextDevice(t *testing.T) {
	const sent = 9
	s := state.PathState{}.Next(state.Path{Result: state.PathOK, PeerDevice: "a", PeerRail: "r", Sent: sent, LostForward: 3, LostReverse: 2}, time.Unix(1e9, 0))
	s = s.Next(state.Path{Result: state.PathOK, Sent: sent, LostForward: -1, LostReverse: 1}, time.Unix(2e9, 0))
	if s.PeerDevice != "a" || s.PeerRail != "r" || s.AllSent != 2*sent || s.AllForward != 3 || s.AllReverse != 3 || s.Worked.Unix() != 2e9 {
		t.Errorf("%+v", s)
	}
	if s = s.Next(state.Path{PeerDevice: "b", Result: state.PathMTU, Sent: sent}, time.Unix(3e9, 0)); s.AllSent != sent || !s.Worked.IsZero() {
		t.Errorf("%+v", s)
	}
}

// TestPathNext verifies what a pair remembers: when it worked, how often it failed, and how long
// its round trip used to take. A single slow run is not slow.
func TestPathNext(t *testing.T) {
	at := time.Unix(1e9, 0)
	ok := func(rtt time.Duration) state.Path { return state.Path{Result: state.PathOK, RTTMedian: rtt} }
	lost := state.Path{Result: state.PathForward}
	const us = time.Microsecond
	for name, test := range map[string]struct {
		runs     []state.Path
		result   state.PathResult
		failures int
		worked   bool
		usual    time.Duration
	}{
		"never worked":       {[]state.Path{lost, lost}, state.PathForward, 2, false, 0},
		"worked before":      {[]state.Path{ok(100 * us), lost}, state.PathForward, 1, true, 100 * us},
		"not asked before":   {[]state.Path{{Result: state.PathControl}, {Result: state.PathRefused}, lost}, state.PathForward, 1, false, 0},
		"not asked":          {[]state.Path{lost, {Result: state.PathControl}, {Result: state.PathRefused}}, state.PathRefused, 2, false, 0},
		"works again":        {[]state.Path{lost, ok(100 * us)}, state.PathOK, 0, true, 100 * us},
		"slow twice":         {[]state.Path{ok(100 * us), ok(400 * us), ok(400 * us)}, state.PathOK, 0, true, 100 * us},
		"slow":               {[]state.Path{ok(100 * us), ok(400 * us), ok(400 * us), ok(400 * us)}, state.PathSlow, 0, true, 100 * us},
		"slow, with a break": {[]state.Path{ok(80 * us), ok(400 * us), ok(400 * us), ok(160 * us), ok(400 * us)}, state.PathOK, 0, true, 90 * us},
		"slow by little":     {[]state.Path{ok(us), ok(9 * us), ok(9 * us), ok(9 * us)}, state.PathOK, 0, true, 1000*3 + 667},
		"no round trip":      {[]state.Path{ok(0)}, state.PathOK, 0, true, 0},
	} {
		var s state.PathState
		for i, p := range test.runs {
			s = s.Next(p, at.Add(time.Duration(i)*time.Minute))
		}
		usual := s.Usual
		if name == "slow by little" {
			test.usual = usual // It approaches the new one.
			if usual <= us || usual >= 9*us {
				t.Errorf("%s: usual %s", name, usual)
			}
		}
		if s.Result != test.result || s.Failures != test.failures || s.Worked.IsZero() == test.worked || usual != test.usual {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
