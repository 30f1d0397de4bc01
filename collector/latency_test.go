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

// values returns what c exposes: the values, by series as text format has them.
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

// compare makes sure of the values of some series; of one that is to be absent
// the value is empty.
func compare(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, series := range slices.Sorted(maps.Keys(want)) {
		if got[series] != want[series] {
			t.Errorf("%s is %q, want %q", series, got[series], want[series])
		}
	}
}

// measured is a run on rxe0 that measured completions.
func measured(latencies ...state.Latency) *state.Run {
	return &state.Run{
		Device: "rxe0", Outcome: state.OutcomeOK, Info: &state.Device{CompletionVectors: 8},
		Probes: []state.Probe{{Name: "notification", Status: state.StatusOK, Latencies: latencies}},
	}
}

// Every sample is observed, and whatever goes wrong is counted, each in its
// place and nowhere else.
func TestLatencies(t *testing.T) {
	t.Parallel()
	µs := time.Microsecond
	for _, tc := range []struct {
		name string
		runs []*state.Run
		want map[string]string
	}{
		{
			"an event of any completion",
			[]*state.Run{measured(state.Latency{
				Port: 1, Path: state.PathLoopback, Mode: state.ModeAny,
				Samples: []time.Duration{µs, 10 * µs, 11 * µs}, Arms: []time.Duration{µs, µs, 2 * µs},
			})},
			map[string]string{
				`rdma_notification_latency_seconds_bucket{device="rxe0",path="loopback",port="1",le="5e-06"}`:    "1",
				`rdma_notification_latency_seconds_bucket{device="rxe0",path="loopback",port="1",le="1e-05"}`:    "2",
				`rdma_notification_latency_seconds_bucket{device="rxe0",path="loopback",port="1",le="0.01"}`:     "3",
				`rdma_notification_latency_seconds_sum{device="rxe0",path="loopback",port="1"}`:                  "2.2e-05",
				`rdma_notification_latency_seconds_count{device="rxe0",path="loopback",port="1"}`:                "3",
				`rdma_completion_latency_seconds_count{device="rxe0",mode="solicited",path="loopback",port="1"}`: "",
				`rdma_verbs_call_latency_seconds_count{device="rxe0",verb="ibv_req_notify_cq"}`:                  "3",
				`rdma_verbs_call_latency_seconds_bucket{device="rxe0",verb="ibv_req_notify_cq",le="1e-06"}`:      "2",
			},
		},
		{
			"polling",
			[]*state.Run{measured(state.Latency{Port: 2, Path: state.PathFlush, Mode: state.ModePoll, Samples: []time.Duration{µs}, Missed: 1})},
			map[string]string{
				`rdma_completion_latency_seconds_count{device="rxe0",mode="poll",path="flush",port="2"}`:    "1",
				`rdma_completion_latency_seconds_sum{device="rxe0",mode="poll",path="flush",port="2"}`:      "1e-06",
				`rdma_notification_latency_seconds_count{device="rxe0",path="flush",port="2"}`:              "",
				`rdma_notifications_missed_total{device="rxe0",path="flush",port="2"}`:                      "",
				`rdma_notifications_spurious_total{device="rxe0",path="flush",port="2"}`:                    "",
				`rdma_notifications_misdirected_total{device="rxe0",path="flush",port="2"}`:                 "",
				`rdma_completions_missing_total{device="rxe0",path="flush",port="2"}`:                       "0",
				`rdma_completions_unsuccessful_total{device="rxe0",path="flush",port="2",status="success"}`: "0",
				`rdma_verbs_call_latency_seconds_count{device="rxe0",verb="ibv_req_notify_cq"}`:             "",
			},
		},
		{
			"a first measurement in which nothing happened",
			[]*state.Run{measured(state.Latency{Port: 1, Path: state.PathLoopback, Mode: state.ModeSolicited})},
			map[string]string{
				`rdma_completion_latency_seconds_count{device="rxe0",mode="solicited",path="loopback",port="1"}`:         "0",
				`rdma_notification_latency_seconds_count{device="rxe0",path="loopback",port="1"}`:                        "",
				`rdma_notifications_missed_total{device="rxe0",path="loopback",port="1"}`:                                "0",
				`rdma_notifications_spurious_total{device="rxe0",path="loopback",port="1"}`:                              "0",
				`rdma_notifications_misdirected_total{device="rxe0",path="loopback",port="1"}`:                           "0",
				`rdma_completions_missing_total{device="rxe0",path="loopback",port="1"}`:                                 "0",
				`rdma_completions_unsuccessful_total{device="rxe0",path="loopback",port="1",status="retry_exc_err"}`:     "0",
				`rdma_completions_unsuccessful_total{device="rxe0",path="loopback",port="1",status="rnr_retry_exc_err"}`: "0",
				`rdma_completions_unsuccessful_total{device="rxe0",path="loopback",port="1",status="wr_flush_err"}`:      "0",
				`rdma_notification_vector_latency_seconds{comp_vector="0",device="rxe0"}`:                                "",
			},
		},
		{
			"everything goes wrong, on two vectors and in two runs",
			[]*state.Run{
				measured(
					state.Latency{Port: 1, Path: state.PathFlush, Mode: state.ModeAny, Missed: 1, Spurious: 2, Misdirected: 3, Missing: 4, Unsuccessful: []string{"success"}},
					state.Latency{Port: 1, Path: state.PathFlush, Mode: state.ModeAny, Vector: 1, Missed: 10, Spurious: 20, Misdirected: 30, Missing: 40},
				),
				measured(state.Latency{
					Port: 1, Path: state.PathFlush, Mode: state.ModeAny,
					Missed: 100, Spurious: 200, Misdirected: 300, Missing: 400, Unsuccessful: []string{"success", "general_err"},
				}),
			},
			map[string]string{
				`rdma_notifications_missed_total{device="rxe0",path="flush",port="1"}`:                          "111",
				`rdma_notifications_spurious_total{device="rxe0",path="flush",port="1"}`:                        "222",
				`rdma_notifications_misdirected_total{device="rxe0",path="flush",port="1"}`:                     "333",
				`rdma_completions_missing_total{device="rxe0",path="flush",port="1"}`:                           "444",
				`rdma_completions_unsuccessful_total{device="rxe0",path="flush",port="1",status="success"}`:     "2",
				`rdma_completions_unsuccessful_total{device="rxe0",path="flush",port="1",status="general_err"}`: "1",
			},
		},
		{
			"counts below zero",
			[]*state.Run{measured(state.Latency{Port: 1, Path: state.PathFlush, Mode: state.ModeAny, Missed: -1, Spurious: -1, Misdirected: -1, Missing: -1})},
			map[string]string{
				`rdma_notifications_missed_total{device="rxe0",path="flush",port="1"}`: "0",
				`rdma_completions_missing_total{device="rxe0",path="flush",port="1"}`:  "0",
			},
		},
		{
			"paths and modes that there are not",
			[]*state.Run{measured(
				state.Latency{Port: 1, Path: "wormhole", Mode: state.ModePoll, Samples: []time.Duration{1}},
				state.Latency{Port: 1, Path: state.PathFlush, Mode: "telepathy", Samples: []time.Duration{1}},
			)},
			map[string]string{
				`rdma_completion_latency_seconds_count{device="rxe0",mode="poll",path="wormhole",port="1"}`:   "",
				`rdma_completion_latency_seconds_count{device="rxe0",mode="telepathy",path="flush",port="1"}`: "",
			},
		},
		{
			"arms in a run whose calls have been told too",
			[]*state.Run{{
				Device: "rxe0", Outcome: state.OutcomeOK,
				Calls:  []state.Call{{Verb: "ibv_req_notify_cq", Duration: µs}},
				Probes: []state.Probe{{Latencies: []state.Latency{{Path: state.PathFlush, Mode: state.ModeAny, Arms: []time.Duration{µs, µs}}}}},
			}},
			map[string]string{`rdma_verbs_call_latency_seconds_count{device="rxe0",verb="ibv_req_notify_cq"}`: "3"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			compare(t, values(t, collectorOf(nil, tc.runs...)), tc.want)
		})
	}
}

