package probe

import (
	"errors"
	"os"
	"slices"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// qp probes ibv_create_qp(3): QPs of each type and profile, and the maximum inline data of
// each type.
func (r *run) qp(s *step) {
	pd, err := r.PD()
	if err != nil {
		s.cannot(state.Subject{Object: "pd"}, err)
		return
	}
	cq, err := r.Device.CreateCQ(verbs.CQInitAttr{Entries: r.cfg.CQ.Small.clamped(r.Attr.Limits), Vector: r.Vectors[0]})
	if err != nil {
		s.cannot(state.Subject{Object: "cq"}, err)
		return
	}
	defer s.destroy(state.Subject{Object: "cq"}, "cq", cq)
	if r.depth == state.DepthShort {
		s.oneQP(pd, cq, true)
		return
	}

	var probes []*qpProbe
	for _, t := range r.Device.QPTypes() {
		q := &qpProbe{step: s, typ: t, label: t.Label(), pd: pd, cq: cq, inline: -1}
		if !q.recall() {
			q.smallest()
		}
		if !q.lacking {
			probes = append(probes, q)
		}
	}
	works := slices.ContainsFunc(probes, func(q *qpProbe) bool { return q.works })
	for _, q := range probes {
		if !q.offered(works) {
			continue
		}
		if q.works && q.inline < 0 {
			q.maxInline()
		}
		q.profiles()
	}
}

// qpProbe probes QPs of one type.
type qpProbe struct {
	*step
	typ   verbs.QPType
	label string
	pd    verbs.PD
	cq    verbs.CQ
	// works is true if the smallest QP could be created, and err says why not. lacking is
	// true if the device has no QPs of the type.
	works   bool
	err     error
	lacking bool
	// inline is the maximum inline data. Negative means unknown.
	inline int
}

func (q *qpProbe) subject(profile string) state.Subject {
	return state.Subject{Object: "qp", QPType: q.label, Profile: profile}
}

// notEvenSmallest begins the detail of a skip if the errno is ambiguous.
const notEvenSmallest = "not even the smallest QP: "

func (q *qpProbe) create(c verbs.QPCap) (verbs.QP, error) {
	return q.pd.CreateQP(verbs.QPInitAttr{Type: q.typ, SendCQ: q.cq, RecvCQ: q.cq, Cap: c})
}

func smallest(inline int) verbs.QPCap {
	return verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: uint32(inline)}
}

// smallest creates the smallest QP of the type to learn whether the device has the type. No
// attribute lists them.
func (q *qpProbe) smallest() {
	var qp verbs.QP
	q.Expecting(q.absent, func() { qp, q.err = q.create(smallest(0)) })
	if q.err == nil {
		q.done++
		q.works = true
		q.destroy(q.subject(""), "qp", qp)
	}
}

// absent reports whether the smallest QP was refused because there is no such type. For RC,
// which nearly every device has, an ambiguous errno does not count.
func (q *qpProbe) absent(err error) bool {
	return session.Absent(err) && (q.typ != verbs.RC || verbs.IsNotSupported(err))
}

// offered reports whether to go on with the type, and records why the smallest QP could not
// be created. anyWorks is true if one of any type could.
func (q *qpProbe) offered(anyWorks bool) bool {
	switch {
	case q.err == nil:
		return true
	case !q.absent(q.err) && (!session.Absent(q.err) || !anyWorks || errors.Is(q.err, os.ErrPermission)):
		q.fail(q.subject(""), q.err)
		return true
	case q.typ == verbs.RawPacket && errors.Is(q.err, os.ErrPermission):
		q.skip(q.subject(""), state.SkipNotPermitted, "%v (it needs CAP_NET_RAW)", q.err)
	case session.ObstacleOf(q.err) != nil:
		q.skipOrFail(q.subject(""), q.err)
	default:
		q.skip(q.subject(""), state.SkipNotSupported, notEvenSmallest+"%v", q.err)
	}
	q.learnAbsent()
	return false
}

func (q *qpProbe) profiles() {
	for i, p := range q.cfg.QP.all() {
		subject := q.subject(p.name)
		qp, err := q.profile(p)
		if err != nil {
			q.fail(subject, err)
			continue
		}
		if i == 0 {
			q.states(subject, qp)
		}
		q.destroy(subject, "qp", qp)
	}
}

func (q *qpProbe) profile(p named[QPSize]) (qp verbs.QP, err error) {
	requested := q.clampAll(p.name, p.size)
	err = q.measure(q.subject(p.name), func() (err error) {
		qp, err = q.create(requested)
		return err
	})
	if err != nil {
		return nil, err
	}
	q.done++
	size := state.QPSize{Type: q.label, Profile: p.name, Requested: qpCap(requested), Actual: qpCap(qp.Created())}
	q.QPs = append(q.QPs, size)
	r, a := size.Requested, size.Actual
	for _, c := range []struct {
		name              string
		requested, actual int64
	}{
		{"max_send_wr", r.SendWorkRequests, a.SendWorkRequests},
		{"max_recv_wr", r.RecvWorkRequests, a.RecvWorkRequests},
		{"max_send_sge", r.SendScatterGather, a.SendScatterGather},
		{"max_recv_sge", r.RecvScatterGather, a.RecvScatterGather},
		{"max_inline_data", r.InlineBytes, a.InlineBytes},
	} {
		q.atLeast(q.subject(p.name), verbs.CreateQP, c.name, c.requested, c.actual)
	}
	return qp, nil
}

// states calls ibv_modify_qp and ibv_query_qp, so that they are timed.
func (q *qpProbe) states(subject state.Subject, qp verbs.QP) {
	if q.typ != verbs.RawPacket {
		if err := qp.Modify(verbs.ToInit(q.typ, 1, verbs.AccessLocalWrite)); err != nil {
			q.fail(subject, err)
		} else if err := qp.Modify(verbs.ToError()); err != nil {
			q.fail(subject, err)
		}
	}
	if _, err := qp.Query(); err != nil {
		q.cannot(subject, err)
	}
}

func (q *qpProbe) clampAll(profile string, p QPSize) verbs.QPCap {
	l := q.Attr.Limits
	clamp := func(attribute string, v int, limit string, most int) uint32 {
		return uint32(q.clamp(q.subject(profile), attribute, v, limit, most))
	}
	return verbs.QPCap{
		MaxSendWR:     clamp("max_send_wr", p.SendWorkRequests, "max_qp_wr", l.MaxQPWR),
		MaxRecvWR:     clamp("max_recv_wr", p.RecvWorkRequests, "max_qp_wr", l.MaxQPWR),
		MaxSendSGE:    clamp("max_send_sge", p.SendScatterGather, "max_sge", l.MaxSGE),
		MaxRecvSGE:    clamp("max_recv_sge", p.RecvScatterGather, "max_sge", l.MaxSGE),
		MaxInlineData: uint32(q.clampInline(profile, p.InlineBytes)),
	}
}

// clampInline is clamp for the limit that no verb reports. It may be 0.
func (q *qpProbe) clampInline(profile string, configured int) int {
	if q.inline < 0 || configured <= q.inline {
		return configured
	}
	q.noteClamp(q.subject(profile), "max_inline_data", configured, "max_inline_data", q.inline)
	return q.inline
}

func qpCap(c verbs.QPCap) state.QPCap {
	return state.QPCap{
		SendWorkRequests:  int64(c.MaxSendWR),
		RecvWorkRequests:  int64(c.MaxRecvWR),
		SendScatterGather: int64(c.MaxSendSGE),
		RecvScatterGather: int64(c.MaxRecvSGE),
		InlineBytes:       int64(c.MaxInlineData),
	}
}
