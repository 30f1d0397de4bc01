package probe

import (
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// srq probes ibv_create_srq(3): an SRQ of each profile. What create wrote back
// and what ibv_query_srq says are reported apart, since devices differ in it.
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

	for _, p := range profiles(r.depth, r.cfg.SRQ.all()) {
		subject := state.Subject{Object: "srq", Profile: p.name}
		asked := verbs.SRQAttr{
			MaxWR:  uint32(s.clamp(subject, "max_wr", p.size.WorkRequests, "max_srq_wr", l.MaxSRQWR)),
			MaxSGE: uint32(s.clamp(subject, "max_sge", p.size.ScatterGather, "max_srq_sge", l.MaxSRQSGE)),
		}
		var srq verbs.SRQ
		err := s.measure(subject, func() (err error) {
			srq, err = pd.CreateSRQ(asked)
			return err
		})
		if err != nil {
			if !s.skipped(subject, err) {
				s.fail(subject, err)
			}
			continue
		}
		s.done++
		s.srqSizes(subject, asked, srq)
		s.destroy(subject, "srq", srq)
	}
}

func (s *step) srqSizes(subject state.Subject, asked verbs.SRQAttr, srq verbs.SRQ) {
	given := srq.Created()
	size := state.SRQSize{Profile: subject.Profile, Requested: srqAttr(asked), Actual: srqAttr(given)}
	s.atLeast(subject, verbs.CreateSRQ, "max_wr", size.Requested.WorkRequests, size.Actual.WorkRequests)
	s.atLeast(subject, verbs.CreateSRQ, "max_sge", size.Requested.ScatterGather, size.Actual.ScatterGather)
	queried, err := srq.Query()
	switch {
	case err == nil:
		q := srqAttr(queried)
		size.Queried = &q
	case !s.skipped(subject, err):
		s.fail(subject, err)
	}
	s.SRQs = append(s.SRQs, size)
}

func srqAttr(a verbs.SRQAttr) state.SRQAttr {
	return state.SRQAttr{WorkRequests: int64(a.MaxWR), ScatterGather: int64(a.MaxSGE)}
}
