package contract_test

import (
	"maps"
	"slices"
	"testing"

	"rdma_exporter/report"
)

// TestAdapters judges devices that answer as adapters do, by their providers'
// source: what is not offered is skipped, and what is refused in one state is looked
// at in another.
func TestAdapters(t *testing.T) {
	t.Parallel()
	const portDown = "    ports: [{number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, max_mtu: 4096, gids: []}]\n"
	reasons := func(lists ...map[string]report.SkipReason) map[string]report.SkipReason {
		all := make(map[string]report.SkipReason)
		for _, list := range lists {
			maps.Copy(all, list)
		}
		return all
	}
	because := func(reason report.SkipReason, names ...string) map[string]report.SkipReason {
		m := make(map[string]report.SkipReason)
		for _, name := range names {
			m[name] = reason
		}
		return m
	}
	noSRQ := because(report.SkipNotSupported, "srq_at_least_requested", "srq_reports_actual", "srq_limit_ignored",
		"srq_destroy_busy", "qp_srq_type_restricted", "qp_recv_caps_ignored_with_srq")
	noSolicited := because(report.SkipNotSupported, "notify_solicited_skips_unsolicited", "notify_solicited_delivers_solicited",
		"notify_solicited_delivers_errors")
	noCompletions := because(report.SkipPortDown, "channel_steering", "qp_sq_sig_all", "notify_any", "notify_one_shot", "notify_requires_arming",
		"notify_solicited_skips_unsolicited", "notify_solicited_delivers_solicited", "notify_identifies_cq")
	for _, tt := range []struct {
		name, yaml string
		skipped    map[string]report.SkipReason
	}{
		{
			"takes sends once it was in RTS, as mlx5",
			"    faults: [{verb: ibv_post_send, when: {been_rts: false}, errno: ENOMEM}]\n",
			nil,
		},
		{
			"the same on a port that is down",
			portDown + "    faults: [{verb: ibv_post_send, when: {been_rts: false}, errno: ENOMEM}]\n",
			because(report.SkipPortDown, "qp_sq_sig_all", "notify_solicited_skips_unsolicited", "notify_solicited_delivers_solicited"),
		},
		{
			"sets no errno for UC, and rings no bell before there is a PD, as bnxt_re",
			"    faults: [{verb: ibv_create_qp, when: {qp_types: [UC]}, errno: no_errno}, " +
				"{verb: ibv_req_notify_cq, when: {pd: false}, crash: true}, {verb: ibv_post_send, when: {pd: false}, crash: true}]\n",
			because(report.SkipNotSupported, "qp_srq_type_restricted"),
		},
		{
			"RC alone, without queries, SRQs and solicited events, and takes sends in RTS alone, as mana",
			"    qp_types: [RC]\n    limits: {max_srq: 0}\n    faults: [{verb: ibv_query_qp, errno: EOPNOTSUPP}, " +
				"{verb: ibv_req_notify_cq, when: {solicited: true}, errno: EOPNOTSUPP}, {verb: ibv_post_send, when: {states: [INIT, ERR]}, errno: EINVAL}]\n",
			reasons(noSRQ, noSolicited, because(report.SkipNotSupported, "qp_reports_actual", "qp_destroy_busy_multicast")),
		},
		{
			"knows no QP that was not in RTS, as qedr",
			"    qp_types: [RC]\n    faults: [{verb: ibv_post_send, when: {been_rts: false}, ignore: true}, " +
				"{verb: ibv_post_recv, when: {been_rts: false, states: [ERR]}, ignore: true}]\n",
			because(report.SkipNotSupported, "qp_srq_type_restricted", "qp_destroy_busy_multicast"),
		},
		{
			"the same on a port that is down",
			"    qp_types: [RC]\n" + portDown + "    faults: [{verb: ibv_post_send, when: {been_rts: false}, ignore: true}, " +
				"{verb: ibv_post_recv, when: {been_rts: false}, ignore: true}]\n",
			reasons(noCompletions, because(report.SkipNotSupported, "qp_srq_type_restricted", "qp_destroy_busy_multicast", "notify_solicited_delivers_errors")),
		},
		{
			"UD alone, without event queues, as efa",
			"    qp_types: [UD]\n    limits: {max_srq: 0, max_mcast_grp: 0}\n    faults: [{verb: ibv_create_cq, when: {channel: true}, errno: EOPNOTSUPP}, " +
				"{verb: ibv_post_send, when: {states: [INIT, ERR]}, errno: EINVAL}, {verb: ibv_post_recv, when: {states: [RESET, ERR]}, errno: EINVAL}]\n",
			reasons(noSRQ, noSolicited, because(report.SkipNotSupported, "cq_comp_vector_accepted", "channel_destroy_busy", "channel_steering", "qp_sq_sig_all",
				"qp_destroy_busy_multicast", "notify_any", "notify_one_shot", "notify_requires_arming", "notify_identifies_cq")),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := judge(t, device(t, "    like: sim_ib0\n    completion_vectors: 2\n"+tt.yaml))
			if r.Error != "" || len(r.Undestroyed) > 0 {
				t.Errorf("error %q, undestroyed %v", r.Error, r.Undestroyed)
			}
			if got := verdicts(r, report.VerdictViolated); !slices.Equal(got, []string{}) {
				t.Errorf("violated: %v\n%s", got, evidence(r))
			}
			if got := skipped(r); !maps.Equal(got, tt.skipped) {
				t.Errorf("skipped: %v, want %v\n%s", got, tt.skipped, evidence(r))
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
		want         report.SkipReason
	}{
		{"refused", noSends + ", {verb: ibv_post_recv, when: {states: [INIT]}, ignore: true}", report.SkipNotSupported},
		{"refused, and so is the control", noSends + ", {verb: ibv_post_recv, when: {states: [INIT]}, errno: EINVAL}", report.SkipNeeds},
		{"failed", "{verb: ibv_modify_qp, when: {to: [ERR]}, errno: EIO}", report.SkipNeeds},
		{"lost", "{verb: ibv_post_send, when: {states: [ERR]}, ignore: true}, {verb: ibv_post_recv, when: {states: [INIT]}, ignore: true}", report.SkipNeeds},
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
