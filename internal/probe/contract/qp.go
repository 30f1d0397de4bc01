package contract

import (
	"errors"
	"fmt"
	"syscall"

	"rdma_exporter/internal/probe/known"
	"rdma_exporter/verbs"
)

// qpSizes are the sizes of QP that are asked for: rounding shows in some of
// them.
func qpSizes(l verbs.Limits) []verbs.QPCap {
	var list []verbs.QPCap
	for _, c := range []verbs.QPCap{
		{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1},
		{MaxSendWR: 3, MaxRecvWR: 5, MaxSendSGE: 1, MaxRecvSGE: 2},
		{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 2, MaxRecvSGE: 1, MaxInlineData: 16},
		{MaxSendWR: 33, MaxRecvWR: 100, MaxSendSGE: 3, MaxRecvSGE: 3, MaxInlineData: 33},
		{MaxSendWR: 128, MaxRecvWR: 64, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64},
	} {
		if n := uint32(max(0, l.MaxQPWR)); n > 0 && max(c.MaxSendWR, c.MaxRecvWR) > n {
			continue
		}
		if n := uint32(max(0, l.MaxSGE)); n > 0 && max(c.MaxSendSGE, c.MaxRecvSGE) > n {
			continue
		}
		list = append(list, c)
	}
	return list
}

// qpText writes sizes as send and receive work requests × scatter/gather
// elements, and inline bytes.
func qpText(c verbs.QPCap) string {
	return fmt.Sprintf("%d×%d/%d×%d/%d", c.MaxSendWR, c.MaxSendSGE, c.MaxRecvWR, c.MaxRecvSGE, c.MaxInlineData)
}

// qpFigures are the sizes of a QP: as asked for, as written back, and as told when queried.
func qpFigures(asked, given, told verbs.QPCap) []size {
	return []size{
		{"max_send_wr", int64(asked.MaxSendWR), int64(given.MaxSendWR), int64(told.MaxSendWR)},
		{"max_recv_wr", int64(asked.MaxRecvWR), int64(given.MaxRecvWR), int64(told.MaxRecvWR)},
		{"max_send_sge", int64(asked.MaxSendSGE), int64(given.MaxSendSGE), int64(told.MaxSendSGE)},
		{"max_recv_sge", int64(asked.MaxRecvSGE), int64(given.MaxRecvSGE), int64(told.MaxRecvSGE)},
		{"max_inline_data", int64(asked.MaxInlineData), int64(given.MaxInlineData), int64(told.MaxInlineData)},
	}
}

const qpTextMeans = "send WR×SGE/receive WR×SGE/inline bytes"

// eachQP creates a QP of each type and size and lets look at it. It goes on if
// one cannot be had, unless none can.
func (j *judge) eachQP(look func(asked verbs.QPCap, q verbs.QP) error) error {
	pd, err := j.pd()
	if err != nil {
		return err
	}
	cq, err := j.cq(nil, 0)
	if err != nil {
		return err
	}
	var last error
	created := 0
	for _, t := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
		for i, asked := range qpSizes(j.Attr.Limits) {
			var q verbs.QP
			// No verb tells which types a device has, nor how much inline data.
			err := j.refused(func() (err error) {
				q, err = j.QP(pd, verbs.QPInitAttr{Type: t, SendCQ: cq, RecvCQ: cq, Cap: asked})
				return err
			})
			if err != nil {
				last = cannot(fmt.Sprintf("create a %s QP of %s", t, qpText(asked)), err)
				if i == 0 {
					j.remark("no %s QP: %s", t, short(err))
					break
				}
				j.remark("no %s QP of %s: %s", t, qpText(asked), short(err))
				continue
			}
			created++
			if err := look(asked, q); err != nil {
				return err
			}
			if err := q.Close(); err != nil {
				return cannot("destroy a QP", err)
			}
		}
	}
	if created == 0 {
		return last
	}
	return nil
}

func qpAtLeastRequested(j *judge) error {
	j.asks("ibv_create_qp of each type with several sizes ("+qpTextMeans+")", "every size is written back as at least what was asked for")
	var c compared
	err := j.eachQP(func(asked verbs.QPCap, q verbs.QP) error {
		g := q.Created()
		c.add(shortfalls(qpFigures(asked, g, g)...), "%s %s→%s", q.Type(), qpText(asked), qpText(g))
		return nil
	})
	if err != nil {
		return err
	}
	c.conclude(j, "asked→written back")
	return nil
}

