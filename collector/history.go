package collector

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Each limits the names of one kind that have series of their own on one device, so that a
// child process that invents names cannot fill the server. otherName stands for the rest.
const (
	maxVerbs    = 64
	maxErrnos   = 32
	maxPorts    = 16
	maxStatuses = 32
	maxEvents   = 32
	otherName   = "other"
)

// The buckets of a native histogram grow by 10 %. The other two limit their number, and
// how often the histogram may be reset to stay below it.
const (
	nativeFactor     = 1.1
	nativeMaxBuckets = 160
	nativeMinReset   = time.Hour
)

type history struct {
	*table
	device string

	mu sync.Mutex
	// vectors are a CounterVec, SummaryVec or HistogramVec by metric. Their first label
	// is the device, so that the vectors of all devices form one family.
	vectors map[string]prometheus.Collector
	// names are the known values of labels, by label.
	names map[string]map[string]bool
	// percentiles are the latest 99th percentiles of completion vectors.
	percentiles map[int]time.Duration
}

func newHistory(t *table, device string) *history {
	h := &history{
		table: t, device: device,
		vectors: make(map[string]prometheus.Collector), names: make(map[string]map[string]bool),
		percentiles: make(map[int]time.Duration),
	}
	// A series that appears with its first event hides that event from rate(). Most
	// devices never fail, so the other outcomes appear only when they occur. Gauges and
	// findings show a first failure.
	for _, metric := range []string{"rdma_probe_runs_total", "rdma_contract_runs_total", "rdma_inventory_runs_total", "rdma_hardware_runs_total"} {
		h.counter(metric, string(state.OutcomeOK))
	}
	return h
}

// observe counts a finished run. A run without a kind counts as a probe run.
func (h *history) observe(run *state.Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch run.Kind {
	case state.KindProbe, "":
		h.observeRun("rdma_probe_runs_total", run)
		h.observeAbort("rdma_probe_aborts_total", run)
	case state.KindContract:
		if run.Reduced != nil && run.Outcome == state.OutcomeOK {
			return // It was put off.
		}
		h.observeRun("rdma_contract_runs_total", run)
		h.observeAbort("rdma_contract_aborts_total", run)
	case state.KindInventory:
		// It calls no verb, and measures nothing.
		h.observeRun("rdma_inventory_runs_total", run)
		return
	case state.KindHardware:
		h.observeRun("rdma_hardware_runs_total", run)
		return
	case state.KindAsk:
		h.observePath(run.Path)
		return
	case state.KindBandwidth:
		h.observeBandwidth(run)
		return
	default:
		return
	}
	h.observeCalls(run.Calls)
	h.observeLatencies(run)
	h.observeEvents(run.Events)
}

// known returns the value to use for a label: s, or otherName if the label has limit
// values already.
func (h *history) known(label string, limit int, s string) string {
	s = text.Valid(s)
	if h.names[label] == nil {
		h.names[label] = make(map[string]bool)
	}
	if !h.names[label][s] {
		if len(h.names[label]) >= limit {
			return otherName
		}
		h.names[label][s] = true
	}
	return s
}

// isOff reports whether the collector of a metric is off.
func (h *history) isOff(metric string) bool { return h.byName[metric].off }

// counter returns the counter with these values of the labels after device. They must be
// valid UTF-8.
func (h *history) counter(metric string, values ...string) prometheus.Counter {
	return vectorOf(h, metric, func(f *family) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.name, Help: f.help}, f.labels)
	}).WithLabelValues(slices.Insert(values, 0, h.device)...)
}

// summary returns a summary without quantiles, like counter.
func (h *history) summary(metric string, values ...string) prometheus.Observer {
	return vectorOf(h, metric, func(f *family) *prometheus.SummaryVec {
		return prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: f.name, Help: f.help}, f.labels)
	}).WithLabelValues(slices.Insert(values, 0, h.device)...)
}

// histogram returns a histogram with classic and native buckets, like counter.
func (h *history) histogram(metric string, values ...string) prometheus.Observer {
	return vectorOf(h, metric, func(f *family) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: f.name, Help: f.help, Buckets: f.buckets, NativeHistogramBucketFactor: nativeFactor,
			NativeHistogramMaxBucketNumber: nativeMaxBuckets, NativeHistogramMinResetDuration: nativeMinReset,
		}, f.labels)
	}).WithLabelValues(slices.Insert(values, 0, h.device)...)
}

// vectorOf returns the vector of a metric. It creates one at the first call. Caller holds
// mu.
func vectorOf[V prometheus.Collector](h *history, metric string, create func(f *family) V) V {
	if v, ok := h.vectors[metric].(V); ok {
		return v
	}
	v := create(h.byName[metric])
	h.vectors[metric] = v
	return v
}

func (h *history) collect(chosen Choice, ch chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for metric, v := range h.vectors {
		if f := h.byName[metric]; !f.off && f.in(chosen) {
			v.Collect(ch)
		}
	}
	b := newBuilder(h.table, nil, nil)
	for _, number := range slices.Sorted(maps.Keys(h.percentiles))[:min(len(h.percentiles), state.MaxVectors)] {
		b.gauge(vectorLatency, h.percentiles[number].Seconds(), h.device, strconv.Itoa(number))
	}
	b.send(chosen, ch)
}

// hidden returns how many completion vectors have no series because there are too many.
func (h *history) hidden() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isOff(vectorLatency) {
		return 0
	}
	return max(0, len(h.percentiles)-state.MaxVectors)
}
