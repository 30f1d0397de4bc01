package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"rdma_exporter/test/running"
)

// TestHardwareHangs: of nine devices one hangs when its hardware is read, and one fails. The
// others are read again and again, these are left out for a while, and scrapes go on.
func TestHardwareHangs(t *testing.T) {
	t.Parallel()
	profile := "devices:\n"
	for i := range 7 {
		profile += fmt.Sprintf("  - {name: good%d, like: sim_ib0}\n", i)
	}
	profile += "  - {name: hung, like: sim_ib0, hardware_faults: [hang]}\n  - {name: ill, like: sim_ib0, hardware_faults: [fail]}\n"
	e := start(t, "--provider=simulated", "--simulated.profile="+running.File(t, "profile.yaml", profile),
		"--probe.interval=1h", "--contract.interval=0", "--inventory.interval=0", "--hardware.interval=500ms", "--inventory.timeout=10s")
	runs := func(device, outcome string) float64 {
		_, m := e.exposition(t)
		return m.sum("rdma_hardware_runs_total", "device", device, "outcome", outcome)
	}
	running.Eventually(t, "the device has hung", func() bool { return runs("hung", "timeout") >= 1 })
	running.Eventually(t, "the others were read without it", func() bool {
		for i := range 7 {
			if runs(fmt.Sprint("good", i), "ok") < runs("hung", "timeout")+3 {
				return false
			}
		}
		return true
	})
	text, m := e.exposition(t)
	checkExposition(t, text)
	for device, outcome := range map[string]string{"hung": "timeout", "ill": "failed"} {
		m.want(t, 0, "rdma_hardware_success", "device", device)
		m.want(t, 0, "rdma_hardware_runs_total", "device", device, "outcome", "ok")
		if runs(device, outcome) == 0 {
			t.Errorf("%s: no reading is %s", device, outcome)
		}
		m.absent(t, "rdma_port_receive_bytes_total", "device", device)
		if n := len(m.all("rdma_finding_first_seen_timestamp_seconds", "device", device, "finding", "hardware_unreadable")); n != 1 {
			t.Errorf("%s: %d findings", device, n)
		}
	}
	for i := range 7 {
		m.want(t, 1, "rdma_hardware_success", "device", fmt.Sprint("good", i))
		m.absent(t, "rdma_finding_first_seen_timestamp_seconds", "device", fmt.Sprint("good", i), "finding", "hardware_unreadable")
	}
}

// TestLinksAreKept: how often links went up and down is told on after a restart, and is there
// again after the next.
func TestLinksAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "past.json")
	const past = `{"version":1,"findings":[],"links":{"sim_ib0":{"links":[{"port":1,"active":true,"ups":41,"downs":42,"gid_changes":43},{"port":2,"active":true,"ups":1,"downs":2}]}}}`
	running.Check(t, os.WriteFile(file, []byte(past), 0o600))
	for range 2 {
		e := start(t, "--provider=simulated", "--device.include=sim_ib0", "--contract.interval=0", "--inventory.interval=0", "--state.dir="+dir)
		running.Eventually(t, "the hardware was read", func() bool {
			_, m := e.exposition(t)
			return m.sum("rdma_hardware_success") == 1
		})
		_, m := e.exposition(t)
		m.want(t, 41, "rdma_port_state_changes_total", "device", "sim_ib0", "port", "1", "to", "active")
		m.want(t, 42, "rdma_port_state_changes_total", "device", "sim_ib0", "port", "1", "to", "down")
		m.want(t, 43, "rdma_port_gid_changes_total", "device", "sim_ib0", "port", "1")
		// It is down now, and was active when nobody looked any more.
		m.want(t, 3, "rdma_port_state_changes_total", "device", "sim_ib0", "port", "2", "to", "down")
		e.stop(t)
	}
}
