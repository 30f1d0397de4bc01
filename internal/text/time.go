package text

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Seconds returns a duration in seconds with three digits, as in 9.4 µs and 1.25 s. A negative one is 0 s. NaN and
// infinities are a question mark.
func Seconds(s float64) string {
	switch {
	case math.IsNaN(s) || math.IsInf(s, 0):
		return "?"
	case s <= 0:
		return "0 s"
	}
	for _, unit := range []struct {
		in   float64
		name string
	}{{1e9, " ns"}, {1e6, " µs"}, {1e3, " ms"}} {
		if n := s * unit.in; n < 999.5 {
			return three(n) + unit.name
		}
	}
	return three(s) + " s"
}

// three returns a number with three digits, or with all before the point.
func three(f float64) string {
	after := 0
	switch {
	case f < 10:
		after = 2
	case f < 100:
		after = 1
	}
	s := strconv.FormatFloat(f, 'f', after, 64)
	if after > 0 {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Duration is Seconds for a time.Duration.
func Duration(d time.Duration) string { return Seconds(d.Seconds()) }

// Age returns a coarse duration in one unit, as in 5 min. A negative one, as after a clock was set back, is 0 s.
func Age(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return Number(d/time.Second) + " s"
	case d < time.Hour:
		return Number(d/time.Minute) + " min"
	case d < 48*time.Hour:
		return Number(d/time.Hour) + " h"
	default:
		return Number(d/(24*time.Hour)) + " days"
	}
}

// Long is the longest time that Until states exactly.
const Long = 10 * 365 * 24 * time.Hour

// Until is Age for a time in the future.
func Until(d time.Duration) string {
	if d >= Long {
		return "more than 10 years"
	}
	return Age(d)
}

// Pace returns a number per hour, or per minute if that is at least one.
func Pace(perHour int64) string {
	if perHour >= 60 {
		return Number((perHour-30)/60+1) + " a minute"
	}
	return Number(perHour) + " an hour"
}

// Ago returns how long before now a time was.
func Ago(now, then time.Time) string {
	if then.IsZero() {
		return "at " + Moment(then)
	}
	return Age(now.Sub(then)) + " ago"
}

// Since returns how long something has lasted.
func Since(now, then time.Time) string { return "for " + Age(now.Sub(then)) }

// Date returns the day of a time in UTC.
func Date(t time.Time) string { return t.UTC().Format("2006-01-02") }

// Moment returns a time in UTC, in a form that journalctl --since also accepts.
func Moment(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}
