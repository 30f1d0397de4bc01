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
	registration  *family
	refusedMemory *family
}

func (m *verbMetrics) declare(t *table) {
	t.about("Calls of verbs")
	t.of(Verbs)
	m.callDuration = t.summary("rdma_verbs_call_duration_seconds", "seconds",
		"Time that calls of a control verb took, including failed ones, measured next to the call in the child process: sum and count. Control verbs are "+strings.Join(controlVerbs(), ", ")+".", "device", "verb")
	m.callErrors = t.counter("rdma_verbs_errors_total", "calls",
		"Failed calls of any verb, except those a probe makes fail on purpose; absent until there is one.", "device", "verb", "errno")
	m.registration = t.gauge("rdma_memory_registration_seconds", "seconds",
		"Time that the latest registration of 2 MiB of memory took, measured next to the call in the child process; absent if it was refused. The status page has the times of other memory.", "device")
	m.refusedMemory = t.gauge("rdma_memory_registration_refused", "always 1",
		"Memory whose latest registration was refused, and what refused it.", "device", "memory", "refused_by")
	t.of(VerbHistograms)
	m.callHistogram = t.histogram("rdma_verbs_call_latency_seconds", "seconds", []float64{1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10},
		"Distribution of the time that calls of any verb took, including failed ones.", "device", "verb")
}

// controlVerbs are the verbs by which a program gets what it needs, and gives back what
// costs most.
func controlVerbs() []string {
	return []string{
		"ibv_open_device", "ibv_alloc_pd", "ibv_create_cq", "ibv_destroy_cq",
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

// addRegistrations adds what came of registering memory: the time of the most that every
// device takes, and what was refused of that.
func addRegistrations(b *builder, name string, p *state.Probe) {
	for _, r := range p.Registrations {
		switch {
		case r.Memory == state.MemoryDMABuf:
		case r.Result == state.MemoryRegistered && r.Memory == state.MemoryMany:
			b.gauge(b.registration, r.Duration.Seconds(), name)
		case r.Result == state.MemoryRefused:
			b.gauge(b.refusedMemory, 1, name, string(r.Memory), string(r.By))
		}
	}
}
