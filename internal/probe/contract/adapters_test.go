package contract_test

import (
	"testing"

	"rdma_exporter/internal/state"
)

// TestNoErrno verifies that a type refused without an errno is skipped, not violated.
func TestNoErrno(t *testing.T) {
	t.Parallel()
	r := checked(t, device(t, "    like: sim_ib0\n    faults: [{verb: ibv_create_qp, when: {qp_types: [UC]}, errno: no_errno}]\n"))
	if got := skipped(r)["qp_srq_type_restricted"]; got != state.SkipNotSupported || r.Error != "" {
		t.Errorf("skipped: %q, error %q\n%s", got, r.Error, evidence(r))
	}
}

// TestFlushFails verifies that a device may refuse to flush work requests, by an errno that
// providers use for that, if it takes receives. Any other errno is a failure, and then
// nothing can be checked.
func TestFlushFails(t *testing.T) {
	t.Parallel()
	const noSends = "{verb: ibv_post_send, when: {states: [ERR]}, errno: EINVAL}"
	for _, tt := range []struct {
		name, faults string
		want         state.SkipReason
	}{
		{"refused", noSends + ", {verb: ibv_post_recv, when: {states: [INIT]}, ignore: true}", state.SkipNotSupported},
		{"refused, and so is the control", noSends + ", {verb: ibv_post_recv, when: {states: [INIT]}, errno: EINVAL}", state.SkipNeeds},
		{"failed", "{verb: ibv_modify_qp, when: {to: [ERR]}, errno: EIO}", state.SkipNeeds},
		{"lost", "{verb: ibv_post_send, when: {states: [ERR]}, ignore: true}, {verb: ibv_post_recv, when: {states: [INIT]}, ignore: true}", state.SkipNeeds},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := checked(t, device(t, "    like: sim_rxe0\n    completion_vectors: 2\n    faults: ["+tt.faults+"]\n"))
			if got := skipped(r)["notify_solicited_delivers_errors"]; got != tt.want {
				t.Errorf("skipped: %q, want %q\n%s", got, tt.want, evidence(r))
			}
		})
	}
}
