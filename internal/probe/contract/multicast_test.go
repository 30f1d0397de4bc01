package contract_test

import (
	"maps"
	"testing"

	"rdma_exporter/internal/state"
)

// TestMulticast: messages to a group are sent only where they stay within the host, and
// that none arrives says nothing.
func TestMulticast(t *testing.T) {
	t.Parallel()
	both := func(verdict state.Verdict, reason state.SkipReason) map[string]state.SkipReason {
		if verdict == state.VerdictHolds {
			return map[string]state.SkipReason{}
		}
		return map[string]state.SkipReason{"multicast_delivers": reason, "multicast_single_copy": reason}
	}
	const v4 = `    ports: [{number: 1, state: active, link_layer: Ethernet, active_mtu: 1024, gids: [{index: 0, gid: "::ffff:192.0.2.1", type: RoCE v2}]}]` + "\n"
	for _, tt := range []struct {
		name, yaml string
		want       map[string]state.SkipReason
	}{
		{"Soft-RoCE", "    like: sim_rxe0\n", both(state.VerdictHolds, "")},
		{"an adapter", "    like: sim_rxe0\n    driver: mlx5\n", both(state.VerdictSkipped, state.SkipNotSupported)},
		{"no driver that is known", "    like: sim_ib0\n", both(state.VerdictSkipped, state.SkipNotSupported)},
		{"no multicast", whole + "    limits: {max_mcast_grp: 0}\n", both(state.VerdictSkipped, state.SkipNotSupported)},
		{"no UD", whole + "    qp_types: [RC]\n", both(state.VerdictSkipped, state.SkipNotSupported)},
		{"no IPv6", "    like: sim_rxe0\n" + v4, both(state.VerdictSkipped, state.SkipNeeds)},
		{"nothing arrives", "    like: sim_rxe0\n    completion_faults: [{fault: lose_completion, path: loopback, after: 1}]\n", both(state.VerdictSkipped, state.SkipNeeds)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := judge(t, device(t, tt.yaml), allBut("multicast_delivers", "multicast_single_copy")...)
			wantClean(t, r)
			if got := verdicts(r, state.VerdictViolated); len(got) > 0 {
				t.Errorf("violated: %v\n%s", got, evidence(r))
			}
			if got := skipped(r); !maps.Equal(got, tt.want) {
				t.Errorf("skipped: %v, want %v\n%s", got, tt.want, evidence(r))
			}
		})
	}
}
