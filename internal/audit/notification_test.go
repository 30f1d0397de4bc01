package audit_test

import (
	"math"
	"testing"
	"time"

	"rdma_exporter/internal/audit"
	"rdma_exporter/internal/report"
)

func TestNotification(t *testing.T) {
	t.Parallel()
	const (
		kind = report.FindingNotification
		c    = report.SeverityCritical
		w    = report.SeverityWarning
	)
	latency := func(change func(*report.Latency)) report.Latency {
		l := report.Latency{Port: 1, Path: report.PathLoopback, Mode: report.ModeAny, Vector: 3, Count: 998}
		change(&l)
		return l
	}
	state := func(latencies ...report.Latency) *report.DeviceState {
		return probed(report.Probe{Name: "cq"}, report.Probe{Name: "notification", Status: report.StatusFailed, Latencies: latencies})
	}
	for _, tc := range []struct {
		name   string
		change func(*report.Latency)
		want   want
	}{
		{"missed", func(l *report.Latency) { l.Missed = 2 }, want{
			c, "missed events",
			[]string{"Events that had not come by the deadline, of completions that had: 2. By measurement: loopback any on port 1, vector 3: 2, while 998 samples went well."},
			[]string{"/proc/interrupts"},
		}},
		{"misdirected", func(l *report.Latency) { l.Misdirected = 1 }, want{c, "misdirected events", []string{"queue: 1. By"}, []string{"channel_steering"}}},
		{"missing", func(l *report.Latency) { l.Missing, l.Count = 1, 1 }, want{c, "missing completions", []string{"deadline: 1. By", "while 1 sample went well"}, []string{"`rdma statistic show link rxe0`"}}},
		{"spurious", func(l *report.Latency) { l.Spurious = 5 }, want{w, "spurious events", []string{"without a completion: 5. By"}, []string{"until the queue is empty"}}},
		{"unsuccessful", func(l *report.Latency) {
			l.Unsuccessful = []string{"retry_exc_err", "success", "retry_exc_err"}
		}, want{w, "unsuccessful completions", []string{"wrong status: 3. By", "vector 3: 3 (retry_exc_err, success)"}, []string{"`rdma link show rxe0`"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := state(latency(func(*report.Latency) {}), latency(tc.change))
			check(t, s, audit.Default(), kind, tc.want)
			alone(t, s, kind)
			s.Present = false
			check(t, s, audit.Default(), kind)
		})
	}
	t.Run("several", func(t *testing.T) {
		t.Parallel()
		var all []report.Latency
		for vector := range 5 {
			all = append(all, latency(func(l *report.Latency) { l.Vector, l.Missed, l.Spurious = vector, vector, 1 }))
		}
		check(t, state(all...), audit.Default(), kind,
			want{c, "missed events", []string{"had: 10. By measurement: loopback any on port 1, vector 1: 1", "; and 1 more."}, nil},
			want{w, "spurious events", []string{"completion: 5. By measurement: loopback any on port 1, vector 0: 1", "; and 2 more."}, nil})
	})
	t.Run("a vector that the last run did not come to", func(t *testing.T) {
		t.Parallel()
		s := state(latency(func(*report.Latency) {}))
		s.Last.Outcome = report.OutcomeOK
		broken := latency(func(l *report.Latency) { l.Vector, l.Missed = 5, 2 })
		vector := func(measured time.Time) *report.Notification {
			return &report.Notification{Vectors: []report.VectorLatency{{Latency: broken, Measured: measured}}}
		}
		s.Notification = vector(s.Last.Started.Add(-time.Minute))
		check(t, s, audit.Default(), kind, want{c, "missed events", []string{"vector 5: 2, while 998 samples went well, last measured at 20"}, nil})
		// What the last run measured is told from the run.
		s.Notification = vector(s.Last.Started)
		check(t, s, audit.Default(), kind)
	})
	t.Run("what cannot be counted", func(t *testing.T) {
		t.Parallel()
		odd := latency(func(l *report.Latency) { l.Missed, l.Missing = math.MaxInt, -1 })
		check(t, state(odd, odd), audit.Default(), kind, want{c, "missed events", []string{"had: 9223372036854775807. By"}, nil})
	})
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		s := state(latency(func(l *report.Latency) { l.Stopped = "the time was used up" }))
		s.Last.Outcome = report.OutcomeOK
		check(t, s, audit.Default(), kind)
		s.Last = nil
		check(t, s, audit.Default(), kind)
	})
}

func TestSlowVector(t *testing.T) {
	t.Parallel()
	const kind = report.FindingSlowVector
	state := func(medians ...time.Duration) *report.DeviceState {
		s := device(report.Inventory{})
		s.Notification = new(report.Notification)
		for i, m := range medians {
			s.Notification.Vectors = append(s.Notification.Vectors, report.VectorLatency{
				Latency:  report.Latency{Port: 1, Path: report.PathLoopback, Mode: report.ModeAny, Vector: i, Count: 1, P50: m * time.Microsecond, P99: 2*m*time.Microsecond + 123},
				Measured: taken(),
			})
		}
		return s
	}
	check(t, device(report.Inventory{}), audit.Default(), kind)
	check(t, state(), audit.Default(), kind)
	check(t, state(80), audit.Default(), kind)
	check(t, state(5, 5, 24), audit.Default(), kind)
	check(t, state(5, 5, 80), audit.Default(), kind, want{
		report.SeverityInfo, "vector 2",
		[]string{"Of 3 completion vectors that were measured, 1 slow: vector 2 takes 80µs in the median and 160.1µs at the 99th percentile, where 5µs are usual (loopback on port 1, measured at 2026-03-01T12:00:00Z)."},
		[]string{"/proc/interrupts", "/sys/class/infiniband/rxe0/device/numa_node"},
	})
	alone(t, state(5, 5, 80), kind)
	check(t, state(5, 5, 5, 5, 5, 50, 60, 70, 80, 90), audit.Default(), kind, want{
		report.SeverityInfo, "vectors 5, 6, 7, and 2 more", []string{"5 slow: vector 5 takes 50µs", "; and 2 more."}, nil,
	})
	vanished := state(5, 5, 80)
	vanished.Present = false
	check(t, vanished, audit.Default(), kind)
}
