package e2e_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/test/running"
	"rdma_exporter/verbs/simulated/simulatedtest"
)

// TestMemory verifies the bounds of what the exporter's process has resident.
func TestMemory(t *testing.T) {
	t.Parallel()
	for devices, mebibytes := range map[int]int{8: 40, 64: 80} {
		t.Run(fmt.Sprintf("%d devices", devices), func(t *testing.T) {
			t.Parallel()
			e := start(t, "--provider=simulated", "--simulated.profile="+running.File(t, "profile.yaml", simulatedtest.Scaled(devices)),
				"--probe.interval=1h", "--inventory.interval=1h", "--contract.interval=0")
			running.Eventually(t, "every device is probed and has its inventory", func() bool {
				m := e.scrape(t, "rdma_probe_runs_total", "rdma_inventory_runs_total")
				return m.sum("rdma_probe_runs_total") >= float64(devices) && m.sum("rdma_inventory_runs_total") >= float64(devices)
			})
			e.scrape(t)
			if got := memory(t, e.PID(), "VmRSS:"); got > mebibytes {
				t.Errorf("%d MiB are resident, more than %d", got, mebibytes)
			}
		})
	}
}

// memory returns a value of /proc/PID/status, in MiB.
func memory(t *testing.T, pid int, key string) int {
	t.Helper()
	status := running.Must(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(t)
	for line := range strings.Lines(string(status)) {
		if words := strings.Fields(line); words[0] == key {
			n := running.Must(strconv.Atoi(words[1]))(t)
			return n >> 10
		}
	}
	t.Fatalf("the kernel does not report the memory of process %d", pid)
	return 0
}
