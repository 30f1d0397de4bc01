package collector

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
	t.of(Latency)
	m.notificationLatency = t.histogram("rdma_notification_latency_seconds", "seconds", latencyBuckets(),
		"Time from just before posting a work request until the sleeping process has its completion event, armed for any completion.",
		"device", "port", "path")
	m.completionLatency = t.summary("rdma_completion_latency_seconds", "seconds",
		"Time from just before posting a work request until its completion is seen, awaited in another way: sum and count.", "device", "port", "path", "mode")
	m.notificationsMissed = t.counter("rdma_notifications_missed_total", "completions",
		"Completions whose event had not come by the deadline, of any mode.", "device", "port", "path")
	m.notificationsSpurious = t.counter("rdma_notifications_spurious_total", "events",
		"Events without a completion, of any mode.", "device", "port", "path")
	m.notificationsMisdirected = t.counter("rdma_notifications_misdirected_total", "events",
		"Events on the wrong channel or naming the wrong completion queue, of any mode.", "device", "port", "path")
	m.completionsMissing = t.counter("rdma_completions_missing_total", "completions",
		"Completions that had not come by the deadline, of any mode.", "device", "port", "path")
	m.completionsUnsuccessful = t.counter("rdma_completions_unsuccessful_total", "completions",
		"Completions with this status that should have had another.", "device", "port", "path", "status")
	t.of(Vectors)
	m.vectorLatency = t.gauge("rdma_notification_vector_latency_seconds", "seconds",
		"rdma_notification_latency_seconds of one completion vector: the 99th percentile of the last run that measured it. Absent if nothing in it succeeded.", "device", "comp_vector")
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
		maps.DeleteFunc(h.vectors, func(number int, _ vector) bool { return number >= run.Info.CompletionVectors })
	}
}

// observeLatency counts one measurement. Its series all appear now, so that the
// first thing to go wrong later is not hidden from rate().
func (h *history) observeLatency(l *state.Latency) {
	port, path, mode := h.known(h.ports, maxPorts, strconv.Itoa(l.Port)), string(l.Path), string(l.Mode)

	if l.Mode == state.ModeAny {
		observe(h.histogram(h.notificationLatency, port, path), l.Samples)
	} else {
		latency := h.summary(h.completionLatency, port, path, mode)
		for _, s := range l.Samples {
			latency.observe(s)
		}
	}
	if l.Mode != state.ModePoll {
		if !h.callHistogram.off && len(l.Arms) > 0 {
			observe(h.histogram(h.callHistogram, h.known(h.verbs, maxVerbs, armVerb)), l.Arms)
		}
		h.counter(h.notificationsMissed, port, path).add(l.Missed)
		h.counter(h.notificationsSpurious, port, path).add(l.Spurious)
		h.counter(h.notificationsMisdirected, port, path).add(l.Misdirected)
	}
	h.counter(h.completionsMissing, port, path).add(l.Missing)
	for _, s := range usualStatuses(l.Path) {
		h.counter(h.completionsUnsuccessful, port, path, h.known(h.statuses, maxStatuses, s))
	}
	for _, s := range l.Unsuccessful {
		h.counter(h.completionsUnsuccessful, port, path, h.known(h.statuses, maxStatuses, s)).add(1)
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

// vector is what was measured on one completion vector.
type vector struct {
	// good tells that something went well in the last run that measured the vector, of
	// which p99 is: where nothing did, what was before would pass for its result.
	good bool
	p99  time.Duration
}

// observeVector keeps the measurement that stands for a vector.
func (h *history) observeVector(number int, l *state.Latency) {
	// Vectors that have no series are kept too, to tell how many there are.
	if _, ok := h.vectors[number]; ok || len(h.vectors) < maxSeries {
		h.vectors[number] = vector{l.Count > 0, l.P99}
	}
}

// buildVectors adds the series of the completion vectors to others, and returns how many
// it left out.
func (h *history) buildVectors(all []series) (with []series, hidden int) {
	if h.vectorLatency.off {
		return all, 0
	}
	for i, number := range slices.Sorted(maps.Keys(h.vectors)) {
		v := h.vectors[number]
		switch {
		case !v.good:
		case i >= state.MaxVectors:
			hidden++
		default:
			all = append(all, series{family: h.vectorLatency, values: []string{h.device, strconv.Itoa(number)}, value: v.p99.Seconds()})
		}
	}
	return all, hidden
}
