package collector

import (
	"slices"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

func declarePath(t *table) {
	t.about("Paths to peers")
	pair := []string{"device", "peer", "peer_device"}
	of := func(more ...string) []string { return slices.Concat(pair, more) }
	t.gauge("rdma_path_success", "1 or 0",
		"Whether the path to the device of the peer worked in the last run; a slow one works. Absent if the run says nothing about RDMA: its result is control_unreachable, refused or unsupported.", pair...)
	t.gauge("rdma_path_timestamp_seconds", "seconds since 1970",
		"Start of the last run for the pair.", pair...)
	t.gauge("rdma_path_rtt_seconds", "seconds",
		"Round trip of the small packets of the last run, without the time in the peer's process. Absent if none came back.", of("stat")...)
	t.gauge("rdma_path_flows", "flows",
		"Flows of the last run: packets with the same addresses and UDP ports.", pair...)
	t.gauge("rdma_path_flows_failed", "flows",
		"Flows of the last run that lost all packets.", pair...)
	t.gauge("rdma_path_mtu_bytes", "bytes",
		"Payload of the large packets of the last run. Absent if none was sent.", pair...)
	t.gauge("rdma_path_info", "always 1",
		"Where both ends are, and what is to blame if the path does not work.", of("rail", "tor", "peer_rail", "peer_tor", "clock", "suspect")...)
	t.counter("rdma_path_packets_sent_total", "packets",
		"Packets sent to the device of the peer.", pair...)
	t.counter("rdma_path_packets_lost_total", "packets",
		"Packets that did not reach the peer (forward), or whose answer did not come back (reverse).", of("direction")...)
	t.counter("rdma_path_probes_total", "runs",
		"Finished runs for all pairs of the device. A result other than ok is absent until it first occurs.", "device", "result")
	t.counter("rdma_path_sessions_total", "sessions",
		"Sessions that peers requested from this exporter. Absent unless it answers peers.", "result")
}

// observePath counts a run that asked a peer. Nil means that it has no result. Caller holds mu.
func (h *history) observePath(p *state.Path) {
	h.counter("rdma_path_probes_total", string(state.PathOK))
	if p != nil && p.Result.Valid() {
		h.counter("rdma_path_probes_total", string(p.Result)).Inc()
	}
}

func addPaths(b *builder, name string, paths []state.PathState) {
	for i := range paths {
		p := &paths[i]
		peer, device := text.Valid(p.Peer), text.Valid(p.PeerDevice)
		if p.Tried() {
			b.boolGauge("rdma_path_success", !p.Failed(), name, peer, device)
		}
		b.timestamp("rdma_path_timestamp_seconds", p.At, name, peer, device)
		b.counter("rdma_path_packets_sent_total", p.AllSent, name, peer, device)
		b.counter("rdma_path_packets_lost_total", p.AllForward, name, peer, device, "forward")
		b.counter("rdma_path_packets_lost_total", p.AllReverse, name, peer, device, "reverse")
		for stat, rtt := range map[string]time.Duration{"median": p.RTTMedian, "max": p.RTTMax} {
			b.positive("rdma_path_rtt_seconds", rtt.Seconds(), name, peer, device, stat)
		}
		b.gauge("rdma_path_flows", float64(p.Flows), name, peer, device)
		b.gauge("rdma_path_flows_failed", float64(p.FlowsFailed), name, peer, device)
		b.positive("rdma_path_mtu_bytes", float64(p.MTU), name, peer, device)
		b.gauge("rdma_path_info", 1, name, peer, device, p.Rail, p.ToR, p.PeerRail, p.PeerToR, p.Clock, p.Suspect)
	}
}
