package contract

import (
	"fmt"
	"math"

	"rdma_exporter/internal/probe/known"
	"rdma_exporter/verbs"
)

// srqSizes are the sizes of SRQ that are asked for: rounding shows in some of
// them.
func srqSizes(l verbs.Limits) []verbs.SRQAttr {
	var list []verbs.SRQAttr
	for _, a := range []verbs.SRQAttr{
		{MaxWR: 1, MaxSGE: 1},
		{MaxWR: 3, MaxSGE: 1},
		{MaxWR: 16, MaxSGE: 1},
		{MaxWR: 31, MaxSGE: 2},
		{MaxWR: 33, MaxSGE: 3},
		{MaxWR: 100, MaxSGE: 4},
		{MaxWR: 256, MaxSGE: 2},
	} {
		if l.MaxSRQWR > 0 && a.MaxWR > uint32(l.MaxSRQWR) || l.MaxSRQSGE > 0 && a.MaxSGE > uint32(l.MaxSRQSGE) {
			continue
		}
		list = append(list, a)
	}
	return list
}

// srqFigures are the sizes of an SRQ: as asked for, as written back, and as told when
// queried.
func srqFigures(asked, given, told verbs.SRQAttr) []size {
	return []size{
		{"max_wr", int64(asked.MaxWR), int64(given.MaxWR), int64(told.MaxWR)},
		{"max_sge", int64(asked.MaxSGE), int64(given.MaxSGE), int64(told.MaxSGE)},
	}
}

func srqText(a verbs.SRQAttr) string { return fmt.Sprintf("%d×%d", a.MaxWR, a.MaxSGE) }

// eachSRQ creates an SRQ of each size and lets look at it. It goes on if one
// cannot be had, unless none can.
func (j *judge) eachSRQ(look func(pd verbs.PD, asked verbs.SRQAttr, q verbs.SRQ) error) error {
	if n := j.Attr.Limits.MaxSRQ; n <= 0 {
		return notSupported("the device says max_srq %d", n)
	}
	pd, err := j.pd()
	if err != nil {
		return err
	}
	var last error
	created := 0
	for _, asked := range srqSizes(j.Attr.Limits) {
		q, err := j.SRQ(pd, asked)
		if err != nil {
			last = cannot("create an SRQ of "+srqText(asked), err)
			j.remark("%v", last)
			continue
		}
		created++
		if err := look(pd, asked, q); err != nil {
			return err
		}
		if err := q.Close(); err != nil {
			return cannot("destroy an SRQ", err)
		}
	}
	if created == 0 {
		return last
	}
	return nil
}

func srqAtLeastRequested(j *judge) error {
	j.asks("ibv_create_srq with several max_wr×max_sge", "both are written back as at least what was asked for")
	var c compared
	err := j.eachSRQ(func(_ verbs.PD, asked verbs.SRQAttr, q verbs.SRQ) error {
		given := q.Created()
		c.add(shortfalls(srqFigures(asked, given, given)...), "%s→%s", srqText(asked), srqText(given))
		return nil
	})
	if err != nil {
		return err
	}
	c.conclude(j, "asked→written back")
	return nil
}

// maxFilled is the most receives that an SRQ may say it has room for if it is to be
// filled, and fillBeyond by how many more are tried than either figure says.
const (
	maxFilled  = 128
	fillBeyond = 1
)

// srqReportsActual compares what was written back with what the query tells. Where they
// differ, receives are posted until they are refused: that tells which is true.
func srqReportsActual(j *judge) error {
	j.asks("ibv_create_srq with several max_wr×max_sge, then ibv_query_srq; where they differ, ibv_post_srq_recv until it is refused",
		"the query tells the sizes that create wrote back")
	var c compared
	// Which of the two figures as many receives fit as it says, each time so far.
	createTrue, queryTrue, filled := true, true, 0
	err := j.eachSRQ(func(pd verbs.PD, asked verbs.SRQAttr, q verbs.SRQ) error {
		given := q.Created()
		var told verbs.SRQAttr
		// Not every device has the query.
		err := j.refused(func() (err error) {
			told, err = q.Query()
			return err
		})
		if err != nil {
			return cannot("query an SRQ", err)
		}
		text := fmt.Sprintf("%s→%s, query %s", srqText(asked), srqText(given), srqText(told))
		if given.MaxWR != told.MaxWR && min(given.MaxWR, told.MaxWR) <= maxFilled {
			fits, refusal, err := j.fill(pd, q, max(given.MaxWR, told.MaxWR)+fillBeyond)
			switch {
			case err != nil:
				return err
			case fits == 0:
				text += fmt.Sprintf(" (no receive can be posted: %s)", short(refusal))
			case refusal == nil:
				text += fmt.Sprintf(" (%d receives fit and maybe more)", fits)
			default:
				text += fmt.Sprintf(" (%d receives fit, then %s)", fits, short(refusal))
			}
			if fits > 0 {
				filled++
				createTrue = createTrue && fits == given.MaxWR && refusal != nil
				queryTrue = queryTrue && fits == told.MaxWR && refusal != nil
			}
		}
		c.add(differences(srqFigures(asked, given, told)...), "%s", text)
		return nil
	})
	if err != nil {
		return err
	}
	what := "asked→written back"
	switch {
	case filled == 0:
	case createTrue:
		what = "what was written back is true, the query is not; " + what
		j.remedy = "Take the sizes that ibv_create_srq wrote back, not those from ibv_query_srq."
	case queryTrue:
		what = "what the query tells is true, what was written back is not; " + what
		j.remedy = "Take the sizes from ibv_query_srq, not those that ibv_create_srq wrote back."
	default:
		what = "neither figure is true each time; " + what
	}
	c.conclude(j, what)
	return nil
}

