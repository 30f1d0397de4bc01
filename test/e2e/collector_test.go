package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"rdma_exporter/collector"
	"rdma_exporter/test/running"
)

// one is a device like a port of a hardware adapter, with 16 completion vectors.
const one = `devices:
  - name: mlx5_0
    like: sim_ib0
    completion_vectors: 16
    ports: [{number: 1, state: active, link_layer: InfiniBand, lid: 1, active_mtu: 4096, pkeys: 1, gids: [{index: 0, gid: "fe80::1", type: IB}]}]
    resources: {holders: []}
`

// series counts the series of devices, and the others.
func series(text string) (device, own int) {
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.Contains(line, `device="`):
			device++
		default:
			own++
		}
	}
	return device, own
}

// A fleet can afford what a node makes, and what is off is not there.
func TestCollectors(t *testing.T) {
	t.Parallel()
	var off []string
	for _, p := range collector.Parts() {
		off = append(off, "--no-collector."+p.Name)
	}
	for _, tc := range []struct {
		name        string
		flags       []string
		judged      bool
		device, own int
	}{
		{"by default, without the hardware", []string{"--inventory.interval=1s", "--hardware.interval=0s"}, true, 180, 62},
		{"by default", []string{"--inventory.interval=1s"}, true, 180 + 45, 62},
		{"nothing", off, false, 40, 36},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := start(t, append([]string{
				"--provider=simulated", "--simulated.profile=" + running.File(t, "profile.yaml", one),
				"--notification.vectors=512", "--probe.timeout=2m", "--probe.interval=1s",
			}, tc.flags...)...)
			if tc.judged {
				e.judged(t, "mlx5_0")
				e.inventoried(t, "mlx5_0")
			}
			running.Eventually(t, "three runs", func() bool { return e.counts(t).runs("mlx5_0", "ok") >= 3 })
			text, m := e.exposition(t)
			checkExposition(t, text)
			device, own := series(text)
			device -= len(m.all("rdma_finding_info", "device", "mlx5_0")) // A healthy device has none.
			if device > tc.device || own > tc.own {
				t.Errorf("%d series of the device, want at most %d; %d of the exporter, want at most %d\n%s", device, tc.device, own, tc.own, text)
			}
			if !tc.judged {
				if n := m.sum("rdma_contract_runs_total") + m.sum("rdma_inventory_runs_total") + m.sum("rdma_hardware_runs_total"); n != 0 {
					t.Errorf("%v runs of what is off", n)
				}
				if status, page := e.get(t, "/"); status != http.StatusOK || strings.Contains(page, "notify_one_shot") {
					t.Errorf("the page: status %d: %s", status, page)
				}
			}
		})
	}
}
