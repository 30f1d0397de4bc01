package collector

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/state"
)

// latencyMetrics are the metrics of how long completions took and what became of their events.
type latencyMetrics struct {
	notificationLatency      *family
	completionLatency        *family
	vectorLatency            *family
	notificationsMissed      *family
	notificationsSpurious    *family
	notificationsMisdirected *family
	completionsMissing       *family
	completionsUnsuccessful  *family
}

func (m *latencyMetrics) declare(t *table) {
	t.about("Completions and their notification")
	m.notificationLatency = t.histogram("rdma_notification_latency_seconds", "seconds", latencyBuckets(),
		"Time from before a work request was posted to after the event of its completion was returned to a process that slept until then.",
		"device", "port", "path", "mode")
	m.completionLatency = t.histogram("rdma_completion_latency_seconds", "seconds", latencyBuckets(),
		"Time from before a work request was posted to after its completion was seen by polling without a pause.", "device", "port", "path")
	m.vectorLatency = t.summary("rdma_notification_vector_latency_seconds", "seconds",
		"What rdma_notification_latency_seconds of mode any is on one completion vector. The quantiles are of the last run that measured the vector, and absent if nothing went well in it; sum and count are of all runs.", "device", "comp_vector")
	m.notificationsMissed = t.counter("rdma_notifications_missed_total", "completions",
		"Completions that were there at the deadline although their event had not come.", "device", "port", "path", "mode")
	m.notificationsSpurious = t.counter("rdma_notifications_spurious_total", "events",
		"Events that came without a completion.", "device", "port", "path", "mode")
	m.notificationsMisdirected = t.counter("rdma_notifications_misdirected_total", "events",
		"Events that came on another channel or named another completion queue than they should.", "device", "port", "path", "mode")
	m.completionsMissing = t.counter("rdma_completions_missing_total", "completions",
		"Completions that had not come by the deadline.", "device", "port", "path", "mode")
	m.completionsUnsuccessful = t.counter("rdma_completions_unsuccessful_total", "completions",
		"Completions that had this status and should have had another.", "device", "port", "path", "status")
}

// armVerb is the verb that asks for an event.
const armVerb = "ibv_req_notify_cq"

// observeLatencies counts the measurements of completions of a run.
func (h *history) observeLatencies(run *state.Run) {
	for i := range run.Probes {
		for j := range run.Probes[i].Latencies {
			l := &run.Probes[i].Latencies[j]
			if !slices.Contains(state.LatencyPaths(), l.Path) || !slices.Contains(state.LatencyModes(), l.Mode) {
				continue
			}
			h.observeLatency(l)
		}
	}
	for _, l := range run.Vectors() {
		h.observeVector(l.Vector, &l)
	}
	if run.Info != nil {
		maps.DeleteFunc(h.vectors, func(number int, _ *vector) bool { return number >= run.Info.CompletionVectors })
	}
}

// observeLatency counts one measurement. Its series all appear now, so that the
// first thing to go wrong later is not hidden from rate().
func (h *history) observeLatency(l *state.Latency) {
	port, path, mode := h.known(h.ports, maxPorts, strconv.Itoa(l.Port)), string(l.Path), string(l.Mode)

	if l.Mode == state.ModePoll {
		observe(h.histogram(h.completionLatency, port, path), l.Samples)
	} else {
		observe(h.histogram(h.notificationLatency, port, path, mode), l.Samples)
		if len(l.Arms) > 0 {
			observe(h.histogram(h.callDuration, h.known(h.verbs, maxVerbs, armVerb)), l.Arms)
		}
		add(h.counter(h.notificationsMissed, port, path, mode), l.Missed)
		add(h.counter(h.notificationsSpurious, port, path, mode), l.Spurious)
		add(h.counter(h.notificationsMisdirected, port, path, mode), l.Misdirected)
	}
	add(h.counter(h.completionsMissing, port, path, mode), l.Missing)
	for _, s := range usualStatuses(l.Path) {
		h.counter(h.completionsUnsuccessful, port, path, h.known(h.statuses, maxStatuses, s))
	}
	for _, s := range l.Unsuccessful {
		h.counter(h.completionsUnsuccessful, port, path, h.known(h.statuses, maxStatuses, s)).Inc()
	}
}

// usualStatuses returns the statuses that a path brings when it goes wrong. There
// are too many others to show them all before they occur.
func usualStatuses(p state.LatencyPath) []string {
	if p == state.PathFlush {
		return []string{"success"}
	}
	return []string{"retry_exc_err", "rnr_retry_exc_err", "wr_flush_err"}
}

func observe(h prometheus.Histogram, samples []time.Duration) {
	for _, s := range samples {
		h.Observe(s.Seconds())
	}
}

// add adds n, unless it is less than nothing, at which a counter panics.
func add(c prometheus.Counter, n int) {
	if n > 0 {
		c.Add(float64(n))
	}
}

// vector is what was measured on one completion vector.
type vector struct {
	// p50 and p99 are of the last run that measured the vector, if good: nothing
	// has quantiles where nothing went well.
	good     bool
	p50, p99 time.Duration
	// count and sum are of the samples of all runs, in seconds.
	count uint64
	sum   float64
}

// observeVector keeps the measurement that stands for a vector.
func (h *history) observeVector(number int, l *state.Latency) {
	v, ok := h.vectors[number]
	if !ok {
		// Vectors that have no series are kept too, to tell how many there are.
		if len(h.vectors) >= maxSeries {
			return
		}
		v = new(vector)
		h.vectors[number] = v
	}
	v.good, v.p50, v.p99 = l.Count > 0, l.P50, l.P99
	v.count += uint64(len(l.Samples))
	for _, s := range l.Samples {
		v.sum += s.Seconds()
	}
}

// buildVectors adds the series of the completion vectors to a block, and returns
// how many it left out.
func (h *history) buildVectors(b block) (hidden int) {
	shared := make(pairs)
	for i, number := range slices.Sorted(maps.Keys(h.vectors)) {
		s := h.vectors[number].summary()
		if i >= state.MaxVectors {
			hidden += len(s.Quantile) + 2 // sum and count
			continue
		}
		b[h.vectorLatency.index] = append(b[h.vectorLatency.index], &dto.Metric{
			Label:   shared.labels(h.vectorLatency, []string{h.device, strconv.Itoa(number)}),
			Summary: s,
		})
	}
	return hidden
}

// summary returns the series of a vector. Without a good last measurement there
// are no quantiles: older ones would pass for its result.
func (v *vector) summary() *dto.Summary {
	count, sum := v.count, v.sum
	s := &dto.Summary{SampleCount: &count, SampleSum: &sum}
	if v.good {
		s.Quantile = []*dto.Quantile{quantile(0.5, v.p50), quantile(0.99, v.p99)}
	}
	return s
}

func quantile(q float64, value time.Duration) *dto.Quantile {
	seconds := value.Seconds()
	return &dto.Quantile{Quantile: &q, Value: &seconds}
}
