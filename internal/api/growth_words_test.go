package api_test

import (
	"math"
	"testing"

	"rdma_exporter/internal/api"
)

func TestGrowthWords(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		growth            api.Growth
		words, until, way string
	}{
		{api.Growth{From: 400, To: 1000, Over: 3480, PerHour: 600, Steady: true, OnlyGrows: true, UntilLimit: new(39600.0)}, "400 → 1000 in 58 min, 10 a minute", "11 h", "all the time, never fewer"},
		{api.Growth{To: 65536, Over: 900, PerHour: 59, Steady: true, UntilLimit: new(math.Inf(1))}, "0 → 65,536 in 15 min, 59 an hour", "more than 10 years", "all the time"},
		{api.Growth{OnlyGrows: true}, "0 → 0 in 0 s, 0 an hour", "no limit reported", "never fewer"},
		{api.Growth{}, "0 → 0 in 0 s, 0 an hour", "no limit reported", "up and down"},
	} {
		if words, until, way := tc.growth.Words(), tc.growth.Until(), tc.growth.Way(); words != tc.words || until != tc.until || way != tc.way {
			t.Errorf("%+v: %q, %q, %q", tc.growth, words, until, way)
		}
	}
}
