package simulated_test

import (
	"slices"
	"testing"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
	"rdma_exporter/verbs/verbstest"
)

// TestConformance runs the suite on each device of the default profile, and on one that
// has datagrams alone, those of a driver's own among them; and on each once more with
// its first port down.
func TestConformance(t *testing.T) {
	t.Parallel()
	devices := simulated.Default().Devices
	datagrams := devices[0]
	datagrams.Name, datagrams.QPTypes = "datagrams", []string{"UD", "SRD"}
	for _, device := range append(devices, datagrams) {
		var unsupported []verbs.QPType
		for _, typ := range verbs.QPTypes() {
			if !slices.Contains(device.QPTypes, typ.String()) {
				unsupported = append(unsupported, typ)
			}
		}
		down := device
		down.Ports = slices.Clone(device.Ports)
		down.Ports[0].State = verbs.PortDown.String()
		for name, device := range map[string]simulated.DeviceProfile{
			device.Name: device, device.Name + " with its port down": down,
		} {
			profile := &simulated.Profile{Devices: []simulated.DeviceProfile{device}}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				verbstest.Run(t, verbstest.Config{
					New:         func(tracer verbs.Tracer) verbs.Provider { return simulated.New(profile, tracer) },
					Device:      device.Name,
					PortActive:  device.Ports[0].State == verbs.PortActive.String(),
					Unsupported: unsupported,
					Simulated:   true,
				})
			})
		}
	}
}
