package collector

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/text"
)

// maxSeries limits the gauges of the last runs of one device. Runs with the default
// profiles make about 200.
const maxSeries = 4096

// sample is one series with its declaration.
type sample struct {
	family *family
	metric prometheus.Metric
}

// builder makes const metrics from a snapshot. If a series is added twice, the last value
// wins, because a registry rejects duplicates.
type builder struct {
	*table
	samples []sample
	// index maps keys of series to places in samples.
	index map[string]int
	past  past
	// owners are the owners with series of their own, on any device.
	owners *ownerNames
	// left is the number of series that may still be added. dropped counts the others.
	left, dropped int
}

func newBuilder(t *table, past past, owners *ownerNames) *builder {
	return &builder{table: t, index: make(map[string]int), past: past, owners: owners, left: maxSeries}
}

func (b *builder) counter(metric string, value uint64, values ...string) {
	b.gauge(metric, float64(value), values...)
}

func (b *builder) boolGauge(metric string, value bool, values ...string) {
	b.gauge(metric, number(value), values...)
}

// positive adds a series unless its value is unknown, which is 0 or less.
func (b *builder) positive(metric string, value float64, values ...string) {
	if value > 0 {
		b.gauge(metric, value, values...)
	}
}

// optional adds a series unless its value is unknown, which is nil.
func optional[T int | float64](b *builder, metric string, value *T, values ...string) {
	if value != nil {
		b.gauge(metric, float64(*value), values...)
	}
}

// timestamp adds a time, unless it is zero.
func (b *builder) timestamp(metric string, t time.Time, values ...string) {
	if !t.IsZero() {
		b.gauge(metric, float64(t.UnixMilli())/1e3, values...)
	}
}

func number(value bool) float64 {
	if value {
		return 1
	}
	return 0
}

// gauge adds a series of the type that is declared. The label values are in the order of
// the declaration. The builder takes ownership of them.
func (b *builder) gauge(metric string, value float64, values ...string) {
	f, ok := b.byName[metric]
	switch {
	case !ok:
		err := fmt.Errorf("metric %s is not declared", metric)
		b.samples = append(b.samples, sample{&family{}, prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)})
		return
	case f.off:
		return
	}
	key := seriesKey(metric, values)
	at, again := b.index[key]
	if !again && b.left == 0 {
		b.dropped++
		return
	}
	kind := prometheus.GaugeValue
	if f.kind == dto.MetricType_COUNTER {
		kind = prometheus.CounterValue
	}
	m, err := prometheus.NewConstMetric(f.desc, kind, value, values...)
	if err != nil {
		m = prometheus.NewInvalidMetric(f.desc, err)
	}
	if again {
		b.samples[at].metric = m
		return
	}
	b.left--
	b.index[key] = len(b.samples)
	b.samples = append(b.samples, sample{f, m})
}

// past holds the sparse series of a device that were not 0 once, by their keys.
type past map[string]sparseSeries

type sparseSeries struct {
	metric string
	values []string
}

// sparse adds a series unless its value has always been 0. Once exposed, the series stays,
// so that a return to 0 is visible.
func (b *builder) sparse(metric string, value float64, values ...string) {
	if f := b.byName[metric]; f != nil && f.off {
		return
	}
	key := seriesKey(metric, values)
	_, seen := b.past[key]
	if value == 0 && !seen {
		return
	}
	if !seen && len(b.past) < maxSeries {
		b.past[key] = sparseSeries{metric, values}
	}
	b.gauge(metric, value, values...)
}

// ended adds the sparse series of a metric that were not added yet, as 0.
func (b *builder) ended(metric string) {
	for key, s := range b.past {
		if s.metric == metric {
			if _, added := b.index[key]; !added {
				b.gauge(metric, 0, s.values...)
			}
		}
	}
}

// seriesKey makes label values valid UTF-8 and returns the identity of their series. No
// valid value contains the byte 0xff.
func seriesKey(metric string, values []string) string {
	for i, v := range values {
		values[i] = text.Valid(v)
	}
	return metric + "\xff" + strings.Join(values, "\xff")
}
