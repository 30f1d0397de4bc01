package collector_test

import (
	"encoding/json"
	"testing"
	"time"

	"rdma_exporter/internal/state"
)

// FuzzCollect makes sure that no snapshot and no run can make a scrape fail, or be other
// than client_golang has it.
func FuzzCollect(f *testing.F) {
	type input struct {
		Snapshot  *state.Snapshot
		Run       state.Run
		Calls     []state.Call
		Inventory state.Run
	}
	for _, s := range scenes() {
		in := input{Snapshot: s.snapshot}
		if len(s.runs) > 0 {
			in.Run, in.Calls = *s.runs[0].Compact(), s.runs[0].Calls
			in.Inventory = *s.runs[len(s.runs)-1].Compact()
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
		in.Calls = append(in.Calls, state.Call{Verb: raw, Errno: raw})
		in.Run.Calls = in.Calls
		in.Run.Probes = append(in.Run.Probes, state.Probe{Name: raw, Latencies: []state.Latency{
			{Path: state.PathFlush, Mode: state.ModeAny, Unsuccessful: []string{raw}},
			{Path: state.LatencyPath(raw), Mode: state.LatencyMode(raw)},
		}})
		in.Inventory.Kind, in.Inventory.Verb = state.KindContract, in.Inventory.Verb+raw
		contracts := &state.Contracts{Last: &in.Inventory, Verdicts: append(
			in.Inventory.Contracts,
			state.Contract{Name: raw, Severity: state.Severity(raw), Verdict: state.VerdictHolds},
			state.Contract{Name: raw, Reason: state.SkipReason(raw), Verdict: state.VerdictSkipped},
		)}
		if in.Snapshot != nil {
			in.Snapshot.Provider += raw
			in.Snapshot.Devices = append(in.Snapshot.Devices, state.DeviceState{
				Name: raw, Present: true, Last: &in.Run, Info: in.Run.Info, Contracts: contracts, Stuck: &state.Stuck{Verb: raw},
			})
			for i := range in.Snapshot.Devices {
				if h := in.Snapshot.Devices[i].Hardware; h != nil && h.Latest != nil {
					h.Latest.Ports = append(h.Latest.Ports, state.HardwarePort{
						Netdev: raw, GIDs: []state.GID{{GID: raw, Type: raw}}, Counters: []state.Counter{{Name: raw}},
					})
					h.Drops = append(h.Drops, state.CounterDrop{Name: raw, Resets: 1})
				}
				if r := in.Snapshot.Devices[i].Resources; r != nil && r.Inventory != nil {
					r.Inventory.Owners = append(r.Inventory.Owners, state.Owner{
						Comm: raw, ContainerID: raw, PodUID: raw, Objects: []state.TypeCount{{Type: raw}}, Memlock: new(state.Memlock),
					})
					r.Inventory.Cgroups = append(r.Inventory.Cgroups, state.CgroupUse{Cgroup: raw, ContainerID: raw, PodUID: raw, Resource: raw})
					r.Leaked = append(r.Leaked, state.Leaked{Type: raw})
				}
			}
		}
		c := collectorOf(in.Snapshot, &in.Run, &in.Inventory)
		expose(t, pedantic(t, c))
		c.Forget(in.Run.Device)
		expose(t, pedantic(t, c))
	})
}
