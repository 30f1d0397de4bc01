package state

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestSummarise(t *testing.T) {
	t.Parallel()
	upTo := func(n int) (samples []time.Duration) {
		for i := n; i > 0; i-- {
			samples = append(samples, time.Duration(i))
		}
		return samples
	}
	for _, tt := range []struct {
		samples  []time.Duration
		p50, p99 time.Duration
	}{
		{nil, 0, 0},
		{upTo(1), 1, 1},
		{upTo(2), 1, 2},
		{[]time.Duration{5, 1, 4, 2, 3}, 3, 5},
		{upTo(100), 50, 99},
		{upTo(101), 51, 100},
		{upTo(1000), 500, 990},
		{append(slices.Repeat([]time.Duration{7}, 1000), time.Second), 7, 7},
		{append(slices.Repeat([]time.Duration{7}, 98), time.Second, time.Second), 7, time.Second},
	} {
		l := Latency{Samples: slices.Clone(tt.samples), Count: 99, P50: 99, P99: 99}
		l.Summarise()
		if l.Count != len(tt.samples) || l.P50 != tt.p50 || l.P99 != tt.p99 {
			t.Errorf("%d of %d samples, quantiles %d and %d, want %d and %d", l.Count, len(tt.samples), l.P50, l.P99, tt.p50, tt.p99)
		}
		if !slices.Equal(l.Samples, tt.samples) {
			t.Errorf("the samples have become %v", l.Samples)
		}
	}
}

// TestLatencies verifies that the measurements on several vectors are one, with their errors and the
// times of the slowest.
func TestLatencies(t *testing.T) {
	t.Parallel()
	on := func(port, vector int, path LatencyPath, mode LatencyMode, p50, p99 time.Duration, missed int) Latency {
		return Latency{Port: port, Vector: vector, Path: path, Mode: mode, Count: 10, P50: p50, P99: p99, Missed: missed}
	}
	measured := []Latency{
		on(2, 0, PathLoopback, ModeAny, 1, 2, 0), on(1, 0, PathFlush, ModeAny, 3, 4, 0), on(1, 0, PathLoopback, ModePoll, 5, 6, 0),
		on(1, 0, PathLoopback, ModeAny, 7, 9, 1), on(1, 3, PathLoopback, ModeAny, 8, 8, 2),
	}
	slowest := on(1, 0, PathLoopback, ModeAny, 8, 9, 3)
	slowest.Count = 20
	want := []Latency{slowest, measured[2], measured[1], measured[0]}
	d := DeviceState{Full: &Run{Probes: []Probe{{Name: "cq"}, {Name: "notification", Latencies: slices.Clone(measured)}}}}
	if got := d.Latencies(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got := d.Full.Probes[1].Latencies; !reflect.DeepEqual(got, measured) {
		t.Errorf("the measurements have become %+v", got)
	}
}
