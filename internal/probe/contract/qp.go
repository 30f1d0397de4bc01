package contract

import (
	"errors"
	"fmt"
	"slices"

	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/verbs"
)

func qpSizes(l verbs.Limits) []verbs.QPCap {
	return slices.DeleteFunc([]verbs.QPCap{
		{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1},
		{MaxSendWR: 3, MaxRecvWR: 5, MaxSendSGE: 1, MaxRecvSGE: 2},
		{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 2, MaxRecvSGE: 1, MaxInlineData: 16},
		{MaxSendWR: 33, MaxRecvWR: 100, MaxSendSGE: 3, MaxRecvSGE: 3, MaxInlineData: 33},
		{MaxSendWR: 128, MaxRecvWR: 64, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64},
	}, func(c verbs.QPCap) bool {
		return l.MaxQPWR > 0 && max(c.MaxSendWR, c.MaxRecvWR) > uint32(l.MaxQPWR) ||
			l.MaxSGE > 0 && max(c.MaxSendSGE, c.MaxRecvSGE) > uint32(l.MaxSGE)
	})
}

func qpText(c verbs.QPCap) string {
	return fmt.Sprintf("%d×%d/%d×%d/%d", c.MaxSendWR, c.MaxSendSGE, c.MaxRecvWR, c.MaxRecvSGE, c.MaxInlineData)
}

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

// compareQPs creates QPs of each type and of several sizes. The sizes written back are
// compared with those requested, or with those of a query. A QP that cannot be created is
// left out, unless none can.
func (j *check) compareQPs(query bool) {
	pd := session.Must(j.PD())
	cq := j.cq(nil, 0)
	var c compared
	for _, t := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
		for i, asked := range qpSizes(j.Attr.Limits) {
			// No verb reports the types of a device, nor its maximum inline data.
			q, err := attempt(j, func() (verbs.QP, error) {
				return j.QP(pd, verbs.QPInitAttr{Type: t, SendCQ: cq, RecvCQ: cq, Cap: asked})
			})
			if err != nil {
				c.last = cannot(fmt.Sprintf("create a %s QP of %s", t, qpText(asked)), err)
				j.remark("no %s QP of %s: %s", t, qpText(asked), short(err))
				if i == 0 {
					break
				}
				continue
			}
			j.compareQP(&c, asked, q, query)
			session.Stop(q.Close())
		}
	}
	c.conclude(j, "asked→written back")
}

func (j *check) compareQP(c *compared, asked verbs.QPCap, q verbs.QP, query bool) {
	g := q.Created()
	if !query {
		c.add(breaches(false, qpFigures(asked, g, g)...), "%s %s→%s", q.Type(), qpText(asked), qpText(g))
		return
	}
	told, err := attempt(j, q.Query) // Not every device has the query.
	session.Stop(cannot("query a QP", err))
	c.add(breaches(true, qpFigures(asked, g, told.Cap)...), "%s %s→%s, query %s", q.Type(), qpText(asked), qpText(g), qpText(told.Cap))
}

func qpAtLeastRequested(j *check) {
	j.describe("ibv_create_qp of each type with several sizes ("+qpTextMeans+")", "every size is written back as at least what was asked for")
	j.compareQPs(false)
}

func qpReportsActual(j *check) {
	j.describe("ibv_create_qp of each type with several sizes ("+qpTextMeans+"), then ibv_query_qp",
		"the query tells the sizes that create wrote back")
	j.compareQPs(true)
}

// qpSRQTypeRestricted tries the types that must not have an SRQ, if the device
// has them without one.
func qpSRQTypeRestricted(j *check) {
	j.describe("ibv_create_qp of the types other than RC and UD that the device has (UC, raw packet), with an SRQ", "each fails")
	pd, srq, cq := session.Must(j.PD()), j.srq(), j.cq(nil, 0)
	create := func(t verbs.QPType, with verbs.SRQ) func() error {
		return func() error {
			_, err := j.QP(pd, verbs.QPInitAttr{Type: t, SendCQ: cq, RecvCQ: cq, SRQ: with, Cap: smallQP()})
			return err
		}
	}
	session.Stop(cannot(fmt.Sprintf("create a %s QP with an SRQ", j.sources.qpType), j.refused(create(j.sources.qpType, srq))))
	for _, t := range []verbs.QPType{verbs.UC, verbs.RawPacket} {
		if err := j.refused(create(t, nil)); err != nil {
			j.remark("no %s QP even without an SRQ: %s", t, short(err))
			continue
		}
		// The type without an SRQ, and another type with one, must be available.
		control := func() error {
			return errors.Join(create(t, nil)(), create(j.sources.qpType, srq)())
		}
		j.observeRefused(fmt.Sprintf("%s QP with an SRQ", t), create(t, srq), control)
	}
	if !j.checked {
		session.Stop(notSupported("the device has no QPs but those that may have an SRQ"))
	}
}

