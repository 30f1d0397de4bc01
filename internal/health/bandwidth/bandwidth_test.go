package bandwidth_test

import (
	"fmt"
	"testing"

	"rdma_exporter/internal/health/bandwidth"
	"rdma_exporter/internal/state"
)

// measured returns a device with a port of 100 Gb/s next to NUMA node 0. It moves rates of the port's rate:
// writes and reads with node 0, and then with node 1.
func measured(name string, rates ...float64) state.DeviceState {
	const rate = 12.5e9
	h := state.Hardware{Identity: state.Adapter{PCI: "0000:3b:00.0", Model: "CX7"}, Ports: []state.HardwarePort{{Number: 1, Rate: 8 * rate}}}
	b := state.Bandwidth{Device: name, Hardware: &h}
	for i, r := range rates {
		b.Cells = append(b.Cells, state.BandwidthCell{
			Port: 1, Node: i / 2, Operation: []string{"write", "read"}[i%2], Size: state.LargeMessage, QPs: 1, BytesPerSecond: r * rate,
		})
	}
	return state.DeviceState{Name: name, Present: true, Bandwidth: &state.BandwidthState{Measured: &b, Best: b.Best()}}
}

func TestOf(t *testing.T) {
	t.Parallel()
	best := func(d *state.DeviceState, rate float64) {
		all := append([]state.BandwidthCell{}, d.Bandwidth.Best...)
		for i := range all {
			all[i].BytesPerSecond = rate * 12.5e9
		}
		d.Bandwidth.Best = all
	}
	for _, tc := range []struct {
		name   string
		rates  []float64
		change func(*state.DeviceState)
		want   string
	}{
		{"as fast as its rate", []float64{1, 1, 1, 1}, nil, ""},
		{"slow", []float64{0.5, 0.5, 0.5, 0.5}, nil, "bandwidth_low port 1 moves 50 Gb/s of 100 Gb/s, its rate; the reason is unknown; "},
		{"a node is slow", []float64{1, 1, 0.5, 0.5}, nil, "numa_asymmetric port 1 moves 50 Gb/s with the slowest NUMA node and 100 Gb/s with the fastest; the reason is unknown; "},
		{
			"reads were faster",
			[]float64{1, 0.7, 1, 0.85},
			func(d *state.DeviceState) { best(d, 1) },
			"bandwidth_low port 1 moves 70 Gb/s (read, NUMA node 0), and has moved 100 Gb/s; the reason is unknown; ",
		},
		{"faster than its rate before", []float64{1, 0.85, 1, 1}, func(d *state.DeviceState) { best(d, 2) }, ""},
		{
			"slow, and was faster",
			[]float64{0.5, 0.5, 0.5, 0.5},
			func(d *state.DeviceState) { best(d, 1) },
			"bandwidth_low port 1 moves 50 Gb/s of 100 Gb/s, its rate; the reason is unknown; ",
		},
		{
			"its own node has no memory",
			[]float64{0.5, 0.5},
			func(d *state.DeviceState) { d.Bandwidth.Measured.Hardware.Identity.NUMANode = 1 },
			"bandwidth_low port 1 moves 50 Gb/s of 100 Gb/s, its rate; the reason is unknown; ",
		},
		{"emulated", []float64{0.1, 0.1, 0.1, 0.1}, func(d *state.DeviceState) {
			d.Bandwidth.Measured.Hardware.Driver = "rxe"
			best(d, 1)
		}, ""},
		{"not measured", nil, func(d *state.DeviceState) { d.Bandwidth = nil }, ""},
		{"refused so far", nil, func(d *state.DeviceState) { d.Bandwidth = &state.BandwidthState{Result: state.BandwidthInUse} }, ""},
		{"saved without hardware", []float64{0.5}, func(d *state.DeviceState) { d.Bandwidth.Measured.Hardware = nil }, ""},
		{"gone", []float64{0.5}, func(d *state.DeviceState) { d.Present = false }, ""},
		{"another adapter", []float64{0.5}, func(d *state.DeviceState) {
			d.Hardware = &state.HardwareState{Latest: &state.Hardware{Identity: state.Adapter{PCI: "0000:5e:00.0"}}}
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := measured("a", tc.rates...)
			if tc.change != nil {
				tc.change(&d)
			}
			var got string
			for _, f := range bandwidth.Of(&d, []state.DeviceState{d, measured("b", 0.2), {Name: "c", Present: true}}) {
				got += fmt.Sprint(f.Kind, " ", f.Detail, "; ")
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
