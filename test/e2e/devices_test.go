package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// The sizes of the configuration file are asked for, those that it leaves out
// stay, and what is beyond a limit of the device is cut down and says so.
func TestConfiguredSizes(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated", "--device.include=sim_rxe0", "--config.file="+running.File(t, "config.yaml", `
probe:
  cq:
    small: {entries: 100}
    large: {entries: 100000}
  qp:
    small: {send_work_requests: 33}
`))
	e.ready(t)
	m := e.scrape(t)
	m.want(t, 100, "rdma_probe_cq_entries_requested", "profile", "small")
	m.want(t, 127, "rdma_probe_cq_entries_actual", "device", "sim_rxe0", "profile", "small")
	m.want(t, 256, "rdma_probe_cq_entries_requested", "profile", "medium")
	m.want(t, 33, "rdma_probe_qp_work_requests_requested", "profile", "small", "queue", "send")
	m.want(t, 32767, "rdma_probe_size_clamped", "device", "sim_rxe0", "probe", "cq", "profile", "large", "subject", "cq", "attribute", "cqe", "limit", "max_cqe")
}

func TestDeviceFilters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"include", []string{"--device.include=sim_(rxe|siw).*"}, []string{"sim_rxe0", "sim_siw0"}},
		{"exclude", []string{"--device.exclude=sim_rxe0"}, []string{"sim_ib0", "sim_siw0"}},
		{"both", []string{"--device.include=sim_(rxe|siw)0", "--device.exclude=.*siw.*"}, []string{"sim_rxe0"}},
		{"part of a name", []string{"--device.include=rxe"}, nil},
		{"alternatives are whole names", []string{"--device.include=sim|sim_rxe0"}, []string{"sim_rxe0"}},
		{"empty is none", []string{"--device.include=", "--device.exclude="}, []string{"sim_ib0", "sim_rxe0", "sim_siw0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := start(t, append([]string{"--provider=simulated"}, c.args...)...)
			e.ready(t)
			m := e.scrape(t)
			m.want(t, float64(len(c.want)), "rdma_devices")
			if got := m.values("rdma_probe_runs_total", "device"); !slices.Equal(got, c.want) {
				t.Errorf("probed are %q, want %q", got, c.want)
			}
		})
	}
}

func TestHostWithoutDevices(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=libibverbs", "--path.sysfs="+t.TempDir())
	e.ready(t)
	text, m := e.exposition(t)
	m.want(t, 0, "rdma_devices")
	m.want(t, 1, "rdma_exporter_discovery_success")
	m.absent(t, "rdma_device_info")
	checkExposition(t, text)
	_, page := e.get(t, "/")
	if !strings.Contains(page, "No RDMA device was found") {
		t.Errorf("the page does not say that there is no device:\n%s", page)
	}
	if strings.Contains(page, "Simulated") {
		t.Error("the page speaks of simulated devices")
	}
}

// Devices that sysfs lists and libibverbs does not know: their runs fail, and
// their series come and go with them. Their names may be odd.
func TestDevicesComeAndGo(t *testing.T) {
	t.Parallel()
	const odd = `-<b>"\ x`
	sysfs := t.TempDir()
	folder := func(device string) string { return filepath.Join(sysfs, "class", "infiniband", device) }
	appear := func(device string) {
		running.Check(t, os.MkdirAll(folder(device), 0o755))
	}
	vanish := func(device string) {
		running.Check(t, os.Remove(folder(device)))
	}
	appear("fake0")
	e := start(t, "--provider=libibverbs", "--path.sysfs="+sysfs,
		"--probe.interval=500ms")
	failed := func(device string) float64 { return e.counts(t).runs(device, "failed") }

	running.Eventually(t, "fake0 is probed in vain twice", func() bool { return failed("fake0") >= 2 })
	text, m := e.exposition(t)
	checkExposition(t, text)
	m.want(t, 1, "rdma_devices")
	m.want(t, 1, "rdma_device_info", "device", "fake0", "provider", "libibverbs", "transport", "")
	for _, outcome := range []string{"ok", "timeout", "crashed"} {
		if n := m.runs("fake0", outcome); n != 0 {
			t.Errorf("%v runs of fake0 were %s", n, outcome)
		}
	}
	// A host without RDMA modules cannot list devices; one with them lists others.
	_, page := e.get(t, "/")
	unlisted := strings.Contains(page, "ibv_get_device_list") && strings.Contains(page, "ENOSYS")
	unknown := strings.Contains(page, "ibv_open_device on fake0: ENODEV")
	if !unlisted && !unknown {
		t.Errorf("the page tells neither that devices cannot be listed nor that fake0 is unknown:\n%s", page)
	}

	appear(odd)
	running.Eventually(t, "another device is found", func() bool { return failed(odd) >= 1 })
	text, m = e.exposition(t)
	checkExposition(t, text)
	m.want(t, 2, "rdma_devices")
	// The page is made once a second at most.
	running.Eventually(t, "the page escapes the name of a device", func() bool {
		_, page := e.get(t, "/")
		return !strings.Contains(page, "-<b>") && strings.Contains(page, "-&lt;b&gt;")
	})
	vanish(odd)

	vanish("fake0")
	running.Eventually(t, "no device is left", func() bool { return e.scrape(t).sum("rdma_devices") == 0 })
	running.Eventually(t, "no series of a device is left but that it vanished", func() bool {
		left := 0
		for line := range strings.Lines(e.text(t)) {
			if strings.Contains(line, `device="`) && !strings.HasPrefix(line, "rdma_finding") {
				left++
			}
		}
		return left == 0
	})
	e.scrape(t).want(t, 1, "rdma_findings", "device", "fake0", "severity", "critical", "accepted", "false")

	_, page = e.get(t, "/")
	if strings.Contains(page, "All is well") || !strings.Contains(page, "device_vanished") && !strings.Contains(page, "and is gone") {
		t.Errorf("the page does not say that the devices vanished:\n%s", page)
	}
	appear("fake0")
	running.Eventually(t, "fake0 is probed again", func() bool { return failed("fake0") >= 1 })
	e.scrape(t).absent(t, "rdma_finding_info", "device", "fake0", "finding", "device_vanished")
	e.scrape(t).want(t, 1, "rdma_devices")
}

func (e *exporter) text(t testing.TB) string {
	t.Helper()
	text, _ := e.exposition(t)
	return text
}
