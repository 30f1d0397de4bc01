package collector

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Desc implements prometheus.Metric.
func (s series) Desc() *prometheus.Desc { return s.family.desc }

// Write implements prometheus.Metric. What out points to afterwards is shared.
func (s series) Write(out *dto.Metric) error {
	messages, err := new(messages).of([]*series{&s})
	if err != nil {
		return err
	}
	m := messages[0]
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
}

// of returns the messages of series of one family, of which there is one at least. They
// share memory with the series, and hold until the next call.
func (ms *messages) of(all []*series) ([]*dto.Metric, error) {
	f := all[0].family
	if n := len(all); n > len(ms.messages) {
		ms.messages, ms.metrics, ms.gauges = make([]dto.Metric, n), make([]*dto.Metric, n), make([]dto.Gauge, n)
	}
	if n := len(all) * len(f.labels); n > len(ms.pairs) {
		ms.pairs, ms.labels = make([]dto.LabelPair, n), make([]*dto.LabelPair, n)
	}
	for i, s := range all {
		m := &ms.messages[i]
		m.Gauge, m.Counter, m.Summary, m.Histogram = nil, nil, nil, nil
		ms.metrics[i] = m
		if f.kind == dto.MetricType_COUNTER && s.more != nil {
			counter, err := prometheus.NewConstMetricWithCreatedTimestamp(f.desc, prometheus.CounterValue, s.value, s.more.created, s.values...)
			if err == nil {
				err = counter.Write(m)
			}
			if err != nil {
				return nil, fmt.Errorf("counter %s: %w", f.name, err)
			}
			continue
		}
		own := i * len(f.labels)
		m.Label = ms.labels[own : own+len(f.labels) : own+len(f.labels)]
		for j, n := range f.order {
			pair := &ms.pairs[own+j]
			pair.Name, pair.Value = &f.labels[n], &s.values[n]
			m.Label[j] = pair
		}
		switch f.kind {
		case dto.MetricType_COUNTER:
			m.Counter = &dto.Counter{Value: &s.value}
		case dto.MetricType_SUMMARY:
			m.Summary = &dto.Summary{SampleCount: &s.more.summed.count, SampleSum: &s.more.summed.seconds}
		case dto.MetricType_HISTOGRAM:
			m.Histogram = s.more.histogram
		default:
			ms.gauges[i].Value = &s.value
			m.Gauge = &ms.gauges[i]
		}
	}
	return ms.metrics[:len(all)], nil
}
