package state

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// MaxVectors is how many of the completion vectors of a device that were measured are
// shown, the first ones.
const MaxVectors = 256

// Vectors returns, for each completion vector on which the run measured
// notification, the measurement that stands for the vector, in the order of the
// vectors: the one of mode any by the nearest path to what programs do, on the
// first port. They share the samples of the run.
func (r *Run) Vectors() []Latency {
	measured := make(map[int]*Latency)
	for i := range r.Probes {
		for j := range r.Probes[i].Latencies {
			l := &r.Probes[i].Latencies[j]
			if l.Mode == ModeAny && l.Vector >= 0 && slices.Contains(LatencyPaths(), l.Path) && stands(l, measured[l.Vector]) {
				measured[l.Vector] = l
			}
		}
	}
	vectors := make([]Latency, 0, len(measured))
	for _, n := range slices.Sorted(maps.Keys(measured)) {
		vectors = append(vectors, *measured[n])
	}
	return vectors
}

// stands tells whether a measurement, rather than another one of the same run
// and vector, is what stands for the vector: loopback is nearer to what
// programs do than flush, and the rest must be decided somehow. That more went
// well in the other must not matter: it would hide a path that is broken.
func stands(l, other *Latency) bool {
	if other == nil {
		return true
	}
	rank := func(l *Latency) int { return slices.Index(LatencyPaths(), l.Path) }
	return cmp.Or(cmp.Compare(rank(l), rank(other)), cmp.Compare(l.Port, other.Port)) <= 0
}

// A vector is slow if its median is as many times the usual one, and by as much
// longer, as these say: less is noise.
const (
	slowFactor = 3
	slowExcess = 20 * time.Microsecond
)

// SlowFrom returns the median from which a vector is slow, where u is usual. It stays at
// the longest time that there can be, from which nothing is.
func SlowFrom(u time.Duration) time.Duration {
	if u > (math.MaxInt64-slowExcess)/slowFactor {
		return math.MaxInt64
	}
	return max(slowFactor*u, u+slowExcess)
}

// SlowVectors returns which of the measured vectors of one device are slow beside
// the others, by their numbers. They are held to what is usual, as [UsualLatency] has
// it.
func SlowVectors(vectors []Latency) []int {
	type way struct {
		path LatencyPath
		port int
	}
	usual := make(map[way]time.Duration)
	var slow []int
	for i := range vectors {
		v := &vectors[i]
		w := way{v.Path, v.Port}
		u, ok := usual[w]
		if !ok {
			u = UsualLatency(vectors, v.Path, v.Port)
			usual[w] = u
		}
		if from := SlowFrom(u); v.Count > 0 && u > 0 && v.P50 >= from && from < math.MaxInt64 {
			slow = append(slow, v.Vector)
		}
	}
	return slow
}

// UsualLatency returns the median of the medians of those vectors that were measured
// on the given path and port: what can be expected of each of them, since only like
// can be held to like. Of two, it is the quicker one. It is 0 for fewer than two.
func UsualLatency(vectors []Latency, path LatencyPath, port int) time.Duration {
	var medians []time.Duration
	for i := range vectors {
		if v := &vectors[i]; v.Count > 0 && v.Path == path && v.Port == port {
			medians = append(medians, v.P50)
		}
	}
	if len(medians) < 2 {
		return 0
	}
	slices.Sort(medians)
	return medians[(len(medians)-1)/2]
}
