package state

import (
	"math"
	"math/rand/v2"
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

func TestDistribution(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		samples []time.Duration
		want    []Bin
	}{
		{"none", nil, []Bin{}},
		{"one", []time.Duration{100}, []Bin{{74, 100, 1}}},
		{"one more than a bound", []time.Duration{101}, []Bin{{100, 133, 1}}},
		{"in order, without what is empty", []time.Duration{5000, 90, 100, 5001, 80, 1000}, []Bin{{74, 100, 3}, {749, 1000, 1}, {4216, 5623, 2}}},
		{"in no time", []time.Duration{0, 1, -1}, []Bin{{0, 1, 3}}},
		{"nearly none", []time.Duration{2, 3}, []Bin{{1, 2, 1}, {2, 3, 1}}},
		{"as long as can be", []time.Duration{math.MaxInt64}, []Bin{{7498942093324557312, math.MaxInt64, 1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := Distribution(tc.samples); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// Every sample is in one bin, within its bounds; the bins do not overlap, and are few.
func TestDistributionHolds(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var samples []time.Duration
	for power := time.Duration(1); power <= math.MaxInt64/10; power *= 10 {
		samples = append(samples, power-1, power, power+1)
	}
	for range 10000 {
		samples = append(samples, time.Duration(random.Int64()>>random.IntN(63)))
	}
	bins := Distribution(samples)
	if len(bins) > 19*binsPerDecade {
		t.Errorf("%d bins", len(bins))
	}
	total := 0
	for i, b := range bins {
		if b.From >= b.To || i > 0 && bins[i-1].To > b.From {
			t.Errorf("%v comes after %v", b, bins[max(i, 1)-1])
		}
		n := 0
		for _, s := range samples {
			if max(s, 1) > b.From && max(s, 1) <= b.To {
				n++
			}
		}
		if n != b.Samples {
			t.Errorf("%v should have %d samples", b, n)
		}
		total += b.Samples
	}
	if total != len(samples) {
		t.Errorf("%d of %d samples are in a bin", total, len(samples))
	}
}
