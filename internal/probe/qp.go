package probe

import (
	"errors"
	"os"
	"slices"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// qp probes ibv_create_qp(3): QPs of each type and profile, and the most inline
// data that each type can be given.
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
			q.learnInline()
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
	// works tells that the smallest QP could be created, and err why not. Lacking tells
	// that it is known that there are none.
	works   bool
	err     error
	lacking bool
	// inline is the most inline data that was found; negative if it is not known.
	inline int
}

func (q *qpProbe) subject(profile string) state.Subject {
	return state.Subject{Object: "qp", QPType: q.label, Profile: profile}
}

// notEvenSmallest begins the detail of a type that is lacking by an errno that says
// other things, too.
const notEvenSmallest = "not even the smallest QP: "

func (q *qpProbe) create(c verbs.QPCap) (verbs.QP, error) {
	return q.pd.CreateQP(verbs.QPInitAttr{Type: q.typ, SendCQ: q.cq, RecvCQ: q.cq, Cap: c})
}

func smallest(inline int) verbs.QPCap {
	return verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: uint32(inline)}
}

// smallest creates the smallest QP of the type, which tells whether the device has
// the type: no attribute lists them.
func (q *qpProbe) smallest() {
	var qp verbs.QP
	q.Expecting(q.absent, func() { qp, q.err = q.create(smallest(0)) })
	if q.err == nil {
		q.done++
		q.works = true
		q.destroy(q.subject(""), "qp", qp)
	}
}

// absent reports whether the smallest QP was refused because there is no such type.
// What is not told apart from a mistake is taken for a refusal of RC only if the
// device has other types: nearly every device has RC.
func (q *qpProbe) absent(err error) bool {
	return session.Absent(err) && (q.typ != verbs.RC || verbs.IsNotSupported(err))
}

// offered tells whether to go on with the type, and notes a skip or a failure if its
// smallest QP could not be had. Works tells whether that of any type could.
func (q *qpProbe) offered(works bool) bool {
	switch {
	case q.err == nil:
		return true
	case !q.absent(q.err) && (!session.Absent(q.err) || !works || errors.Is(q.err, os.ErrPermission)):
		q.fail(q.subject(""), q.err)
		return true
	case q.typ == verbs.RawPacket && errors.Is(q.err, os.ErrPermission):
		q.skip(q.subject(""), state.SkipNotPermitted, "%v (it needs CAP_NET_RAW)", q.err)
	case !q.skipped(q.subject(""), q.err):
		q.skip(q.subject(""), state.SkipNotSupported, notEvenSmallest+"%v", q.err)
	}
	q.learnAbsent()
	return false
}

// profiles creates a QP of each profile.
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

// profile creates a QP of a profile, and notes what was given.
func (q *qpProbe) profile(p named[QPProfile]) (qp verbs.QP, err error) {
	asked := q.clampAll(p.name, p.size)
	err = q.measure(q.subject(p.name), func() (err error) {
		qp, err = q.create(asked)
		return err
	})
	if err != nil {
		return nil, err
	}
	q.done++
	given := qp.Created()
	q.QPs = append(q.QPs, state.QPSize{Type: q.label, Profile: p.name, Requested: qpCap(asked), Actual: qpCap(given)})
	q.capsAtLeast(q.subject(p.name), asked, given)
	return qp, nil
}

// states times ibv_modify_qp and ibv_query_qp, without sending anything.
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

func (q *qpProbe) clampAll(profile string, p QPProfile) verbs.QPCap {
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

// clampInline is clamp for the limit that no verb tells, which may be 0.
func (q *qpProbe) clampInline(profile string, configured int) int {
	if q.inline < 0 || configured <= q.inline {
		return configured
	}
	q.cut(state.Clamp{
		Subject: q.subject(profile), Attribute: "max_inline_data", Limit: "max_inline_data",
		Configured: int64(configured), Used: int64(q.inline),
	})
	return q.inline
}

func (q *qpProbe) capsAtLeast(subject state.Subject, asked, given verbs.QPCap) {
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

func qpCap(c verbs.QPCap) state.QPCap {
	return state.QPCap{
		SendWorkRequests:  int64(c.MaxSendWR),
		RecvWorkRequests:  int64(c.MaxRecvWR),
		SendScatterGather: int64(c.MaxSendSGE),
		RecvScatterGather: int64(c.MaxRecvSGE),
		InlineBytes:       int64(c.MaxInlineData),
	}
}
