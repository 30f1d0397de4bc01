package collector_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rdma_exporter/internal/report"
)

// FuzzCollect makes sure that no snapshot and no run can make a scrape fail.
func FuzzCollect(f *testing.F) {
	type input struct {
		Snapshot *report.Snapshot
		Run      report.Run
		Calls    []report.Call
		Audit    report.Run
	}
	for _, s := range scenes() {
		in := input{Snapshot: s.snapshot}
		if len(s.runs) > 0 {
			in.Run, in.Calls = *s.runs[0].Kept(), s.runs[0].Calls
			in.Audit = *s.runs[len(s.runs)-1].Kept()
			// A seed that is long keeps the fuzzer busy with making it short.
			in.Calls = in.Calls[:min(len(in.Calls), 3)]
			for _, p := range in.Run.Probes {
				for i := range p.Latencies[:min(len(p.Latencies), 3)] {
					p.Latencies[i].Samples, p.Latencies[i].Arms = []time.Duration{3000, 2000}, []time.Duration{200}
				}
			}
		}
		b, err := json.Marshal(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "\xff")
	}
	f.Fuzz(func(t *testing.T, data []byte, raw string) {
		var in input
		if json.Unmarshal(data, &in) != nil {
			return
		}
		// JSON has no invalid UTF-8; what is not decoded from it might.
		in.Calls = append(in.Calls, report.Call{Verb: raw, Errno: raw})
		in.Run.Calls = in.Calls
		in.Run.Probes = append(in.Run.Probes, report.Probe{Name: raw, Latencies: []report.Latency{
			{Path: report.PathFlush, Mode: report.ModeAny, Unsuccessful: []string{raw}},
			{Path: report.LatencyPath(raw), Mode: report.LatencyMode(raw)},
		}})
		in.Audit.Kind, in.Audit.Verb = report.KindContract, in.Audit.Verb+raw
		contracts := &report.Contracts{Last: &in.Audit, Verdicts: append(
			in.Audit.Contracts,
			report.Contract{Name: raw, Severity: report.Severity(raw), Verdict: report.VerdictHolds},
			report.Contract{Name: raw, Reason: report.SkipReason(raw), Verdict: report.VerdictSkipped},
		)}
		if in.Snapshot != nil {
			in.Snapshot.Provider += raw
			in.Snapshot.Devices = append(in.Snapshot.Devices, report.DeviceState{
				Name: raw, Present: true, Last: &in.Run, Info: in.Run.Info, Contracts: contracts, Stuck: &report.Stuck{Verb: raw},
			})
			for i := range in.Snapshot.Devices {
				if r := in.Snapshot.Devices[i].Resources; r != nil && r.Inventory != nil {
					r.Inventory.Owners = append(r.Inventory.Owners, report.Owner{
						Comm: raw, ContainerID: raw, PodUID: raw, Objects: []report.TypeCount{{Type: raw}}, Memlock: new(report.Memlock),
					})
					r.Inventory.Cgroups = append(r.Inventory.Cgroups, report.CgroupUse{Cgroup: raw, ContainerID: raw, PodUID: raw, Resource: raw})
					r.Leaked = append(r.Leaked, report.Leaked{Type: raw})
				}
			}
		}
		c := collectorOf(in.Snapshot, &in.Run, &in.Audit)
		expose(t, pedantic(t, c))
		expose(t, c.Gatherer(prometheus.NewRegistry()))
		c.Forget(in.Run.Device)
		expose(t, pedantic(t, c))
	})
}
