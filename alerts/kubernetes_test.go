package alerts_test

import (
	"os/exec"
	"testing"

	"rdma_exporter/test/running"
)

// TestKubernetes lets promtool check and test the rules that need kube-state-metrics.
func TestKubernetes(t *testing.T) {
	promtool := running.FindPrometheus(t, "promtool")
	for _, args := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", "recording-kubernetes.yaml"},
		{"test", "rules", "testdata/kubernetes/recording.yaml"},
	} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}
