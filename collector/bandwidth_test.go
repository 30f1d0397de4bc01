package collector_test

import (
	"testing"

	"rdma_exporter/internal/state"
)

func bandwidthRun(device string, b *state.Bandwidth, reduced *state.Reduced) *state.Run {
	return &state.Run{Kind: state.KindBandwidth, Device: device, Started: started(), Outcome: state.OutcomeOK, Bandwidth: b, Reduced: reduced}
}

// bandwidth is a device that was measured, and then was in use.
func bandwidth() scene {
	b := &state.Bandwidth{Hardware: &state.Hardware{}, Cells: []state.BandwidthCell{
		{Port: 1, Node: 0, Operation: "write", Size: 4096, QPs: 1, BytesPerSecond: 30e9},
		{Port: 1, Node: 0, Operation: "write", Size: state.LargeMessage, QPs: 1, BytesPerSecond: 20e9},
		{Port: 1, Node: 0, Operation: "write", Size: state.LargeMessage, QPs: 2, BytesPerSecond: 24e9},
		{Port: 1, Node: 1, Operation: "read", Size: state.LargeMessage, QPs: 4, BytesPerSecond: 19e9},
	}}
	out := sceneOf("libibverbs", stateOf(bare("mlx5_0")), bare("mlx5_0"), bandwidthRun("mlx5_0", b, nil), bandwidthRun("mlx5_0", nil, &state.Reduced{Reason: state.ReducedBusy}))
	measured := state.BandwidthState{}.Next(out.runs[1]).Next(out.runs[2])
	out.snapshot.Devices[0].Bandwidth = &measured
	return out
}

// TestBandwidth verifies which cells have series, that a measurement that was refused changes none of
// them, and that a device that is not measured has none.
func TestBandwidth(t *testing.T) {
	t.Parallel()
	const cell, at, runs = `rdma_bandwidth_bytes_per_second{device="mlx5_0",numa_node="`, `rdma_bandwidth_timestamp_seconds{device="mlx5_0"}`, `rdma_bandwidth_runs_total{device="mlx5_0",result="`
	compare(t, values(t, bandwidth().collector()), map[string]string{
		cell + `0",operation="write",port="1"}`: "2.4e+10", cell + `1",operation="read",port="1"}`: "1.9e+10", cell + `0",operation="read",port="1"}`: "",
		at: "1.77236640025e+09", runs + `ok"}`: "1", runs + `in_use"}`: "1", runs + `failed"}`: "",
	})
	compare(t, values(t, paths().collector()), map[string]string{at: "", runs + `ok"}`: ""})
}
