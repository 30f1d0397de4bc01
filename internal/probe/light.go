package probe

import (
	"context"
	"errors"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/verbs"
)

// light describes the device and creates one CQ and one QP of the smallest profile, of
// the first type that the device has. It sends nothing, and takes the QP through no
// states. Its error is that of all.
func (r *run) light(ctx context.Context) error {
	err := r.describe()
	if err := errors.Join(ctx.Err(), r.Out.Err()); err != nil {
		return err
	}
	var cq verbs.CQ
	r.step("cq", func(s *step) { cq = s.createCQ(r.cfg.CQ.all()[0]) })
	if cq != nil {
		r.step("qp", func(s *step) { s.lightQP(cq) })
	}
	return err
}

// lightQP creates the QP, and destroys the CQ that it was on.
func (s *step) lightQP(cq verbs.CQ) {
	defer s.destroy("cq", "cq", cq)
	pd, err := s.PD()
	if err != nil {
		s.cannot("protection domain", err)
		return
	}
	var tried []*qpProbe
	works := false
	for _, t := range s.Device.QPTypes() {
		q := &qpProbe{step: s, typ: t, label: t.Label(), pd: pd, cq: cq, inline: -1}
		if q.recall(); q.lacking {
			continue
		}
		tried = append(tried, q)
		var qp verbs.QP
		q.Expecting(q.absent, func() { qp, q.err = q.profile(q.cfg.QP.all()[0]) })
		if works = q.err == nil; works {
			q.destroy(q.label, "qp", qp)
		}
		if works || !session.Absent(q.err) {
			break
		}
	}
	for _, q := range tried {
		q.offered(works)
	}
}