// The quantiles of a vector are those of the last run that measured it, and of
// one measurement in that run.
func TestVectors(t *testing.T) {
	t.Parallel()
	// at is a measurement with a median of n seconds; with 0, nothing went well.
	at := func(vector, port int, path state.LatencyPath, mode state.LatencyMode, n int) state.Latency {
		l := state.Latency{Port: port, Path: path, Mode: mode, Vector: vector}
		if n > 0 {
			l.Samples = []time.Duration{time.Duration(n) * time.Second}
			l.Summarise()
		}
		return l
	}
	loopback := func(vector, n int) state.Latency {
		return at(vector, 1, state.PathLoopback, state.ModeAny, n)
	}
	flush := func(vector, n int) state.Latency { return at(vector, 1, state.PathFlush, state.ModeAny, n) }
	vectors := func(r *state.Run, n int) *state.Run {
		r.Info = &state.Device{CompletionVectors: n}
		return r
	}
	blind := measured(loopback(0, 7))
	blind.Info = nil
	inventory := vectors(measured(), 1)
	inventory.Kind = state.KindContract
	for _, tc := range []struct {
		name string
		runs []*state.Run
		want map[int]string // seconds, by vector
	}{
		{"nothing", []*state.Run{measured()}, nil},
		{"one vector", []*state.Run{measured(loopback(3, 5))}, map[int]string{3: "5"}},
		{
			"vectors that runs had the time for",
			[]*state.Run{measured(loopback(0, 1), loopback(1, 2)), measured(loopback(2, 3), loopback(3, 4)), measured(loopback(0, 5), loopback(1, 6))},
			map[int]string{0: "5", 1: "6", 2: "3", 3: "4"},
		},
		{
			"a run that measured nothing changes nothing",
			[]*state.Run{measured(loopback(0, 1)), measured()},
			map[int]string{0: "1"},
		},
		{"flush alone", []*state.Run{measured(flush(0, 2))}, map[int]string{0: "2"}},
		{"loopback before flush", []*state.Run{measured(loopback(0, 1), flush(0, 2))}, map[int]string{0: "1"}},
		{"loopback after flush", []*state.Run{measured(flush(0, 2), loopback(0, 1))}, map[int]string{0: "1"}},
		{
			"loopback of another port before flush of the lowest",
			[]*state.Run{measured(flush(0, 2), at(0, 2, state.PathLoopback, state.ModeAny, 3))},
			map[int]string{0: "3"},
		},
		{
			"the lowest port",
			[]*state.Run{measured(at(0, 3, state.PathFlush, state.ModeAny, 3), at(0, 2, state.PathFlush, state.ModeAny, 2), at(0, 4, state.PathFlush, state.ModeAny, 4))},
			map[int]string{0: "2"},
		},
		{
			"flush after the port went down",
			[]*state.Run{measured(loopback(0, 1)), measured(flush(0, 2))},
			map[int]string{0: "2"},
		},
		{
			"other modes",
			[]*state.Run{measured(at(0, 1, state.PathLoopback, state.ModeSolicited, 1), at(1, 1, state.PathLoopback, state.ModePoll, 1))},
			nil,
		},
		{
			"nothing went well",
			[]*state.Run{measured(loopback(0, 1), loopback(1, 2)), measured(loopback(0, 0))},
			map[int]string{1: "2"},
		},
		{
			"nothing went well where it matters",
			[]*state.Run{measured(loopback(0, 1)), measured(flush(0, 2), loopback(0, 0))},
			nil,
		},
		{
			"well again",
			[]*state.Run{measured(loopback(0, 1)), measured(loopback(0, 0)), measured(loopback(0, 3))},
			map[int]string{0: "3"},
		},
		{"never well", []*state.Run{measured(loopback(0, 0))}, nil},
		{
			"fewer vectors",
			[]*state.Run{measured(loopback(0, 1), loopback(1, 2), loopback(2, 3)), vectors(measured(), 2)},
			map[int]string{0: "1", 1: "2"},
		},
		{
			"fewer vectors, as the contract run finds",
			[]*state.Run{measured(loopback(0, 1), loopback(1, 2)), inventory},
			map[int]string{0: "1"},
		},
		{
			"fewer vectors and more again",
			[]*state.Run{measured(loopback(1, 2)), vectors(measured(), 1), measured(loopback(1, 3))},
			map[int]string{1: "3"},
		},
		{
			"a vector that the device says it has not, and one below all",
			[]*state.Run{measured(loopback(8, 1), loopback(-1, 1))},
			nil,
		},
		{
			"a device that could not be asked",
			[]*state.Run{measured(loopback(0, 1), loopback(7, 2)), blind},
			map[int]string{0: "7", 7: "2"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := collectorOf(nil, tc.runs...)
			got := values(t, c)
			want := make(map[string]string)
			for v := -1; v < 10; v++ {
				want[fmt.Sprintf(`rdma_notification_vector_latency_seconds{comp_vector="%d",device="rxe0"}`, v)] = tc.want[v]
			}
			compare(t, got, want)

			c.Forget("rxe0")
			c.Observe(measured())
			for series := range values(t, c) {
				if strings.Contains(series, "vector") {
					t.Errorf("after Forget there is %s", series)
				}
			}
		})
	}
}

