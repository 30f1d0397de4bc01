package state_test

import (
	"testing"

	"rdma_exporter/internal/state"
)

// TestProbesKeepFull verifies that what only a full run can find stands over later short
// runs, and that a probe succeeds only if it did in both.
func TestProbesKeepFull(t *testing.T) {
	known := state.KnownShortfall{Subject: state.Subject{Object: "qp", QPType: "ud"}, Contract: "qp_at_least_requested"}
	full := &state.Run{Depth: state.DepthFull, Outcome: state.OutcomeOK, Probes: []state.Probe{
		{Name: "qp", Status: state.StatusOK, Known: []state.KnownShortfall{known}},
		{Name: "srq", Status: state.StatusFailed, Failures: []state.Failure{{Verb: "ibv_create_srq", Errno: "ENOMEM"}}},
	}}
	short := &state.Run{Depth: state.DepthShort, Outcome: state.OutcomeOK, Probes: []state.Probe{
		{Name: "qp", Status: state.StatusOK},
		{Name: "srq", Status: state.StatusOK},
	}}
	for run, last := range []*state.Run{full, short, short} {
		d := state.DeviceState{Last: last, Full: full}
		results := d.Probes()
		if len(results) != 2 {
			t.Fatalf("run %d: %d probes, want 2", run, len(results))
		}
		if got := results[0].Detail.Known; len(got) != 1 || got[0].Contract != known.Contract {
			t.Errorf("run %d: known shortfalls %v, want that of the full run", run, got)
		}
		if results[1].Status != state.StatusFailed || len(results[1].Failures()) != 1 {
			t.Errorf("run %d: srq is %s with failures %v, want the failure of the full run", run, results[1].Status, results[1].Failures())
		}
	}
}
