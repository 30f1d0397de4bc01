package collector

import "rdma_exporter/internal/state"

// observeCalls counts the calls of a run.
func (h *history) observeCalls(calls []state.Call) {
	for _, c := range calls {
		verb := h.known(h.verbs, maxVerbs, c.Verb)
		h.histogram(callDuration, verb).Observe(c.Duration.Seconds())
		if c.Errno != "" && !c.Expected {
			h.counter(callFailures, verb, h.known(h.errnos, maxErrnos, c.Errno)).Inc()
		}
	}
}
