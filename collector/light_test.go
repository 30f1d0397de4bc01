package collector_test

import (
	"testing"

	"rdma_exporter/collector"
	"rdma_exporter/internal/state"
)

// TestLight: where runs may be light, a metric says which are; elsewhere there are no
// series for that.
func TestLight(t *testing.T) {
	t.Parallel()
	light := &state.Reduced{Reason: state.ReducedBusy, Detail: "somebody"}
	snapshot := &state.Snapshot{Devices: []state.DeviceState{
		{Name: "busy", Present: true, Last: &state.Run{Reduced: light}},
		{Name: "idle", Present: true, Last: new(state.Run)},
		{Name: "new", Present: true},
		{Name: "gone", Last: &state.Run{Reduced: light}},
	}}
	for _, may := range []bool{true, false} {
		c := collector.New(collector.Options{Host: judged(func() *state.Snapshot { return snapshot }, nil), Light: may})
		got := values(t, c)
		for device, want := range map[string]string{"busy": "1", "idle": "0", "new": "", "gone": ""} {
			if !may {
				want = ""
			}
			if series := `rdma_probe_light{device="` + device + `"}`; got[series] != want {
				t.Errorf("runs may be light %t: %s is %q, want %q", may, series, got[series], want)
			}
		}
	}
}

// TestLightContract: a contract run that is put off is no run of it.
func TestLightContract(t *testing.T) {
	t.Parallel()
	c := collector.New(collector.Options{})
	run := &state.Run{
		Kind: state.KindContract, Device: "rxe0", Outcome: state.OutcomeOK, Reduced: &state.Reduced{Reason: state.ReducedBusy, Detail: "x"},
	}
	const runs = `rdma_contract_runs_total{device="rxe0",outcome="ok"}`
	c.Observe(run)
	if got := values(t, c)[runs]; got != "0" {
		t.Errorf("%s is %q after one that was put off", runs, got)
	}
	whole := *run
	whole.Reduced = nil
	c.Observe(&whole)
	c.Observe(run)
	if got := values(t, c)[runs]; got != "1" {
		t.Errorf("%s is %q after one contract run", runs, got)
	}
}
