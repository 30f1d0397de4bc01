package collector_test

import (
	"encoding/json"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"rdma_exporter/report"
)

// FuzzCollect makes sure that no snapshot and no run can make a scrape fail.
func FuzzCollect(f *testing.F) {
	type input struct {
		Snapshot *report.Snapshot
		Run      report.Run
		Calls    []report.Call
	}
	for _, s := range scenes() {
		in := input{Snapshot: s.snapshot}
		if len(s.runs) > 0 {
			in.Run, in.Calls = *s.runs[0], s.runs[0].Calls
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
		if in.Snapshot != nil {
			in.Snapshot.Provider += raw
			in.Snapshot.Devices = append(in.Snapshot.Devices, report.DeviceState{
				Name: raw, Present: true, Last: &in.Run, Info: in.Run.Info, Stuck: &report.Stuck{Verb: raw},
			})
		}
		c := collectorOf(in.Snapshot, &in.Run)
		expose(t, pedantic(t, c))
		expose(t, c.Gatherer(prometheus.NewRegistry()))
		c.Forget(in.Run.Device)
		expose(t, pedantic(t, c))
	})
}