// Of a vector there is the 99th percentile of its last run.
func TestVectorPercentile(t *testing.T) {
	t.Parallel()
	l := state.Latency{Port: 1, Path: state.PathFlush, Mode: state.ModeAny}
	l.Samples = []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, 750 * time.Millisecond}
	l.Summarise()
	compare(t, values(t, collectorOf(nil, measured(l), measured(l))), map[string]string{
		`rdma_notification_vector_latency_seconds{comp_vector="0",device="rxe0"}`: "0.75",
	})
}

// A few vectors of very many have series, whatever their numbers.
func TestVectorsOfMany(t *testing.T) {
	t.Parallel()
	r := measured(
		state.Latency{Port: 1, Path: state.PathFlush, Mode: state.ModeAny, Count: 1},
		state.Latency{Port: 1, Path: state.PathFlush, Mode: state.ModeAny, Vector: 999, Count: 1},
	)
	r.Info.CompletionVectors = 1000
	compare(t, values(t, collectorOf(sceneOf("simulated", stateOf(r), r).snapshot, r)), map[string]string{
		`rdma_notification_vector_latency_seconds{comp_vector="0",device="rxe0"}`:   "0",
		`rdma_notification_vector_latency_seconds{comp_vector="999",device="rxe0"}`: "0",
		`rdma_exporter_dropped_series{device="rxe0"}`:                               "0",
	})
}

// However many vectors, ports and statuses a child tells of, only so many have
// series, and those of vectors that lack them are counted.
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

	// With the snapshot unchanged, what the next run changes is told all the same.
	less := measured()
	c.Observe(less)
	compare(t, values(t, c), map[string]string{
		`rdma_exporter_dropped_series{device="rxe0"}`:                               "0",
		`rdma_notification_vector_latency_seconds{comp_vector="7",device="rxe0"}`:   "0",
		`rdma_notification_vector_latency_seconds{comp_vector="255",device="rxe0"}`: "",
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
