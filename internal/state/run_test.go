package state

import (
	"reflect"
	"testing"
	"time"
)

// TestCompact verifies that a compact run has bins instead of samples, that the run itself
// does not change, and that a compact run stays as it is.
func TestCompact(t *testing.T) {
	t.Parallel()
	run, want := measuredRun(), measuredRun()
	got := run.Compact()
	if !reflect.DeepEqual(run, want) {
		t.Errorf("the run itself has become %+v", run)
	}
	want.Calls, want.Inventory, want.Hardware = nil, nil, nil
	l := &want.Probes[1].Latencies[0]
	l.Bins, l.Samples, l.Arms = Distribution(l.Samples), nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if again := got.Compact(); !reflect.DeepEqual(again, want) {
		t.Errorf("a compact run becomes %+v", again)
	}
}

func measuredRun() *Run {
	return &Run{
		Kind: KindProbe, Device: "rxe0", Outcome: OutcomeFailed, Info: &Device{Transport: "InfiniBand"},
		Calls: []Call{{Verb: "ibv_open_device", Duration: 1234}},
		Probes: []Probe{
			{Name: "cq", Status: StatusOK, CQs: []CQSize{{"small", 16, 31}}},
			{Name: "notification", Latencies: []Latency{
				{Port: 1, Path: PathLoopback, Mode: ModeAny, Count: 2, Samples: []time.Duration{4000, 3000}, Arms: []time.Duration{200, 300}},
				{Port: 1, Path: PathFlush, Mode: ModeSolicited, Missed: 1},
			}},
		},
		Inventory: &Inventory{TransientErrors: 1},
		Hardware:  []Hardware{{Device: "rxe0"}},
	}
}
