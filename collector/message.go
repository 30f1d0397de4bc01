package collector

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Desc implements prometheus.Metric.
func (s series) Desc() *prometheus.Desc { return s.family.desc }

// Write implements prometheus.Metric. What out points to afterwards is shared.
func (s series) Write(out *dto.Metric) error {
	if s.more != nil && !s.more.created.IsZero() {
		counter, err := prometheus.NewConstMetricWithCreatedTimestamp(s.family.desc, prometheus.CounterValue, s.value, s.more.created, s.values...)
		if err != nil {
			return err
		}
		return counter.Write(out)
	}
	out.Label = make([]*dto.LabelPair, len(s.values))
	for i, n := range s.family.order {
		out.Label[i] = &dto.LabelPair{Name: &s.family.labels[n], Value: &s.values[n]}
	}
	switch s.family.kind {
	case dto.MetricType_COUNTER:
		out.Counter = &dto.Counter{Value: &s.value}
	case dto.MetricType_SUMMARY:
		summed := s.more.summed
		out.Summary = &dto.Summary{SampleCount: &summed.count, SampleSum: &summed.seconds}
	case dto.MetricType_HISTOGRAM:
		out.Histogram = s.more.histogram
	default:
		out.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}
