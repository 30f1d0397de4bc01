package bandwidth_test

import (
	"testing"
	"time"

	"rdma_exporter/internal/health/bandwidth"
	"rdma_exporter/internal/state"
)

// measured returns a device with a port of 100 Gb/s next to NUMA node 0. It moves rates of the port's rate:
// writes and reads with node 0, and then with node 1. The most that it ever moved is best of that rate.
func measured(name string, best float64, rates ...float64) state.DeviceState {
	const rate = 12.5e9
	h := state.Hardware{Identity: state.Adapter{PCI: "0000:3b:00.0", Model: "CX7"}, Ports: []state.HardwarePort{{Number: 1, Rate: 8 * rate}}}
	b := state.Bandwidth{Device: name, Hardware: &h, Time: time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)}
	for i, r := range rates {
		b.Cells = append(b.Cells, state.BandwidthCell{
			Port: 1, Node: i / 2, Operation: []string{"write", "read"}[i%2], Size: state.LargeMessage, BytesPerSecond: r * rate, Best: best * rate,
		})
	}
	return state.DeviceState{Name: name, Present: true, Bandwidth: &state.BandwidthState{Measured: &b, Large: b.Cells}}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	const slow, unknown = "bandwidth_low port 1 moves 50 Gb/s of 100 Gb/s, its rate; ", "the reason is unknown.; "
	for _, tc := range []struct {
		name   string
		best   float64
		rates  []float64
		change func(*state.DeviceState)
		want   string
	}{
		{"as fast as its rate", 1, []float64{1, 1, 1, 1}, nil, ""},
		{"slow", 0.5, []float64{0.5, 0.5, 0.5, 0.5}, nil, slow + unknown},
		{"a node is slow", 0, []float64{1, 1, 0.5, 0.5}, nil, "numa_asymmetric port 1 moves 50 Gb/s with the slowest NUMA node and 100 Gb/s with the fastest; " + unknown},
		{"reads were faster", 1, []float64{1, 0.7, 1, 0.85}, nil, "bandwidth_low port 1 moves 70 Gb/s (read, NUMA node 0), and has moved 100 Gb/s; " + unknown},
		{"faster than its rate before", 2, []float64{1, 0.85, 1, 1}, nil, ""},
		{"slow, and was faster", 1, []float64{0.5, 0.5, 0.5, 0.5}, nil, slow + unknown},
		{"its own node has no memory", 0.5, []float64{0.5, 0.5}, func(d *state.DeviceState) { d.Bandwidth.Measured.Hardware.Identity.NUMANode = 1 }, slow + unknown},
		{"emulated", 1, []float64{0.1, 0.1, 0.1, 0.1}, func(d *state.DeviceState) { d.Bandwidth.Measured.Hardware.Driver = "rxe" }, ""},
		{"not measured", 0, nil, func(d *state.DeviceState) { d.Bandwidth = nil }, ""},
		{"refused so far", 0, nil, func(d *state.DeviceState) { d.Bandwidth = &state.BandwidthState{Result: state.BandwidthInUse} }, ""},
		{"saved without hardware", 1, []float64{0.5}, func(d *state.DeviceState) { d.Bandwidth.Measured.Hardware = nil }, ""},
		{"gone", 1, []float64{0.5}, func(d *state.DeviceState) { d.Present = false }, ""},
		{"no port is known", 1, []float64{0.5}, func(d *state.DeviceState) { d.Bandwidth.Measured.Hardware.Ports = nil }, "bandwidth_low port 1 moves 50 Gb/s (write, NUMA node 0), and has moved 100 Gb/s; " + unknown},
		{"another adapter", 1, []float64{0.5}, func(d *state.DeviceState) {
			d.Hardware = &state.HardwareState{Latest: &state.Hardware{Identity: state.Adapter{PCI: "0000:5e:00.0"}}}
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := measured("a", tc.best, tc.rates...)
			if tc.change != nil {
				tc.change(&d)
			}
			var got string
			bandwidth.Problems(&d, []state.DeviceState{d, measured("b", 1, 0.2), {Name: "c", Present: true}}, func(kind, _, _, message string, _ bool) {
				got += kind + " " + message[len("By the measurement at 2026-03-01 12:00:00 UTC, "):] + "; "
			})
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
