package collector

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// family declares one metric.
type family struct {
	// subject is the heading in docs/reference/metrics.md.
	subject string
	// collector is the collector that exposes the metric. Empty if it is always exposed.
	collector string
	// off is true if the collector is off. The metric then has no series.
	off  bool
	name string
	kind dto.MetricType
	// unit describes what a value counts, for readers of the page.
	unit string
	help string
	// labels are in the order in which values are passed.
	labels []string
	// buckets are the upper bounds of a histogram's classic buckets.
	buckets []float64
	desc    *prometheus.Desc
}

// in reports whether a scrape of the chosen collectors includes the metric.
func (f *family) in(chosen Choice) bool { return f.collector == "" || chosen[f.collector] }

// table declares every metric, in the order of docs/reference/metrics.md. It is not
// modified after newTable.
type table struct {
	on       Choice
	families []*family
	byName   map[string]*family

	// subject, collector and off apply to the metrics declared next.
	subject, collector string
	off                bool
}

// newTable declares the metrics, including those of collectors that are off. Each file
// declares the metrics that it emits.
func newTable(on Choice) *table {
	t := &table{on: on, byName: make(map[string]*family)}
	for _, declare := range []func(t *table){
		declareDevice, declareRun, declareSize, declareVerb, declareLatency, declareContract, declareEvent,
		declareResource, declareInventory, declareHardware, declareCounter, declareLink, declareGid,
		declareAdapter, declareInterrupt, declarePath, declareBandwidth, declareExporter,
	} {
		declare(t)
	}
	return t
}

// about sets the subject of the metrics declared next. They are always exposed.
func (t *table) about(subject string) { t.subject, t.collector, t.off = subject, "", false }

// of returns the collectors for a scrape, out of those that are on: the named ones, or all
// except the excluded ones.
func (t *table) of(collector string) { t.collector, t.off = collector, !t.on[collector] }

func (t *table) gauge(name, unit, help string, labels ...string) {
	t.add(dto.MetricType_GAUGE, name, unit, nil, help, labels)
}

func (t *table) counter(name, unit, help string, labels ...string) {
	t.add(dto.MetricType_COUNTER, name, unit, nil, help, labels)
}

func (t *table) summary(name, unit, help string, labels ...string) {
	t.add(dto.MetricType_SUMMARY, name, unit, nil, help, labels)
}

func (t *table) histogram(name, unit string, buckets []float64, help string, labels ...string) {
	t.add(dto.MetricType_HISTOGRAM, name, unit, buckets, help, labels)
}

func (t *table) add(kind dto.MetricType, name, unit string, buckets []float64, help string, labels []string) {
	f := &family{
		subject: t.subject, collector: t.collector, off: t.off, name: name, kind: kind, unit: unit, help: help,
		labels: labels, buckets: buckets, desc: prometheus.NewDesc(name, help, labels, nil),
	}
	t.families = append(t.families, f)
	t.byName[name] = f
}

// latencyBuckets returns the classic buckets of latencies. They are few: enough to
// distinguish a healthy adapter, a virtual machine and a slow device. Native histograms
// have the rest.
func latencyBuckets() []float64 {
	return []float64{5e-6, 10e-6, 20e-6, 50e-6, 150e-6, 1e-3, 10e-3}
}
