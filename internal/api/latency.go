package api

import (
	"cmp"
	"math"
	"slices"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// latenciesOf sums up the measurements of a run over the completion vectors: by
// port, path and mode.
func latenciesOf(run *state.Run) []Latency {
	type key struct {
		port int
		path state.LatencyPath
		mode state.LatencyMode
	}
	found := make(map[key]*sum)
	var order []*sum
	for i := range cut(run.Probes) {
		for j := range cut(run.Probes[i].Latencies) {
			l := &run.Probes[i].Latencies[j]
			k := key{l.Port, l.Path, l.Mode}
			if !slices.Contains(state.LatencyPaths(), l.Path) || !slices.Contains(state.LatencyModes(), l.Mode) {
				continue
			}
			s := found[k]
			if s == nil {
				s = &sum{Latency: Latency{Port: l.Port, Path: l.Path, Mode: l.Mode}, bins: make(map[state.Bin]int)}
				found[k] = s
				order = append(order, s)
			}
			s.add(l)
		}
	}
	latencies := make([]Latency, 0, len(order))
	for _, s := range cut(order) {
		latencies = append(latencies, s.latency())
	}
	slices.SortStableFunc(latencies, func(a, b Latency) int {
		return cmp.Or(
			cmp.Compare(a.Port, b.Port),
			cmp.Compare(slices.Index(state.LatencyPaths(), a.Path), slices.Index(state.LatencyPaths(), b.Path)),
			cmp.Compare(slices.Index(state.LatencyModes(), a.Mode), slices.Index(state.LatencyModes(), b.Mode)),
		)
	})
	return latencies
}

// sum is what several measurements come to.
type sum struct {
	Latency
	measurements int
	// bins count samples by their bounds.
	bins map[state.Bin]int
}

func (s *sum) add(l *state.Latency) {
	s.measurements++
	s.Samples = plus(s.Samples, l.Count)
	s.P50, s.P99 = seconds(l.P50), seconds(l.P99)
	for _, b := range cut(l.Bins) {
		bounds := state.Bin{From: max(b.From, 0), To: max(b.To, 0)}
		s.bins[bounds] = plus(s.bins[bounds], b.Samples)
	}
	s.Missed = plus(s.Missed, l.Missed)
	s.Spurious = plus(s.Spurious, l.Spurious)
	s.Misdirected = plus(s.Misdirected, l.Misdirected)
	s.Missing = plus(s.Missing, l.Missing)
	s.Unsuccessful = plus(s.Unsuccessful, len(l.Unsuccessful))
}

// latency returns what the measurements come to. The quantiles of a single one are
// known; those of several are read off the distribution.
func (s *sum) latency() Latency {
	l := s.Latency
	for b, samples := range s.bins {
		if samples > 0 && b.To > b.From {
			l.Distribution = append(l.Distribution, Bin{From: b.From.Seconds(), To: b.To.Seconds(), Samples: samples})
		}
	}
	slices.SortFunc(l.Distribution, func(a, b Bin) int { return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From)) })
	l.Distribution = cut(l.Distribution)
	if s.measurements > 1 {
		l.P50, l.P99 = quantile(l.Distribution, 0.5), quantile(l.Distribution, 0.99)
	}
	return l
}

// quantile returns the q-quantile of a distribution by the nearest rank: the middle,
// on the scale of ratios, of the bin that has it. Without samples it is 0.
func quantile(bins []Bin, q float64) float64 {
	all := 0
	for _, b := range bins {
		all = plus(all, b.Samples)
	}
	rank := math.Ceil(q * float64(all))
	seen := 0
	for _, b := range bins {
		seen = plus(seen, b.Samples)
		if float64(seen) >= rank {
			if b.From <= 0 {
				return b.To
			}
			return math.Sqrt(b.From * b.To)
		}
	}
	return 0
}

// vectorsOf returns the latest measurement of each completion vector.
func vectorsOf(n *state.Notification) []Vector {
	vectors := cut(n.Vectors)
	slow := make(map[int]bool)
	for _, number := range state.SlowVectors(vectors) {
		slow[number] = true
	}
	type way struct {
		path state.LatencyPath
		port int
	}
	usual := make(map[way]time.Duration)
	list := make([]Vector, 0, len(vectors))
	for i := range vectors {
		v := &vectors[i]
		w := way{v.Path, v.Port}
		if _, known := usual[w]; !known {
			usual[w] = state.UsualLatency(vectors, v.Path, v.Port)
		}
		list = append(list, Vector{
			Number: v.Vector, Port: v.Port, Path: state.LatencyPath(text.Clean(string(v.Path))),
			Samples: count(v.Count), P50: seconds(v.P50), P99: seconds(v.P99),
			Wrong: plus(plus(plus(count(v.Missed), v.Spurious), plus(count(v.Misdirected), v.Missing)), len(v.Unsuccessful)),
			Usual: seconds(usual[w]), Slow: slow[v.Vector], Measured: moment(v.Measured),
		})
	}
	slices.SortStableFunc(list, func(a, b Vector) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// plus adds a number of things to another, and stays at the most that there can be.
func plus[T ~int | ~int64](a, b T) T {
	b = count(b)
	if s := a + b; s >= a {
		return s
	}
	return max(a, math.MaxInt)
}
