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
	if s.more != nil && !s.more.created.IsZero() {
		counter, err := prometheus.NewConstMetricWithCreatedTimestamp(s.family.desc, prometheus.CounterValue, s.value, s.more.created, s.values...)
		if err != nil {
			return fmt.Errorf("counter %s: %w", s.family.name, err)
		}
		return counter.Write(out)
	}
	out.Label = make([]*dto.LabelPair, len(s.values))
	pairs := make([]dto.LabelPair, len(s.values)) // in one piece: there are thousands
	for i, n := range s.family.order {
		pairs[i].Name, pairs[i].Value = &s.family.labels[n], &s.values[n]
		out.Label[i] = &pairs[i]
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
