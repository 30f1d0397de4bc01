package collector

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Names returns the names of all metrics.
func Names() []string {
	var names []string
	for _, d := range newMetrics(everything()).families {
		names = append(names, d.name)
	}
	return names
}

// everything returns the choice of every collector.
func everything() Choice {
	c := make(Choice)
	for _, p := range Parts() {
		c[p.Name] = true
	}
	return c
}

// Everything returns the choice of every collector.
func Everything() Choice { return everything() }

// Reference returns what gathers other and the series of c as metrics of client_golang,
// which has no part in the messages that a collector makes itself.
func Reference(c *Collector, other prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := other.Gather()
		if err != nil {
			return nil, err
		}
		own := make(map[*family]*dto.MetricFamily)
		for _, b := range c.blocks() {
			for i := range b {
				m, f := new(dto.Metric), b[i].family
				metric, err := metricOf(&b[i])
				if err == nil {
					err = metric.Write(m)
				}
				if err != nil {
					return nil, err
				}
				if own[f] == nil {
					own[f] = &dto.MetricFamily{Name: proto.String(f.name), Help: proto.String(f.help), Type: f.kind.Enum()}
					families = append(families, own[f])
				}
				own[f].Metric = append(own[f].Metric, m)
			}
		}
		slices.SortStableFunc(families, func(x, y *dto.MetricFamily) int { return strings.Compare(x.GetName(), y.GetName()) })
		return families, nil
	})
}

// metricOf returns a series as a metric of client_golang.
func metricOf(s *series) (prometheus.Metric, error) {
	desc := s.family.desc
	switch {
	case s.family.kind == dto.MetricType_SUMMARY:
		return prometheus.NewConstSummary(desc, s.more.summed.count, s.more.summed.seconds, nil, s.values...)
	case s.family.kind == dto.MetricType_HISTOGRAM:
		return histogram{desc, s.values, s.more.histogram}, nil
	case s.family.kind == dto.MetricType_GAUGE:
		return prometheus.NewConstMetric(desc, prometheus.GaugeValue, s.value, s.values...)
	case s.more != nil:
		return prometheus.NewConstMetricWithCreatedTimestamp(desc, prometheus.CounterValue, s.value, s.more.created.AsTime(), s.values...)
	default:
		return prometheus.NewConstMetric(desc, prometheus.CounterValue, s.value, s.values...)
	}
}

// histogram is a histogram of client_golang with the labels that a collector gives it.
type histogram struct {
	desc   *prometheus.Desc
	values []string
	was    *dto.Histogram
}

// Desc implements prometheus.Metric.
func (h histogram) Desc() *prometheus.Desc { return h.desc }

// Write implements prometheus.Metric.
func (h histogram) Write(out *dto.Metric) error {
	out.Label, out.Histogram = prometheus.MakeLabelPairs(h.desc, h.values), h.was
	return nil
}

// Odd returns a collector that has two series of each family, whose labels, which must be
// valid, and whose values are these.
func Odd(label string, value float64, count uint64) *Collector {
	c := New(Options{Collectors: everything()})
	h := newHistory(c.metrics, "")
	var all []series
	for _, f := range c.byName {
		for _, v := range []string{label, label + "2"} {
			s := series{family: f, values: slices.Repeat([]string{v}, len(f.labels)), value: value}
			switch f.kind {
			case dto.MetricType_SUMMARY:
				s.more = &more{summed: total{count, value}}
			case dto.MetricType_COUNTER:
				if v != label {
					s.more = &more{created: timestamppb.Now()}
				}
			case dto.MetricType_HISTOGRAM:
				i := &instrument{series: s}
				i.histogram = newHistogram(f)
				i.histogram.Observe(value)
				i.write()
				s = i.series
			}
			all = append(all, s)
		}
	}
	h.series.Store(&counted{block: inOrder(all)})
	c.histories[""] = h
	return c
}
