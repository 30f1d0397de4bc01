package text_test

import (
	"math"
	"testing"
	"time"

	"rdma_exporter/internal/text"
)

func TestSeconds(t *testing.T) {
	cases[float64]{
		0: "0 s", -1: "0 s", 1e-9: "1 ns", 0.25e-9: "0.25 ns", 999.4e-9: "999 ns", 999.6e-9: "1 µs", 9.4e-6: "9.4 µs", 18.54e-6: "18.5 µs",
		4e-6: "4 µs", 999.6e-6: "1 ms", 1.2345e-3: "1.23 ms", 9.996e-3: "10 ms", 99.96e-3: "100 ms", 0.1: "100 ms", 0.9994: "999 ms", 0.9995: "1 s", 0.9996: "1 s",
		1.5: "1.5 s", 75.34: "75.3 s", 100: "100 s", 3600: "3600 s",
		math.Inf(1): "?", math.Inf(-1): "?",
	}.check(t, text.Seconds)
	if got := text.Seconds(math.NaN()); got != "?" {
		t.Error(got)
	}
	cases[time.Duration]{-time.Hour: "0 s", 30 * time.Second: "30 s", 94800: "94.8 µs"}.check(t, text.Duration)
}

func TestAge(t *testing.T) {
	cases[time.Duration]{
		-time.Hour: "0 s", 0: "0 s", 59999 * time.Millisecond: "59 s", time.Minute: "1 min", time.Hour - 1: "59 min",
		time.Hour: "1 h", 48*time.Hour - 1: "47 h", 48 * time.Hour: "2 days", 1000 * time.Hour: "41 days",
	}.check(t, text.Age)
}

func TestMoment(t *testing.T) {
	then := time.Date(2026, time.March, 1, 12, 0, 0, 999e6, time.FixedZone("", 3600))
	if got := text.Moment(then); got != "2026-03-01 11:00:00 UTC" {
		t.Error(got)
	}
	if got := text.Moment(time.Time{}); got != "an unknown time" {
		t.Error(got)
	}
	if got := text.Ago(then.Add(90*time.Second), then); got != "1 min ago" {
		t.Error(got)
	}
	if got := text.Ago(then, time.Time{}); got != "at an unknown time" {
		t.Error(got)
	}
}

func TestUntil(t *testing.T) {
	cases[time.Duration]{
		-1: "0 s", 90 * time.Second: "1 min", 47 * time.Hour: "47 h", text.Long - 1: "3649 days", text.Long: "more than 10 years",
	}.check(t, text.Until)
}

func TestPace(t *testing.T) {
	cases[int64]{
		0: "0 an hour", 59: "59 an hour", 60: "1 a minute", 89: "1 a minute", 90: "2 a minute", 600: "10 a minute", math.MaxInt64: "153,722,867,280,912,930 a minute",
	}.check(t, text.Pace)
}
