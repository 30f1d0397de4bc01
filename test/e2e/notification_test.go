package e2e_test

import (
	"slices"
	"testing"

	"rdma_exporter/test/running"
)

// Run for run, and with the contracts, the same completion vectors are used.
func TestVectors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, flag string
		want       []string // of the 64 that sim_ib0 has
	}{
		{"default", "--notification.vectors=4", []string{"0", "21", "42", "63"}},
		{"two", "--notification.vectors=2", []string{"0", "63"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := start(t, "--provider=simulated", "--device.include=sim_ib0", "--notification.samples=5", tc.flag, "--probe.interval=100ms")
			e.ready(t)
			running.Eventually(t, "three runs", func() bool { return e.counts(t).runs("sim_ib0", "ok") >= 3 })
			got := e.scrape(t).values("rdma_notification_vector_latency_seconds", "comp_vector", "device", "sim_ib0")
			slices.Sort(got)
			if !slices.Equal(got, tc.want) {
				t.Errorf("vectors %q were measured, want %q", got, tc.want)
			}
		})
	}
}
