package collector

import "rdma_exporter/internal/state"

// sizeMetrics are the metrics of the sizes that were asked for and given.
type sizeMetrics struct {
	cqRequested               *family
	cqActual                  *family
	qpWorkRequestsRequested   *family
	qpWorkRequestsActual      *family
	qpScatterGatherRequested  *family
	qpScatterGatherActual     *family
	qpInlineRequested         *family
	qpInlineActual            *family
	qpMaxInline               *family
	srqWorkRequestsRequested  *family
	srqWorkRequestsActual     *family
	srqWorkRequestsQueried    *family
	srqScatterGatherRequested *family
	srqScatterGatherActual    *family
	srqScatterGatherQueried   *family
	memoryBytes               *family
}

func (m *sizeMetrics) declare(t *table) {
	t.about("Sizes asked for and given")
	t.of(Sizes)
	m.cqRequested = t.gauge("rdma_probe_cq_entries_requested", "entries",
		"Entries asked for of a completion queue, on every device"+configured, "profile")
	m.cqActual = t.gauge("rdma_probe_cq_entries_actual", "entries",
		"Entries that ibv_create_cq gave.", "device", "profile")
	m.qpWorkRequestsRequested = t.gauge("rdma_probe_qp_work_requests_requested", "work requests",
		"Outstanding work requests asked for of a queue of a queue pair, on every device and for every type"+configured, "profile", "queue")
	m.qpWorkRequestsActual = t.gauge("rdma_probe_qp_work_requests_actual", "work requests",
		"Outstanding work requests that ibv_create_qp gave.", "device", "qp_type", "profile", "queue")
	m.qpScatterGatherRequested = t.gauge("rdma_probe_qp_scatter_gather_entries_requested", "entries",
		"Scatter/gather entries per work request asked for of a queue of a queue pair, on every device and for every type"+configured, "profile", "queue")
	m.qpScatterGatherActual = t.gauge("rdma_probe_qp_scatter_gather_entries_actual", "entries",
		"Scatter/gather entries per work request that ibv_create_qp gave.", "device", "qp_type", "profile", "queue")
	m.qpInlineRequested = t.gauge("rdma_probe_qp_inline_bytes_requested", "bytes",
		"Inline data asked for of a queue pair, on every device and for every type"+configured, "profile")
	m.qpInlineActual = t.gauge("rdma_probe_qp_inline_bytes_actual", "bytes",
		"Inline data that ibv_create_qp gave.", "device", "qp_type", "profile")
	m.qpMaxInline = t.gauge("rdma_probe_qp_max_inline_bytes", "bytes",
		"Most inline data that a queue pair can have, found by search because no verb reports it.", "device", "qp_type")
	m.srqWorkRequestsRequested = t.gauge("rdma_probe_srq_work_requests_requested", "work requests",
		"Outstanding work requests asked for of a shared receive queue, on every device"+configured, "profile")
	m.srqWorkRequestsActual = t.gauge("rdma_probe_srq_work_requests_actual", "work requests",
		"Outstanding work requests that ibv_create_srq wrote back.", "device", "profile")
	m.srqWorkRequestsQueried = t.gauge("rdma_probe_srq_work_requests_queried", "work requests",
		"Outstanding work requests that ibv_query_srq reported; absent if equal to what ibv_create_srq wrote back, or if it failed.", "device", "profile")
	m.srqScatterGatherRequested = t.gauge("rdma_probe_srq_scatter_gather_entries_requested", "entries",
		"Scatter/gather entries per work request asked for of a shared receive queue, on every device"+configured, "profile")
	m.srqScatterGatherActual = t.gauge("rdma_probe_srq_scatter_gather_entries_actual", "entries",
		"Scatter/gather entries per work request that ibv_create_srq wrote back.", "device", "profile")
	m.srqScatterGatherQueried = t.gauge("rdma_probe_srq_scatter_gather_entries_queried", "entries",
		"Scatter/gather entries per work request that ibv_query_srq reported; absent if equal to what ibv_create_srq wrote back, or if it failed.", "device", "profile")
	t.of(Memory)
	m.memoryBytes = t.gauge("rdma_probe_memory_bytes", "bytes",
		"Cost of one object to the process creating it: address space (virtual) and pinned memory (locked).", "device", "object", "profile", "kind")
}

// configured says of the sizes that are asked for where they come from.
const configured = ", as configured; rdma_probe_size_clamped shows sizes reduced to a device's limits."

// addAsked adds the sizes that the probes ask for.
func addAsked(b *builder, p *state.Probe) {
	for _, s := range p.CQs {
		b.gauge(b.cqRequested, float64(s.Requested), s.Profile)
	}
	for _, s := range p.SRQs {
		b.gauge(b.srqWorkRequestsRequested, float64(s.Requested.WorkRequests), s.Profile)
		b.gauge(b.srqScatterGatherRequested, float64(s.Requested.ScatterGather), s.Profile)
	}
	for _, s := range p.QPs {
		b.gauge(b.qpWorkRequestsRequested, float64(s.Requested.SendWorkRequests), s.Profile, "send")
		b.gauge(b.qpWorkRequestsRequested, float64(s.Requested.RecvWorkRequests), s.Profile, "recv")
		b.gauge(b.qpScatterGatherRequested, float64(s.Requested.SendScatterGather), s.Profile, "send")
		b.gauge(b.qpScatterGatherRequested, float64(s.Requested.RecvScatterGather), s.Profile, "recv")
		b.gauge(b.qpInlineRequested, float64(s.Requested.InlineBytes), s.Profile)
	}
}

// addSizes adds the sizes that a device gave, and what they cost.
func addSizes(b *builder, name string, p *state.Probe) {
	for _, s := range p.CQs {
		b.gauge(b.cqActual, float64(s.Actual), name, s.Profile)
	}
	for _, s := range p.SRQs {
		b.gauge(b.srqWorkRequestsActual, float64(s.Actual.WorkRequests), name, s.Profile)
		b.gauge(b.srqScatterGatherActual, float64(s.Actual.ScatterGather), name, s.Profile)
		if q := s.Queried; q != nil && q.WorkRequests != s.Actual.WorkRequests {
			b.gauge(b.srqWorkRequestsQueried, float64(q.WorkRequests), name, s.Profile)
		}
		if q := s.Queried; q != nil && q.ScatterGather != s.Actual.ScatterGather {
			b.gauge(b.srqScatterGatherQueried, float64(q.ScatterGather), name, s.Profile)
		}
	}
	for _, s := range p.QPs {
		b.gauge(b.qpWorkRequestsActual, float64(s.Actual.SendWorkRequests), name, s.Type, s.Profile, "send")
		b.gauge(b.qpWorkRequestsActual, float64(s.Actual.RecvWorkRequests), name, s.Type, s.Profile, "recv")
		b.gauge(b.qpScatterGatherActual, float64(s.Actual.SendScatterGather), name, s.Type, s.Profile, "send")
		b.gauge(b.qpScatterGatherActual, float64(s.Actual.RecvScatterGather), name, s.Type, s.Profile, "recv")
		b.gauge(b.qpInlineActual, float64(s.Actual.InlineBytes), name, s.Type, s.Profile)
	}
	for _, s := range p.Inline {
		b.gauge(b.qpMaxInline, float64(s.Bytes), name, s.Type)
	}
	for _, m := range p.Memory {
		b.gauge(b.memoryBytes, float64(m.Virtual), name, m.Object, m.Profile, "virtual")
		b.gauge(b.memoryBytes, float64(m.Locked), name, m.Object, m.Profile, "locked")
	}
}
