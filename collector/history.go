package collector

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// A child process that invents names must not fill the server with series, so
// only so many names are told apart on one device.
const (
	maxVerbs    = 64
	maxErrnos   = 32
	maxPorts    = 16
	maxStatuses = 32
	maxEvents   = 32
	// otherName stands for the rest of the names.
	otherName = "other"
)

// A native histogram has buckets 10 % apart; this bounds how many it may have
// and how often it may be reset to keep to that.
const (
	nativeFactor     = 1.1
	nativeMaxBuckets = 160
	nativeMinReset   = time.Hour
)

// history is what was counted of the runs of one device.
type history struct {
	*metrics
	device string
	// series is built when a run is observed, so that a scrape need not, nor wait
	// for it.
	series atomic.Pointer[counted]

	// mu serialises runs and guards all below.
	mu         sync.Mutex
	verbs      map[string]struct{}
	errnos     map[string]struct{}
	ports      map[string]struct{}
	statuses   map[string]struct{}
	events     map[string]struct{}
	instrument map[string]*instrument
	// keys are those of instrument, sorted.
	keys    []string
	vectors map[int]vector
}

// counted are the series of a history. It is not changed.
type counted struct {
	block block
	// hidden is how many series block lacks because there are too many.
	hidden int
}

// instrument is a counter, histogram or summary. Which of the three it is, the family of
// its series says.
type instrument struct {
	// series is what the instrument stands for; of a counter with its value, of the others
	// as it was when it was built last.
	series    series
	histogram prometheus.Histogram
	summary   total
	// changed tells that series may not be what the instrument has now.
	changed bool
}

// add adds n to a counter, unless it is less than nothing.
func (i *instrument) add(n int) { i.series.value += float64(max(n, 0)) }

func newHistory(m *metrics, device string) *history {
	h := &history{
		metrics:    m,
		device:     device,
		verbs:      make(map[string]struct{}),
		errnos:     make(map[string]struct{}),
		ports:      make(map[string]struct{}),
		statuses:   make(map[string]struct{}),
		events:     make(map[string]struct{}),
		instrument: make(map[string]*instrument),
		vectors:    make(map[int]vector),
	}
	// A series that appears with its first event hides that event from rate(). Most
	// devices never fail, so the other outcomes wait all the same: gauges and findings
	// tell of a first failure.
	for _, f := range []*family{h.probeRuns, h.contractRuns, h.inventoryRuns, h.hardwareRuns} {
		h.counter(f, string(state.OutcomeOK))
	}
	h.series.Store(&counted{})
	return h
}

// observe counts a finished run, one that does not say its kind as one of the probes.
func (h *history) observe(run *state.Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch run.Kind {
	case state.KindProbe, "":
		h.observeRun(h.probeRuns, run)
		h.observeAbort(h.probeAborts, run)
	case state.KindContract:
		if run.Light != nil && run.Outcome == state.OutcomeOK {
			return // It was put off.
		}
		h.observeRun(h.contractRuns, run)
		h.observeAbort(h.contractAborts, run)
	case state.KindInventory:
		// It calls no verb, and measures nothing.
		h.observeRun(h.inventoryRuns, run)
		h.series.Store(h.build())
		return
	case state.KindHardware:
		h.observeRun(h.hardwareRuns, run)
		h.series.Store(h.build())
		return
	default:
		return
	}
	h.observeCalls(run.Calls)
	h.observeLatencies(run)
	h.observeEvents(run.Events)
	h.series.Store(h.build())
}

// known returns the name to use for s: s itself, or otherName if there are limit
// names already.
func (h *history) known(names map[string]struct{}, limit int, s string) string {
	s = text.Valid(s)
	if _, ok := names[s]; !ok {
		if len(names) >= limit {
			return otherName
		}
		names[s] = struct{}{}
	}
	return s
}

// counter returns the counter of f with the label values after device, which
// must be valid.
func (h *history) counter(f *family, values ...string) *instrument {
	return h.find(f, values, func(i *instrument) { i.series.more = &more{created: timestamppb.Now()} })
}

// histogram is counter for histograms.
func (h *history) histogram(f *family, values ...string) prometheus.Histogram {
	return h.find(f, values, func(i *instrument) { i.histogram = newHistogram(f) }).histogram
}

func newHistogram(f *family) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: f.name, Help: f.help,
		Buckets:                         f.buckets,
		NativeHistogramBucketFactor:     nativeFactor,
		NativeHistogramMaxBucketNumber:  nativeMaxBuckets,
		NativeHistogramMinResetDuration: nativeMinReset,
	})
}

// summary is counter for summaries without quantiles.
func (h *history) summary(f *family, values ...string) *total {
	return &h.find(f, values, func(*instrument) {}).summary
}

// total is how many durations there were, and their sum.
type total struct {
	count   uint64
	seconds float64
}

func (t *total) observe(d time.Duration) {
	t.count++
	t.seconds += d.Seconds()
}

// find returns an instrument that is about to be changed.
func (h *history) find(f *family, values []string, create func(*instrument)) *instrument {
	key := seriesKey(f, values)
	i, ok := h.instrument[key]
	if !ok {
		i = &instrument{series: series{family: f, values: slices.Concat([]string{h.device}, values)}}
		create(i)
		h.instrument[key] = i
		at, _ := slices.BinarySearch(h.keys, key)
		h.keys = slices.Insert(h.keys, at, key)
	}
	i.changed = true
	return i
}

// build returns all series, sorted. Only those that may have changed are written
// anew: of the runs of a device, inventories change hardly any.
func (h *history) build() *counted {
	all := make([]series, 0, len(h.keys)+len(h.vectors))
	for _, key := range h.keys {
		i := h.instrument[key]
		if i.series.family.off || i.changed && !i.write() {
			continue
		}
		all = append(all, i.series)
	}
	all, hidden := h.buildVectors(all)
	return &counted{block: inOrder(all), hidden: hidden}
}

// write builds the series, and reports whether it could.
func (i *instrument) write() bool {
	switch i.series.family.kind {
	case dto.MetricType_COUNTER: // It is.
	case dto.MetricType_SUMMARY:
		i.series.more = &more{summed: i.summary}
	default:
		var m dto.Metric
		if i.histogram.Write(&m) != nil {
			return false // It never returns an error.
		}
		i.series.more = &more{histogram: m.Histogram}
	}
	i.changed = false
	return true
}
