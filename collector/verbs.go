package collector

import (
	"slices"
	"strings"

	"rdma_exporter/internal/state"
)

func declareVerb(t *table) {
	t.about("Calls of verbs")
	t.of(Verbs)
	t.summary("rdma_verbs_call_duration_seconds", "seconds",
		"Time that calls of a control verb took, including failed ones, measured next to the call in the child process: sum and count. Control verbs are "+strings.Join(controlVerbs(), ", ")+".", "device", "verb")
	t.counter("rdma_verbs_errors_total", "calls",
		"Failed calls of any verb, except those that a probe provokes; absent until there is one.", "device", "verb", "errno")
	t.gauge("rdma_memory_registration_seconds", "seconds",
		"Time that the latest registration of 2 MiB of memory took, measured next to the call in the child process; absent if it was refused. The status page has the times of other memory.", "device")
	t.gauge("rdma_memory_registration_refused", "always 1",
		"Memory whose latest registration was refused, and what refused it.", "device", "memory", "refused_by")
	t.of(VerbHistograms)
	t.histogram("rdma_verbs_call_latency_seconds", "seconds", []float64{1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10},
		"Distribution of the time that calls of any verb took, including failed ones.", "device", "verb")
}

// controlVerbs are the verbs with which programs create objects and destroy the expensive
// ones.
func controlVerbs() []string {
	return []string{
		"ibv_open_device", "ibv_alloc_pd", "ibv_create_cq", "ibv_destroy_cq",
		"ibv_create_srq", "ibv_create_qp", "ibv_modify_qp", "ibv_destroy_qp",
	}
}

func (h *history) observeCalls(calls []state.Call) {
	control := controlVerbs()
	for _, c := range calls {
		verb := h.known("verb", maxVerbs, c.Verb)
		if slices.Contains(control, c.Verb) {
			h.summary("rdma_verbs_call_duration_seconds", c.Verb).Observe(c.Duration.Seconds())
		}
		if !h.isOff("rdma_verbs_call_latency_seconds") {
			h.histogram("rdma_verbs_call_latency_seconds", verb).Observe(c.Duration.Seconds())
		}
		if c.Errno != "" && !c.Expected {
			h.counter("rdma_verbs_errors_total", verb, h.known("errno", maxErrnos, c.Errno)).Inc()
		}
	}
}

func addRegistrations(b *builder, name string, p *state.Probe) {
	for _, r := range p.Registrations {
		switch {
		case r.Result == state.MemoryRegistered && r.Memory == state.MemoryMany:
			b.gauge("rdma_memory_registration_seconds", r.Duration.Seconds(), name)
		case r.Result == state.MemoryRefused:
			b.gauge("rdma_memory_registration_refused", 1, name, string(r.Memory), string(r.By))
		}
	}
}

func declareEvent(t *table) {
	t.about("Asynchronous events")
	t.counter("rdma_async_events_total", "events",
		"Asynchronous events while a probe or contract run had the device open, except those a run causes itself; absent until there is one. Events between runs are not seen.", "device", "event")
}

func (h *history) observeEvents(events []state.Events) {
	for _, e := range events {
		if e.Count > 0 {
			h.counter("rdma_async_events_total", h.known("event", maxEvents, e.Type)).Add(float64(e.Count))
		}
	}
}
