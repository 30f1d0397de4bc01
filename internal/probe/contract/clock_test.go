package contract_test

import (
	"strings"
	"testing"

	"rdma_exporter/internal/state"
)

// TestShortClock verifies that a clock that wraps within microseconds breaks no contract. The
// evidence says what was not checked.
func TestShortClock(t *testing.T) {
	t.Parallel()
	const told = "timestamps were not checked"
	for mask, want := range map[string]bool{"0x3ff": true, "0x7fffffffffffffff": false} {
		r := checked(t, device(t, "    like: sim_ib0\n    extended: {completion_timestamp_mask: "+mask+"}\n"), allBut("cq_ex_at_least_requested")...)
		wantClean(t, r)
		if got := verdicts(r, state.VerdictHolds); len(got) != 1 || strings.Contains(r.Contracts[0].Observed, told) != want {
			t.Errorf("%s: %s", mask, evidence(r))
		}
	}
}
