//go:build vm

package softroce

import (
	"maps"
	"slices"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// metrics is one scrape.
type metrics map[string]*dto.MetricFamily

// find returns the samples of a metric that have the labels, which are given as
// name, value, name, value.
func (m metrics) find(name string, labels ...string) []*dto.Metric {
	var found []*dto.Metric
	for _, s := range m[name].GetMetric() {
		ok := true
		for i := 0; i < len(labels); i += 2 {
			ok = ok && label(s, labels[i]) == labels[i+1]
		}
		if ok {
			found = append(found, s)
		}
	}
	return found
}

func label(s *dto.Metric, name string) string {
	for _, l := range s.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func number(s *dto.Metric) float64 {
	return s.GetGauge().GetValue() + s.GetCounter().GetValue() + s.GetUntyped().GetValue()
}

// sum adds up the samples that have the labels.
func (m metrics) sum(name string, labels ...string) float64 {
	var sum float64
	for _, s := range m.find(name, labels...) {
		sum += number(s)
	}
	return sum
}

// one returns the value of the only sample that has the labels.
func (m metrics) one(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	found := m.find(name, labels...)
	if len(found) != 1 {
		t.Errorf("%d samples %s%q, want one", len(found), name, labels)
		return -1
	}
	return number(found[0])
}

// is makes sure that the only sample with the labels has the value.
func (m metrics) is(t testing.TB, want float64, name string, labels ...string) {
	t.Helper()
	if got := m.one(t, name, labels...); got != want {
		t.Errorf("%s%q is %v, want %v", name, labels, got, want)
	}
}

// The states of a port, by their numbers.
const (
	portDown   = 1
	portActive = 4
)

// runs is the number of runs on a device; outcomes count if any are given.
func (m metrics) runs(device string, outcomes ...string) float64 {
	if len(outcomes) == 0 {
		return m.sum("rdma_probe_runs_total", "device", device)
	}
	var n float64
	for _, o := range outcomes {
		n += m.sum("rdma_probe_runs_total", "device", device, "outcome", o)
	}
	return n
}

// probed tells whether a device was probed, and what was found is shown: a run is
// counted a moment before.
func (m metrics) probed(device string) bool {
	return m.runs(device) > 0 && len(m.find("rdma_probe_last_run_timestamp_seconds", "device", device)) > 0
}

// of lists the metrics that tell of a device.
func (m metrics) of(device string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if len(m.find(name, "device", device)) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// allOK makes sure that every run on a device ended well.
func (m metrics) allOK(t testing.TB, device string) {
	t.Helper()
	if all, ok := m.runs(device), m.runs(device, "ok"); all == 0 || ok != all {
		t.Errorf("%v of %v runs on %s ended well", ok, all, device)
	}
}
