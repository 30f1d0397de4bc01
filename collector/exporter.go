package collector

import (
	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/state"
)

// exporterMetrics are the metrics of the host as a whole.
type exporterMetrics struct {
	devices          *family
	discoverySuccess *family
	droppedSeries    *family
	logLinesDropped  *family
	webConfigRead    *family
}

func (m *exporterMetrics) declare(t *table) {
	t.about("The exporter itself")
	m.devices = t.gauge("rdma_devices", "devices",
		"Number of RDMA devices that the host has.")
	m.discoverySuccess = t.gauge("rdma_exporter_discovery_success", "1 or 0",
		"Whether the devices could be listed the last time.")
	m.droppedSeries = t.gauge("rdma_exporter_dropped_series", "series",
		"Series that are not exposed, because the last runs told of more than 4096 or more than 256 completion vectors of the device were measured.", "device")
	m.logLinesDropped = t.counter("rdma_exporter_log_lines_dropped_total", "lines",
		"Lines of the log that were lost since the exporter started, because nobody read standard error or it was closed.")
	m.webConfigRead = t.gauge("rdma_exporter_web_config_last_reload_successful", "1 or 0",
		"Whether the file of --web.config.file, as it is now, is in force; if not, what it said before is. Absent without such a file.")
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

// addItself adds what the options tell of the exporter itself.
func addItself(b *builder, o *Options) {
	if o.LogLinesDropped != nil {
		n := float64(o.LogLinesDropped())
		b.block[b.logLinesDropped.index] = append(b.block[b.logLinesDropped.index], &dto.Metric{Counter: &dto.Counter{Value: &n}})
	}
	if o.WebConfigInForce != nil {
		b.truth(b.webConfigRead, o.WebConfigInForce())
	}
}
