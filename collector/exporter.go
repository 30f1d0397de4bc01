package collector

import "rdma_exporter/internal/state"

// addExporter adds what is known of the host as a whole.
func addExporter(b *builder, s *state.Snapshot) {
	present := 0
	for i := range s.Devices {
		if s.Devices[i].Present {
			present++
		}
	}
	b.gauge(devices, float64(present))
	b.truth(discoverySuccess, s.DiscoveryError == "")
}
