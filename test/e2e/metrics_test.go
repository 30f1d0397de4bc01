package e2e_test

import (
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"rdma_exporter/test/running"
)

// metrics are the samples of one scrape, by name of their metric. A histogram or
// summary is there as its _sum and _count.
type metrics map[string][]sample

type sample struct {
	labels map[string]string
	value  float64
}

// scrape scrapes the exporter, for the metrics named or for all. Who asks time and again
// names some: reading all takes more processor time than anything else.
func (e *exporter) scrape(t testing.TB, names ...string) metrics {
	t.Helper()
	path := "/metrics"
	for i, name := range names {
		path += []string{"?", "&"}[min(i, 1)] + "name[]=" + name
	}
	status, text := e.get(t, path)
	if status != http.StatusOK {
		t.Fatalf("GET %s: status %d: %.200s", path, status, text)
	}
	return parse(t, text)
}

// counts is scrape for how often what was run, and how that ended.
func (e *exporter) counts(t testing.TB) metrics {
	t.Helper()
	return e.scrape(t, "rdma_probe_runs_total", "rdma_probe_aborts_total", "rdma_contract_runs_total", "rdma_inventory_runs_total")
}

// exposition is scrape, with the text.
func (e *exporter) exposition(t testing.TB) (string, metrics) {
	t.Helper()
	status, text := e.get(t, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("GET /metrics: status %d: %.200s", status, text)
	}
	return text, parse(t, text)
}

func parse(t testing.TB, text string) metrics {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("parse the exposition: %v", err)
	}
	m := make(metrics)
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			labels := make(map[string]string)
			for _, l := range metric.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			add := func(suffix string, value float64) {
				m[name+suffix] = append(m[name+suffix], sample{labels, value})
			}
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				add("", metric.GetCounter().GetValue())
			case dto.MetricType_GAUGE:
				add("", metric.GetGauge().GetValue())
			case dto.MetricType_HISTOGRAM:
				add("_sum", metric.GetHistogram().GetSampleSum())
				add("_count", float64(metric.GetHistogram().GetSampleCount()))
			case dto.MetricType_SUMMARY:
				add("_sum", metric.GetSummary().GetSampleSum())
				add("_count", float64(metric.GetSummary().GetSampleCount()))
			}
		}
	}
	return m
}

// all returns the samples of a metric that have the labels, given as name, value,
// name, value.
func (m metrics) all(metric string, labels ...string) []sample {
	var found []sample
	for _, s := range m[metric] {
		matches := true
		for i := 0; i+1 < len(labels); i += 2 {
			matches = matches && s.labels[labels[i]] == labels[i+1]
		}
		if matches {
			found = append(found, s)
		}
	}
	return found
}

// sum returns the sum of the samples that have the labels; 0 if none has.
func (m metrics) sum(metric string, labels ...string) float64 {
	total := 0.0
	for _, s := range m.all(metric, labels...) {
		total += s.value
	}
	return total
}

// values returns the different values of a label, sorted, in the samples of a
// metric that have the labels.
func (m metrics) values(metric, label string, labels ...string) []string {
	var values []string
	for _, s := range m.all(metric, labels...) {
		values = append(values, s.labels[label])
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// runs returns how many runs on a device had an outcome.
func (m metrics) runs(device, outcome string) float64 {
	return m.sum("rdma_probe_runs_total", "device", device, "outcome", outcome)
}

func (m metrics) contractRuns(device, outcome string) float64 {
	return m.sum("rdma_contract_runs_total", "device", device, "outcome", outcome)
}

// want makes sure that exactly one sample has the labels, and its value.
func (m metrics) want(t *testing.T, value float64, metric string, labels ...string) {
	t.Helper()
	switch found := m.all(metric, labels...); {
	case len(found) != 1:
		t.Errorf("%s%q has %d samples, want 1", metric, labels, len(found))
	case found[0].value != value:
		t.Errorf("%s%q is %v, want %v", metric, labels, found[0].value, value)
	}
}

// absent makes sure that no sample has the labels.
func (m metrics) absent(t *testing.T, metric string, labels ...string) {
	t.Helper()
	for _, s := range m.all(metric, labels...) {
		t.Errorf("%s%v is %v, want none", metric, s.labels, s.value)
	}
}

// checkExposition has promtool judge an exposition.
func checkExposition(t *testing.T, text string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), running.FindPrometheus(t, "promtool"), "check", "metrics")
	// Beside a summary of the same, a histogram has to be told apart; links are known by
	// their bits a second; and some metrics are about counters.
	cmd.Stdin = strings.NewReader(regexp.MustCompile(`(?m)^.*(rdma_verbs_call_latency_seconds|rdma_port_(max_)?rate_bits|rdma_port_(hw_)?counter_).*\n`).ReplaceAllString(text, ""))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) != 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}
