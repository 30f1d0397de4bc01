package e2e_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"rdma_exporter/test/running"
)

// TestDrill verifies that a device is broken and mended while the exporter runs: SIGHUP
// has the profile read again, and one that is broken changes nothing.
func TestDrill(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "profile.yaml")
	write := func(text string) {
		t.Helper()
		running.Check(t, os.WriteFile(file, []byte(text), 0o600))
	}
	const (
		well   = "devices:\n  - {name: dev, like: sim_rxe0}\n"
		broken = "devices:\n  - name: dev\n    like: sim_rxe0\n    ports: [{number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, gids: []}]\n"
		more   = well + "  - {name: second, like: sim_siw0}\n"
	)
	write(well)
	e := start(t, "--provider=simulated", "--simulated.profile="+file, "--probe.interval=500ms", "--hardware.interval=500ms",
		"--contract.interval=0s")
	hangup := func(text string) {
		t.Helper()
		write(text)
		running.Check(t, e.Signal(syscall.SIGHUP))
	}
	port := func(what string, active float64) {
		t.Helper()
		const idDown, idActive = 1, 4
		want := idDown + active*(idActive-idDown)
		running.Eventually(t, what, func() bool {
			_, m := e.exposition(t)
			findings := len(m.all("rdma_finding_first_seen_timestamp_seconds", "device", "dev", "finding", "port_down"))
			return m.sum("rdma_port_state_id", "device", "dev") == want && findings == int(1-active)
		})
	}
	port("the port is active", 1)
	hangup(broken)
	port("the port is down", 0)

	hangup(broken + "    fauls: []\n")
	running.Eventually(t, "the broken profile is refused", func() bool {
		_, m := e.exposition(t)
		return m.sum("rdma_exporter_config_last_reload_successful") == 0
	})
	port("the port is still down", 0)

	hangup(more)
	port("the port is mended", 1)
	running.Eventually(t, "the new device is probed", func() bool {
		_, m := e.exposition(t)
		return len(m.all("rdma_probe_success", "device", "second")) > 0
	})
	_, m := e.exposition(t)
	m.want(t, 1, "rdma_exporter_config_last_reload_successful")
}
