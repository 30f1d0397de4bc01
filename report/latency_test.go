package report

import (
	"slices"
	"testing"
	"time"
)

func TestSummarise(t *testing.T) {
	t.Parallel()
	// upTo are the values from n down to 1.
	upTo := func(n int) []time.Duration {
		var samples []time.Duration
		for i := n; i > 0; i-- {
			samples = append(samples, time.Duration(i))
		}
		return samples
	}
	tests := []struct {
		name     string
		samples  []time.Duration
		p50, p99 time.Duration
	}{
		{"none", nil, 0, 0},
		{"one", upTo(1), 1, 1},
		{"three", upTo(3), 2, 3},
		{"out of order", []time.Duration{5, 1, 4, 2, 3}, 3, 5},
		{"two", upTo(2), 1, 2},
		{"a hundred", upTo(100), 50, 99},
		{"a hundred and one", upTo(101), 51, 100},
		{"a thousand", upTo(1000), 500, 990},
		{"all the same", slices.Repeat([]time.Duration{7}, 1000), 7, 7},
		{"one far out", append(slices.Repeat([]time.Duration{7}, 1000), time.Second), 7, 7},
		{"two per cent far out", append(slices.Repeat([]time.Duration{7}, 98), time.Second, time.Second), 7, time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// What an earlier call said must not stay.
			l := Latency{Samples: slices.Clone(tt.samples), Count: 99, P50: 99, P99: 99}
			l.Summarise()
			if l.Count != len(tt.samples) || l.P50 != tt.p50 || l.P99 != tt.p99 {
				t.Errorf("%d samples, quantiles %d and %d, want %d, %d and %d", l.Count, l.P50, l.P99, len(tt.samples), tt.p50, tt.p99)
			}
			if !slices.Equal(l.Samples, tt.samples) {
				t.Errorf("the samples have become %v", l.Samples)
			}
		})
	}
}

func TestWrong(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		latency Latency
		want    bool
	}{
		{"nothing", Latency{}, false},
		{"well", Latency{Count: 1, P50: 1, P99: 1, Samples: []time.Duration{1}}, false},
		{"stopped for time", Latency{Stopped: "the time for it was used up"}, false},
		{"missed", Latency{Missed: 1}, true},
		{"spurious", Latency{Spurious: 1}, true},
		{"misdirected", Latency{Misdirected: 1}, true},
		{"missing", Latency{Missing: 1}, true},
		{"unsuccessful", Latency{Unsuccessful: []string{"success"}}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.latency.Wrong(); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
