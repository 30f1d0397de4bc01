package collector

import "rdma_exporter/internal/state"

func declareEvent(t *table) {
	t.about("Asynchronous events")
	t.counter("rdma_async_events_total", "events",
		"Asynchronous events while a run of the probes or a contract run had the device open, except those a run causes itself; absent until there is one. Events between runs are not seen.", "device", "event")
}

// observeEvents counts the asynchronous events of a run.
func (h *history) observeEvents(events []state.Events) {
	for _, e := range events {
		if e.Count > 0 {
			h.counter("rdma_async_events_total", h.known("event", maxEvents, e.Type)).Add(float64(e.Count))
		}
	}
}
