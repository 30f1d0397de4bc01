package collector_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rdma_exporter/internal/state"
)

// values returns the values that c exposes, by series in text format.
func values(t testing.TB, c prometheus.Collector) map[string]string {
	t.Helper()
	got := make(map[string]string)
	for line := range strings.Lines(expose(t, pedantic(t, c))) {
		if !strings.HasPrefix(line, "#") {
			i := strings.LastIndexByte(line, ' ')
			got[line[:i]] = strings.TrimSpace(line[i:])
		}
	}
	return got
}

// compare verifies the values of some series. Empty means that the series is absent.
func compare(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, series := range slices.Sorted(maps.Keys(want)) {
		if got[series] != want[series] {
			t.Errorf("%s is %q, want %q", series, got[series], want[series])
		}
	}
}

func measured(latencies ...state.Latency) *state.Run {
	return &state.Run{
		Device: "rxe0", Outcome: state.OutcomeOK, Info: &state.Device{CompletionVectors: 8},
		Probes: []state.Probe{{Name: "notification", Status: state.StatusOK, Latencies: latencies}},
	}
}

// TestLatencies verifies that each sample is observed, and that errors of two runs add up.
func TestLatencies(t *testing.T) {
	t.Parallel()
	µs := time.Microsecond
	arms := measured(
		state.Latency{Port: 1, Path: state.PathLoopback, Mode: state.ModeAny, Samples: []time.Duration{µs, 10 * µs, 11 * µs}, Arms: []time.Duration{µs, µs, 2 * µs}},
		state.Latency{Port: 2, Path: state.PathFlush, Mode: state.ModePoll, Samples: []time.Duration{µs}, Missed: 1},
	)
	arms.Calls = []state.Call{{Verb: "ibv_req_notify_cq", Duration: µs}}
	compare(t, values(t, collectorOf(nil, arms)), map[string]string{
		`rdma_notification_latency_seconds_bucket{device="rxe0",path="loopback",port="1",le="5e-06"}`:    "1",
		`rdma_notification_latency_seconds_bucket{device="rxe0",path="loopback",port="1",le="1e-05"}`:    "2",
		`rdma_notification_latency_seconds_sum{device="rxe0",path="loopback",port="1"}`:                  "2.2e-05",
		`rdma_completion_latency_seconds_count{device="rxe0",mode="solicited",path="loopback",port="1"}`: "",
		`rdma_verbs_call_latency_seconds_count{device="rxe0",verb="ibv_req_notify_cq"}`:                  "4",
		`rdma_completion_latency_seconds_sum{device="rxe0",mode="poll",path="flush",port="2"}`:           "1e-06",
		`rdma_notification_latency_seconds_count{device="rxe0",path="flush",port="2"}`:                   "",
		`rdma_notifications_missed_total{device="rxe0",path="flush",port="2"}`:                           "",
		`rdma_completions_missing_total{device="rxe0",path="flush",port="2"}`:                            "0",
	})
	errors := func(n int, statuses ...string) state.Latency {
		return state.Latency{Port: 1, Path: state.PathFlush, Mode: state.ModeAny, Missed: n, Spurious: 2 * n, Misdirected: 3 * n, Missing: 4 * n, Unsuccessful: statuses}
	}
	compare(t, values(t, collectorOf(nil, measured(errors(1, "success"), errors(10)), measured(errors(100, "success", "general_err")))), map[string]string{
		`rdma_notifications_missed_total{device="rxe0",path="flush",port="1"}`:                          "111",
		`rdma_notifications_spurious_total{device="rxe0",path="flush",port="1"}`:                        "222",
		`rdma_notifications_misdirected_total{device="rxe0",path="flush",port="1"}`:                     "333",
		`rdma_completions_missing_total{device="rxe0",path="flush",port="1"}`:                           "444",
		`rdma_completions_unsuccessful_total{device="rxe0",path="flush",port="1",status="success"}`:     "2",
		`rdma_completions_unsuccessful_total{device="rxe0",path="flush",port="1",status="general_err"}`: "1",
	})
}

