package collector_test

import (
	"strings"
	"testing"

	"rdma_exporter/collector"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// TestSizesAfterReload verifies that actual sizes are only shown next to the sizes that
// the same run requested. After a reload they are absent until a full run requests the new
// ones, so that no healthy device looks short.
func TestSizesAfterReload(t *testing.T) {
	r := run("mlx5_0")
	r.Sizes = "small=16"
	dev := stateOf(r)
	last := short("mlx5_0").Compact()
	dev.Last = last
	snapshot := &state.Snapshot{Provider: "libibverbs", Ready: true, Devices: []state.DeviceState{dev}}
	for _, test := range []struct {
		configured string
		shown      bool
	}{{"small=16", true}, {"small=32", false}} {
		c := collector.New(collector.Options{
			Host:       evaluated(func() *state.Snapshot { return snapshot }, map[string][]health.Finding{}),
			Collectors: scene{}.choice(), Asked: asked, Sizes: func() string { return test.configured },
		})
		text := expose(t, pedantic(t, c))
		for _, name := range []string{"rdma_probe_cq_entries_actual{", "rdma_probe_srq_work_requests_actual{", "rdma_probe_qp_work_requests_actual{"} {
			if strings.Contains(text, name) != test.shown {
				t.Errorf("configured %s, requested %s: %s shown: %t, want %t", test.configured, r.Sizes, name, !test.shown, test.shown)
			}
		}
		if !strings.Contains(text, "rdma_probe_cq_entries_requested{") {
			t.Error("the requested sizes are absent")
		}
	}
}
