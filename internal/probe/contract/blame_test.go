package contract_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"

	"rdma_exporter/internal/probe/contract"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// one checks one contract of a device with these keys. It looks for completions only if they
// are needed.
func one(t *testing.T, name, keys string, completions bool) state.Contract {
	t.Helper()
	p := running.Must(simulated.ParseProfile("profile", []byte("devices: [{name: sim0, "+keys+"}]")))(t)
	var r state.Run
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		err := contract.Run(t.Context(), contract.Options{
			Options: session.Options{
				Provider: func(tr verbs.Tracer) verbs.Provider { return simulated.New(p, tr) },
				Device:   "sim0", Out: wire.NewWriter(&out),
			},
			Skip: allBut(name), WithoutCompletions: !completions,
		})
		if err != nil {
			t.Fatal(err)
		}
		running.Check(t, wire.Read(&out, &r))
	})
	if len(r.Contracts) != 1 || len(r.Undestroyed) > 0 {
		t.Fatalf("checked: %s; undestroyed %+v", evidence(r), r.Undestroyed)
	}
	return r.Contracts[0]
}

// TestRefusedBesideControl verifies that a refusal with any errno counts if and only if the
// control succeeds.
func TestRefusedBesideControl(t *testing.T) {
	t.Parallel()
	const vector = "cq_comp_vector_rejected"
	for _, tt := range []struct {
		name, contract, keys string
		verdict              state.Verdict
		observed             string
	}{
		{"for a moment", vector, "faults: [{verb: ibv_create_cq, errno: EIO, times: 1}]", state.VerdictHolds, "comp_vector -1: EINVAL"},
		{"for a moment, and accepted then", vector, "violate: [" + vector + "], faults: [{verb: ibv_create_cq, errno: EIO, times: 1}]", state.VerdictViolated, "comp_vector -1: it succeeded"},
		{"for good", vector, "faults: [{verb: ibv_create_cq, errno: EIO}]", state.VerdictSkipped, "comp_vector -1, and then a plain one"},
		{"for good, as if it were for the vector", vector, "faults: [{verb: ibv_create_cq, errno: EINVAL}]", state.VerdictSkipped, "comp_vector -1, and then a plain one"},
		{
			"for good, as if it were in use", "channel_destroy_busy", "faults: [{verb: ibv_destroy_comp_channel, errno: EBUSY, times: 2}]",
			state.VerdictSkipped, "ibv_destroy_comp_channel, and then a plain one",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := one(t, tt.contract, "like: sim_ib0, "+tt.keys, false)
			if c.Verdict != tt.verdict || !strings.Contains(c.Observed, tt.observed) {
				t.Errorf("%s\nobserved: %s", c.Verdict, c.Observed)
			}
		})
	}
}

// TestEventAfterRefusal verifies that events must still come after a refused destruction of a
// CQ, if any came before.
func TestEventAfterRefusal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, keys string
		verdict    state.Verdict
		observed   string
	}{
		{"comes", "", state.VerdictHolds, "afterwards ibv_req_notify_cq works; afterwards a receive in the error state completed with wr_flush_err; afterwards, armed: an event came"},
		{"does not come", "completion_faults: [{fault: drop_event, after: 1}]", state.VerdictViolated, "afterwards, armed: no event within"},
		{"never came", "completion_faults: [{fault: drop_event}]", state.VerdictHolds, "without a channel, for no event comes at any time: receives of a QP that goes into the error state: no event within"},
		{"cannot be armed", "faults: [{verb: ibv_req_notify_cq, errno: EINVAL, after: 1}]", state.VerdictViolated, "afterwards ibv_req_notify_cq: EINVAL"},
		{"can never be armed", "faults: [{verb: ibv_req_notify_cq, errno: EINVAL}]", state.VerdictHolds, "without a channel, for no event comes at any time: arm a CQ"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := one(t, "cq_destroy_busy", "like: sim_ib0, "+tt.keys, true)
			if c.Verdict != tt.verdict || !strings.Contains(c.Observed, tt.observed) {
				t.Errorf("%s\nobserved: %s", c.Verdict, c.Observed)
			}
			// No man page says what must work after a refusal.
			if c.Verdict == state.VerdictViolated && c.Severity != state.SeverityInfo {
				t.Errorf("severity %s", c.Severity)
			}
		})
	}
}