// qpRecvCapsIgnored requests a receive queue beyond the limits of the device. With an SRQ there
// is no receive queue, and its sizes must not matter.
func qpRecvCapsIgnored(j *check) {
	l := j.Attr.Limits
	pd, srq, cq := session.Must(j.PD()), j.srq(), j.cq(nil, 0)
	typ := j.sources.qpType
	j.describe(fmt.Sprintf("ibv_create_qp (%s) with an SRQ and with max_recv_wr and max_recv_sge 0, with max_recv_wr %d (max_qp_wr is %d), and with max_recv_sge %d (max_sge is %d)",
		typ, l.MaxQPWR+1, l.MaxQPWR, l.MaxSGE+1, l.MaxSGE), "the QPs are created all the same")
	create := func(c verbs.QPCap) func() error {
		return func() error {
			return created(func() (verbs.QP, error) {
				return j.QP(pd, verbs.QPInitAttr{Type: typ, SendCQ: cq, RecvCQ: cq, SRQ: srq, Cap: c})
			})
		}
	}
	for _, t := range []struct {
		mode, text string
		wr, sge    int
	}{
		{errata.ModeRefused, "both 0", 0, 0},
		{"max_recv_wr", fmt.Sprintf("max_recv_wr %d", l.MaxQPWR+1), l.MaxQPWR + 1, 1},
		{"max_recv_sge", fmt.Sprintf("max_recv_sge %d", l.MaxSGE+1), 1, l.MaxSGE + 1},
	} {
		asked := smallQP()
		asked.MaxRecvWR, asked.MaxRecvSGE = uint32(t.wr), uint32(t.sge)
		if refusal := j.mustSucceed(t.text, create(asked), create(smallQP())); refusal != nil {
			j.observeMode(t.mode, false, "%s: %s", t.text, short(refusal))
		} else {
			j.observe(true, "%s: created", t.text)
		}
	}
}

// qpSignalAll sends without requesting completions. With sq_sig_all 0 a signalled send follows,
// so that its completion ends the wait.
func qpSignalAll(j *check) {
	j.describe("three sends without IBV_SEND_SIGNALED on a QP with sq_sig_all 1, and on one with 0, there followed by a signalled one",
		"with 1 each leaves a completion, in order; with 0 the signalled one alone does")
	for _, all := range []bool{true, false} {
		sent, rcvd := j.cq(nil, 0), j.cq(nil, 0)
		p := j.connect(sent, rcvd, nil, all)
		sends := []verbs.SendFlags{0, 0, 0}
		if !all {
			sends = append(sends, verbs.SendSignaled)
		}
		var want []uint64
		for _, flags := range sends {
			id := p.send(flags)
			if all || flags != 0 {
				want = append(want, id)
			}
		}
		// All messages must have arrived before a completion can be missing.
		session.Must(j.await(rcvd, len(sends)))
		j.observeSends(sent, all, want)
	}
}

func (j *check) observeSends(sent verbs.CQ, all bool, want []uint64) {
	setting := 0
	if all {
		setting = 1
	}
	wcs, err := j.await(sent, len(want))
	if err != nil && all {
		j.observe(false, "sq_sig_all 1: %d of 3 completions", len(wcs))
		return
	}
	session.Stop(err)
	// With 0, the signalled send was the last. Any completion before it is one too many.
	for last := want[len(want)-1]; wcs[len(wcs)-1].ID != last && len(wcs) < smallCQ; {
		wcs = append(wcs, session.Must(j.await(sent, 1))...)
	}
	more, err := sent.Poll(smallCQ)
	session.Stop(cannot("poll a CQ", err))
	var got []uint64
	for _, wc := range append(wcs, more...) {
		if wc.Status != verbs.WCSuccess {
			session.Stop(fmt.Errorf("send %d completed with %s", wc.ID, wc.Status))
		}
		got = append(got, wc.ID)
	}
	j.observe(slices.Equal(got, want), "sq_sig_all %d: completions of the sends %v, expected %v", setting, got, want)
}
