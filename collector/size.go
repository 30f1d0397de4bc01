package collector

import "rdma_exporter/internal/state"

func declareSize(t *table) {
	t.about("Requested and actual sizes")
	t.of(Sizes)
	t.gauge("rdma_probe_cq_entries_requested", "entries",
		"Entries requested for a completion queue, on every device"+configured, "profile")
	t.gauge("rdma_probe_cq_entries_actual", "entries",
		"Actual entries of a completion queue, from ibv_create_cq.", "device", "profile")
	t.gauge("rdma_probe_qp_work_requests_requested", "work requests",
		"Outstanding work requests requested for a queue of a queue pair, on every device and for every type"+configured, "profile", "queue")
	t.gauge("rdma_probe_qp_work_requests_actual", "work requests",
		"Outstanding work requests of a queue, from ibv_create_qp.", "device", "qp_type", "profile", "queue")
	t.gauge("rdma_probe_qp_scatter_gather_entries_requested", "entries",
		"Scatter/gather entries per work request requested for a queue of a queue pair, on every device and for every type"+configured, "profile", "queue")
	t.gauge("rdma_probe_qp_scatter_gather_entries_actual", "entries",
		"Scatter/gather entries per work request of a queue, from ibv_create_qp.", "device", "qp_type", "profile", "queue")
	t.gauge("rdma_probe_qp_inline_bytes_requested", "bytes",
		"Inline data requested for a queue pair, on every device and for every type"+configured, "profile")
	t.gauge("rdma_probe_qp_inline_bytes_actual", "bytes",
		"Inline data of a queue pair, from ibv_create_qp.", "device", "qp_type", "profile")
	t.gauge("rdma_probe_qp_max_inline_bytes", "bytes",
		"Maximum inline data of a queue pair, found by search because no verb reports it.", "device", "qp_type")
	t.gauge("rdma_probe_srq_work_requests_requested", "work requests",
		"Outstanding work requests requested for a shared receive queue, on every device"+configured, "profile")
	t.gauge("rdma_probe_srq_work_requests_actual", "work requests",
		"Outstanding work requests that ibv_create_srq wrote back.", "device", "profile")
	t.gauge("rdma_probe_srq_work_requests_queried", "work requests",
		"Outstanding work requests that ibv_query_srq reported; absent if equal to what ibv_create_srq wrote back, or if it failed.", "device", "profile")
	t.gauge("rdma_probe_srq_scatter_gather_entries_requested", "entries",
		"Scatter/gather entries per work request requested for a shared receive queue, on every device"+configured, "profile")
	t.gauge("rdma_probe_srq_scatter_gather_entries_actual", "entries",
		"Scatter/gather entries per work request that ibv_create_srq wrote back.", "device", "profile")
	t.gauge("rdma_probe_srq_scatter_gather_entries_queried", "entries",
		"Scatter/gather entries per work request that ibv_query_srq reported; absent if equal to what ibv_create_srq wrote back, or if it failed.", "device", "profile")
	t.of(Memory)
	t.gauge("rdma_probe_memory_bytes", "bytes",
		"Cost of one object to the process creating it: address space (virtual) and pinned memory (locked).", "device", "object", "profile", "kind")
}

const configured = ", as configured; rdma_probe_size_clamped shows sizes reduced to a device's limits."

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