// TestVectors verifies that a vector has the 99th percentile of the last run that measured
// it. state.TestVectors proves which measurement of a run that is.
func TestVectors(t *testing.T) {
	t.Parallel()
	loopback := func(vector, seconds int) state.Latency {
		l := state.Latency{Port: 1, Path: state.PathLoopback, Mode: state.ModeAny, Vector: vector}
		for i := range 3 * min(seconds, 1) {
			l.Samples = append(l.Samples, time.Duration(seconds-2+i)*time.Second)
		}
		l.Summarise()
		return l
	}
	vectors := func(r *state.Run, n int) *state.Run {
		r.Info = &state.Device{CompletionVectors: n}
		return r
	}
	unasked := measured(loopback(0, 7))
	unasked.Info = nil
	contracts := vectors(measured(), 1)
	contracts.Kind = state.KindContract
	for name, tc := range map[string]struct {
		runs []*state.Run
		want map[int]string
	}{
		"kept until the next measurement": {
			[]*state.Run{measured(loopback(0, 2), loopback(1, 3)), measured(loopback(2, 4)), measured(loopback(0, 5)), measured()},
			map[int]string{0: "5", 1: "3", 2: "4"},
		},
		"nothing succeeded":             {[]*state.Run{measured(loopback(0, 2), loopback(1, 3)), measured(loopback(0, 0))}, map[int]string{1: "3"}},
		"succeeded again":               {[]*state.Run{measured(loopback(0, 0)), measured(loopback(0, 3))}, map[int]string{0: "3"}},
		"fewer vectors":                 {[]*state.Run{measured(loopback(0, 2), loopback(1, 3)), contracts}, map[int]string{0: "2"}},
		"fewer vectors and more again":  {[]*state.Run{measured(loopback(1, 2)), vectors(measured(), 1), measured(loopback(1, 3))}, map[int]string{1: "3"}},
		"a vector beyond the last":      {[]*state.Run{measured(loopback(8, 2))}, nil},
		"vectors far apart":             {[]*state.Run{vectors(measured(loopback(0, 2), loopback(999, 3)), 1000)}, map[int]string{0: "2", 999: "3"}},
		"a device that was not queried": {[]*state.Run{measured(loopback(0, 2), loopback(7, 3)), unasked}, map[int]string{0: "7", 7: "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := collectorOf(nil, tc.runs...)
			got, want := values(t, c), make(map[string]string)
			for _, v := range []int{0, 1, 2, 7, 8, 999} {
				want[fmt.Sprintf(`rdma_notification_vector_latency_seconds{comp_vector="%d",device="rxe0"}`, v)] = tc.want[v]
			}
			compare(t, got, want)

			c.Forget("rxe0")
			c.Observe(measured())
			if left := with("rdma_notification_vector", values(t, c)); len(left) > 0 {
				t.Errorf("after Forget there is %s", left)
			}
		})
	}
}

// TestLatencyBounds verifies that vectors, ports and statuses have a bounded number of
// series, and that vectors without a series are counted.
func TestLatencyBounds(t *testing.T) {
	t.Parallel()
	const total = 300
	r := measured()
	r.Info.CompletionVectors = total
	p := &r.Probes[0]
	for i := range total {
		p.Latencies = append(p.Latencies, state.Latency{
			Port: i + 1, Path: state.PathFlush, Mode: state.ModeAny, Vector: i, Count: 1,
			Missed: 1, Unsuccessful: []string{fmt.Sprint("status_", i)},
		})
	}
	s := sceneOf("simulated", stateOf(r), r)
	c := s.collector()
	got := values(t, c)
	compare(t, got, map[string]string{
		`rdma_exporter_dropped_series{device="rxe0"}`:                                                   "44",
		`rdma_notification_vector_latency_seconds{comp_vector="255",device="rxe0"}`:                     "0",
		`rdma_notification_vector_latency_seconds{comp_vector="256",device="rxe0"}`:                     "",
		`rdma_notification_vector_latency_seconds{comp_vector="257",device="rxe0"}`:                     "",
		`rdma_notifications_missed_total{device="rxe0",path="flush",port="16"}`:                         "1",
		`rdma_notifications_missed_total{device="rxe0",path="flush",port="17"}`:                         "",
		`rdma_notifications_missed_total{device="rxe0",path="flush",port="other"}`:                      "284",
		`rdma_completions_unsuccessful_total{device="rxe0",path="flush",port="other",status="other"}`:   "269",
		`rdma_completions_unsuccessful_total{device="rxe0",path="flush",port="1",status="status_0"}`:    "1",
		`rdma_completions_unsuccessful_total{device="rxe0",path="flush",port="other",status="success"}`: "0",
	})

	// A child that invents vectors can fill neither the server nor the exporter.
	mad := measured()
	mad.Info = nil
	for i := range 1 << 16 {
		mad.Probes[0].Latencies = append(mad.Probes[0].Latencies, state.Latency{Path: state.PathFlush, Mode: state.ModeAny, Vector: 1<<16 - i})
	}
	mad.Probes[0].Latencies = append(mad.Probes[0].Latencies, state.Latency{Path: state.PathFlush, Mode: state.ModeAny, Vector: 5, Count: 1, P99: time.Second})
	c.Observe(mad)
	got = values(t, c)
	compare(t, got, map[string]string{
		`rdma_notification_vector_latency_seconds{comp_vector="5",device="rxe0"}`: "1",
	})
	if n := len(got); n > 8000 {
		t.Errorf("%d samples of one device", n)
	}
}
