package state

import (
	"math"
	"slices"
	"time"
)

// Latency is the result of one measurement of completions.
type Latency struct {
	Port   int         `json:"port" wire:"key,max=256"`
	Path   LatencyPath `json:"path" wire:"key"`
	Mode   LatencyMode `json:"mode" wire:"key"`
	Vector int         `json:"comp_vector" wire:"key,max=65536"`
	// Count is the number of samples that succeeded, P50 and P99 are their quantiles.
	Count int           `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	// Samples are the times from posting the work request to its event or, with ModePoll, its
	// completion. Arms are the times of the requests for the event. A snapshot has neither.
	Samples []time.Duration `json:"samples_ns,omitempty" wire:"max=16384"`
	Arms    []time.Duration `json:"arms_ns,omitempty" wire:"max=16384"`
	// Missed counts completions whose event missed the deadline.
	Missed int `json:"missed,omitempty"`
	// Spurious counts events without a completion.
	Spurious int `json:"spurious,omitempty"`
	// Misdirected counts events on a wrong channel or for a wrong CQ.
	Misdirected int `json:"misdirected,omitempty"`
	// Missing counts completions that missed the deadline.
	Missing int `json:"missing,omitempty"`
	// Unsuccessful are the wrong statuses of completions, such as retry_exc_err, in order.
	Unsuccessful []string `json:"unsuccessful,omitempty" wire:"word,max=16384"`
	// Stopped is why there are fewer samples than requested.
	Stopped string `json:"stopped,omitempty"`
	// Bins are the distribution of Samples. Only a snapshot has them.
	Bins []Bin `json:"-"`
}

// Bin is how many samples were above From and not above To.
type Bin struct {
	From, To time.Duration
	Samples  int
}

// LatencyPath is how a completion is produced.
type LatencyPath string

// The paths, the nearest to what programs do first.
const (
	// PathLoopback is a message between two connected QPs on the same port.
	PathLoopback LatencyPath = "loopback"
	// PathFlush is a work request posted to a QP in the error state. It needs no active port.
	PathFlush LatencyPath = "flush"
)

// LatencyPaths returns every path.
func LatencyPaths() []LatencyPath { return []LatencyPath{PathLoopback, PathFlush} }

// LatencyMode is how a program waits for a completion.
type LatencyMode string

// The modes: asleep, until the event of any completion or of a solicited one, or polling.
const (
	ModeAny       LatencyMode = "any"
	ModeSolicited LatencyMode = "solicited"
	ModePoll      LatencyMode = "poll"
)

// LatencyModes returns every mode.
func LatencyModes() []LatencyMode { return []LatencyMode{ModeAny, ModeSolicited, ModePoll} }

// Summarise sets Count, P50 and P99 from Samples. The quantiles are by the nearest rank.
func (l *Latency) Summarise() {
	l.Count, l.P50, l.P99 = len(l.Samples), 0, 0
	if sorted := slices.Sorted(slices.Values(l.Samples)); len(sorted) > 0 {
		l.P50, l.P99 = sorted[(len(sorted)-1)/2], sorted[(99*len(sorted)-1)/100]
	}
}

// binsPerDecade is how many bins there are from one power of ten to the next.
const binsPerDecade = 8

// Distribution returns the distribution of samples in bins of equal width on a logarithmic
// scale, in ascending order. Empty bins are left out.
func Distribution(samples []time.Duration) []Bin {
	bins := []Bin{}
	n := 0
	for _, s := range slices.Sorted(slices.Values(samples)) {
		if last := len(bins) - 1; last >= 0 && s <= bins[last].To {
			bins[last].Samples++
			continue
		}
		for binBound(n) < s {
			n++
		}
		bins = append(bins, Bin{From: binBound(n - 1), To: binBound(n), Samples: 1})
	}
	return bins
}

func binBound(n int) time.Duration {
	bound := math.Pow(10, float64(n)/binsPerDecade)
	if bound >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(bound)
}

// Errors returns how many events and completions of a measurement went wrong.
func (l *Latency) Errors() int {
	return l.Missed + l.Spurious + l.Misdirected + l.Missing + len(l.Unsuccessful)
}

// Wrong reports whether anything went wrong in the measurement.
func (l *Latency) Wrong() bool { return l.Errors() != 0 }
