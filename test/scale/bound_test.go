//go:build scale

package scale_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/collector"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/running"
)

// seriesOf returns how many series of the text format a metric of a family is.
func seriesOf(m *dto.Metric) int {
	switch {
	case m.GetHistogram() != nil:
		return len(m.GetHistogram().GetBucket()) + 3 // +Inf, _sum and _count
	case m.GetSummary() != nil:
		return len(m.GetSummary().GetQuantile()) + 2
	}
	return 1
}

// excess returns runs of a device that tell of more of everything than any sane one.
func excess() []*state.Run {
	numbered := func(n int, format string) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(format, i)
		}
		return all
	}
	info := &state.Device{CompletionVectors: 1000}
	for _, name := range numbered(5000, "max_%d") {
		info.Limits = append(info.Limits, state.Limit{Name: name, Value: 1})
	}
	r := &state.Run{Kind: state.KindProbe, Device: "sim0", Outcome: state.OutcomeOK, Info: info}
	for _, verb := range numbered(80, "ibv_%d") {
		for _, errno := range numbered(40, "E%d") {
			r.Calls = append(r.Calls, state.Call{Verb: verb, Errno: errno})
		}
	}
	for _, event := range numbered(40, "event_%d") {
		r.Events = append(r.Events, state.Events{Type: event, Count: 1})
	}
	var probe state.Probe
	statuses := append([]string{"success", "retry_exc_err", "rnr_retry_exc_err", "wr_flush_err"}, numbered(40, "status_%d")...)
	for _, path := range state.LatencyPaths() {
		for _, mode := range state.LatencyModes() {
			for port := range 20 {
				probe.Latencies = append(probe.Latencies, state.Latency{Port: 1 + port, Path: path, Mode: mode, Vector: port, Count: 1, Unsuccessful: statuses})
			}
			for vector := range 300 {
				probe.Latencies = append(probe.Latencies, state.Latency{Port: 1, Path: path, Mode: mode, Vector: vector, Count: 1})
			}
		}
	}
	r.Probes = []state.Probe{probe}
	// The counters of runs first, while there is little else to count.
	var runs []*state.Run
	for _, kind := range []state.Kind{state.KindProbe, state.KindContract} {
		for _, outcome := range []state.Outcome{state.OutcomeTimeout, state.OutcomeCrashed} {
			for _, verb := range numbered(80, "ibv_%d") {
				runs = append(runs, &state.Run{Kind: kind, Device: "sim0", Outcome: outcome, Verb: verb})
			}
		}
	}
	return append(runs, r)
}

