package contract_test

import (
	"regexp"
	"testing"
	"time"

	"rdma_exporter/internal/state"
)

// TestModerationLatency: the evidence tells what moderation does to the latency of events,
// where there are messages to measure.
func TestModerationLatency(t *testing.T) {
	t.Parallel()
	const fixed = "    like: sim_ib0\n    completion_latency: {jitter: 0}\n"
	told := regexp.MustCompile(`the event of a message comes after (\S+) without moderation, and after (\S+) moderated by 4 completions and 16 µs`)
	for _, tt := range []struct {
		name, yaml string
		want       time.Duration // more with moderation; 0: it is not told
	}{
		{"messages", fixed, 16 * time.Microsecond},
		{"no messages", fixed + "    ports: [{number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, gids: []}]\n", 0},
		// What fails then decides nothing.
		{"cannot be measured", fixed + "    faults: [{verb: ibv_modify_cq, errno: EIO, after: 2}]\n", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := judge(t, device(t, tt.yaml), allBut("cq_moderation_notifies")...)
			wantClean(t, r)
			if got := verdicts(r, state.VerdictHolds); len(got) != 1 {
				t.Fatal(evidence(r))
			}
			m := told.FindStringSubmatch(r.Contracts[0].Observed)
			if (m != nil) != (tt.want > 0) {
				t.Fatalf("told: %v\n%s", m, evidence(r))
			}
			if m == nil {
				return
			}
			plain, err1 := time.ParseDuration(m[1])
			moderated, err2 := time.ParseDuration(m[2])
			if err1 != nil || err2 != nil || moderated-plain != tt.want {
				t.Errorf("%s and %s, want %v more with moderation", m[1], m[2], tt.want)
			}
		})
	}
}
