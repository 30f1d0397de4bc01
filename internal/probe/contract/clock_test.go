package contract_test

import (
	"strings"
	"testing"

	"rdma_exporter/internal/state"
)

// TestShortClock: a clock that starts again within microseconds breaks nothing, and the
// evidence says what was not judged.
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
