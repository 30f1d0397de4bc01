package collector

import (
	"time"

	"rdma_exporter/internal/health"
)

// Exporter is the exporter's own state.
type Exporter struct {
	// ConfigOK is true if the last load of the configuration file succeeded. ConfigLoaded
	// is the time of the last success.
	ConfigOK     bool
	ConfigLoaded time.Time
	// StateWritable is true if the last write of the saved state succeeded. Nil means that
	// nothing was written.
	StateWritable *bool
	// Booted is when the host booted. Zero means unknown.
	Booted time.Time
	// MaintenanceUntil is when the maintenance of the host ends. Zero means none.
	MaintenanceUntil time.Time
	// LogLinesDropped is the number of lost log lines.
	LogLinesDropped uint64
	// WebConfigInForce is true if the last load of the web configuration succeeded. Nil means
	// no web configuration.
	WebConfigInForce *bool
}

func declareExporter(t *table) {
	t.about("The exporter itself")
	t.gauge("rdma_devices", "devices",
		"Number of RDMA devices on the host.")
	t.gauge("rdma_expected_devices", "devices",
		"Number of RDMA devices that expect in the configuration file says the host must have. Absent if it does not say.")
	t.gauge("rdma_exporter_discovery_success", "1 or 0",
		"Whether the last listing of devices succeeded.")
	t.gauge("rdma_exporter_child_start_success", "1 or 0",
		"Whether the last child process could be started. Without children, nothing is probed.")
	t.gauge("rdma_exporter_boot_time_seconds", "seconds since 1970",
		"When the host booted, from /proc/stat; absent if that cannot be read.")
	t.gauge("rdma_exporter_maintenance_until_timestamp_seconds", "seconds since 1970",
		"Until when the host is under maintenance, by --maintenance.file; 0 if it is not, or no longer.")
	t.gauge("rdma_exporter_config_last_reload_successful", "1 or 0",
		"Whether the last load of the configuration file succeeded. If not, the previous version stays in force.")
	t.gauge("rdma_exporter_config_last_reload_success_timestamp_seconds", "seconds since 1970",
		"When the configuration in force was loaded.")
	t.gauge("rdma_exporter_state_writable", "1 or 0",
		"Whether the last attempt to save state succeeded; only with --state.dir.")
	t.gauge("rdma_exporter_netns_blind", "1",
		"Always 1: the exporter's network namespace hides network devices or counters of ports, as the finding netns_blind says. Absent otherwise.")
	t.gauge("rdma_exporter_unused_acceptances", "acceptances",
		"Acceptances in the configuration file that no longer accept anything: they match no finding, or have expired. Absent if zero.")
	t.gauge("rdma_exporter_dropped_series", "series",
		"Series not exposed, because the last runs reported more than 4096, more than 256 completion vectors of the device were measured, or a port has more than 512 counters.", "device")
	t.counter("rdma_exporter_log_lines_dropped_total", "lines",
		"Log lines lost since the exporter started, because standard error was not read or it was closed.")
	t.gauge("rdma_exporter_web_config_last_reload_successful", "1 or 0",
		"Whether the current file of --web.config.file is in force; if not, its previous version is. Absent without such a file.")
}

func addExporter(b *builder, h *health.Host) {
	s := h.Snapshot
	present := 0
	for i := range s.Devices {
		if s.Devices[i].Present {
			present++
		}
	}
	b.gauge("rdma_devices", float64(present))
	optional(b, "rdma_expected_devices", h.ExpectedDevices)
	b.boolGauge("rdma_exporter_discovery_success", s.DiscoveryError == "")
	b.boolGauge("rdma_exporter_child_start_success", s.StartError == "")
	found := make(map[health.Kind]float64)
	for i := range h.Findings {
		found[h.Findings[i].Kind]++
	}
	addCauses(b, "", h.Findings)
	b.positive("rdma_exporter_netns_blind", found[health.FindingNetnsBlind])
	b.positive("rdma_exporter_unused_acceptances", found[health.FindingAcceptanceUnused])
}

func addSelf(b *builder, e Exporter) {
	b.timestamp("rdma_exporter_boot_time_seconds", e.Booted)
	b.gauge("rdma_exporter_maintenance_until_timestamp_seconds", float64(max(e.MaintenanceUntil.Unix(), 0)))
	b.boolGauge("rdma_exporter_config_last_reload_successful", e.ConfigOK)
	b.timestamp("rdma_exporter_config_last_reload_success_timestamp_seconds", e.ConfigLoaded)
	if e.StateWritable != nil {
		b.boolGauge("rdma_exporter_state_writable", *e.StateWritable)
	}
	b.counter("rdma_exporter_log_lines_dropped_total", e.LogLinesDropped)
	if e.WebConfigInForce != nil {
		b.boolGauge("rdma_exporter_web_config_last_reload_successful", *e.WebConfigInForce)
	}
}
