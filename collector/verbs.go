package collector

import "rdma_exporter/internal/state"

// verbMetrics are the metrics of the calls of verbs.
type verbMetrics struct {
	callDuration *family
	callFailures *family
}

func (m *verbMetrics) declare(t *table) {
	t.about("Calls of verbs")
	m.callDuration = t.histogram("rdma_verbs_call_duration_seconds", "seconds", []float64{1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10},
		"Time that calls of a verb took, failed ones too, measured next to the call in the child process.", "device", "verb")
	m.callFailures = t.counter("rdma_verbs_call_failures_total", "calls",
		"Calls of a verb that failed, without those that a probe made fail on purpose.", "device", "verb", "errno")
}

// observeCalls counts the calls of a run.
func (h *history) observeCalls(calls []state.Call) {
	for _, c := range calls {
		verb := h.known(h.verbs, maxVerbs, c.Verb)
		h.histogram(h.callDuration, verb).Observe(c.Duration.Seconds())
		if c.Errno != "" && !c.Expected {
			h.counter(h.callFailures, verb, h.known(h.errnos, maxErrnos, c.Errno)).Inc()
		}
	}
}
