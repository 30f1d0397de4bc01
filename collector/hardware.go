package collector

import (
	"regexp"
	"strconv"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// hardwareMetrics are the metrics of how the readings of the hardware went.
type hardwareMetrics struct {
	hardwareSuccess  *family
	hardwareStuck    *family
	hardwareRuns     *family
	hardwareTaken    *family
	hardwareDuration *family
}

func (m *hardwareMetrics) declare(t *table) {
	t.about("Readings of the hardware")
	m.hardwareSuccess = t.gauge("rdma_hardware_success", "1 or 0",
		"Whether the last reading of the adapter's hardware data was complete.", "device")
	m.hardwareStuck = t.gauge("rdma_hardware_stuck", "1 or 0",
		"1 while a killed child process that read the hardware of the device has not ended. Absent until that first happens. It outlives the device.", "device")
	m.hardwareRuns = t.counter("rdma_hardware_runs_total", "readings",
		"Finished readings of the hardware.", "device", "outcome")
	m.hardwareTaken = t.gauge("rdma_hardware_timestamp_seconds", "seconds since 1970",
		"When the data behind the metrics of counters, links, addresses, adapters and interrupts was read. After a reading that returned nothing, only constants are still exposed.", "device")
	m.hardwareDuration = t.gauge("rdma_hardware_duration_seconds", "seconds",
		"Duration of the last reading of all devices, from the start of its child process to its end or until it was abandoned.")
	for _, f := range []*family{m.hardwareSuccess, m.hardwareStuck, m.hardwareRuns, m.hardwareTaken, m.hardwareDuration} {
		f.off = !t.on.Hardware()
	}
}

// addHost adds how the last reading of all devices went.
func addHost(b *builder, h *health.Host) {
	if r := h.Snapshot.Hardware; r != nil {
		b.gauge(b.hardwareDuration, r.Duration.Seconds())
	}
}

// addHardware adds what the kernel tells of the adapter of a present device: what sums up
// first, and what there may be much of last, so that if something has to be dropped it is
// that. Counters whose names include matches are told as their drivers name them; all if
// it is nil.
func addHardware(b *builder, name string, h *state.HardwareState, include *regexp.Regexp) {
	addHardwareStuck(b, name, h)
	if !h.Read.IsZero() || h.Failures > 0 {
		b.truth(b.hardwareSuccess, h.Failures == 0, name)
	}
	addTime(b, b.hardwareTaken, name, h.Read)
	addStateChanges(b, name, h.Links)
	for _, d := range h.Drops {
		addDrop(b, name, d)
	}
	r := h.Latest
	if r == nil {
		return
	}
	addAdapter(b, name, r)
	// A counter that is told on while nobody can read it would be one that stands still.
	if h.Failures > 0 && r.Failure == "" {
		return
	}
	for i := range r.Ports {
		addLink(b, name, &r.Ports[i])
		addGIDs(b, name, &r.Ports[i])
	}
	addBus(b, name, r)
	addCounters(b, name, r)
	addInterrupts(b, name, r.Interrupts)
	addRawCounters(b, name, r, include)
}

// addHardwareStuck adds whether a child that read the device does not end.
func addHardwareStuck(b *builder, name string, h *state.HardwareState) {
	b.sparse(b.hardwareStuck, number(h.Stuck != nil), name)
}

// portLabel returns the label of a port: empty for the device as a whole.
func portLabel(port int) string {
	if port == 0 {
		return ""
	}
	return strconv.Itoa(port)
}
