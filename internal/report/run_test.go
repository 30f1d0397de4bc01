package report

import (
	"reflect"
	"testing"
)

// A kept run is the run without calls, and with bins in place of samples. It takes
// nothing from the run, and of one that was kept as much again is kept.
func TestKept(t *testing.T) {
	t.Parallel()
	run := fullRun()
	run.Kind, run.Device, run.Outcome = KindProbe, "rxe0", OutcomeFailed
	before := *run
	got := run.Kept()

	want := fullRun()
	want.Kind, want.Device, want.Outcome = KindProbe, "rxe0", OutcomeFailed
	if !reflect.DeepEqual(*run, before) || !reflect.DeepEqual(run, want) {
		t.Errorf("the run itself has become %s", asJSON(t, run))
	}
	want.Calls = nil
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
		t.Errorf("got %s\nwant %s", asJSON(t, got), asJSON(t, want))
	}
	if again := got.Kept(); !reflect.DeepEqual(again, want) {
		t.Errorf("of a kept run %s is kept", asJSON(t, again))
	}
	if kept := (&Run{}).Kept(); !reflect.DeepEqual(kept, &Run{}) {
		t.Errorf("of an empty run %+v is kept", kept)
	}
}