func qpReportsActual(j *judge) error {
	j.asks("ibv_create_qp of each type with several sizes ("+qpTextMeans+"), then ibv_query_qp",
		"the query tells the sizes that create wrote back")
	var c compared
	err := j.eachQP(func(asked verbs.QPCap, q verbs.QP) error {
		var told verbs.QPQuery
		// Not every device has the query.
		err := j.refused(func() (err error) {
			told, err = q.Query()
			return err
		})
		if err != nil {
			return cannot("query a QP", err)
		}
		c.add(differences(qpFigures(asked, q.Created(), told.Cap)...), "%s %s→%s, query %s", q.Type(), qpText(asked), qpText(q.Created()), qpText(told.Cap))
		return nil
	})
	if err != nil {
		return err
	}
	c.conclude(j, "asked→written back")
	return nil
}

// qpSRQTypeRestricted tries the types that must not have an SRQ, if the device
// has them without one.
func qpSRQTypeRestricted(j *judge) error {
	j.asks("ibv_create_qp of the types other than RC and UD that the device has (UC, raw packet), with an SRQ", "each fails")
	pd, srq, cq, err := j.shared()
	if err != nil {
		return err
	}
	create := func(t verbs.QPType, with verbs.SRQ) func() error {
		return func() error {
			_, err := j.QP(pd, verbs.QPInitAttr{Type: t, SendCQ: cq, RecvCQ: cq, SRQ: with, Cap: smallQP()})
			return err
		}
	}
	if err := j.refused(create(j.ways.qpType, srq)); err != nil {
		return cannot(fmt.Sprintf("create a %s QP with an SRQ", j.ways.qpType), err)
	}
	for _, t := range []verbs.QPType{verbs.UC, verbs.RawPacket} {
		if err := j.refused(create(t, nil)); err != nil {
			j.remark("no %s QP even without an SRQ: %s", t, short(err))
			continue
		}
		// The type without an SRQ, and another with one, are had.
		control := func() error {
			return errors.Join(create(t, nil)(), create(j.ways.qpType, srq)())
		}
		if err := j.seeRefused(fmt.Sprintf("%s QP with an SRQ", t), create(t, srq), control); err != nil {
			return err
		}
	}
	if !j.judged {
		return notSupported("the device has no QPs but those that may have an SRQ")
	}
	return nil
}

// qpRecvCapsIgnored asks for sizes of a receive queue that cannot be had. With an
// SRQ there is no receive queue, and they must not matter.
func qpRecvCapsIgnored(j *judge) error {
	l := j.Attr.Limits
	pd, srq, cq, err := j.shared()
	if err != nil {
		return err
	}
	// One that has the sizes that anybody would ask for.
	typ := j.ways.qpType
	plain, err := j.qp(pd, typ, cq, cq, srq, false)
	if err != nil {
		return err
	}
	if err := plain.Close(); err != nil {
		return cannot("destroy a QP", err)
	}
	j.asks(fmt.Sprintf("ibv_create_qp (%s) with an SRQ and with max_recv_wr and max_recv_sge 0, with max_recv_wr %d (max_qp_wr is %d), and with max_recv_sge %d (max_sge is %d)",
		typ, l.MaxQPWR+1, l.MaxQPWR, l.MaxSGE+1, l.MaxSGE), "the QPs are created all the same")
	for _, t := range []struct {
		way, text string
		wr, sge   int
	}{
		{known.WayRefused, "both 0", 0, 0},
		{"max_recv_wr", fmt.Sprintf("max_recv_wr %d", l.MaxQPWR+1), l.MaxQPWR + 1, 1},
		{"max_recv_sge", fmt.Sprintf("max_recv_sge %d", l.MaxSGE+1), 1, l.MaxSGE + 1},
	} {
		asked := smallQP()
		asked.MaxRecvWR, asked.MaxRecvSGE = uint32(t.wr), uint32(t.sge)
		create := func(c verbs.QPCap) func() error {
			return func() error {
				q, err := j.QP(pd, verbs.QPInitAttr{Type: typ, SendCQ: cq, RecvCQ: cq, SRQ: srq, Cap: c})
				if err != nil {
					return err
				}
				return q.Close()
			}
		}
		refusal, err := j.insists(t.text, create(asked), create(smallQP()))
		if err != nil {
			return err
		}
		if refusal != nil {
			j.seeIn(t.way, false, "%s: %s", t.text, short(refusal))
		} else {
			j.see(true, "%s: created", t.text)
		}
	}
	return nil
}

