package probe

import (
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// srq probes ibv_create_srq(3): an SRQ of each profile. The sizes written back and those of
// ibv_query_srq are reported separately, since they differ on some devices.
func (r *run) srq(s *step) {
	l := r.Attr.Limits
	if l.MaxSRQ <= 0 {
		s.skip(state.Subject{}, state.SkipNotSupported, "the device says max_srq %d", l.MaxSRQ)
		return
	}
	pd, err := r.PD()
	if err != nil {
		s.cannot(state.Subject{Object: "pd"}, err)
		return
	}

	for _, p := range r.cfg.SRQ.of(r.depth) {
		subject := state.Subject{Object: "srq", Profile: p.name}
		requested := verbs.SRQAttr{
			MaxWR:  uint32(s.clamp(subject, "max_wr", p.size.WorkRequests, "max_srq_wr", l.MaxSRQWR)),
			MaxSGE: uint32(s.clamp(subject, "max_sge", p.size.ScatterGather, "max_srq_sge", l.MaxSRQSGE)),
		}
		var srq verbs.SRQ
		err := s.measure(subject, func() (err error) {
			srq, err = pd.CreateSRQ(requested)
			return err
		})
		if err != nil {
			s.skipOrFail(subject, err)
			continue
		}
		s.done++
		size := state.SRQSize{Profile: p.name, Requested: srqAttr(requested), Actual: srqAttr(srq.Created())}
		s.atLeast(subject, verbs.CreateSRQ, "max_wr", size.Requested.WorkRequests, size.Actual.WorkRequests)
		s.atLeast(subject, verbs.CreateSRQ, "max_sge", size.Requested.ScatterGather, size.Actual.ScatterGather)
		if queried, err := srq.Query(); err == nil {
			size.Queried = new(srqAttr(queried))
		} else {
			s.skipOrFail(subject, err)
		}
		s.SRQs = append(s.SRQs, size)
		s.destroy(subject, "srq", srq)
	}
}

func srqAttr(a verbs.SRQAttr) state.SRQAttr {
	return state.SRQAttr{WorkRequests: int64(a.MaxWR), ScatterGather: int64(a.MaxSGE)}
}
