package probe_test

import (
	"testing"

	"rdma_exporter/report"
	"rdma_exporter/verbs/simulated"
)

// TestKnownShortfall: a size that comes short as the driver is known for fails nothing;
// any other does.
func TestKnownShortfall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, driver, fault, probe string
		status                     report.Status
		known                      int
	}{
		{"known", "hns", "{verb: ibv_create_cq, short: 1, times: 1}", "cq", report.StatusOK, 1},
		{"more than is known", "hns", "{verb: ibv_create_cq, short: 2, times: 1}", "cq", report.StatusFailed, 0},
		{"another driver", "mlx5", "{verb: ibv_create_cq, short: 1, times: 1}", "cq", report.StatusFailed, 0},
		{"no driver", "", "{verb: ibv_create_cq, short: 1, times: 1}", "cq", report.StatusFailed, 0},
		{"other sizes", "hns", "{verb: ibv_create_srq, short: 1}", "srq", report.StatusFailed, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := simulated.ParseProfile([]byte("devices: [{name: sim0, like: sim_ib0, driver: '" + tt.driver + "', faults: [" + tt.fault + "]}]"))
			if err != nil {
				t.Fatal(err)
			}
			r := runStill(t, p, "sim0", quick())
			if r.Info == nil || r.Info.Driver != tt.driver {
				t.Errorf("the device says %+v of itself", r.Info)
			}
			for _, probe := range r.Probes {
				if probe.Name != tt.probe {
					continue
				}
				if probe.Status != tt.status || len(probe.Known) != tt.known || (len(probe.Failures) == 0) != (tt.status == report.StatusOK) {
					t.Errorf("%s: %s, failures %+v, known %+v", probe.Name, probe.Status, probe.Failures, probe.Known)
				}
				for _, k := range probe.Known {
					if k.Subject != "small" || k.Message != "asked for cqe 16, given 15" || k.Contract != "cq_at_least_requested" || k.Fact == "" || k.Source == "" {
						t.Errorf("known: %+v", k)
					}
				}
				return
			}
			t.Errorf("no probe %s: %+v", tt.probe, r)
		})
	}
}
