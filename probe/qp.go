package probe

import (
	"errors"
	"os"
	"syscall"

	"rdma_exporter/report"
	"rdma_exporter/verbs"
)

// qp probes ibv_create_qp(3): QPs of each type and profile, and the most inline
// data that each type can be given.
func (r *run) qp(s *step) {
	pd, err := r.dev.AllocPD()
	if err != nil {
		s.fail("protection domain", err)
		return
	}
	defer s.destroy("protection domain", "pd", pd)
	cq, err := r.dev.CreateCQ(verbs.CQInitAttr{Entries: r.cfg.CQ.Small.clamped(r.attr.Limits)})
	if err != nil {
		s.fail("cq", err)
		return
	}
	defer s.destroy("cq", "cq", cq)

	for _, t := range verbs.QPTypes() {
		q := qpProbe{step: s, typ: t, label: t.Label(), pd: pd, cq: cq}
		if q.supported() {
			q.maxInline()
			q.profiles()
		}
	}
}

// qpProbe probes QPs of one type.
type qpProbe struct {
	*step
	typ   verbs.QPType
	label string
	pd    verbs.PD
	cq    verbs.CQ
	// inline is the most inline data that was found; 0 if it is not known.
	inline int
}

func (q *qpProbe) create(c verbs.QPCap) (verbs.QP, error) {
	return q.pd.CreateQP(verbs.QPInitAttr{Type: q.typ, SendCQ: q.cq, RecvCQ: q.cq, Cap: c})
}

func smallest(inline int) verbs.QPCap {
	return verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: uint32(inline)}
}

// supported tells whether the device has QPs of the type, and notes a skip or a
// failure if not. No attribute of a device lists its types, so the smallest QP is
// created. Drivers answer EOPNOTSUPP or EINVAL for a type that they don't have.
// RC is the one that every device has and every process may create.
func (q *qpProbe) supported() bool {
	absent := func(err error) bool {
		return q.typ != verbs.RC && (verbs.IsNotSupported(err) ||
			errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EINVAL))
	}
	var qp verbs.QP
	var err error
	q.rec.expecting(absent, func() { qp, err = q.create(smallest(0)) })
	switch {
	case err == nil:
		q.done++
		q.destroy(q.label, "qp", qp)
		return true
	case (absent(err) || verbs.IsNotSupported(err)) && q.skipped(q.label, err):
		return false
	case absent(err):
		q.skip(q.label, report.SkipNotSupported, "not even the smallest QP: %v", err)
		return false
	default:
		q.fail(q.label, err)
		return true
	}
}

// profiles creates a QP of each profile.
func (q *qpProbe) profiles() {
	for i, p := range q.cfg.QP.all() {
		subject := q.label + " " + p.name
		asked := q.clampAll(p.name, p.size)
		var qp verbs.QP
		err := q.measure("qp_"+q.label, p.name, func() (err error) {
			qp, err = q.create(asked)
			return err
		})
		if err != nil {
			q.fail(subject, err)
			continue
		}
		q.done++
		given := qp.Created()
		q.QPs = append(q.QPs, report.QPSize{Type: q.label, Profile: p.name, Requested: qpCap(asked), Actual: qpCap(given)})
		q.capsAtLeast(subject, asked, given)
		if i == 0 {
			q.states(subject, qp)
		}
		q.destroy(subject, "qp", qp)
	}
}

// states times ibv_modify_qp and ibv_query_qp, without sending anything.
func (q *qpProbe) states(subject string, qp verbs.QP) {
	if q.typ != verbs.RawPacket {
		if err := qp.Modify(verbs.ToInit(q.typ, 1, verbs.AccessLocalWrite)); err != nil {
			q.fail(subject, err)
		} else if err := qp.Modify(verbs.ToError()); err != nil {
			q.fail(subject, err)
		}
	}
	if _, err := qp.Query(); err != nil {
		q.fail(subject, err)
	}
}

func (q *qpProbe) clampAll(profile string, p QPProfile) verbs.QPCap {
	l := q.attr.Limits
	clamp := func(attribute string, v int, limit string, most int) uint32 {
		return uint32(q.clamp(profile, "qp_"+q.label, attribute, v, limit, most))
	}
	return verbs.QPCap{
		MaxSendWR:     clamp("max_send_wr", p.SendWorkRequests, "max_qp_wr", l.MaxQPWR),
		MaxRecvWR:     clamp("max_recv_wr", p.RecvWorkRequests, "max_qp_wr", l.MaxQPWR),
		MaxSendSGE:    clamp("max_send_sge", p.SendScatterGather, "max_sge", l.MaxSGE),
		MaxRecvSGE:    clamp("max_recv_sge", p.RecvScatterGather, "max_sge", l.MaxSGE),
		MaxInlineData: clamp("max_inline_data", p.InlineBytes, "max_inline_data", q.inline),
	}
}

func (q *qpProbe) capsAtLeast(subject string, asked, given verbs.QPCap) {
	for _, c := range []struct {
		name         string
		asked, given uint32
	}{
		{"max_send_wr", asked.MaxSendWR, given.MaxSendWR},
		{"max_recv_wr", asked.MaxRecvWR, given.MaxRecvWR},
		{"max_send_sge", asked.MaxSendSGE, given.MaxSendSGE},
		{"max_recv_sge", asked.MaxRecvSGE, given.MaxRecvSGE},
		{"max_inline_data", asked.MaxInlineData, given.MaxInlineData},
	} {
		q.atLeast(subject, verbs.CreateQP, c.name, int64(c.asked), int64(c.given))
	}
}

func qpCap(c verbs.QPCap) report.QPCap {
	return report.QPCap{
		SendWorkRequests:  int64(c.MaxSendWR),
		RecvWorkRequests:  int64(c.MaxRecvWR),
		SendScatterGather: int64(c.MaxSendSGE),
		RecvScatterGather: int64(c.MaxRecvSGE),
		InlineBytes:       int64(c.MaxInlineData),
	}
}

// maxInline finds the most inline data that a QP with one work request and one
// scatter/gather entry can be given. No verb tells it, so it is searched for:
// doubled until refused, then bisected.
func (q *qpProbe) maxInline() {
	subject := q.label + " inline"
	best, refused := 0, maxInlineBytes+1
	for refused-best > 1 {
		try := best + (refused-best)/2
		if refused > maxInlineBytes {
			try = min(max(2*best, 64), maxInlineBytes)
		}
		given, ok, err := q.tryInline(try)
		switch {
		case err != nil:
			q.fail(subject, err)
			return
		case ok:
			best = max(try, given)
		default:
			refused = try
		}
	}
	q.inline = best
	q.Inline = append(q.Inline, report.InlineMax{Type: q.label, Bytes: int64(best)})
}

// tryInline asks for a QP with n bytes of inline data. It tells how many were
// given, and whether they were at least n; an error stops the search.
func (q *qpProbe) tryInline(n int) (given int, ok bool, err error) {
	tooMuch := func(err error) bool {
		return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOMEM) ||
			errors.Is(err, syscall.E2BIG) || verbs.IsNotSupported(err)
	}
	var qp verbs.QP
	q.rec.expecting(tooMuch, func() { qp, err = q.create(smallest(n)) })
	switch {
	case err == nil:
	case tooMuch(err):
		return 0, false, nil
	default:
		return 0, false, err
	}
	given = int(min(qp.Created().MaxInlineData, maxInlineBytes))
	if err := q.destroyObject("qp", qp); err != nil {
		return 0, false, err
	}
	return given, given >= n, nil
}
