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
	m.cqRequested = t.gauge("rdma_probe_cq_entries_requested", "entries",
		"Entries asked for of a completion queue.", "device", "profile")
	m.cqActual = t.gauge("rdma_probe_cq_entries_actual", "entries",
		"Entries that ibv_create_cq gave.", "device", "profile")
	m.qpWorkRequestsRequested = t.gauge("rdma_probe_qp_work_requests_requested", "work requests",
		"Outstanding work requests asked for of a queue of a queue pair.", "device", "qp_type", "profile", "queue")
	m.qpWorkRequestsActual = t.gauge("rdma_probe_qp_work_requests_actual", "work requests",
		"Outstanding work requests that ibv_create_qp gave.", "device", "qp_type", "profile", "queue")
	m.qpScatterGatherRequested = t.gauge("rdma_probe_qp_scatter_gather_entries_requested", "entries",
		"Scatter/gather entries per work request asked for of a queue of a queue pair.", "device", "qp_type", "profile", "queue")
	m.qpScatterGatherActual = t.gauge("rdma_probe_qp_scatter_gather_entries_actual", "entries",
		"Scatter/gather entries per work request that ibv_create_qp gave.", "device", "qp_type", "profile", "queue")
	m.qpInlineRequested = t.gauge("rdma_probe_qp_inline_bytes_requested", "bytes",
		"Inline data asked for of a queue pair.", "device", "qp_type", "profile")
	m.qpInlineActual = t.gauge("rdma_probe_qp_inline_bytes_actual", "bytes",
		"Inline data that ibv_create_qp gave.", "device", "qp_type", "profile")
	m.qpMaxInline = t.gauge("rdma_probe_qp_max_inline_bytes", "bytes",
		"The most inline data that a queue pair can be given, found by search because no verb tells it.", "device", "qp_type")
	m.srqWorkRequestsRequested = t.gauge("rdma_probe_srq_work_requests_requested", "work requests",
		"Outstanding work requests asked for of a shared receive queue.", "device", "profile")
	m.srqWorkRequestsActual = t.gauge("rdma_probe_srq_work_requests_actual", "work requests",
		"Outstanding work requests that ibv_create_srq wrote back.", "device", "profile")
	m.srqWorkRequestsQueried = t.gauge("rdma_probe_srq_work_requests_queried", "work requests",
		"Outstanding work requests that ibv_query_srq told; absent if that failed.", "device", "profile")
	m.srqScatterGatherRequested = t.gauge("rdma_probe_srq_scatter_gather_entries_requested", "entries",
		"Scatter/gather entries per work request asked for of a shared receive queue.", "device", "profile")
	m.srqScatterGatherActual = t.gauge("rdma_probe_srq_scatter_gather_entries_actual", "entries",
		"Scatter/gather entries per work request that ibv_create_srq wrote back.", "device", "profile")
	m.srqScatterGatherQueried = t.gauge("rdma_probe_srq_scatter_gather_entries_queried", "entries",
		"Scatter/gather entries per work request that ibv_query_srq told; absent if that failed.", "device", "profile")
	m.memoryBytes = t.gauge("rdma_probe_memory_bytes", "bytes",
		"What one object costs the process that creates it: address space (virtual) and pinned memory (locked).", "device", "object", "profile", "kind")
}

// addSizes adds the sizes that a probe asked for and was given, and what they
// cost.
func addSizes(b *builder, name string, p *state.Probe) {
	for _, s := range p.CQs {
		b.gauge(b.cqRequested, float64(s.Requested), name, s.Profile)
		b.gauge(b.cqActual, float64(s.Actual), name, s.Profile)
	}
	for _, s := range p.SRQs {
		b.gauge(b.srqWorkRequestsRequested, float64(s.Requested.WorkRequests), name, s.Profile)
		b.gauge(b.srqWorkRequestsActual, float64(s.Actual.WorkRequests), name, s.Profile)
		b.gauge(b.srqScatterGatherRequested, float64(s.Requested.ScatterGather), name, s.Profile)
		b.gauge(b.srqScatterGatherActual, float64(s.Actual.ScatterGather), name, s.Profile)
		if s.Queried != nil {
			b.gauge(b.srqWorkRequestsQueried, float64(s.Queried.WorkRequests), name, s.Profile)
			b.gauge(b.srqScatterGatherQueried, float64(s.Queried.ScatterGather), name, s.Profile)
		}
	}
	for _, s := range p.QPs {
		addQP(b, b.qpWorkRequestsRequested, b.qpScatterGatherRequested, b.qpInlineRequested, name, &s, &s.Requested)
		addQP(b, b.qpWorkRequestsActual, b.qpScatterGatherActual, b.qpInlineActual, name, &s, &s.Actual)
	}
	for _, s := range p.Inline {
		b.gauge(b.qpMaxInline, float64(s.Bytes), name, s.Type)
	}
	for _, m := range p.Memory {
		b.gauge(b.memoryBytes, float64(m.Virtual), name, m.Object, m.Profile, "virtual")
		b.gauge(b.memoryBytes, float64(m.Locked), name, m.Object, m.Profile, "locked")
	}
}

func addQP(b *builder, workRequests, scatterGather, inline *family, name string, s *state.QPSize, c *state.QPCap) {
	b.gauge(workRequests, float64(c.SendWorkRequests), name, s.Type, s.Profile, "send")
	b.gauge(workRequests, float64(c.RecvWorkRequests), name, s.Type, s.Profile, "recv")
	b.gauge(scatterGather, float64(c.SendScatterGather), name, s.Type, s.Profile, "send")
	b.gauge(scatterGather, float64(c.RecvScatterGather), name, s.Type, s.Profile, "recv")
	b.gauge(inline, float64(c.InlineBytes), name, s.Type, s.Profile)
}
