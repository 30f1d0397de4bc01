package api_test

import (
	"slices"
	"testing"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// Trouble names only devices and findings that the status has.
func TestTroublePlaces(t *testing.T) {
	d := apitest.Device("mlx5_0", 4)
	h := apitest.Host{
		Snapshot: &state.Snapshot{Devices: []state.DeviceState{d}},
		Found:    map[string][]health.Finding{d.Name: {{Severity: health.SeverityInfo, Message: "x"}}},
	}.Judged()
	places := []health.Place{{}, {Finding: 1}, {Device: 1}}
	for device, want := range map[int]string{-1: "", 0: "mlx5_0", 1: ""} {
		h.Troubles = []health.Trouble{{Severity: health.SeverityInfo, For: device, Places: places}}
		got := api.Of(h, options()).Troubles
		if len(got) != 1 || got[0].For != want || !slices.Equal(got[0].Places, []api.Place{{}}) {
			t.Errorf("for device %d: got %+v", device, got)
		}
	}
}

// A time is told from year 1, but for its first moment, to year 9999.
func TestMoments(t *testing.T) {
	for at, told := range map[time.Time]bool{
		time.Date(0, time.December, 31, 23, 59, 59, 0, time.UTC):             false,
		time.Date(1, time.March, 1, 0, 0, 0, 0, time.UTC):                    true,
		time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC):             true,
		time.Date(10000, time.January, 1, 0, 0, 0, 0, time.UTC):              false,
		time.Date(1, time.January, 1, 0, 30, 0, 0, time.FixedZone("", 3600)): false,
	} {
		o := options()
		o.Now = at
		if got := api.Of(apitest.Judged(nil), o).Generated; got.IsZero() == told || told && !got.Equal(at) {
			t.Errorf("%v: got %v", at, got)
		}
	}
}

// What is not known of the driver comes before what is, in whatever order it was judged.
func TestKnownLast(t *testing.T) {
	verdict := func(name string, known bool) state.Contract {
		return state.Contract{Name: name, Verdict: state.VerdictViolated, Severity: state.SeverityInfo, Known: known}
	}
	for _, verdicts := range [][]state.Contract{
		{verdict("a", false), verdict("b", true)},
		{verdict("b", true), verdict("a", false)},
	} {
		got := of(changed(func(d *state.DeviceState) { d.Contracts = &state.Contracts{Verdicts: verdicts} })).Contracts.Verdicts
		if len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" {
			t.Errorf("got %+v", got)
		}
	}
}

// Bins without samples are left out. The quantile of several measurements that is in a bin
// from nothing is the end of that bin.
func TestDistribution(t *testing.T) {
	measured := func(vector int) state.Latency {
		return state.Latency{Port: 1, Path: state.PathFlush, Mode: state.ModeAny, Vector: vector, Count: 2, Bins: []state.Bin{
			{From: 0, To: 1, Samples: 2}, {From: 100, To: 400},
		}}
	}
	got := of(changed(func(d *state.DeviceState) {
		d.Last.Probes = []state.Probe{{Latencies: []state.Latency{measured(0), measured(1)}}}
	})).Latencies
	if len(got) != 1 || !slices.Equal(got[0].Distribution, []api.Bin{{To: 1e-9, Samples: 4}}) || got[0].P50 != 1e-9 {
		t.Errorf("got %+v", got)
	}
}
