package collector

import "rdma_exporter/internal/state"

// addSizes adds the sizes that a probe asked for and was given, and what they
// cost.
func addSizes(b *builder, name string, p *state.Probe) {
	for _, s := range p.CQs {
		b.gauge(cqRequested, float64(s.Requested), name, s.Profile)
		b.gauge(cqActual, float64(s.Actual), name, s.Profile)
	}
	for _, s := range p.SRQs {
		b.gauge(srqWorkRequestsRequested, float64(s.Requested.WorkRequests), name, s.Profile)
		b.gauge(srqWorkRequestsActual, float64(s.Actual.WorkRequests), name, s.Profile)
		b.gauge(srqScatterGatherRequested, float64(s.Requested.ScatterGather), name, s.Profile)
		b.gauge(srqScatterGatherActual, float64(s.Actual.ScatterGather), name, s.Profile)
		if s.Queried != nil {
			b.gauge(srqWorkRequestsQueried, float64(s.Queried.WorkRequests), name, s.Profile)
			b.gauge(srqScatterGatherQueried, float64(s.Queried.ScatterGather), name, s.Profile)
		}
	}
	for _, s := range p.QPs {
		addQP(b, qpWorkRequestsRequested, qpScatterGatherRequested, qpInlineRequested, name, &s, &s.Requested)
		addQP(b, qpWorkRequestsActual, qpScatterGatherActual, qpInlineActual, name, &s, &s.Actual)
	}
	for _, s := range p.Inline {
		b.gauge(qpMaxInline, float64(s.Bytes), name, s.Type)
	}
	for _, m := range p.Memory {
		b.gauge(memoryBytes, float64(m.Virtual), name, m.Object, m.Profile, "virtual")
		b.gauge(memoryBytes, float64(m.Locked), name, m.Object, m.Profile, "locked")
	}
}

func addQP(b *builder, workRequests, scatterGather, inline family, name string, s *state.QPSize, c *state.QPCap) {
	b.gauge(workRequests, float64(c.SendWorkRequests), name, s.Type, s.Profile, "send")
	b.gauge(workRequests, float64(c.RecvWorkRequests), name, s.Type, s.Profile, "recv")
	b.gauge(scatterGather, float64(c.SendScatterGather), name, s.Type, s.Profile, "send")
	b.gauge(scatterGather, float64(c.RecvScatterGather), name, s.Type, s.Profile, "recv")
	b.gauge(inline, float64(c.InlineBytes), name, s.Type, s.Profile)
}
