//go:build vm

package ibverbs_test

import (
	"slices"
	"testing"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/ibverbs"
	"rdma_exporter/verbs/verbstest"
)

// TestConformance runs the suite on the devices of the virtual machine that
// test/vm/run boots. A machine without them is a failure.
func TestConformance(t *testing.T) {
	devices, err := ibverbs.New(verbs.NopTracer{}).Devices()
	if err != nil {
		t.Fatalf("Devices: %v", err)
	}
	for _, device := range []struct {
		name       string
		portActive bool
	}{
		{"rxe0", true},
		{"rxe1", false},
	} {
		if !slices.Contains(devices, device.name) {
			t.Fatalf("no device %s among %q: run this test with -exec test/vm/run", device.name, devices)
		}
		t.Run(device.name, func(t *testing.T) {
			verbstest.Run(t, verbstest.Config{
				New:        ibverbs.New,
				Device:     device.name,
				PortActive: device.portActive,
			})
		})
	}
}
