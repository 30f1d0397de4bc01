package collector_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/collector"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
)

// adapter returns a healthy adapter with one port and 16 completion vectors, and the
// default number is measured. Only the kernel has objects on it.
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
				vectors = 4 // the default of --notification.vectors
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

func (s scene) count(t *testing.T, on collector.Choice) (device, host int) {
	t.Helper()
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

func without(on collector.Choice, names ...string) collector.Choice {
	on = maps.Clone(on)
	for _, name := range names {
		on[name] = false
	}
	return on
}

// TestBudget verifies that a device has no more series than is affordable on ten thousand
// nodes. It compares docs/reference/scaling.md with the numbers.
func TestBudget(t *testing.T) {
	t.Parallel()
	all, host := adapter().count(t, collector.Defaults())
	device, _ := adapter().count(t, without(collector.Defaults(), collector.Counters, collector.Links, collector.Adapter, collector.GIDs))
	off, offHost := adapter().count(t, without(collector.Defaults(), slices.Collect(maps.Keys(collector.Defaults()))...))
	page := "\n| | series |\n|---|---|\n"
	for _, tc := range []struct {
		name        string
		series, max int
	}{
		{"the exporter", host, 28},
		{"each device, without what is read of its hardware", device, 180},
		{"each port, with counters, links and adapter", all - device, 45},
		{"the exporter, if every collector is off", offHost, 4},
		{"each device, if every collector is off", off, 40},
	} {
		if tc.series > tc.max || tc.series < tc.max/3 {
			t.Errorf("%s: %d series, want at most %d", tc.name, tc.series, tc.max)
		}
		page += fmt.Sprintf("| %s | %d |\n", tc.name, tc.series)
	}
	golden.CheckPart(t, "../docs/reference/scaling.md", "<!-- series: written by go test ./collector -update -->", "<!-- end of series -->", page+"\n")
}

// TestDocs compares docs/reference/metrics.md with the declarations.
func TestDocs(t *testing.T) {
	s := adapter()
	i := inventory(1)
	i.Others, i.QueuePairs = nil, i.QueuePairs[:1]
	i.Cgroups = []state.CgroupUse{{Cgroup: "/a", Resource: "hca_handle"}, {Cgroup: "/a", Resource: "hca_object"}}
	s.snapshot.Devices[0].Resources = resourcesOf(inventoryRun("mlx5_0"), i)
	device, host := s.count(t, collector.Everything())
	series := make(map[string]int)
	for _, p := range collector.Parts() {
		d, h := s.count(t, without(collector.Everything(), p.Name))
		series[p.Name] = device - d + host - h
	}
	golden.Check(t, "../docs/reference/metrics.md", collector.Docs(series))
}
