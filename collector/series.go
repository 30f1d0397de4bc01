package collector

import (
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/text"
)

// maxSeries is the most gauges that the last runs of one device may make. Runs
// with the default profiles make some 200.
const maxSeries = 4096

// block is a set of series by family. Once built it is not changed, so that any
// number of scrapes may share it.
type block [][]*dto.Metric

// builder fills a block with what the snapshot says: gauges, and counters that others
// count. Of a series told twice the last value wins.
type builder struct {
	*metrics
	block block
	index map[string]*float64
	pairs pairs
	// past are the sparse series of the device that were not 0 once.
	past past
	// left is how many series may still be added; dropped counts the others.
	left    int
	dropped int
}

// gaugeSeries is a gauge in one piece: there are thousands. So is counterSeries.
type gaugeSeries struct {
	metric dto.Metric
	gauge  dto.Gauge
	value  float64
}

type counterSeries struct {
	metric  dto.Metric
	counter dto.Counter
	value   float64
}

func newBuilder(m *metrics) *builder {
	return &builder{
		metrics: m, block: make(block, len(m.families)), index: make(map[string]*float64, 256),
		pairs: make(pairs), past: make(past), left: maxSeries,
	}
}

// gauge adds a series. The label values are in the order of the declaration.
func (b *builder) gauge(f *family, value float64, values ...string) { b.add(f, value, values) }

// counter is gauge for what the kernel or the adapter counts.
func (b *builder) counter(f *family, value uint64, values ...string) {
	b.add(f, float64(value), values)
}

// add adds a series of the type of its family.
func (b *builder) add(f *family, value float64, values []string) {
	if f.off {
		return
	}
	for i, v := range values {
		values[i] = text.Valid(v)
	}
	key := seriesKey(f, values)
	if told, ok := b.index[key]; ok {
		*told = value
		return
	}
	if b.left == 0 {
		b.dropped++
		return
	}
	b.left--
	var m *dto.Metric
	if f.kind == dto.MetricType_COUNTER {
		c := &counterSeries{value: value}
		c.counter.Value, c.metric.Counter = &c.value, &c.counter
		m, b.index[key] = &c.metric, &c.value
	} else {
		g := &gaugeSeries{value: value}
		g.gauge.Value, g.metric.Gauge = &g.value, &g.gauge
		m, b.index[key] = &g.metric, &g.value
	}
	m.Label = b.pairs.labels(f, values)
	b.block[f.index] = append(b.block[f.index], m)
}

// truth adds a series with the value 1 or 0.
func (b *builder) truth(f *family, value bool, values ...string) {
	b.gauge(f, number(value), values...)
}

// number is 1 or 0.
func number(value bool) float64 {
	if value {
		return 1
	}
	return 0
}

// past are the sparse series of a device that were not 0 once, with their label values
// by their keys. There are no more of them than series of a device.
type past map[string]sparseSeries

type sparseSeries struct {
	family *family
	values []string
}

// sparse adds a series unless it is 0 and always was: what never happens costs nothing,
// and what happened once is seen to end.
func (b *builder) sparse(f *family, value float64, values ...string) {
	if f.off {
		return
	}
	for i, v := range values {
		values[i] = text.Valid(v)
	}
	key := seriesKey(f, values)
	_, was := b.past[key]
	if value == 0 && !was {
		return
	}
	if !was && len(b.past) < maxSeries {
		b.past[key] = sparseSeries{f, slices.Clone(values)}
	}
	b.add(f, value, values)
}

// ended adds the sparse series of a family that were not told, as 0.
func (b *builder) ended(f *family) {
	for _, key := range slices.Sorted(maps.Keys(b.past)) {
		if s := b.past[key]; s.family == f && b.index[key] == nil {
			b.add(f, 0, slices.Clone(s.values))
		}
	}
}

// pairs are labels that series share.
type pairs map[label]*dto.LabelPair

// label is a label with its value.
type label struct{ name, value string }

// labels returns the labels of a series of a family.
func (p pairs) labels(f *family, values []string) []*dto.LabelPair {
	labels := make([]*dto.LabelPair, len(f.order))
	for i, n := range f.order {
		key := label{f.labels[n], values[n]}
		pair, ok := p[key]
		if !ok {
			own := key // the key itself need not outlive this
			pair = &dto.LabelPair{Name: &own.name, Value: &own.value}
			p[own] = pair
		}
		labels[i] = pair
	}
	return labels
}

// seriesKey identifies a series. Valid values have no byte 0xff, so it tells
// where one value ends and the next begins.
func seriesKey(f *family, values []string) string {
	size := 1
	for _, v := range values {
		size += len(v) + 1
	}
	var sb strings.Builder
	sb.Grow(size)
	sb.WriteByte(byte(f.index))
	for _, v := range values {
		sb.WriteString(v)
		sb.WriteByte(0xff)
	}
	return sb.String()
}

// series is a finished series as a prometheus.Metric. It is not changed, so it
// may be read by any number of goroutines.
type series struct {
	desc   *prometheus.Desc
	metric *dto.Metric
}

// Desc implements prometheus.Metric.
func (s series) Desc() *prometheus.Desc { return s.desc }

// Write implements prometheus.Metric. What out points to afterwards is shared.
func (s series) Write(out *dto.Metric) error {
	out.Label = s.metric.Label
	out.Gauge = s.metric.Gauge
	out.Counter = s.metric.Counter
	out.Summary = s.metric.Summary
	out.Histogram = s.metric.Histogram
	return nil
}
