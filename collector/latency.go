package collector

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rdma_exporter/internal/state"
)

func declareLatency(t *table) {
	t.about("Completions and their notification")
	t.of(Latency)
	t.histogram("rdma_notification_latency_seconds", "seconds", latencyBuckets(),
		"Time from just before posting a work request until the sleeping process has its completion event, armed for any completion.",
		"device", "port", "path")
	t.summary("rdma_completion_latency_seconds", "seconds",
		"Time from just before posting a work request until its completion is seen, awaited in another way: sum and count.", "device", "port", "path", "mode")
	t.counter("rdma_notifications_missed_total", "completions",
		"Completions whose event missed the deadline, in any mode.", "device", "port", "path")
	t.counter("rdma_notifications_spurious_total", "events",
		"Events without a completion, in any mode.", "device", "port", "path")
	t.counter("rdma_notifications_misdirected_total", "events",
		"Events on the wrong channel or naming the wrong completion queue, in any mode.", "device", "port", "path")
	t.counter("rdma_completions_missing_total", "completions",
		"Completions that missed the deadline, in any mode.", "device", "port", "path")
	t.counter("rdma_completions_unsuccessful_total", "completions",
		"Completions with an unexpected status.", "device", "port", "path", "status")
	t.of(Vectors)
	t.gauge(vectorLatency, "seconds",
		"rdma_notification_latency_seconds of one completion vector: the 99th percentile of the last run that measured it. Absent if nothing in it succeeded.", "device", "comp_vector")
}

// vectorLatency is the metric of a completion vector. Its values come from runs, and it is
// a gauge.
const vectorLatency = "rdma_notification_vector_latency_seconds"

// armVerb is the verb that requests an event.
const armVerb = "ibv_req_notify_cq"

func (h *history) observeLatencies(run *state.Run) {
	for i := range run.Probes {
		for j := range run.Probes[i].Latencies {
			l := &run.Probes[i].Latencies[j]
			if slices.Contains(state.LatencyPaths(), l.Path) && slices.Contains(state.LatencyModes(), l.Mode) {
				h.observeLatency(l)
			}
		}
	}
	for _, l := range run.Vectors() {
		h.observeVector(l.Vector, &l)
	}
	if run.Info != nil {
		maps.DeleteFunc(h.percentiles, func(number int, _ time.Duration) bool { return number >= run.Info.CompletionVectors })
	}
}

// observeLatency counts one measurement. All its series appear now, so that the first error
// is not hidden from rate().
func (h *history) observeLatency(l *state.Latency) {
	port, path, mode := h.known("port", maxPorts, strconv.Itoa(l.Port)), string(l.Path), string(l.Mode)

	if l.Mode == state.ModeAny {
		observe(h.histogram("rdma_notification_latency_seconds", port, path), l.Samples)
	} else {
		observe(h.summary("rdma_completion_latency_seconds", port, path, mode), l.Samples)
	}
	if l.Mode != state.ModePoll {
		if !h.isOff("rdma_verbs_call_latency_seconds") && len(l.Arms) > 0 {
			observe(h.histogram("rdma_verbs_call_latency_seconds", h.known("verb", maxVerbs, armVerb)), l.Arms)
		}
		h.counter("rdma_notifications_missed_total", port, path).Add(float64(max(l.Missed, 0)))
		h.counter("rdma_notifications_spurious_total", port, path).Add(float64(max(l.Spurious, 0)))
		h.counter("rdma_notifications_misdirected_total", port, path).Add(float64(max(l.Misdirected, 0)))
	}
	h.counter("rdma_completions_missing_total", port, path).Add(float64(max(l.Missing, 0)))
	// The likely errors. The others appear once they occur.
	usual := []string{"retry_exc_err", "rnr_retry_exc_err", "wr_flush_err"}
	if l.Path == state.PathFlush {
		usual = []string{"success"}
	}
	for _, s := range usual {
		h.counter("rdma_completions_unsuccessful_total", port, path, h.known("status", maxStatuses, s))
	}
	for _, s := range l.Unsuccessful {
		h.counter("rdma_completions_unsuccessful_total", port, path, h.known("status", maxStatuses, s)).Inc()
	}
}

func observe(h prometheus.Observer, samples []time.Duration) {
	for _, s := range samples {
		h.Observe(s.Seconds())
	}
}

// observeVector keeps the 99th percentile of a vector. If nothing succeeded, the vector has
// none, so that an older value cannot pass as current.
func (h *history) observeVector(number int, l *state.Latency) {
	_, known := h.percentiles[number]
	switch {
	case l.Count == 0:
		delete(h.percentiles, number)
	case known || len(h.percentiles) < maxSeries:
		h.percentiles[number] = l.P99
	}
}
