package collector

import "rdma_exporter/internal/state"

// eventMetrics are the metrics of what devices told by themselves while runs had them open.
type eventMetrics struct {
	asyncEvents *family
}

func (m *eventMetrics) declare(t *table) {
	t.about("Asynchronous events")
	m.asyncEvents = t.counter("rdma_async_events_total", "events",
		"Asynchronous events while a run of the probes or a contract run had the device open, except those a run causes itself; absent until there is one. Events between runs are not seen.", "device", "event")
}

// observeEvents counts the asynchronous events of a run.
func (h *history) observeEvents(events []state.Events) {
	for _, e := range events {
		if e.Count > 0 {
			h.counter(h.asyncEvents, h.known(h.events, maxEvents, e.Type)).add(e.Count)
		}
	}
}
