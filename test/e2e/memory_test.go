package e2e_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/test/running"
	"rdma_exporter/verbs/simulated"
)

// The exporter stays small, however many devices there are. Of what it has resident, this is
// its own; how much of its program's file is there beside that is up to the kernel.
func TestMemory(t *testing.T) {
	t.Parallel()
	for devices, most := range map[int]int{8: 12, 24: 16} {
		t.Run(fmt.Sprintf("%d devices", devices), func(t *testing.T) {
			t.Parallel()
			profile, err := simulated.Default().Scale(devices).Marshal()
			if err != nil {
				t.Fatal(err)
			}
			e := start(t, "--provider=simulated", "--simulated.profile="+running.File(t, "profile.yaml", string(profile)),
				"--probe.interval=1h", "--inventory.interval=1h")
			running.Eventually(t, "every device is looked at", func() bool {
				m := e.scrape(t, "rdma_probe_runs_total", "rdma_inventory_runs_total", "rdma_contract_runs_total")
				for _, name := range []string{"rdma_probe_runs_total", "rdma_inventory_runs_total", "rdma_contract_runs_total"} {
					if m.sum(name) < float64(devices) {
						return false
					}
				}
				return true
			})
			e.scrape(t)
			running.Eventually(t, "the exporter gives back what it needed to start", func() bool {
				return anonymous(t, e.PID()) <= most
			})
		})
	}
}

// anonymous returns how much of its own memory a process has resident, in MiB.
func anonymous(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if words := strings.Fields(line); words[0] == "RssAnon:" {
			n, err := strconv.Atoi(words[1])
			if err != nil {
				t.Fatal(err)
			}
			return n >> 10
		}
	}
	t.Fatalf("the kernel does not tell the memory of process %d", pid)
	return 0
}
