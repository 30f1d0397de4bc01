package e2e_test

import (
	"fmt"
	"testing"

	"rdma_exporter/test/running"
)

// A run measures no more vectors than it may; the runs that follow take their turn
// with the others.
func TestVectorsTakeTurns(t *testing.T) {
	t.Parallel()
	const vectors, perRun = 64, 16 // sim_ib0 has 64
	e := start(t, "--provider=simulated", "--device.include=sim_ib0", "--contract.interval=0",
		"--notification.samples=5", fmt.Sprintf("--notification.vectors=%d", perRun), "--probe.interval=500ms")
	e.ready(t)
	// There may have been another run since the first.
	m := e.scrape(t)
	first, runs := m.values("rdma_notification_vector_latency_seconds_count", "comp_vector", "device", "sim_ib0"), int(m.runs("sim_ib0", "ok"))
	if len(first) == 0 || len(first) > runs*perRun {
		t.Errorf("%d runs measured the vectors %q, want at most %d each", runs, first, perRun)
	}
	seen := make(map[string]bool)
	running.Eventually(t, "every vector was measured", func() bool {
		for _, v := range e.scrape(t).values("rdma_notification_vector_latency_seconds_count", "comp_vector", "device", "sim_ib0") {
			seen[v] = true
		}
		return len(seen) == vectors
	})
}
