package collector

import "rdma_exporter/internal/state"

// exporterMetrics are the metrics of the host as a whole.
type exporterMetrics struct {
	devices          *family
	discoverySuccess *family
	droppedSeries    *family
}

func (m *exporterMetrics) declare(t *table) {
	t.about("The exporter itself")
	m.devices = t.gauge("rdma_devices", "devices",
		"Number of RDMA devices that the host has.")
	m.discoverySuccess = t.gauge("rdma_exporter_discovery_success", "1 or 0",
		"Whether the devices could be listed the last time.")
	m.droppedSeries = t.gauge("rdma_exporter_dropped_series", "series",
		"Series that are not exposed, because the last runs told of more than 4096 or more than 256 completion vectors of the device were measured.", "device")
}

// addExporter adds what is known of the host as a whole.
func addExporter(b *builder, s *state.Snapshot) {
	present := 0
	for i := range s.Devices {
		if s.Devices[i].Present {
			present++
		}
	}
	b.gauge(b.devices, float64(present))
	b.truth(b.discoverySuccess, s.DiscoveryError == "")
}
