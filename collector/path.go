package collector

import (
	"slices"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// maxPairs limits the pairs of one device whose packets are counted.
const maxPairs = 256

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
		"Flows of the last run that lost all small packets.", pair...)
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

// pathPackets are the packets of one pair, over all runs.
type pathPackets struct {
	sent, forward, reverse uint64
	// exposed is true once a scrape had the pair.
	exposed bool
}

// observePath counts a run that asked a peer. Caller holds mu.
func (h *history) observePath(p *state.Path) {
	h.counter("rdma_path_probes_total", string(state.PathOK))
	if p == nil {
		return // The child did not get so far.
	}
	if p.Result.Valid() {
		h.counter("rdma_path_probes_total", string(p.Result)).Inc()
	}
	n, ok := h.pairs[p.Pair()]
	if !ok {
		if len(h.pairs) == maxPairs {
			return
		}
		n = new(pathPackets)
		h.pairs[p.Pair()] = n
	}
	n.sent += uint64(max(p.Sent, 0))
	n.forward += uint64(max(p.LostForward, 0))
	n.reverse += uint64(max(p.LostReverse, 0))
}

// packets returns the packets of pairs, and forgets pairs that are gone. A pair that no scrape
// had may be new: its run is observed before its state is published.
func (h *history) packets(paths []state.PathState) map[state.PathPair]pathPackets {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make(map[state.PathPair]pathPackets)
	for pair, n := range h.pairs {
		present := slices.ContainsFunc(paths, func(p state.PathState) bool { return p.Pair() == pair })
		if n.exposed && !present {
			delete(h.pairs, pair)
			continue
		}
		n.exposed = present
		all[pair] = *n
	}
	return all
}

func addPaths(b *builder, name string, paths []state.PathState, packets map[state.PathPair]pathPackets) {
	for i := range paths {
		p := &paths[i]
		peer, device, n := text.Valid(p.Peer), text.Valid(p.PeerDevice), packets[p.Pair()]
		if p.Tried() {
			b.boolGauge("rdma_path_success", !p.Failed(), name, peer, device)
		}
		b.timestamp("rdma_path_timestamp_seconds", p.At, name, peer, device)
		b.counter("rdma_path_packets_sent_total", n.sent, name, peer, device)
		b.counter("rdma_path_packets_lost_total", n.forward, name, peer, device, "forward")
		b.counter("rdma_path_packets_lost_total", n.reverse, name, peer, device, "reverse")
		for stat, rtt := range map[string]time.Duration{"min": p.RTTMin, "median": p.RTTMedian, "max": p.RTTMax} {
			b.positive("rdma_path_rtt_seconds", rtt.Seconds(), name, peer, device, stat)
		}
		b.gauge("rdma_path_flows", float64(p.Flows), name, peer, device)
		b.gauge("rdma_path_flows_failed", float64(p.FlowsFailed), name, peer, device)
		b.positive("rdma_path_mtu_bytes", float64(p.MTU), name, peer, device)
		b.gauge("rdma_path_info", 1, name, peer, device, p.Rail, p.ToR, p.PeerRail, p.PeerToR, p.Clock, string(p.Suspect))
	}
}
