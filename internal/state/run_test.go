package state

import (
	"reflect"
	"testing"
	"time"
)

// A kept run is the run without calls, and with bins in place of samples. It takes
// nothing from the run, and of one that was kept as much again is kept.
func TestKept(t *testing.T) {
	t.Parallel()
	run := measuredRun()
	run.Kind, run.Device, run.Outcome = KindProbe, "rxe0", OutcomeFailed
	before := *run
	got := run.Compact()

	want := measuredRun()
	want.Kind, want.Device, want.Outcome = KindProbe, "rxe0", OutcomeFailed
	if !reflect.DeepEqual(*run, before) || !reflect.DeepEqual(run, want) {
		t.Errorf("the run itself has become %+v", run)
	}
	want.Calls, want.Inventory, want.Hardware = nil, nil, nil
	measurements := 0
	for _, p := range want.Probes {
		for i := range p.Latencies {
			l := &p.Latencies[i]
			if l.Samples != nil {
				l.Bins = Distribution(l.Samples)
				measurements++
			}
			l.Samples, l.Arms = nil, nil
		}
	}
	if !reflect.DeepEqual(got, want) || measurements == 0 {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if again := got.Compact(); !reflect.DeepEqual(again, want) {
		t.Errorf("of a kept run %+v is kept", again)
	}
	if kept := (&Run{}).Compact(); !reflect.DeepEqual(kept, &Run{}) {
		t.Errorf("of an empty run %+v is kept", kept)
	}
}

func measuredRun() *Run {
	return &Run{
		Info:  &Device{Transport: "InfiniBand"},
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
