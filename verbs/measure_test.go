package verbs_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"rdma_exporter/verbs"
)

func TestMeasurementValidate(t *testing.T) {
	const most = verbs.MaxSamples
	for _, tt := range []struct {
		name            string
		warmup, samples int
		deadline        time.Duration
		want            string // empty if it is valid
	}{
		{"least", 0, 1, 1, ""},
		{"most samples", 0, most, time.Second, ""},
		{"most warm-up", most - 1, 1, math.MaxInt64, ""},
		{"half each", most / 2, most / 2, time.Second, ""},
		{"no samples", 0, 0, time.Second, "0 samples: use a number from 1 to 16384"},
		{"fewer than none", 0, -1, time.Second, "-1 samples: use a number from 1 to 16384"},
		{"fewest", 0, math.MinInt, time.Second, "samples: use a number from 1 to 16384"},
		{"one too many", 0, most + 1, time.Second, "16385 samples: use a number from 1 to 16384"},
		{"less warm-up than none", -1, 10, time.Second, "-1 samples for warming up before 10: use a number from 0 to 16374"},
		{"too much warm-up", 16375, 10, time.Second, "16375 samples for warming up before 10: use a number from 0 to 16374"},
		{"no warm-up possible", 1, most, time.Second, "1 samples for warming up before 16384: use a number from 0 to 0"},
		{"sum overflows", math.MaxInt, math.MaxInt, time.Second, "samples: use a number from 1 to 16384"},
		{"warm-up overflows", math.MaxInt, 1, time.Second, "for warming up before 1: use a number from 0 to 16383"},
		{"no deadline", 0, 1, 0, "a deadline of 0s: use a time longer than 0s"},
		{"deadline in the past", 0, 1, -time.Second, "a deadline of -1s: use a time longer than 0s"},
		{"all", -1, 0, 0, "0 samples: use a number from 1 to 16384"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := verbs.Measurement{
				Sender: struct{ verbs.QP }{}, CQ: struct{ verbs.CQ }{}, Warmup: tt.warmup, Samples: tt.samples, Deadline: tt.deadline,
			}.Validate()
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && err == nil:
				t.Errorf("no error, want %q", tt.want)
			case err != nil && !strings.HasSuffix(err.Error(), tt.want):
				t.Errorf("%q, want %q", err, tt.want)
			}
		})
	}
}
