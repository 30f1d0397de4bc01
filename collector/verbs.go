package collector

import (
	"slices"
	"strings"

	"rdma_exporter/internal/state"
)

// verbMetrics are the metrics of the calls of verbs.
type verbMetrics struct {
	callDuration  *family
	callHistogram *family
	callErrors    *family
}

func (m *verbMetrics) declare(t *table) {
	t.about("Calls of verbs")
	t.of(Verbs)
	m.callDuration = t.summary("rdma_verbs_call_duration_seconds", "seconds",
		"Time that calls of a control verb took, including failed ones, measured next to the call in the child process: sum and count. Control verbs are "+strings.Join(controlVerbs(), ", ")+".", "device", "verb")
	m.callErrors = t.counter("rdma_verbs_errors_total", "calls",
		"Failed calls of any verb, except those a probe makes fail on purpose; absent until there is one.", "device", "verb", "errno")
	t.of(VerbHistograms)
	m.callHistogram = t.histogram("rdma_verbs_call_latency_seconds", "seconds", []float64{1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10},
		"Distribution of the time that calls of any verb took, including failed ones.", "device", "verb")
}

// controlVerbs are the verbs by which a program gets what it needs, and gives back what
// costs most.
func controlVerbs() []string {
	return []string{
		"ibv_open_device", "ibv_alloc_pd", "ibv_reg_mr", "ibv_create_cq", "ibv_destroy_cq",
		"ibv_create_srq", "ibv_create_qp", "ibv_modify_qp", "ibv_destroy_qp",
	}
}

// observeCalls counts the calls of a run.
func (h *history) observeCalls(calls []state.Call) {
	control := controlVerbs()
	for _, c := range calls {
		verb := h.known(h.verbs, maxVerbs, c.Verb)
		if slices.Contains(control, c.Verb) {
			h.summary(h.callDuration, c.Verb).observe(c.Duration)
		}
		if !h.callHistogram.off {
			h.histogram(h.callHistogram, verb).Observe(c.Duration.Seconds())
		}
		if c.Errno != "" && !c.Expected {
			h.counter(h.callErrors, verb, h.known(h.errnos, maxErrnos, c.Errno)).add(1)
		}
	}
}
