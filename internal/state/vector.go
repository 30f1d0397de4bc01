package state

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// MaxVectors limits how many completion vectors of a device are shown.
const MaxVectors = 256

// Vectors returns the measurement that stands for each completion vector of the run, in the
// order of the vectors. It is one of mode any, on the path nearest to what programs do and
// on the first port, even if it failed: another one would hide a broken path.
func (r *Run) Vectors() []Latency {
	rank := func(l *Latency) int { return slices.Index(LatencyPaths(), l.Path) }
	measured := make(map[int]*Latency)
	for i := range r.Probes {
		for j := range r.Probes[i].Latencies {
			l := &r.Probes[i].Latencies[j]
			if l.Mode != ModeAny || l.Vector < 0 || !l.Path.Valid() {
				continue
			}
			if other := measured[l.Vector]; other == nil || cmp.Or(cmp.Compare(rank(l), rank(other)), cmp.Compare(l.Port, other.Port)) <= 0 {
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

// A vector is slow if its median exceeds the usual one by this factor and this time.
const (
	slowFactor = 3
	slowExcess = 20 * time.Microsecond
)

// SlowFrom returns the median from which a vector is slow if u is usual.
func SlowFrom(u time.Duration) time.Duration { return max(slowFactor*u, u+slowExcess) }

// SlowVectors returns the numbers of the vectors of one device that are slow compared with
// the others on the same path and port.
func SlowVectors(vectors []Latency) []int {
	var slow []int
	for i := range vectors {
		v := &vectors[i]
		usual := UsualLatency(vectors, v.Path, v.Port)
		if v.Count > 0 && usual > 0 && v.P50 >= SlowFrom(usual) {
			slow = append(slow, v.Vector)
		}
	}
	return slow
}

// UsualLatency returns the lower median of the medians of the vectors that were measured on
// a path and port. Zero means that there are fewer than two.
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
