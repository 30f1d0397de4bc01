package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/hardware/hardwaretest"
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
		"--probe.interval=1h", "--contract.interval=0", "--inventory.interval=0", "--hardware.interval=500ms")
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

// faulty is a tree of devices of mlx5 of which one each has a fault. The others are well.
func faulty(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	hardwaretest.Lay(t, root, "@ sys/bus/pci/drivers/mlx5_core\nbind: \n")
	for i, d := range []struct{ name, lines string }{
		{"well0", ""},
		{"fails", "ports: no directory"},
		{"refuses", "ports/1/counters/port_rcv_errors !EIO"},
		{"text", "ports/1/counters/port_rcv_data: many"},
		{"beyond", "ports/1/counters/port_rcv_data: 18446744073709551616"},
		{"saturated", "ports/1/counters/link_downed: 255"},
		{"ones", "ports/1/counters/port_rcv_data: 18446744073709551615"},
		{"shrinks", ""},
		{"well1", ""},
	} {
		function := fmt.Sprintf("0000:%02x:00.0", i+1)
		hardwaretest.Lay(t, root, fmt.Sprintf(`
@ sys/class/infiniband
%[1]s -> ../../devices/pci0000:00/%[2]s/infiniband/%[1]s
@ sys/devices/pci0000:00/%[2]s
driver -> ../../../bus/pci/drivers/mlx5_core
@ sys/devices/pci0000:00/%[2]s/infiniband/%[1]s
device -> ../..
ports/1/link_layer: InfiniBand
ports/1/state: 4: ACTIVE
ports/1/rate: 400 Gb/sec (4X NDR)
ports/1/counters/link_downed: 2
ports/1/counters/port_rcv_data: 100
ports/1/counters/port_rcv_errors: 0
ports/1/counters/port_xmit_data: 50
ports/1/counters/symbol_error: 3
ports/1/hw_counters/out_of_sequence: 7
%[3]s
`, d.name, function, d.lines))
	}
	return root
}

// TestHardwareFaults: of devices whose files in sysfs fail, have what is no number or the end
// of one, or are gone the next time, it is told what there is, and what is the matter. The
// others are read as if there were no such devices.
func TestHardwareFaults(t *testing.T) {
	t.Parallel()
	root := faulty(t)
	e := start(t, "--path.sysfs="+filepath.Join(root, "sys"), "--hardware.interval=200ms",
		"--probe.interval=1h", "--contract.interval=0", "--inventory.interval=0")
	const received, sent, downed, symbols, sequence = "rdma_port_receive_bytes_total", "rdma_port_transmit_bytes_total",
		"rdma_port_link_downed_total", "rdma_port_symbol_errors_total", "rdma_port_out_of_sequence_packets_total"
	var m metrics
	running.Eventually(t, "all were read", func() bool {
		_, m = e.exposition(t)
		// Nothing is judged before the first run of the probes.
		return m.sum("rdma_hardware_success") == 8 && len(m.all("rdma_hardware_success")) == 9 && m.sum("rdma_probe_runs_total") == 9
	})
	m.want(t, 200, sent, "device", "shrinks", "port", "1")
	// What is gone is so from the next reading on, and what grows, grows.
	port := func(device string) string { return filepath.Join(root, "sys/class/infiniband", device, "ports/1") }
	for _, gone := range []string{"counters/port_xmit_data", "hw_counters"} {
		if err := os.RemoveAll(filepath.Join(port("shrinks"), gone)); err != nil {
			t.Fatal(err)
		}
	}
	for _, device := range []string{"well0", "well1"} {
		if err := os.WriteFile(filepath.Join(port(device), "counters/port_rcv_data"), []byte("1000\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var text string
	running.Eventually(t, "all were read once more", func() bool {
		text, m = e.exposition(t)
		return m.sum(received, "device", "well0")+m.sum(received, "device", "well1") == 8000 && len(m.all(sequence, "device", "shrinks")) == 0
	})
	checkExposition(t, text)
	well := map[string]float64{received: 400, sent: 200, downed: 2, symbols: 3, sequence: 7}
	_, status := e.get(t, "/api/v2/status")
	for _, c := range []struct {
		device  string
		differs map[string]float64 // −1 is absent
		finding string
		says    string
		full    string
	}{
		{"well0", map[string]float64{received: 4000}, "", "", ""},
		{"well1", map[string]float64{received: 4000}, "", "", ""},
		{"fails", map[string]float64{received: -1, sent: -1, downed: -1, symbols: -1, sequence: -1}, "", "not a directory", ""},
		{"refuses", map[string]float64{received: -1, sent: -1, downed: -1, symbols: -1}, "counters_refused", "counters (EIO). They are read again", ""},
		{"text", map[string]float64{received: -1}, "counters_refused", `port_rcv_data: \"many\" is no count)."`, ""},
		{"beyond", map[string]float64{received: -1}, "counters_refused", `port_rcv_data: \"18446744073709551616\" is no count)."`, ""},
		{"saturated", map[string]float64{downed: -1}, "counter_saturated", "At its maximum: link_downed of port 1.", "link_downed"},
		{"ones", map[string]float64{received: -1}, "counter_saturated", "At its maximum: port_rcv_data of port 1.", "port_rcv_data"},
		{"shrinks", map[string]float64{sent: -1, sequence: -1}, "", "", ""},
	} {
		for metric, value := range well {
			if other, ok := c.differs[metric]; ok {
				value = other
			}
			if value < 0 {
				m.absent(t, metric, "device", c.device)
			} else {
				m.want(t, value, metric, "device", c.device, "port", "1")
			}
		}
		success, outcome := 1.0, "ok"
		if c.device == "fails" {
			success, outcome = 0, "failed"
		}
		m.want(t, success, "rdma_hardware_success", "device", c.device)
		if all := m.sum("rdma_hardware_runs_total", "device", c.device); all == 0 || m.sum("rdma_hardware_runs_total", "device", c.device, "outcome", outcome) != all {
			t.Errorf("%s: %v readings, want all %s", c.device, m.all("rdma_hardware_runs_total", "device", c.device), outcome)
		}
		full := m.values("rdma_port_counter_saturated", "counter", "device", c.device)
		if strings.Join(full, " ") != c.full {
			t.Errorf("%s: %q are saturated, want %q", c.device, full, c.full)
		}
		m.absent(t, "rdma_port_counter_decreases_total", "device", c.device)
		found := slices.DeleteFunc(m.values("rdma_finding_first_seen_timestamp_seconds", "finding", "device", c.device), func(kind string) bool {
			return !strings.HasPrefix(kind, "hardware_") && !strings.HasPrefix(kind, "counter")
		})
		if strings.Join(found, " ") != c.finding {
			t.Errorf("%s: found %q, want %q", c.device, found, c.finding)
		}
		if !strings.Contains(status, c.says) {
			t.Errorf("%s: the status does not say %s", c.device, c.says)
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", text, status)
	}
}

// TestLinksAreKept: how often links went up and down is told on after a restart, and is there
// again after the next.
func TestLinksAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "past.json")
	const past = `{"version":1,"findings":[],"links":{"sim_ib0":{"links":[{"port":1,"active":true,"ups":41,"downs":42,"gid_changes":43},{"port":2,"active":true,"ups":1,"downs":2}]}}}`
	if err := os.WriteFile(file, []byte(past), 0o600); err != nil {
		t.Fatal(err)
	}
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
