package contract_test

import (
	"maps"
	"testing"

	"rdma_exporter/internal/state"
	"rdma_exporter/verbs/simulated"
)

// TestAdapters judges adapters on a port that is down, and one that sets no errno: what
// is not offered is skipped, and what is refused in one state is looked at in another.
// What is said of each of them with an active port is in test/adapters.
func TestAdapters(t *testing.T) {
	t.Parallel()
	reasons := func(lists ...map[string]state.SkipReason) map[string]state.SkipReason {
		all := make(map[string]state.SkipReason)
		for _, list := range lists {
			maps.Copy(all, list)
		}
		return all
	}
	because := func(reason state.SkipReason, names ...string) map[string]state.SkipReason {
		m := make(map[string]state.SkipReason)
		for _, name := range names {
			m[name] = reason
		}
		return m
	}
	down := func(name string) *simulated.Profile {
		p, err := simulated.LoadProfile("../../../verbs/simulated/profiles/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		p.Devices[0].Ports[0].State, p.Devices[0].Ports[0].GIDs = "down", nil
		return p
	}
	for _, tt := range []struct {
		name    string
		profile *simulated.Profile
		skipped map[string]state.SkipReason
	}{
		{
			"mlx5", down("mlx5"),
			reasons(
				because(state.SkipPortDown, "srq_limit_event", "srq_limit_disarmed", "qp_sq_sig_all", "notify_solicited_skips_unsolicited", "notify_solicited_delivers_solicited"),
				because(state.SkipNotSupported, "cq_moderation_notifies", "cq_resize_at_least_requested", "cq_resize_too_small_refused", "cq_resize_keeps_completions", "xrc_at_least_requested"),
			),
		},
		{
			"qedr", down("qedr"),
			reasons(
				because(state.SkipPortDown, "srq_limit_event", "srq_limit_disarmed", "channel_steering", "qp_sq_sig_all", "notify_any", "notify_one_shot", "notify_requires_arming",
					"notify_solicited_skips_unsolicited", "notify_solicited_delivers_solicited", "notify_identifies_cq"),
				because(state.SkipNotSupported, "cq_ex_at_least_requested", "cq_ex_batch_keeps_completions", "cq_moderation_notifies", "cq_resize_at_least_requested", "cq_resize_too_small_refused", "cq_resize_keeps_completions", "xrc_at_least_requested", "qp_srq_type_restricted", "qp_destroy_busy_multicast", "notify_solicited_delivers_errors"),
			),
		},
		{
			"sets no errno for UC, as bnxt_re of rdma-core 60",
			device(t, "    like: sim_ib0\n    faults: [{verb: ibv_create_qp, when: {qp_types: [UC]}, errno: no_errno}]\n"),
			because(state.SkipNotSupported, "qp_srq_type_restricted"),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := judge(t, tt.profile)
			if r.Error != "" || len(r.Undestroyed) > 0 {
				t.Errorf("error %q, undestroyed %v", r.Error, r.Undestroyed)
			}
			for _, c := range r.Contracts {
				if c.Verdict == state.VerdictViolated && !c.Known {
					t.Errorf("violated: %s\n%s", c.Name, evidence(r))
				}
			}
			// What an adapter sends to a multicast group would leave its port.
			want := reasons(tt.skipped, because(state.SkipNotSupported, "multicast_delivers", "multicast_single_copy"))
			if got := skipped(r); !maps.Equal(got, want) {
				t.Errorf("skipped: %v, want %v\n%s", got, want, evidence(r))
			}
		})
	}
}

// TestFlushFails: that no work request is flushed is the device's choice where it
// refuses by an errno that providers use for that, and takes receives. Else something
// failed, which nothing can be judged without.
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
			r := judge(t, device(t, "    like: sim_rxe0\n    completion_vectors: 2\n    faults: ["+tt.faults+"]\n"))
			if got := skipped(r)["notify_solicited_delivers_errors"]; got != tt.want {
				t.Errorf("skipped: %q, want %q\n%s", got, tt.want, evidence(r))
			}
		})
	}
}
