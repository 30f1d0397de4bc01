package simulated_test

import (
	"slices"
	"testing"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
	"rdma_exporter/verbs/verbstest"
)

// conforming returns a new profile of the devices of the default one, and of one that
// has datagrams alone, those of a driver's own among them.
func conforming() *simulated.Profile {
	p := simulated.Default()
	datagrams := simulated.Default().Devices[0]
	datagrams.Name, datagrams.QPTypes = "datagrams", []string{"UD", "SRD"}
	p.Devices = append(p.Devices, datagrams)
	return p
}

// TestConformance runs the suite on every one of these devices, and on each once more
// with its first port down. Side by side: most of it is waiting for what must not come.
func TestConformance(t *testing.T) {
	t.Parallel()
	for i, device := range conforming().Devices {
		for _, down := range []bool{false, true} {
			profile := conforming()
			first := &profile.Devices[i].Ports[0]
			name := device.Name
			if down {
				first.State = verbs.PortDown.String()
				name += " with its port down"
			}
			var unsupported []verbs.QPType
			for _, typ := range verbs.QPTypes() {
				if !slices.Contains(device.QPTypes, typ.String()) {
					unsupported = append(unsupported, typ)
				}
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				verbstest.Run(t, verbstest.Config{
					New:         func(tracer verbs.Tracer) verbs.Provider { return simulated.New(profile, tracer) },
					Device:      device.Name,
					PortActive:  first.State == verbs.PortActive.String(),
					Unsupported: unsupported,
				})
			})
		}
	}
}
