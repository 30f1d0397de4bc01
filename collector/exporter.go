package collector

import (
	"time"

	"rdma_exporter/internal/health"
)

// Exporter is what the exporter knows of itself.
type Exporter struct {
	// ConfigOK tells that the configuration file could be used when it was last loaded,
	// and ConfigLoaded is when it last could.
	ConfigOK     bool
	ConfigLoaded time.Time
	// StateWritable tells that what is to be kept over a restart could be written the last
	// time; nil if nothing is kept, or was not yet.
	StateWritable *bool
	// LogLinesDropped is how many lines of the log were lost.
	LogLinesDropped uint64
	// WebConfigInForce tells whether the web configuration is in force as its file has it
	// now; nil if there is none.
	WebConfigInForce *bool
}

// exporterMetrics are the metrics of the host as a whole.
type exporterMetrics struct {
	devices          *family
	discoverySuccess *family
	droppedSeries    *family
	logLinesDropped  *family
	webConfigRead    *family
	configOK         *family
	configLoaded     *family
	stateWritable    *family
	unused           *family
}

func (m *exporterMetrics) declare(t *table) {
	t.about("The exporter itself")
	m.devices = t.gauge("rdma_devices", "devices",
		"Number of RDMA devices on the host.")
	m.discoverySuccess = t.gauge("rdma_exporter_discovery_success", "1 or 0",
		"Whether the last listing of devices succeeded.")
	m.configOK = t.gauge("rdma_exporter_config_last_reload_successful", "1 or 0",
		"Whether the last load of the configuration file succeeded. If not, the previous version stays in force.")
	m.configLoaded = t.gauge("rdma_exporter_config_last_reload_success_timestamp_seconds", "seconds since 1970",
		"When the configuration in force was loaded.")
	m.stateWritable = t.gauge("rdma_exporter_state_writable", "1 or 0",
		"Whether the last write of the kept state succeeded; only with --state.dir.")
	m.unused = t.gauge("rdma_exporter_unused_acceptances", "acceptances",
		"Acceptances in the configuration file that no longer accept anything: they match no finding, or have expired. Absent if there is none.")
	m.droppedSeries = t.gauge("rdma_exporter_dropped_series", "series",
		"Series not exposed, because the last runs reported more than 4096, more than 256 completion vectors of the device were measured, or a port has more than 512 counters.", "device")
	m.logLinesDropped = t.counter("rdma_exporter_log_lines_dropped_total", "lines",
		"Log lines lost since the exporter started, because nobody read standard error or it was closed.")
	m.webConfigRead = t.gauge("rdma_exporter_web_config_last_reload_successful", "1 or 0",
		"Whether the current file of --web.config.file is in force; if not, its previous version is. Absent without such a file.")
}

// addExporter adds what is known of the host as a whole.
func addExporter(b *builder, h *health.Host) {
	s := h.Snapshot
	present := 0
	for i := range s.Devices {
		if s.Devices[i].Present {
			present++
		}
	}
	b.gauge(b.devices, float64(present))
	b.truth(b.discoverySuccess, s.DiscoveryError == "")
	if n := len(h.Findings); n > 0 {
		b.gauge(b.unused, float64(n))
	}
}

// addSelf adds what the exporter knows of itself.
func addSelf(b *builder, e Exporter) {
	b.truth(b.configOK, e.ConfigOK)
	b.gauge(b.configLoaded, float64(e.ConfigLoaded.UnixMilli())/1e3)
	if e.StateWritable != nil {
		b.truth(b.stateWritable, *e.StateWritable)
	}
	b.counter(b.logLinesDropped, e.LogLinesDropped)
	if e.WebConfigInForce != nil {
		b.truth(b.webConfigRead, *e.WebConfigInForce)
	}
}
