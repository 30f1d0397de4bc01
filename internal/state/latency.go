package state

import (
	"math"
	"slices"
	"time"
)

// Latency is what one measurement of completions found: the samples that went
// well, and how many did not.
type Latency struct {
	// Port is the number of the port, from 1.
	Port int         `json:"port" wire:"key,max=256"`
	Path LatencyPath `json:"path" wire:"key"`
	Mode LatencyMode `json:"mode" wire:"key"`
	// Vector is the completion vector of the CQ.
	Vector int `json:"comp_vector" wire:"key,max=65536"`
	// Count is the number of samples that went well; P50 and P99 are quantiles of
	// them, 0 if there are none.
	Count int           `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	// Samples are the times, from before the work request was posted to after the
	// event was returned or, with ModePoll, the completion. Arms are the times
	// that asking for the event took. A snapshot keeps neither.
	Samples []time.Duration `json:"samples_ns,omitempty" wire:"max=16384"`
	Arms    []time.Duration `json:"arms_ns,omitempty" wire:"max=16384"`
	// Missed counts the events that had not come by the deadline though their
	// completions had; Spurious the events without a completion; Misdirected the
	// events on a wrong channel or for a wrong CQ; Missing the completions that
	// had not come by the deadline.
	Missed      int `json:"missed,omitempty"`
	Spurious    int `json:"spurious,omitempty"`
	Misdirected int `json:"misdirected,omitempty"`
	Missing     int `json:"missing,omitempty"`
	// Unsuccessful are the statuses, such as retry_exc_err, of completions that
	// should have had another, in order.
	Unsuccessful []string `json:"unsuccessful,omitempty" wire:"word,max=16384"`
	// Stopped says why there are fewer samples than asked for; empty if there are
	// not.
	Stopped string `json:"stopped,omitempty"`
	// Bins are how Samples are distributed. A snapshot keeps them in place of the
	// samples; a report of a child has none.
	Bins []Bin `json:"-"`
}

// Bin is how many samples were above From and not above To.
type Bin struct {
	From, To time.Duration
	Samples  int
}

// LatencyPath is how a completion is brought about.
type LatencyPath string

// The paths.
const (
	// PathLoopback: a message between two connected QPs on the same port, whose
	// receipt completes.
	PathLoopback LatencyPath = "loopback"
	// PathFlush: a work request posted to a QP in the error state, which needs
	// neither port nor peer.
	PathFlush LatencyPath = "flush"
)

// LatencyPaths returns every path.
func LatencyPaths() []LatencyPath { return []LatencyPath{PathLoopback, PathFlush} }

// LatencyMode is how a completion is awaited.
type LatencyMode string

// The modes.
const (
	// ModeAny: asleep, for the event of any completion.
	ModeAny LatencyMode = "any"
	// ModeSolicited: asleep, for the event of a solicited completion.
	ModeSolicited LatencyMode = "solicited"
	// ModePoll: awake, by polling without a pause.
	ModePoll LatencyMode = "poll"
)

// LatencyModes returns every mode.
func LatencyModes() []LatencyMode { return []LatencyMode{ModeAny, ModeSolicited, ModePoll} }

// Summarise sets Count, P50 and P99 from Samples.
func (l *Latency) Summarise() {
	l.Count = len(l.Samples)
	sorted := slices.Sorted(slices.Values(l.Samples))
	l.P50, l.P99 = quantile(sorted, 0.5), quantile(sorted, 0.99)
}

// quantile returns the q-quantile of sorted values by the nearest rank: the least
// of them that no less than that part of all does not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// binsPerDecade is how many bins there are from one power of ten to the next.
const binsPerDecade = 8

// Distribution returns how samples are distributed, in bins that are wider the
// longer the times are, in ascending order. Bins without samples are left out; what
// took no time is in the first.
func Distribution(samples []time.Duration) []Bin {
	bins := []Bin{}
	for _, s := range slices.Sorted(slices.Values(samples)) {
		if last := len(bins) - 1; last >= 0 && s <= bins[last].To {
			bins[last].Samples++
			continue
		}
		n := binOf(s)
		bins = append(bins, Bin{From: binBound(n - 1), To: binBound(n), Samples: 1})
	}
	return bins
}

// binOf returns the number of the bin that a sample is in: that whose upper bound is
// the least that is not below the sample.
func binOf(s time.Duration) int {
	s = max(s, 1)
	n := int(math.Ceil(math.Log10(float64(s)) * binsPerDecade))
	// The logarithm of a bound may come out on either side of it.
	for binBound(n) < s {
		n++
	}
	for binBound(n-1) >= s {
		n--
	}
	return n
}

// binBound returns the upper bound of a bin, no more than the longest time there is.
func binBound(n int) time.Duration {
	bound := math.Pow(10, float64(n)/binsPerDecade)
	if bound >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(bound)
}

// Wrong reports whether anything went wrong in the measurement.
func (l *Latency) Wrong() bool {
	return max(l.Missed, l.Spurious, l.Misdirected, l.Missing, len(l.Unsuccessful)) > 0
}
