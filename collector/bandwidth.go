package collector

import (
	"strconv"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

func declareBandwidth(t *table) {
	t.about("Bandwidth of devices")
	t.gauge("rdma_bandwidth_bytes_per_second", "bytes per second",
		"What a port moved from (read) or to (write) the memory of a NUMA node with large messages, by the last measurement that ended well, even if later ones did not.", "device", "port", "numa_node", "operation")
	t.gauge("rdma_bandwidth_timestamp_seconds", "seconds since 1970",
		"Start of that measurement.", "device")
	t.counter("rdma_bandwidth_runs_total", "runs",
		"Scheduled measurements, also those that were refused since others use the device (in_use). A result other than ok is absent until it first occurs.", "device", "result")
}

// observeBandwidth counts a measurement. Caller holds mu.
func (h *history) observeBandwidth(run *state.Run) {
	h.counter("rdma_bandwidth_runs_total", string(state.BandwidthOK))
	result, _ := run.Measured()
	h.counter("rdma_bandwidth_runs_total", string(result)).Inc()
}

func addBandwidth(b *builder, name string, s *state.BandwidthState) {
	if s == nil || s.Measured == nil {
		return
	}
	b.timestamp("rdma_bandwidth_timestamp_seconds", s.Measured.Time, name)
	for _, c := range s.Large {
		b.gauge("rdma_bandwidth_bytes_per_second", c.BytesPerSecond, name, strconv.Itoa(c.Port), strconv.Itoa(c.Node), text.Valid(c.Operation))
	}
}
