package collector

import (
	"strconv"

	"rdma_exporter/internal/state"
)

// linkMetrics are the metrics of what the kernel tells of ports.
type linkMetrics struct {
	portInfo        *family
	portMTU         *family
	portActiveMTU   *family
	portRate        *family
	portMaxRate     *family
	portWidth       *family
	portChanges     *family
	portChanged     *family
	portTemperature *family
}

func (m *linkMetrics) declare(t *table) {
	t.about("Links")
	t.of(Links)
	m.portInfo = t.gauge("rdma_port_info", "always 1",
		"Description of a port, for joins.", "device", "port", "link_layer", "netdev", "bond", "gid")
	m.portMTU = t.gauge("rdma_port_mtu_bytes", "bytes",
		"MTU of the port's network device, from sysfs; absent if it has none.", "device", "port")
	m.portActiveMTU = t.gauge("rdma_port_active_mtu_bytes", "bytes",
		"Largest packet payload that the port sends and receives, from ibv_query_port in the last run of the probes, as sysfs lacks it. Absent if that run could not query it.", "device", "port")
	m.portRate = t.gauge("rdma_port_rate_bits_per_second", "bits per second",
		"Current rate of the port; meaningless while the port is not active.", "device", "port")
	m.portMaxRate = t.gauge("rdma_port_max_rate_bits_per_second", "bits per second",
		"Highest rate of the port while active, since the exporter first saw it (kept over restarts with --state.dir); absent if it never was active.", "device", "port")
	m.portWidth = t.gauge("rdma_port_width_lanes", "lanes",
		"Number of lanes that the port uses.", "device", "port")
	m.portChanges = t.counter("rdma_port_state_changes_total", "changes",
		"How often the port became active or stopped being so, including between scrapes; kept over restarts with --state.dir.", "device", "port", "to")
	m.portChanged = t.gauge("rdma_port_state_change_timestamp_seconds", "seconds since 1970",
		"When the port last became active or stopped being so; absent until it first changes.", "device", "port")
	m.portTemperature = t.gauge("rdma_port_module_temperature_celsius", "degrees Celsius",
		"Temperature of the port's module; absent if not reported.", "device", "port")
}

// addStateChanges adds how the states of ports went.
func addStateChanges(b *builder, name string, links []state.Link) {
	for i := range links {
		l := &links[i]
		port := strconv.Itoa(l.Port)
		b.counter(b.portChanges, l.Ups, name, port, "active")
		b.counter(b.portChanges, l.Downs, name, port, "down")
		if !l.Since.IsZero() {
			b.gauge(b.portChanged, float64(l.Since.UnixMilli())/1e3, name, port)
		}
		b.counter(b.gidChanges, l.GIDChanges, name, port)
	}
}

// addLink adds what the kernel tells of a port.
func addLink(b *builder, name string, p *state.HardwarePort) {
	port := strconv.Itoa(p.Number)
	gid := ""
	for _, g := range p.GIDs {
		if g.Index == 0 {
			gid = g.GID
		}
	}
	b.gauge(b.portInfo, 1, name, port, p.LinkLayer, p.Netdev, p.Bond, gid)
	known := func(f *family, value float64) {
		if value > 0 {
			b.gauge(f, value, name, port)
		}
	}
	known(b.portMTU, float64(p.MTU))
	known(b.portRate, p.Rate)
	known(b.portMaxRate, p.MaxRate)
	known(b.portWidth, float64(p.Width))
	if p.TemperatureCelsius != nil {
		b.gauge(b.portTemperature, *p.TemperatureCelsius, name, port)
	}
}
