package collector

import "rdma_exporter/internal/state"

func declareSize(t *table) {
	t.about("Sizes asked for and given")
	t.of(Sizes)
	t.gauge("rdma_probe_cq_entries_requested", "entries",
		"Entries asked for of a completion queue, on every device"+configured, "profile")
	t.gauge("rdma_probe_cq_entries_actual", "entries",
		"Entries that ibv_create_cq gave.", "device", "profile")
	t.gauge("rdma_probe_qp_work_requests_requested", "work requests",
		"Outstanding work requests asked for of a queue of a queue pair, on every device and for every type"+configured, "profile", "queue")
	t.gauge("rdma_probe_qp_work_requests_actual", "work requests",
		"Outstanding work requests that ibv_create_qp gave.", "device", "qp_type", "profile", "queue")
	t.gauge("rdma_probe_qp_scatter_gather_entries_requested", "entries",
		"Scatter/gather entries per work request asked for of a queue of a queue pair, on every device and for every type"+configured, "profile", "queue")
	t.gauge("rdma_probe_qp_scatter_gather_entries_actual", "entries",
		"Scatter/gather entries per work request that ibv_create_qp gave.", "device", "qp_type", "profile", "queue")
	t.gauge("rdma_probe_qp_inline_bytes_requested", "bytes",
		"Inline data asked for of a queue pair, on every device and for every type"+configured, "profile")
	t.gauge("rdma_probe_qp_inline_bytes_actual", "bytes",
		"Inline data that ibv_create_qp gave.", "device", "qp_type", "profile")
	t.gauge("rdma_probe_qp_max_inline_bytes", "bytes",
		"Most inline data that a queue pair can have, found by search because no verb reports it.", "device", "qp_type")
	t.gauge("rdma_probe_srq_work_requests_requested", "work requests",
		"Outstanding work requests asked for of a shared receive queue, on every device"+configured, "profile")
	t.gauge("rdma_probe_srq_work_requests_actual", "work requests",
		"Outstanding work requests that ibv_create_srq wrote back.", "device", "profile")
	t.gauge("rdma_probe_srq_work_requests_queried", "work requests",
		"Outstanding work requests that ibv_query_srq reported; absent if equal to what ibv_create_srq wrote back, or if it failed.", "device", "profile")
	t.gauge("rdma_probe_srq_scatter_gather_entries_requested", "entries",
		"Scatter/gather entries per work request asked for of a shared receive queue, on every device"+configured, "profile")
	t.gauge("rdma_probe_srq_scatter_gather_entries_actual", "entries",
		"Scatter/gather entries per work request that ibv_create_srq wrote back.", "device", "profile")
	t.gauge("rdma_probe_srq_scatter_gather_entries_queried", "entries",
		"Scatter/gather entries per work request that ibv_query_srq reported; absent if equal to what ibv_create_srq wrote back, or if it failed.", "device", "profile")
	t.of(Memory)
	t.gauge("rdma_probe_memory_bytes", "bytes",
		"Cost of one object to the process creating it: address space (virtual) and pinned memory (locked).", "device", "object", "profile", "kind")
}

// configured says of the sizes that are asked for where they come from.
const configured = ", as configured; rdma_probe_size_clamped shows sizes reduced to a device's limits."

// addAsked adds the sizes that the probes ask for.
func addAsked(b *builder, p *state.Probe) {
	for _, s := range p.CQs {
		b.gauge("rdma_probe_cq_entries_requested", float64(s.Requested), s.Profile)
	}
	for _, s := range p.SRQs {
		b.gauge("rdma_probe_srq_work_requests_requested", float64(s.Requested.WorkRequests), s.Profile)
		b.gauge("rdma_probe_srq_scatter_gather_entries_requested", float64(s.Requested.ScatterGather), s.Profile)
	}
	for _, s := range p.QPs {
		b.gauge("rdma_probe_qp_work_requests_requested", float64(s.Requested.SendWorkRequests), s.Profile, "send")
		b.gauge("rdma_probe_qp_work_requests_requested", float64(s.Requested.RecvWorkRequests), s.Profile, "recv")
		b.gauge("rdma_probe_qp_scatter_gather_entries_requested", float64(s.Requested.SendScatterGather), s.Profile, "send")
		b.gauge("rdma_probe_qp_scatter_gather_entries_requested", float64(s.Requested.RecvScatterGather), s.Profile, "recv")
		b.gauge("rdma_probe_qp_inline_bytes_requested", float64(s.Requested.InlineBytes), s.Profile)
	}
}

// addSizes adds the sizes that a device gave, and what they cost.
func addSizes(b *builder, name string, p *state.Probe) {
	for _, s := range p.CQs {
		b.gauge("rdma_probe_cq_entries_actual", float64(s.Actual), name, s.Profile)
	}
	for _, s := range p.SRQs {
		b.gauge("rdma_probe_srq_work_requests_actual", float64(s.Actual.WorkRequests), name, s.Profile)
		b.gauge("rdma_probe_srq_scatter_gather_entries_actual", float64(s.Actual.ScatterGather), name, s.Profile)
		if q := s.Queried; q != nil && q.WorkRequests != s.Actual.WorkRequests {
			b.gauge("rdma_probe_srq_work_requests_queried", float64(q.WorkRequests), name, s.Profile)
		}
		if q := s.Queried; q != nil && q.ScatterGather != s.Actual.ScatterGather {
			b.gauge("rdma_probe_srq_scatter_gather_entries_queried", float64(q.ScatterGather), name, s.Profile)
		}
	}
	for _, s := range p.QPs {
		b.gauge("rdma_probe_qp_work_requests_actual", float64(s.Actual.SendWorkRequests), name, s.Type, s.Profile, "send")
		b.gauge("rdma_probe_qp_work_requests_actual", float64(s.Actual.RecvWorkRequests), name, s.Type, s.Profile, "recv")
		b.gauge("rdma_probe_qp_scatter_gather_entries_actual", float64(s.Actual.SendScatterGather), name, s.Type, s.Profile, "send")
		b.gauge("rdma_probe_qp_scatter_gather_entries_actual", float64(s.Actual.RecvScatterGather), name, s.Type, s.Profile, "recv")
		b.gauge("rdma_probe_qp_inline_bytes_actual", float64(s.Actual.InlineBytes), name, s.Type, s.Profile)
	}
	for _, s := range p.Inline {
		b.gauge("rdma_probe_qp_max_inline_bytes", float64(s.Bytes), name, s.Type)
	}
	for _, m := range p.Memory {
		b.gauge("rdma_probe_memory_bytes", float64(m.Virtual), name, m.Object, m.Profile, "virtual")
		b.gauge("rdma_probe_memory_bytes", float64(m.Locked), name, m.Object, m.Profile, "locked")
	}
}
