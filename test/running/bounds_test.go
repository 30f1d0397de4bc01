package running_test

import (
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

func TestUnhurried(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"":                                     "--probe.timeout=2m --contract.timeout=4m --inventory.timeout=2m",
		"audit --probe.timeout=1s":             "audit --probe.timeout=1s --contract.timeout=4m --inventory.timeout=2m",
		"--contract.timeout 1s --x":            "--contract.timeout 1s --x --probe.timeout=2m --inventory.timeout=2m",
		"--inventory.timeouts --inventory.tim": "--inventory.timeouts --inventory.tim --probe.timeout=2m --contract.timeout=4m --inventory.timeout=2m",
	} {
		if got := strings.Join(running.Unhurried(strings.Fields(flags)...), " "); got != want {
			t.Errorf("%q: got %q, want %q", flags, got, want)
		}
	}
}
