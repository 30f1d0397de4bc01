package collector

import (
	"strconv"

	"rdma_exporter/internal/state"
)

func declareGid(t *table) {
	t.about("Addresses")
	t.of(GIDs)
	t.gauge("rdma_port_gids", "GIDs",
		"Number of non-zero GIDs of the port, by type and network device.", "device", "port", "type", "netdev")
	t.counter("rdma_port_gid_changes_total", "changes",
		"How often the port's list of GIDs changed between readings.", "device", "port")
	t.gauge("rdma_port_roce_v2_ipv4_gid_index", "index",
		"Index of the first RoCE v2 GID with an IPv4 address, the value for NCCL_IB_GID_INDEX; absent if there is none.", "device", "port")
}

// addGIDs counts the addresses of a port.
func addGIDs(b *builder, name string, p *state.HardwarePort) {
	port := strconv.Itoa(p.Number)
	type group struct{ kind, netdev string }
	counts := make(map[group]int)
	for _, g := range p.GIDs {
		of := group{g.Type, g.Netdev}
		counts[of]++
		b.gauge("rdma_port_gids", float64(counts[of]), name, port, g.Type, g.Netdev)
	}
	if p.RoCEv2IPv4 != nil {
		b.gauge("rdma_port_roce_v2_ipv4_gid_index", float64(*p.RoCEv2IPv4), name, port)
	}
}
