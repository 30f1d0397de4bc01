package state

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

// For each vector one measurement stands, whatever the order in which they come.
func TestVectors(t *testing.T) {
	t.Parallel()
	measured := func(path LatencyPath, mode LatencyMode, port, vector int) Latency {
		return Latency{Path: path, Mode: mode, Port: port, Vector: vector, Count: 1, P50: time.Duration(vector + 1)}
	}
	broken := Latency{Path: PathLoopback, Mode: ModeAny, Port: 1, Vector: 1, Missed: 3}
	for _, tc := range []struct {
		name      string
		latencies []Latency
		want      []Latency
	}{
		{"none", nil, nil},
		{"in the order of the vectors", []Latency{measured(PathFlush, ModeAny, 1, 63), measured(PathFlush, ModeAny, 1, 0), measured(PathFlush, ModeAny, 1, 7)}, []Latency{
			measured(PathFlush, ModeAny, 1, 0), measured(PathFlush, ModeAny, 1, 7), measured(PathFlush, ModeAny, 1, 63),
		}},
		{"loopback rather than flush", []Latency{measured(PathFlush, ModeAny, 1, 0), measured(PathLoopback, ModeAny, 2, 0)}, []Latency{measured(PathLoopback, ModeAny, 2, 0)}},
		{"the first port", []Latency{measured(PathLoopback, ModeAny, 3, 0), measured(PathLoopback, ModeAny, 2, 0)}, []Latency{measured(PathLoopback, ModeAny, 2, 0)}},
		{"a path that is broken", []Latency{measured(PathFlush, ModeAny, 1, 1), broken}, []Latency{broken}},
		{"other modes", []Latency{measured(PathLoopback, ModePoll, 1, 0), measured(PathLoopback, ModeSolicited, 1, 0), measured(PathFlush, ModeAny, 1, 0)}, []Latency{measured(PathFlush, ModeAny, 1, 0)}},
		{"invalid ones", []Latency{measured(PathLoopback, ModeAny, 1, -1), measured("sideways", ModeAny, 1, 0)}, nil},
	} {
		for range 2 {
			run := &Run{Probes: []Probe{{Name: "cq"}, {Name: "notification", Latencies: tc.latencies}}}
			if got := run.Vectors(); len(got) != len(tc.want) || len(got) > 0 && !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%s: got %+v, want %+v", tc.name, got, tc.want)
			}
			slices.Reverse(tc.latencies)
		}
	}
}

func TestSlowVectors(t *testing.T) {
	t.Parallel()
	const us = time.Microsecond
	// A negative median stands for a vector without samples.
	on := func(path LatencyPath, port int, medians ...time.Duration) []Latency {
		var vectors []Latency
		for i, m := range medians {
			v := Latency{Path: path, Port: port, Vector: i, Count: 10, P50: m}
			if m < 0 {
				v.Count, v.P50 = 0, -m
			}
			vectors = append(vectors, v)
		}
		return vectors
	}
	loopback := func(medians ...time.Duration) []Latency { return on(PathLoopback, 1, medians...) }
	for _, tc := range []struct {
		name    string
		vectors []Latency
		want    []int
	}{
		{"none", nil, nil},
		{"one", loopback(time.Second), nil},
		{"one next to one without samples", loopback(time.Second, -1), nil},
		{"one without samples", loopback(5*us, 5*us, -80*us), nil},
		{"all alike", loopback(5*us, 5*us, 6*us, 4*us), nil},
		{"one that is slow", loopback(5*us, 5*us, 80*us, 5*us), []int{2}},
		{"of two the quicker is usual", loopback(80*us, 5*us), []int{0}},
		{"two that are slow", loopback(80*us, 5*us, 5*us, 5*us, 90*us), []int{0, 4}},
		{"most are slow", loopback(80*us, 80*us, 5*us), nil},
		{"three times as long", loopback(10*us, 10*us, 30*us), []int{2}},
		{"not three times as long", loopback(10*us, 10*us, 30*us-1), nil},
		{"not much longer", loopback(1*us, 1*us, 20*us), nil},
		{"longer by enough", loopback(1*us, 1*us, 21*us), []int{2}},
		{"other paths are not compared", slices.Concat(on(PathFlush, 1, 5*us, 5*us), on(PathLoopback, 1, 80*us, 81*us)), nil},
		{"nor other ports", slices.Concat(on(PathLoopback, 1, 5*us, 5*us), on(PathLoopback, 2, 80*us, 81*us)), nil},
		{"slow among its own", slices.Concat(on(PathLoopback, 1, 80*us, 80*us), on(PathFlush, 1, 5*us, 5*us, 50*us)), []int{2}},
	} {
		if got := SlowVectors(tc.vectors); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}
