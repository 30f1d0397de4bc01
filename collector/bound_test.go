package collector_test

import (
	"strings"
	"testing"

	"rdma_exporter/collector"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// adapter is a healthy port of a hardware adapter, with 16 completion vectors, on which
// no program but the kernel has anything.
func adapter() scene {
	r := run("mlx5_0")
	r.Info.CompletionVectors, r.Info.Ports = 16, r.Info.Ports[:1]
	r.Probes[3].Skips = []state.Skip{{Subject: state.Subject{Object: "qp", QPType: "raw_packet"}, Reason: state.SkipNotPermitted}}
	p := &r.Probes[4]
	p.Skips, p.Latencies = nil, nil
	for _, path := range state.LatencyPaths() {
		for _, mode := range state.LatencyModes() {
			vectors := 1
			if path == state.PathLoopback && mode == state.ModeAny {
				vectors = r.Info.CompletionVectors
			}
			for vector := range vectors {
				p.Latencies = append(p.Latencies, latency(1, path, mode, vector))
			}
		}
	}
	taken := inventory(0)
	for i := range taken.Objects {
		o := &taken.Objects[i]
		if o.Owner == state.OwnerUser || o.Type != "pd" && o.Type != "cq" && o.Type != "qp" {
			o.Objects = 0
		}
	}
	taken.Others, taken.QueuePairs = nil, taken.QueuePairs[:1]
	s := stateOf(r)
	s.Contracts = contractsOf(contractRun(r.Device))
	s.Resources = resourcesOf(inventoryRun(r.Device), taken)
	s.Hardware = hardwareOf(r.Device, r.Info.CompletionVectors)
	return sceneOf("libibverbs", s, r, contractRun(r.Device), inventoryRun(r.Device), hardwareRun(r.Device)).finding(make([]health.Finding, 0)...)
}

// A device makes no more series than its owner can afford on each of ten thousand nodes,
// and the host as a whole hardly any. What comes of the hardware is counted by port.
func TestBudget(t *testing.T) {
	t.Parallel()
	nothing := collector.Defaults()
	for name := range nothing {
		nothing[name] = false
	}
	without := collector.Defaults()
	for _, name := range []string{collector.Counters, collector.Links, collector.Adapter, collector.GIDs} {
		without[name] = false
	}
	count := func(on collector.Choice) (device, host int) {
		s := adapter()
		s.on = on
		for series := range values(t, s.collector()) {
			if strings.Contains(series, `device="`) {
				device++
			} else {
				host++
			}
		}
		return device, host
	}
	for _, tc := range []struct {
		name         string
		on           collector.Choice
		device, host int
	}{
		{"by default, but for the hardware", without, 180, 28},
		{"with no collector", nothing, 40, 4},
	} {
		device, host := count(tc.on)
		t.Logf("%s: %d series of the device, %d of the host", tc.name, device, host)
		if device > tc.device || host > tc.host {
			t.Errorf("%s: %d series of the device, want at most %d; %d of the host, want at most %d", tc.name, device, tc.device, host, tc.host)
		}
		if device < tc.device/3 {
			t.Errorf("%s: %d series of the device only", tc.name, device)
		}
	}
	device, _ := count(without)
	all, _ := count(collector.Defaults())
	t.Logf("the hardware: %d series of a port", all-device)
	if port := all - device; port > 45 || port < 30 {
		t.Errorf("%d series of a port, want at most 45", port)
	}
}