// fill posts receives to an SRQ until one is refused, but no more than most, and tells
// how many were taken and how the next was refused; nil if none was.
func (j *judge) fill(pd verbs.PD, q verbs.SRQ, most uint32) (fits uint32, refusal, err error) {
	// Who sizes are wrong for may be told of too many.
	most = min(most, 2*(2*maxFilled+fillBeyond))
	data, err := j.sge(pd)
	if err != nil {
		return 0, nil, err
	}
	for fits < most && refusal == nil {
		refusal = j.refused(func() error { return q.PostRecv(verbs.RecvWR{ID: uint64(fits), SGEs: data}) })
		if refusal == nil {
			fits++
		}
	}
	return fits, refusal, nil
}

// srqLimitIgnored creates SRQs that differ in srq_limit alone.
func srqLimitIgnored(j *judge) error {
	if n := j.Attr.Limits.MaxSRQ; n <= 0 {
		return notSupported("the device says max_srq %d", n)
	}
	const wr = 16
	limits := []uint32{1, wr / 2, wr, 4 * wr, math.MaxUint32}
	j.asks(fmt.Sprintf("ibv_create_srq with max_wr %d and srq_limit 0, and then %v", wr, limits),
		"the SRQs are created all the same, and ibv_query_srq tells the same of each")
	pd, err := j.pd()
	if err != nil {
		return err
	}
	plain, err := j.SRQ(pd, verbs.SRQAttr{MaxWR: wr, MaxSGE: 1})
	if err != nil {
		return cannot("create an SRQ", err)
	}
	var want verbs.SRQAttr
	noQuery := j.refused(func() (err error) {
		want, err = plain.Query()
		return err
	})
	if noQuery != nil {
		j.remark("judged by creation alone: %v", noQuery)
	} else {
		j.remark("with srq_limit 0 the query tells srq_limit %d", want.Limit)
	}
	for _, limit := range limits {
		var q verbs.SRQ
		create := func(limit uint32) func() error {
			return func() (err error) {
				q, err = j.SRQ(pd, verbs.SRQAttr{MaxWR: wr, MaxSGE: 1, Limit: limit})
				return err
			}
		}
		refusal, err := j.insists(fmt.Sprintf("with %d", limit), create(limit), create(0))
		if err != nil {
			return err
		}
		if refusal != nil {
			j.seeIn(known.WayRefused, false, "with %d: creation is refused: %s", limit, short(refusal))
			continue
		}
		same := q.Created().MaxWR == plain.Created().MaxWR && q.Created().MaxSGE == plain.Created().MaxSGE
		if !same || noQuery != nil {
			j.see(same, "with %d: created as %s, like %s", limit, srqText(q.Created()), srqText(plain.Created()))
			continue
		}
		got, err := q.Query()
		if err != nil {
			return cannot("query an SRQ", err)
		}
		if got.Limit == want.Limit {
			j.see(true, "with %d: created", limit)
		} else {
			j.seeIn(known.WayArmed, false, "with %d: created, and the limit is armed: the query tells %d", limit, got.Limit)
		}
	}
	return nil
}

func srqDestroyBusy(j *judge) error {
	j.asks("ibv_destroy_srq of an SRQ that a QP is associated with",
		"it fails; afterwards the SRQ can be asked for its size and takes a receive, and can be destroyed when the QP is")
	pd, srq, cq, err := j.shared()
	if err != nil {
		return err
	}
	qp, err := j.qp(pd, j.ways.qpType, cq, cq, srq, true)
	if err != nil {
		return err
	}
	data, err := j.sge(pd)
	if err != nil {
		return err
	}
	query := func() error { _, err := srq.Query(); return err }
	post := func() error { return srq.PostRecv(verbs.RecvWR{ID: 1, SGEs: data}) }
	noQuery, noPost := j.refused(query), j.refused(post)
	plain := func() error {
		q, err := j.srq(pd)
		if err != nil {
			return err
		}
		return q.Close()
	}
	if err := j.seeRefused("ibv_destroy_srq", srq.Close, plain); err != nil || j.violated {
		return err
	}
	if ok, err := j.stillWorks(verbs.QuerySRQ, noQuery, query); !ok {
		return err
	}
	if ok, err := j.stillWorks(verbs.PostSRQRecv, noPost, post); !ok {
		return err
	}
	if ok, err := j.seeWorks(verbs.DestroyQP, qp.Close); !ok {
		return err
	}
	_, err = j.seeWorks(verbs.DestroySRQ, srq.Close)
	return err
}
