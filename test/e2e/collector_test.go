package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
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

// A scrape can ask for less than there is.
func TestScrapeOfCollectors(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated", "--device.include=sim_rxe0", "--contract.interval=0", "--inventory.interval=0", "--notification.samples=5")
	e.ready(t)
	const core, cq, verb = "rdma_device_info", "rdma_probe_cq_entries_actual", "rdma_verbs_call_duration_seconds_count"
	for query, want := range map[string][]string{
		"":                                 {core, cq, verb},
		"?collect[]=sizes":                 {core, cq},
		"?collect[]=sizes&collect[]=verbs": {core, cq, verb},
		"?exclude[]=sizes":                 {core, verb},
		"?collect[]=sizes&name[]=" + core:  {core},
	} {
		status, text := e.get(t, "/metrics"+query)
		m := parse(t, text)
		for _, name := range []string{core, cq, verb} {
			if got := len(m[name]) > 0; status != http.StatusOK || got != slices.Contains(want, name) {
				t.Errorf("%s: status %d, %s is there: %t", query, status, name, got)
			}
		}
	}
	for query, want := range map[string]string{
		"?collect[]=nothing":                 `there is no collector "nothing", but adapter, cgroups, contracts`,
		"?collect[]=memory":                  "the collector memory is off: start the exporter with --collector.memory",
		"?collect[]=sizes&exclude[]=vectors": "not both",
	} {
		if status, text := e.get(t, "/metrics"+query); status != http.StatusBadRequest || !strings.Contains(text, want) || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: status %d: %q", query, status, text)
		}
	}
	_, text := e.get(t, "/metrics")
	if !strings.Contains(text, fmt.Sprintf("promhttp_metric_handler_requests_total{code=%q}", "400")) {
		t.Error("what was refused is not counted")
	}
}
