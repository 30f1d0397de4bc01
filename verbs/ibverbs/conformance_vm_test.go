//go:build vm

package ibverbs_test

import (
	"testing"

	"rdma_exporter/verbs/ibverbs"
	"rdma_exporter/verbs/verbstest"
)

// TestConformance runs the suite on the devices of the virtual machine that
// test/vm/run boots. A machine without them is a failure: run it with -exec test/vm/run.
func TestConformance(t *testing.T) {
	for _, device := range []struct {
		name       string
		portActive bool
	}{
		{"rxe0", true},
		{"rxe1", false},
	} {
		t.Run(device.name, func(t *testing.T) {
			verbstest.Run(t, verbstest.Config{
				New:        ibverbs.New,
				Device:     device.name,
				PortActive: device.portActive,
			})
		})
	}
}
