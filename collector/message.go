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
	messages, err := messagesOf([]*series{&s})
	if err != nil {
		return err
	}
	m := messages[0]
	out.Label, out.Gauge, out.Counter, out.Summary, out.Histogram = m.Label, m.Gauge, m.Counter, m.Summary, m.Histogram
	return nil
}

// messagesOf returns the messages of series of one family, of which there is one at least.
// They share memory with the series and with each other: there are thousands.
func messagesOf(all []*series) ([]*dto.Metric, error) {
	f := all[0].family
	messages, metrics := make([]dto.Metric, len(all)), make([]*dto.Metric, len(all))
	pairs, labels := make([]dto.LabelPair, len(all)*len(f.labels)), make([]*dto.LabelPair, len(all)*len(f.labels))
	var gauges []dto.Gauge
	if f.kind == dto.MetricType_GAUGE {
		gauges = make([]dto.Gauge, len(all))
	}
	for i, s := range all {
		m := &messages[i]
		metrics[i] = m
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
		m.Label = labels[own : own+len(f.labels) : own+len(f.labels)]
		for j, n := range f.order {
			pair := &pairs[own+j]
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
			gauges[i].Value = &s.value
			m.Gauge = &gauges[i]
		}
	}
	return metrics, nil
}