// TestMost compares the largest numbers of series of one device with what the collector
// makes of runs that tell of more than any sane one.
func TestMost(t *testing.T) {
	t.Parallel()
	runs := excess()
	last := runs[len(runs)-1]
	// Nothing is found: those series are counted elsewhere.
	judge := health.NewFinder(health.Default(), health.History{}, func(*state.DeviceState) []health.Finding { return nil })
	snapshot := &state.Snapshot{Devices: []state.DeviceState{{Name: "sim0", Present: true, Info: last.Info, Last: last}}}
	on := make(collector.Choice)
	for _, p := range collector.Parts() {
		on[p.Name] = true
	}
	c := collector.New(collector.Options{Host: func() *health.Host { return judge.Evaluate(snapshot) }, Collectors: on})
	for _, r := range runs {
		c.Observe(r)
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found, gauges, all := make(map[string]int), 0, 0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetType() == dto.MetricType_GAUGE && len(m.GetLabel()) > 0 {
				gauges++
			} else {
				found[f.GetName()] += seriesOf(m)
			}
		}
	}
	sum := 0
	for _, cells := range table(t, readPage(t), "metrics of one device", "at most", "because") {
		want, err := strconv.Atoi(strings.ReplaceAll(cells[1], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		switch cells[0] {
		case "all gauges":
			got = gauges
		case "all":
			if want != sum {
				t.Errorf("docs/reference/scaling.md: one device makes %d series at most, want the sum %d", want, sum)
			}
			all = want
			continue
		default:
			for _, name := range quoted(cells[0]) {
				got += found[name]
				delete(found, name)
			}
		}
		sum += want
		if got != want {
			t.Errorf("docs/reference/scaling.md: %s are at most %d, and the collector makes %d", cells[0], want, got)
		}
	}
	for _, name := range []string{"rdma_devices", "rdma_exporter_discovery_success", "rdma_exporter_log_lines_dropped_total"} {
		delete(found, name)
	}
	for name, n := range found {
		t.Errorf("%s, of which there are %d, is not in the table of docs/reference/scaling.md", name, n)
	}
	if all == 0 {
		t.Error("docs/reference/scaling.md has no sum of what one device makes at most")
	}
}

// TestFormulaOfTrouble makes sure that of devices on which things go wrong there are no
// more series than the formula says, beside those of failures.
func TestFormulaOfTrouble(t *testing.T) {
	t.Parallel()
	text := readPage(t)
	f := readFormula(t, text)
	_, composed := documented(t)
	s := shape{name: "trouble", devices: times(5, adapter(4))}
	faults := []string{
		"faults: [{verb: ibv_query_srq, errno: EIO}, {verb: ibv_create_cq, after: 3, times: 2, errno: ENOMEM}]",
		"faults: [{verb: ibv_create_srq, after: 1, crash: true}]",
		"faults: [{verb: ibv_destroy_srq, errno: EBUSY}]",
		"completion_faults: [{fault: fail_completion, status: retry_exc_err, times: 3}, {fault: fail_completion, status: loc_prot_err, after: 30, times: 3}]",
		"violate: [cq_destroy_busy, notify_one_shot]\n    async_events: [port_err, gid_change]",
	}
	profile := s.profile()
	for i, fault := range faults {
		like := fmt.Sprintf("  - name: sim%d\n", i)
		profile = strings.Replace(profile, like, like+"    "+fault+"\n", 1)
	}
	p := launch(t, s.name, binary, append(s.flags(), "--simulated.profile="+running.File(t, "trouble.yaml", profile))...)
	var exposition string
	running.Eventually(t, "each device is gone through", func() bool {
		p.MustRun(t)
		body, err := p.get("/metrics")
		if err != nil {
			t.Fatal(err)
		}
		exposition = string(body)
		return strings.Count(exposition, "\nrdma_contract_duration_seconds{") == len(faults) &&
			strings.Count(exposition, "\nrdma_inventory_timestamp_seconds{") == len(faults)
	})
	found := make(map[string]int)
	for _, s := range parseExposition(t, exposition) {
		found[s.family(composed)]++
	}
	counts := s.counts(readVerbs(t, text))
	failures := 0
	for _, r := range f.rows {
		got, ofFailures := 0, false
		for metric, n := range found {
			if r.has(metric) {
				got += n
			}
		}
		for symbol := range r.series {
			ofFailures = ofFailures || slices.Contains([]string{"K", "J", "N", "Q", "W", "H", "E", "Y", "Z", "A", "U", "R", "I", "h"}, symbol)
		}
		if ofFailures {
			failures += got
		} else if most := r.total().value(counts); got > most && !strings.HasSuffix(r.metrics[0], "*") {
			t.Errorf("%s: %d series, which is more than %d", strings.Join(r.metrics, ", "), got, most)
		}
	}
	for _, metric := range []string{"rdma_verbs_errors_total", "rdma_async_events_total", "rdma_probe_aborts_total", "rdma_probe_undestroyed_objects", "rdma_completions_unsuccessful_total"} {
		if found[metric] == 0 {
			t.Errorf("%s has no series: nothing went wrong", metric)
		}
	}
	t.Logf("%d series, %d of them of failures", len(parseExposition(t, exposition)), failures)
}
