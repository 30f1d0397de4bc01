package collector

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Desc implements prometheus.Metric.
func (s series) Desc() *prometheus.Desc { return s.family.desc }

// Write implements prometheus.Metric. What out points to afterwards is shared.
func (s series) Write(out *dto.Metric) error {
	m := new(messages).of([]*series{&s})[0]
	out.Label, out.Gauge, out.Counter, out.Summary, out.Histogram = m.Label, m.Gauge, m.Counter, m.Summary, m.Histogram
	return nil
}

// messages is the memory of the messages of a family: there are thousands of them.
type messages struct {
	messages []dto.Metric
	metrics  []*dto.Metric
	pairs    []dto.LabelPair
	labels   []*dto.LabelPair
	gauges   []dto.Gauge
	counters []dto.Counter
}

// of returns the messages of series of one family, of which there is one at least. They
// share memory with the series, and hold until the next call.
func (ms *messages) of(all []*series) []*dto.Metric {
	f := all[0].family
	if n := len(all); n > len(ms.messages) {
		ms.messages, ms.metrics = make([]dto.Metric, n), make([]*dto.Metric, n)
		ms.gauges, ms.counters = make([]dto.Gauge, n), make([]dto.Counter, n)
	}
	if n := len(all) * len(f.labels); n > len(ms.pairs) {
		ms.pairs, ms.labels = make([]dto.LabelPair, n), make([]*dto.LabelPair, n)
	}
	for i, s := range all {
		m := &ms.messages[i]
		m.Gauge, m.Counter, m.Summary, m.Histogram = nil, nil, nil, nil
		ms.metrics[i] = m
		own := i * len(f.labels)
		m.Label = ms.labels[own : own+len(f.labels) : own+len(f.labels)]
		for j, n := range f.order {
			pair := &ms.pairs[own+j]
			pair.Name, pair.Value = &f.labels[n], &s.values[n]
			m.Label[j] = pair
		}
		switch f.kind {
		case dto.MetricType_COUNTER:
			c := &ms.counters[i]
			c.Value, c.CreatedTimestamp = &s.value, nil
			if s.more != nil {
				c.CreatedTimestamp = s.more.created
			}
			m.Counter = c
		case dto.MetricType_SUMMARY:
			m.Summary = &dto.Summary{SampleCount: &s.more.summed.count, SampleSum: &s.more.summed.seconds}
		case dto.MetricType_HISTOGRAM:
			m.Histogram = s.more.histogram
		default:
			ms.gauges[i].Value = &s.value
			m.Gauge = &ms.gauges[i]
		}
	}
	return ms.metrics[:len(all)]
}

// messageOf returns the message of a family.
func messageOf(f *family, metrics []*dto.Metric) *dto.MetricFamily {
	return &dto.MetricFamily{Name: &f.name, Help: &f.help, Type: f.kind.Enum(), Metric: metrics}
}
