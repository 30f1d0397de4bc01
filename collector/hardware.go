package collector

import (
	"strconv"

	"rdma_exporter/internal/state"
)

func declareHardware(t *table) {
	t.about("Readings of the hardware")
	t.off = !t.on.Hardware()
	t.gauge("rdma_hardware_success", "1 or 0",
		"Whether the last reading of the adapter's hardware data was complete.", "device")
	t.gauge("rdma_hardware_stuck", "1 or 0",
		"1 while a killed child process that read the hardware of the device has not ended. Absent until that first happens. It outlives the device.", "device")
	t.counter("rdma_hardware_runs_total", "readings",
		"Finished readings of the hardware.", "device", "outcome")
	t.gauge("rdma_hardware_timestamp_seconds", "seconds since 1970",
		"When the data behind the metrics of counters, links, addresses, adapters and interrupts was read. After a reading that returned nothing, only constants are still exposed.", "device")
	t.gauge("rdma_hardware_duration_seconds", "seconds",
		"Duration of the last reading of all devices, from the start of its child process to its end or until it was abandoned.")
}

// addHardware adds the hardware of a present device. Long lists come last, so that they are
// dropped first.
func addHardware(b *builder, s *state.DeviceState) {
	name, h := s.Name, s.Hardware
	addHardwareStuck(b, name, h)
	if !h.Read.IsZero() || h.Failures > 0 {
		b.boolGauge("rdma_hardware_success", h.Failures == 0, name)
	}
	b.timestamp("rdma_hardware_timestamp_seconds", h.Read, name)
	addStateChanges(b, name, h.Links)
	for _, d := range h.Drops {
		port := portLabel(d.Port)
		b.sparse("rdma_port_counter_decreases_total", float64(d.Resets), name, port, d.Name, "reset")
		b.sparse("rdma_port_counter_decreases_total", float64(d.Wraps), name, port, d.Name, "wrapped")
	}
	r := h.Latest
	if r == nil {
		return
	}
	addAdapter(b, name, r)
	// A counter that can no longer be read must not seem to stand still.
	if h.Failures > 0 && r.Failure == "" {
		return
	}
	for i := range r.Ports {
		if number := r.Ports[i].Number; !s.Queried(number) {
			addPortState(b, name, strconv.Itoa(number), r.Ports[i].State)
		}
		addLink(b, name, &r.Ports[i])
		addGIDs(b, name, &r.Ports[i])
	}
	addBus(b, name, r)
	addCounters(b, name, r)
	addInterrupts(b, name, r.Interrupts)
	addRawCounters(b, name, r)
}

func addHardwareStuck(b *builder, name string, h *state.HardwareState) {
	b.sparse("rdma_hardware_stuck", number(h.Stuck != nil), name)
}

// portLabel returns the label of a port: empty for the whole device.
func portLabel(port int) string {
	if port == 0 {
		return ""
	}
	return strconv.Itoa(port)
}
