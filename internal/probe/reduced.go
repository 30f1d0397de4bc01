package probe

import (
	"context"
	"errors"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// reduced describes the device and creates one small CQ and one small QP, which stays in
// RESET. It sends nothing.
func (r *run) reduced(ctx context.Context) error {
	err := r.describe()
	if err := errors.Join(ctx.Err(), r.Out.Err()); err != nil {
		return err
	}
	var cq verbs.CQ
	r.step("cq", func(s *step) { cq = s.createCQ(r.cfg.CQ.all()[0]) })
	if cq == nil {
		return err
	}
	r.step("qp", func(s *step) {
		defer s.destroy(state.Subject{Object: "cq"}, "cq", cq)
		pd, err := s.PD()
		if err != nil {
			s.cannot(state.Subject{Object: "pd"}, err)
			return
		}
		s.oneQP(pd, cq, false)
	})
	return err
}

// oneQP creates one QP of the smallest profile, of the first type that the device has. With
// states it also calls ibv_modify_qp and ibv_query_qp.
func (s *step) oneQP(pd verbs.PD, cq verbs.CQ, states bool) {
	var tried []*qpProbe
	works := false
	for _, t := range s.Device.QPTypes() {
		q := &qpProbe{step: s, typ: t, label: t.Label(), pd: pd, cq: cq, inline: -1}
		known := q.recall()
		if q.lacking {
			continue
		}
		var qp verbs.QP
		q.Expecting(func(err error) bool { return !known && q.absent(err) }, func() { qp, q.err = q.profile(q.cfg.QP.all()[0]) })
		if q.err != nil && known {
			// The device had the type before.
			q.fail(q.subject("small"), q.err)
			return
		}
		tried = append(tried, q)
		if works = q.err == nil; works {
			if states {
				q.states(q.subject("small"), qp)
			}
			q.destroy(q.subject("small"), "qp", qp)
		}
		if works || !session.Absent(q.err) {
			break
		}
	}
	for _, q := range tried {
		q.offered(works)
	}
}
