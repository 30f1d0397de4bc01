package supervisor

import (
	"math"
	"testing"
	"time"
)

// TestDelay verifies the pause until the next run of a job of one minute.
func TestDelay(t *testing.T) {
	t.Parallel()
	const s, m = time.Second, time.Minute
	for _, tt := range []struct {
		name           string
		jitter, random float64
		took           time.Duration
		failures       int
		backoff, want  time.Duration
	}{
		{"from the start of the last run", 0, 0, 7 * s, 0, m, 53 * s},
		{"after a run longer than the interval", 0, 0, 70 * s, 0, m, 6 * s},
		{"early", 0.1, 0, 0, 0, m, 54 * s},
		{"late", 0.1, 1, 0, 0, m, 66 * s},
		{"from the end of a failed run", 0, 0, 7 * s, 1, 8 * m, 2 * m},
		{"doubles", 0, 0, 0, 2, 8 * m, 4 * m},
		{"up to the longest", 0, 0, 0, 3, 7 * m, 7 * m},
		{"however many failures", 0, 0, 0, math.MaxInt, 1000 * m, 1000 * m},
		{"never shorter than the interval", 0, 0, 0, 5, s, m},
		{"with jitter", 0.1, 1, 0, 1, 8 * m, 126 * s},
	} {
		subtest(t, tt.name, func(t *testing.T) {
			sup := &Supervisor{cfg: Config{Jitter: tt.jitter, Backoff: tt.backoff}, random: func() float64 { return tt.random }}
			wantEqual(t, "delay", sup.delay(m, time.Now().Add(-tt.took), tt.failures), tt.want)
		})
	}
}
