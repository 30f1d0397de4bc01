package contract_test

import (
	"strings"
	"testing"

	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// TestResizeNotTried: where a refused resizing ends the process, none is tried.
func TestResizeNotTried(t *testing.T) {
	t.Parallel()
	r := checked(t, device(t, "    like: sim_ib0\n    driver: bnxt_re\n    faults: [{verb: ibv_resize_cq, crash: true}]\n"))
	wantClean(t, r)
	for _, c := range r.Contracts {
		if strings.HasPrefix(c.Name, "cq_resize_") && (c.Verdict != state.VerdictSkipped || c.Reason != state.SkipNotSupported || !strings.Contains(c.Observed, "known of the driver")) {
			t.Errorf("%s: %s %s: %s", c.Name, c.Verdict, c.Reason, c.Observed)
		}
	}
}

// TestResizeSeen verifies that the effect of a resize is seen with completions of any kind.
func TestResizeSeen(t *testing.T) {
	t.Parallel()
	const portDown = "    ports:\n      - {number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, gids: []}\n"
	for name, yaml := range map[string]string{
		"messages": "", "flushed sends": portDown,
		"flushed receives": portDown + "    faults: [{verb: ibv_post_send, errno: EINVAL}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, broken := range []string{"cq_resize_at_least_requested", "cq_resize_too_small_refused", "cq_resize_keeps_completions"} {
				r := checked(t, device(t, "    like: sim_ib0\n    violate: ["+broken+"]\n"+yaml))
				if got := verdicts(r, state.VerdictViolated); len(got) != 1 || got[0] != broken {
					t.Errorf("violated: %v, want %s\n%s", got, broken, evidence(r))
				}
			}
		})
	}
}

// TestResizeRefusedForAMoment: a completion queue that the device makes as small once, as
// where the completions had not come yet, proves nothing.
func TestResizeRefusedForAMoment(t *testing.T) {
	t.Parallel()
	r := checked(t, device(t, "    like: sim_ib0\n    completion_faults: [{fault: never_complete, after: 9}]\n"), allBut("cq_resize_too_small_refused")...)
	if got := verdicts(r, state.VerdictViolated); len(got) > 0 {
		t.Errorf("violated: %v\n%s", got, evidence(r))
	}
	for _, c := range r.Calls {
		if c.Verb == string(verbs.ResizeCQ) && c.Errno != "" && !c.Expected {
			t.Errorf("%s was not expected", c.Errno)
		}
	}
}

// TestBatchLost verifies that a batch with lost completions proves nothing about batches.
func TestBatchLost(t *testing.T) {
	t.Parallel()
	r := checked(t, device(t, "    like: sim_ib0\n    completion_faults: [{fault: lose_completion, path: flush, after: 3}]\n"), allBut("cq_ex_batch_keeps_completions")...)
	if got := skipped(r)["cq_ex_batch_keeps_completions"]; got != state.SkipNeeds {
		t.Errorf("skipped: %q\n%s", got, evidence(r))
	}
}
