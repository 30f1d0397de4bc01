package health_test

import (
	"slices"
	"testing"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// Devices are in the order of the harm, and of those of equal harm in that of the
// severity. A run that failed for no reason that is told is a degradation.
func TestRank(t *testing.T) {
	found := map[string][]health.Finding{
		"a": {{Kind: health.FindingLeaked, Severity: health.SeverityWarning, Harm: health.HarmDegradation}},
		"b": {{Kind: health.FindingLeaked, Severity: health.SeverityWarning, Harm: health.HarmFailure}},
		"c": {{Kind: health.FindingLeaked, Severity: health.SeverityCritical, Harm: health.HarmFailure}},
		"d": {{Kind: health.FindingLeaked, Severity: health.SeverityWarning, Harm: health.HarmOutage}},
	}
	s := &state.Snapshot{Ready: true}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		d := changed(func(d *state.DeviceState) {
			d.Name = name
			if name == "e" {
				d.Last.Outcome = state.OutcomeFailed
			}
		})
		s.Devices = append(s.Devices, d)
	}
	var got []string
	for _, d := range finding(found).Evaluate(s).Devices {
		got = append(got, d.State.Name)
	}
	if want := []string{"d", "c", "b", "e", "a"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
