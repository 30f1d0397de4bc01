package report

import (
	"reflect"
	"testing"
)

// A kept run is the run without calls and samples, and takes nothing from it.
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
			p.Latencies[i].Samples, p.Latencies[i].Arms = nil, nil
			measurements++
		}
	}
	if !reflect.DeepEqual(got, want) || measurements == 0 {
		t.Errorf("got %s\nwant %s", asJSON(t, got), asJSON(t, want))
	}
	if kept := (&Run{}).Kept(); !reflect.DeepEqual(kept, &Run{}) {
		t.Errorf("of an empty run %+v is kept", kept)
	}
}
