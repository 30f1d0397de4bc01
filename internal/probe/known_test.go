package probe_test

import (
	"strings"
	"testing"

	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/state"
)

// TestKnownShortfall: a size that comes short as the driver is known for fails nothing;
// any other does.
func TestKnownShortfall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, driver, fault, probe string
		status                     state.Status
		known                      int
	}{
		{"known", "hns", "{verb: ibv_create_cq, short: 1, times: 1}", "cq", state.StatusOK, 1},
		{"more than is known", "hns", "{verb: ibv_create_cq, short: 2, times: 1}", "cq", state.StatusFailed, 0},
		{"another driver", "mlx5", "{verb: ibv_create_cq, short: 1, times: 1}", "cq", state.StatusFailed, 0},
		{"no driver", "", "{verb: ibv_create_cq, short: 1, times: 1}", "cq", state.StatusFailed, 0},
		{"other sizes", "hns", "{verb: ibv_create_srq, short: 1}", "srq", state.StatusFailed, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := still(t, parse(t, "like: sim_ib0, driver: '"+tt.driver+"', faults: ["+tt.fault+"]"), probe.Options{Config: quick()})
			if r.Info == nil || r.Info.Driver != tt.driver {
				t.Errorf("the device says %+v of itself", r.Info)
			}
			p := named(t, r, tt.probe)
			if p.Status != tt.status || len(p.Known) != tt.known || (len(p.Failures) == 0) != (tt.status == state.StatusOK) {
				t.Errorf("%s: %s, failures %+v, known %+v", p.Name, p.Status, p.Failures, p.Known)
			}
			for _, k := range p.Known {
				if k.Subject.String() != "small" || k.Message != "asked for cqe 16, given 15" || k.Contract != "cq_at_least_requested" || k.Fact == "" || k.Source == "" {
					t.Errorf("known: %+v", k)
				}
			}
		})
	}
}

// TestKnownRefusal: a driver that is known to refuse every CQ is named once, and is not
// called broken; of any other, or for another reason, it is a failure.
func TestKnownRefusal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, driver, fault string
		known               bool
	}{
		{"known", "mana", "{verb: ibv_create_cq, errno: EINVAL}", true},
		{"another errno", "mana", "{verb: ibv_create_cq, errno: ENOMEM}", false},
		{"not all of them", "mana", "{verb: ibv_create_cq, after: 1, errno: EINVAL}", false},
		{"another driver", "mlx5", "{verb: ibv_create_cq, errno: EINVAL}", false},
		{"no driver", "", "{verb: ibv_create_cq, errno: EINVAL}", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := still(t, parse(t, "like: sim_ib0, driver: '"+tt.driver+"', faults: ["+tt.fault+"]"), probe.Options{Config: quick()})
			if r.Error != "" {
				t.Error(r.Error)
			}
			if !tt.known {
				if r.Probes[0].Status != state.StatusFailed || len(r.Probes[0].Known) > 0 {
					t.Errorf("%+v", r.Probes[0])
				}
				return
			}
			if len(r.Probes) != 1 {
				t.Fatalf("probes: %+v", r.Probes)
			}
			cq := r.Probes[0]
			if cq.Status != state.StatusSkipped || len(cq.Failures) > 0 || len(cq.Skips) != 1 || cq.Skips[0].Reason != state.SkipNotSupported {
				t.Errorf("%+v", cq)
			}
			if len(cq.Known) != 1 || cq.Known[0].Contract != "cq_comp_vector_accepted" || cq.Known[0].Fact == "" || cq.Known[0].Source == "" {
				t.Errorf("known: %+v", cq.Known)
			}
		})
	}
}

// TestKnownQuiet: sends that raise no events when they are flushed, as is known of the
// driver, are not measured. A first one may have the event of what came before it.
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
