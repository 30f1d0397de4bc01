package health_test

import (
	"math"
	"testing"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

func TestNotification(t *testing.T) {
	const (
		kind = health.FindingNotification
		c    = health.SeverityCritical
		w    = health.SeverityWarning
	)
	latency := func(change func(*state.Latency)) state.Latency {
		l := state.Latency{Port: 1, Path: state.PathLoopback, Mode: state.ModeAny, Vector: 3, Count: 998}
		change(&l)
		return l
	}
	dev := func(latencies ...state.Latency) *state.DeviceState {
		return probed(state.Probe{Name: "cq"}, state.Probe{Name: "notification", Status: state.StatusFailed, Latencies: latencies})
	}
	for _, tc := range []struct {
		name   string
		change func(*state.Latency)
		want   want
	}{
		{"missed", func(l *state.Latency) { l.Missed = 2 }, want{
			c, "missed events",
			[]string{"2 completions whose event missed the deadline. Where: loopback any on port 1, vector 3: 2, while 998 samples succeeded."},
			[]string{"/proc/interrupts"},
		}},
		{"misdirected", func(l *state.Latency) { l.Misdirected = 1 }, want{c, "misdirected events", []string{"1 event on a wrong channel or for a wrong queue. Where"}, []string{"channel_steering"}}},
		{"missing", func(l *state.Latency) { l.Missing, l.Count = 1, 1 }, want{c, "missing completions", []string{"1 completion that missed the deadline. Where", "while 1 sample succeeded"}, []string{"`rdma statistic show link rxe0`"}}},
		{"spurious", func(l *state.Latency) { l.Spurious = 5 }, want{w, "spurious events", []string{"5 events without a completion. Where"}, []string{"until the queue is empty"}}},
		{"unsuccessful", func(l *state.Latency) {
			l.Unsuccessful = []string{"retry_exc_err", "success", "retry_exc_err"}
		}, want{w, "unsuccessful completions", []string{"3 completions with a wrong status. Where", "vector 3: 3 (retry_exc_err, success)"}, []string{"`rdma link show rxe0`"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := dev(latency(func(*state.Latency) {}), latency(tc.change))
			check(t, s, health.Default(), kind, tc.want)
			alone(t, s, kind)
			s.Present = false
			check(t, s, health.Default(), kind)
		})
	}
	t.Run("several", func(t *testing.T) {
		var all []state.Latency
		for vector := range 5 {
			all = append(all, latency(func(l *state.Latency) { l.Vector, l.Missed, l.Spurious = vector, vector, 1 }))
		}
		check(t, dev(all...), health.Default(), kind,
			want{c, "missed events", []string{"10 completions whose event missed the deadline. Where: loopback any on port 1, vector 1: 1", "; and 1 more."}, nil},
			want{w, "spurious events", []string{"5 events without a completion. Where: loopback any on port 1, vector 0: 1", "; and 2 more."}, nil})
	})
	t.Run("a vector that the last run did not come to", func(t *testing.T) {
		s := dev(latency(func(*state.Latency) {}))
		s.Last.Outcome = state.OutcomeOK
		broken := latency(func(l *state.Latency) { l.Vector, l.Missed = 5, 2 })
		s.Full = &state.Run{Started: s.Last.Started.Add(-time.Minute), Probes: []state.Probe{{Name: "notification", Latencies: []state.Latency{broken}}}}
		check(t, s, health.Default(), kind, want{c, "missed events", []string{"vector 5: 2, while 998 samples succeeded, last measured at 20"}, nil})
	})
	t.Run("what cannot be counted", func(t *testing.T) {
		odd := latency(func(l *state.Latency) { l.Missed, l.Missing = math.MaxInt, -1 })
		check(t, dev(odd, odd), health.Default(), kind, want{c, "missed events", []string{"9,223,372,036,854,775,807 completions whose event"}, nil})
	})
	t.Run("nothing", func(t *testing.T) {
		s := dev(latency(func(l *state.Latency) { l.Stopped = "the time was used up" }))
		s.Last.Outcome = state.OutcomeOK
		check(t, s, health.Default(), kind)
		s.Last = nil
		check(t, s, health.Default(), kind)
	})
}

// fullRun returns a full run that measured completion vectors with these medians.
func fullRun(medians ...time.Duration) *state.Run {
	p := state.Probe{Name: "notification", Status: state.StatusOK}
	for i, m := range medians {
		p.Latencies = append(p.Latencies, state.Latency{
			Port: 1, Path: state.PathLoopback, Mode: state.ModeAny, Vector: i, Count: 1, P50: m, P99: 2*m + 123,
		})
	}
	return &state.Run{Started: taken(), Outcome: state.OutcomeOK, Depth: state.DepthFull, Probes: []state.Probe{p}}
}

func TestSlowVector(t *testing.T) {
	const kind = health.FindingSlowVector
	dev := func(medians ...time.Duration) *state.DeviceState {
		s := device(state.Inventory{})
		for i := range medians {
			medians[i] *= time.Microsecond
		}
		s.Full = fullRun(medians...)
		return s
	}
	check(t, device(state.Inventory{}), health.Default(), kind)
	check(t, dev(), health.Default(), kind)
	check(t, dev(80), health.Default(), kind)
	check(t, dev(5, 5, 24), health.Default(), kind)
	check(t, dev(5, 5, 80), health.Default(), kind, want{
		health.SeverityInfo, "vector 2",
		[]string{"1 of 3 completion vectors measured are slow: vector 2 takes 80 µs in the median and 160 µs at the 99th percentile, against the usual 5 µs (loopback on port 1, measured at 2026-03-01 12:00:00 UTC)."},
		[]string{"/proc/interrupts", "/sys/class/infiniband/rxe0/device/numa_node"},
	})
	alone(t, dev(5, 5, 80), kind)
	check(t, dev(5, 5, 5, 5, 5, 50, 60, 70, 80, 90), health.Default(), kind, want{
		health.SeverityInfo, "vectors 5, 6, 7, and 2 more", []string{"5 of 10 completion vectors measured are slow: vector 5 takes 50 µs", "; and 2 more."}, nil,
	})
	vanished := dev(5, 5, 80)
	vanished.Present = false
	check(t, vanished, health.Default(), kind)
}
