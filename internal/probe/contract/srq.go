package contract

import (
	"fmt"
	"math"
	"slices"

	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/verbs"
)

func srqSizes(l verbs.Limits) []verbs.SRQAttr {
	return slices.DeleteFunc([]verbs.SRQAttr{
		{MaxWR: 1, MaxSGE: 1},
		{MaxWR: 3, MaxSGE: 1},
		{MaxWR: 16, MaxSGE: 1},
		{MaxWR: 31, MaxSGE: 2},
		{MaxWR: 33, MaxSGE: 3},
		{MaxWR: 100, MaxSGE: 4},
		{MaxWR: 256, MaxSGE: 2},
	}, func(a verbs.SRQAttr) bool {
		return l.MaxSRQWR > 0 && a.MaxWR > uint32(l.MaxSRQWR) || l.MaxSRQSGE > 0 && a.MaxSGE > uint32(l.MaxSRQSGE)
	})
}

func srqFigures(asked, given, told verbs.SRQAttr) []size {
	return []size{
		{"max_wr", int64(asked.MaxWR), int64(given.MaxWR), int64(told.MaxWR)},
		{"max_sge", int64(asked.MaxSGE), int64(given.MaxSGE), int64(told.MaxSGE)},
	}
}

func srqText(a verbs.SRQAttr) string { return fmt.Sprintf("%d×%d", a.MaxWR, a.MaxSGE) }

// compareSRQs creates SRQs of several sizes. The sizes written back are compared with those
// requested, or with those of a query. A size that cannot be created is left out, unless
// none can.
func (j *check) compareSRQs(query bool) {
	j.needSRQs()
	pd := session.Must(j.PD())
	var c compared
	for _, asked := range srqSizes(j.Attr.Limits) {
		q, err := j.SRQ(pd, asked)
		if err != nil {
			c.last = cannot("create an SRQ of "+srqText(asked), err)
			j.remark("%v", c.last)
			continue
		}
		given := q.Created()
		if !query {
			c.add(breaches(false, srqFigures(asked, given, given)...), "%s→%s", srqText(asked), srqText(given))
		} else {
			told, err := attempt(j, q.Query) // Not every device has the query.
			session.Stop(cannot("query an SRQ", err))
			c.add(breaches(true, srqFigures(asked, given, told)...), "%s→%s, query %s", srqText(asked), srqText(given), srqText(told))
		}
		session.Stop(q.Close())
	}
	c.conclude(j, "asked→written back")
}

func srqAtLeastRequested(j *check) {
	j.describe("ibv_create_srq with several max_wr×max_sge", "both are written back as at least what was asked for")
	j.compareSRQs(false)
}

func srqReportsActual(j *check) {
	j.describe("ibv_create_srq with several max_wr×max_sge, then ibv_query_srq", "the query tells the sizes that create wrote back")
	j.compareSRQs(true)
}

// srqLimitIgnored creates SRQs that differ in srq_limit alone.
func srqLimitIgnored(j *check) {
	j.needSRQs()
	const wr = 16
	limits := []uint32{1, wr / 2, wr, 4 * wr, math.MaxUint32}
	j.describe(fmt.Sprintf("ibv_create_srq with max_wr %d and srq_limit 0, and then %v", wr, limits),
		"the SRQs are created all the same, and ibv_query_srq tells the same of each")
	pd := session.Must(j.PD())
	plain, err := j.SRQ(pd, verbs.SRQAttr{MaxWR: wr, MaxSGE: 1})
	session.Stop(cannot("create an SRQ", err))
	want, noQuery := attempt(j, plain.Query)
	if noQuery != nil {
		j.remark("checked by creation alone: %v", noQuery)
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
		if refusal := j.mustSucceed(fmt.Sprintf("with %d", limit), create(limit), create(0)); refusal != nil {
			j.observeMode(errata.ModeRefused, false, "with %d: creation is refused: %s", limit, short(refusal))
			continue
		}
		same := q.Created().MaxWR == plain.Created().MaxWR && q.Created().MaxSGE == plain.Created().MaxSGE
		if !same || noQuery != nil {
			j.observe(same, "with %d: created as %s, like %s", limit, srqText(q.Created()), srqText(plain.Created()))
			continue
		}
		got, err := q.Query()
		session.Stop(cannot("query an SRQ", err))
		if got.Limit == want.Limit {
			j.observe(true, "with %d: created", limit)
		} else {
			j.observeMode(errata.ModeArmed, false, "with %d: created, and the limit is armed: the query tells %d", limit, got.Limit)
		}
	}
}

func srqDestroyBusy(j *check) {
	j.describe("ibv_destroy_srq of an SRQ that a QP is associated with",
		"it fails; afterwards the SRQ can be asked for its size and takes a receive, and can be destroyed when the QP is")
	srq, cq := j.srq(), j.cq(nil, 0)
	qp := j.qp(j.sources.qpType, cq, cq, srq, true)
	data := j.sge()
	query := func() error { _, err := srq.Query(); return err }
	post := func() error { return srq.PostRecv(verbs.RecvWR{ID: 1, SGEs: data}) }
	noQuery, noPost := j.refused(query), j.refused(post)
	plain := func() error { return session.Catch(func() { session.Stop(j.srq().Close()) }) }
	if j.observeRefused("ibv_destroy_srq", srq.Close, plain); j.violated {
		return
	}
	j.stillWorks(verbs.QuerySRQ, noQuery, query)
	j.stillWorks(verbs.PostSRQRecv, noPost, post)
	j.observeWorks(verbs.DestroyQP, qp.Close)
	j.observeWorks(verbs.DestroySRQ, srq.Close)
}
