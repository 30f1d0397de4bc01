package probe_test

import (
	"strings"
	"testing"

	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/state"
)

// TestKnown verifies that a size that is short, or a CQ that is refused, as an erratum of the
// driver says is reported as known, and that any other is a failure.
func TestKnown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		driver, fault, probe string
		status               state.Status
		known                string // its contract and message
	}{
		{"hns", "ibv_create_cq, short: 1, times: 1", "cq", state.StatusOK, "cq_at_least_requested: asked for cqe 16, given 15"},
		{"hns", "ibv_create_cq, short: 2, times: 1", "cq", state.StatusFailed, ""},
		{"mlx5", "ibv_create_cq, short: 1, times: 1", "cq", state.StatusFailed, ""},
		{"", "ibv_create_cq, short: 1, times: 1", "cq", state.StatusFailed, ""},
		{"hns", "ibv_create_srq, short: 1", "srq", state.StatusFailed, ""},
		{"mana", "ibv_create_cq, errno: EINVAL", "cq", state.StatusSkipped, "cq_comp_vector_accepted: ibv_create_cq on dev: EINVAL (invalid argument)"},
		{"mana", "ibv_create_cq, errno: ENOMEM", "cq", state.StatusFailed, ""},
		{"mana", "ibv_create_cq, after: 1, errno: EINVAL", "cq", state.StatusFailed, ""},
		{"mlx5", "ibv_create_cq, errno: EINVAL", "cq", state.StatusFailed, ""},
		{"", "ibv_create_cq, errno: EINVAL", "cq", state.StatusFailed, ""},
	} {
		t.Run(tt.driver+" "+tt.fault, func(t *testing.T) {
			t.Parallel()
			r := still(t, parse(t, "like: sim_ib0, driver: '"+tt.driver+"', faults: [{verb: "+tt.fault+"}]"), probe.Options{Config: quick()})
			if r.Error != "" || r.Info == nil || r.Info.Driver != tt.driver {
				t.Errorf("error %q, device %+v", r.Error, r.Info)
			}
			p := named(t, r, tt.probe)
			got := join(p.Known, func(k state.KnownShortfall) string {
				if k.Subject.String() != "small" || k.Fact == "" || k.Source == "" {
					t.Errorf("%+v", k)
				}
				return k.Contract + ": " + k.Message
			})
			if p.Status != tt.status || got != tt.known || (len(p.Failures) > 0) != (tt.status == state.StatusFailed) {
				t.Errorf("%s, failures %+v, known %q", p.Status, p.Failures, got)
			}
			// Without CQs nothing else is probed.
			if tt.status == state.StatusSkipped && (len(r.Probes) != 1 || skips(p.Skips) != ": not_supported") {
				t.Errorf("%d probes, skips %q", len(r.Probes), skips(p.Skips))
			}
		})
	}
}

// TestKnownQuiet verifies that sends that raise no events when flushed, by an erratum of the
// driver, are not measured. The first one may have an earlier event.
func TestKnownQuiet(t *testing.T) {
	t.Parallel()
	for driver, by := range map[string]string{"bnxt_re": byRecv, "mlx5": byUD} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			p := measure(t, "like: sim_rxe0, driver: "+driver+", completion_vectors: 1", quick())
			if w := methodOf(p, state.PathFlush); w.By != by || strings.Contains(w.InsteadOf, "known of the driver") != (by == byRecv) {
				t.Errorf("%+v, want %s", w, by)
			}
			if p.Status != state.StatusOK || len(p.Methods) == 0 {
				t.Errorf("%s, ways %v, failures %v", p.Status, p.Methods, p.Failures)
			}
		})
	}
}
