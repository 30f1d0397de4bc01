package collector

import (
	"slices"
	"strconv"

	"rdma_exporter/internal/state"
)

func declareLink(t *table) {
	t.about("Links")
	t.of(Links)
	t.gauge("rdma_port_info", "always 1",
		"Description of a port, for joins.", "device", "port", "link_layer", "netdev", "bond", "gid")
	t.gauge("rdma_port_mtu_bytes", "bytes",
		"MTU of the port's network device, from sysfs; absent if it has none.", "device", "port")
	t.gauge("rdma_port_active_mtu_bytes", "bytes",
		"Largest packet payload that the port sends and receives, from ibv_query_port in the last run of the probes, as sysfs lacks it. Absent if that run could not query it.", "device", "port")
	t.gauge("rdma_port_rate_bits_per_second", "bits per second",
		"Current rate of the port: the speed of its network device on Ethernet, if that is known, else what the RDMA driver reports, which with some drivers is a constant. The JSON has the source as rate_from. Meaningless while the port is not active.", "device", "port")
	t.gauge("rdma_port_max_rate_bits_per_second", "bits per second",
		"Highest rate of the port while active, since the exporter first saw it, or since the source of the rate changed (kept over restarts with --state.dir); absent if it never was active.", "device", "port")
	t.gauge("rdma_port_width_lanes", "lanes",
		"Number of lanes that the port uses, by the RDMA driver; absent if its rate is not that of the network device.", "device", "port")
	t.gauge("rdma_port_physical_state_id", "number of the state",
		"Physical state of a port, numbered as in InfiniBand and sysfs: 1 sleep, 2 polling (no link yet), 3 disabled, 4 training, 5 link up, 6 error recovery, 7 phy test. On Ethernet most drivers report only 3 and 5.", "device", "port")
	t.counter("rdma_port_state_changes_total", "changes",
		"How often the port became active or stopped being so, including between scrapes; kept over restarts with --state.dir.", "device", "port", "to")
	t.gauge("rdma_port_state_change_timestamp_seconds", "seconds since 1970",
		"When the port last became active or stopped being so; absent until it first changes.", "device", "port")
	t.gauge("rdma_port_link_down_reason_id", "number of enum ethtool_link_ext_state",
		"Why the port's Ethernet link is down, as its driver says: 0 is autonegotiation, 1 link training, 2 logical mismatch, 3 bad signal integrity, 4 no cable, 5 cable issue, 6 EEPROM issue, 7 calibration, 8 power budget, 9 overheat, 10 module issue. Absent while it is up.", "device", "port")
	t.gauge("rdma_port_link_down_detail_id", "number",
		"More about why the link is down, as a number of the enum in linux/ethtool.h for the reason; absent if there is no more.", "device", "port")
	t.gauge("rdma_port_module_temperature_celsius", "degrees Celsius",
		"Temperature of the port's module; absent if not reported.", "device", "port")
}

func addStateChanges(b *builder, name string, links []state.Link) {
	for i := range links {
		l := &links[i]
		port := strconv.Itoa(l.Port)
		b.counter("rdma_port_state_changes_total", l.Ups, name, port, "active")
		b.counter("rdma_port_state_changes_total", l.Downs, name, port, "down")
		b.timestamp("rdma_port_state_change_timestamp_seconds", l.Since, name, port)
		b.counter("rdma_port_gid_changes_total", l.GIDChanges, name, port)
	}
}

func addLink(b *builder, name string, p *state.HardwarePort) {
	port := strconv.Itoa(p.Number)
	gid := ""
	for _, g := range p.GIDs {
		if g.Index == 0 {
			gid = g.GID
		}
	}
	b.gauge("rdma_port_info", 1, name, port, p.LinkLayer, p.Netdev, p.Bond, gid)
	b.positive("rdma_port_physical_state_id", float64(max(0, slices.Index(state.PhysicalStates(), p.PhysState))), name, port)
	b.positive("rdma_port_mtu_bytes", float64(p.MTU), name, port)
	b.positive("rdma_port_rate_bits_per_second", p.Rate, name, port)
	b.positive("rdma_port_max_rate_bits_per_second", p.MaxRate, name, port)
	b.positive("rdma_port_width_lanes", float64(p.Width), name, port)
	optional(b, "rdma_port_link_down_reason_id", p.LinkDownReason, name, port)
	optional(b, "rdma_port_link_down_detail_id", p.LinkDownDetail, name, port)
	optional(b, "rdma_port_module_temperature_celsius", p.TemperatureCelsius, name, port)
}

func declareGid(t *table) {
	t.about("Addresses")
	t.of(GIDs)
	t.gauge("rdma_port_gids", "GIDs",
		"Number of non-zero GIDs of the port, by type and network device.", "device", "port", "type", "netdev")
	t.counter("rdma_port_gid_changes_total", "changes",
		"How often the port's list of GIDs changed between readings.", "device", "port")
	t.gauge("rdma_port_roce_v2_ipv4_gid_index", "index",
		"Index of the first RoCE v2 GID with an IPv4 address, the value for NCCL_IB_GID_INDEX; absent without such a GID.", "device", "port")
}

func addGIDs(b *builder, name string, p *state.HardwarePort) {
	port := strconv.Itoa(p.Number)
	type group struct{ kind, netdev string }
	counts := make(map[group]int)
	for _, g := range p.GIDs {
		of := group{g.Type, g.Netdev}
		counts[of]++
		b.gauge("rdma_port_gids", float64(counts[of]), name, port, g.Type, g.Netdev)
	}
	optional(b, "rdma_port_roce_v2_ipv4_gid_index", p.RoCEv2IPv4, name, port)
}
