package collector

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/report"
)

// A child process that invents names must not fill the server with series, so
// only so many names are told apart on one device.
const (
	maxVerbs  = 64
	maxErrnos = 32
	// otherName stands for the rest of the names.
	otherName = "other"
	// noVerb stands for a run that was ended while it was in no verb.
	noVerb = "none"
)

// A native histogram has buckets 10 % apart; this bounds how many it may have
// and how often it may be reset to keep to that.
const (
	nativeFactor     = 1.1
	nativeMaxBuckets = 160
	nativeMinReset   = time.Hour
)

// history is what was counted of the runs of one device. Its owner serialises
// the calls of its methods.
type history struct {
	schema     *schema
	device     string
	verbs      map[string]struct{}
	errnos     map[string]struct{}
	instrument map[string]instrument
	// block has the series of the instruments. It is built when a run is observed,
	// so that a scrape need not.
	block *block
}

// instrument is a counter or histogram with the family and the label values that
// it stands for. Exactly one of counter and histogram is set.
type instrument struct {
	family    family
	values    []string
	counter   prometheus.Counter
	histogram prometheus.Histogram
}

func newHistory(s *schema, device string) *history {
	h := &history{
		schema:     s,
		device:     device,
		verbs:      make(map[string]struct{}),
		errnos:     make(map[string]struct{}),
		instrument: make(map[string]instrument),
	}
	// A series that appears with its first event hides that event from rate().
	// Here the first run is hidden, but no first failure after it.
	for _, o := range report.Outcomes() {
		h.counter(probeRuns, string(o))
	}
	return h
}

// observe counts a finished run.
func (h *history) observe(run *report.Run) {
	if slices.Contains(report.Outcomes(), run.Outcome) {
		h.counter(probeRuns, string(run.Outcome)).Inc()
	}
	if run.Outcome == report.OutcomeTimeout || run.Outcome == report.OutcomeCrashed {
		h.counter(probeAborts, string(run.Outcome), h.known(h.verbs, maxVerbs, cmp.Or(run.Verb, noVerb))).Inc()
	}
	for _, c := range run.Calls {
		verb := h.known(h.verbs, maxVerbs, c.Verb)
		h.histogram(callDuration, verb).Observe(c.Duration.Seconds())
		if c.Errno != "" && !c.Expected {
			h.counter(callFailures, verb, h.known(h.errnos, maxErrnos, c.Errno)).Inc()
		}
	}
	h.block = h.build()
}

// known returns the name to use for s: s itself, or otherName if there are limit
// names already.
func (h *history) known(names map[string]struct{}, limit int, s string) string {
	s = clean(s)
	if _, ok := names[s]; !ok {
		if len(names) >= limit {
			return otherName
		}
		names[s] = struct{}{}
	}
	return s
}

// counter returns the counter of f with the label values after device, which
// must be clean.
func (h *history) counter(f family, values ...string) prometheus.Counter {
	return h.find(f, values, func(i *instrument) {
		d := &h.schema[f]
		i.counter = prometheus.NewCounter(prometheus.CounterOpts{
			Name: d.name, Help: d.help, ConstLabels: h.schema.constLabels(f, i.values),
		})
	}).counter
}

// histogram is counter for histograms.
func (h *history) histogram(f family, values ...string) prometheus.Histogram {
	return h.find(f, values, func(i *instrument) {
		d := &h.schema[f]
		i.histogram = prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: d.name, Help: d.help, ConstLabels: h.schema.constLabels(f, i.values),
			Buckets:                         d.buckets,
			NativeHistogramBucketFactor:     nativeFactor,
			NativeHistogramMaxBucketNumber:  nativeMaxBuckets,
			NativeHistogramMinResetDuration: nativeMinReset,
		})
	}).histogram
}

func (h *history) find(f family, values []string, create func(*instrument)) instrument {
	key := seriesKey(f, values)
	i, ok := h.instrument[key]
	if !ok {
		i = instrument{family: f, values: slices.Concat([]string{h.device}, values)}
		create(&i)
		h.instrument[key] = i
	}
	return i
}

// build returns the series of the instruments, sorted.
func (h *history) build() *block {
	b := new(block)
	for _, key := range slices.Sorted(maps.Keys(h.instrument)) {
		i := h.instrument[key]
		m := &dto.Metric{}
		var err error
		if i.counter != nil {
			err = i.counter.Write(m)
		} else {
			err = i.histogram.Write(m)
		}
		if err == nil { // Neither kind ever returns an error.
			b[i.family] = append(b[i.family], m)
		}
	}
	return b
}