// qpSignalAll sends without asking for a completion. A send that does ask comes
// after, so that nothing has to be waited for that does not come.
func qpSignalAll(j *judge) error {
	j.asks("three sends without IBV_SEND_SIGNALED on a QP with sq_sig_all 1, and on one with 0, there followed by a signalled one",
		"with 1 each leaves a completion, in order; with 0 the signalled one alone does")
	for _, all := range []bool{true, false} {
		sent, err := j.cq(nil, 0)
		if err != nil {
			return err
		}
		rcvd, err := j.cq(nil, 0)
		if err != nil {
			return err
		}
		p, err := j.connect(sent, rcvd, all)
		if err != nil {
			return err
		}
		var want []uint64
		for range 3 {
			id, err := p.send(0)
			if err != nil {
				return err
			}
			if all {
				want = append(want, id)
			}
		}
		if !all {
			id, err := p.send(verbs.SendSignaled)
			if err != nil {
				return err
			}
			want = append(want, id)
		}
		// All messages have arrived when this returns: what is lacking afterwards is
		// a completion, not a message.
		received := 3
		if !all {
			received++
		}
		if _, err := j.await(rcvd, received); err != nil {
			return err
		}
		if err := j.seeSends(sent, all, want); err != nil {
			return err
		}
	}
	return nil
}

// seeSends notes which sends left completions.
func (j *judge) seeSends(sent verbs.CQ, all bool, want []uint64) error {
	setting := 0
	if all {
		setting = 1
	}
	wcs, err := j.await(sent, len(want))
	if err != nil {
		if all {
			j.see(false, "sq_sig_all 1: %d of 3 completions", len(wcs))
			return nil
		}
		return err
	}
	// With 0, the signalled send was the last: what comes before it is too much.
	for last := want[len(want)-1]; wcs[len(wcs)-1].ID != last && len(wcs) < smallCQ; {
		more, err := j.await(sent, 1)
		if err != nil {
			return err
		}
		wcs = append(wcs, more...)
	}
	more, err := sent.Poll(smallCQ)
	if err != nil {
		return cannot("poll a CQ", err)
	}
	var got []uint64
	for _, wc := range append(wcs, more...) {
		if wc.Status != verbs.WCSuccess {
			return fmt.Errorf("send %d completed with %s", wc.ID, wc.Status)
		}
		got = append(got, wc.ID)
	}
	j.see(fmt.Sprint(got) == fmt.Sprint(want), "sq_sig_all %d: completions of the sends %v, expected %v", setting, got, want)
	return nil
}

// multicastGID is a multicast group of link-local scope that nobody uses.
func multicastGID() verbs.GID { return verbs.GID{0: 0xff, 1: 0x12, 14: 0x77, 15: 0x01} }

// multicastLID is a LID of multicast groups, which matters on InfiniBand only.
const multicastLID = 0xc001

func qpDestroyBusyMulticast(j *judge) error {
	j.asks("ibv_destroy_qp of a UD QP that is attached to a multicast group",
		"it fails; afterwards the QP can be asked for its state, detached, and then destroyed")
	if n := j.Attr.Limits.MaxMcastGroup; n <= 0 {
		return notSupported("the device says max_mcast_grp %d", n)
	}
	qp, lid, err := j.member()
	if err != nil {
		return err
	}
	if err := qp.AttachMulticast(multicastGID(), lid); err != nil {
		return cannot("attach a QP to a multicast group", err)
	}
	query := func() error { _, err := qp.Query(); return err }
	before := j.refused(query)
	plain := func() error {
		q, _, err := j.member()
		if err != nil {
			return err
		}
		return q.Close()
	}
	if err := j.seeRefused("ibv_destroy_qp", qp.Close, plain); err != nil || j.violated {
		return err
	}
	if ok, err := j.stillWorks(verbs.QueryQP, before, query); !ok {
		return err
	}
	detach := func() error { return qp.DetachMulticast(multicastGID(), lid) }
	if ok, err := j.seeWorks(verbs.DetachMcast, detach); !ok {
		return err
	}
	_, err = j.seeWorks(verbs.DestroyQP, qp.Close)
	return err
}

// member returns a UD QP that can be attached to a multicast group, and the LID
// to attach it to.
func (j *judge) member() (verbs.QP, uint16, error) {
	number := j.AnyPort()
	port, err := j.Port(number)
	if err != nil {
		return nil, 0, cannot("query a port", err)
	}
	pd, err := j.pd()
	if err != nil {
		return nil, 0, err
	}
	cq, err := j.cq(nil, 0)
	if err != nil {
		return nil, 0, err
	}
	var qp verbs.QP
	err = j.refused(func() (err error) {
		qp, err = j.qp(pd, verbs.UD, cq, cq, nil, false)
		return err
	})
	if errors.Is(err, syscall.EINVAL) {
		// As some drivers say of a type that they do not have.
		return nil, 0, notSupported("%v", err)
	}
	if err != nil {
		return nil, 0, err
	}
	if err := qp.Modify(verbs.ToInit(verbs.UD, number, 0)); err != nil {
		return nil, 0, cannot("move a UD QP to INIT", err)
	}
	if port.LinkLayer == verbs.LinkInfiniBand {
		return qp, multicastLID, nil
	}
	return qp, 0, nil
}
