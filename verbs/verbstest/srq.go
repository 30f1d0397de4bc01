package verbstest

import (
	"errors"
	"math"
	"syscall"
	"testing"

	"rdma_exporter/verbs"
)

// mustSRQ creates a shared receive queue, or skips the test if the device says
// that it has none.
func (p *pd) mustSRQ(attr verbs.SRQAttr) *srq {
	p.b.t.Helper()
	if dev, err := p.d.Query(); err != nil {
		p.b.t.Fatalf("Query: %v", err)
	} else if dev.Limits.MaxSRQ == 0 {
		p.b.t.Skipf("%s has no shared receive queues (max_srq is 0)", p.device)
	}
	return must(p.CreateSRQ(attr))(p.b.t, "CreateSRQ(%+v)", attr)
}

// srq tests shared receive queues.
func (s *suite) srq(t *testing.T) {
	s.run(t, "create and close", func(t *testing.T, d *device) {
		p := d.mustPD()
		q := p.mustSRQ(verbs.SRQAttr{MaxWR: 16, MaxSGE: 1, Limit: 3})
		m := p.mustMR(64)
		if got := q.Created(); got.MaxWR == 0 || got.MaxSGE == 0 {
			t.Errorf("Created = %+v", got)
		}
		// Whether it equals Created is the driver's affair.
		if got, err := q.Query(); err != nil || got.MaxWR == 0 || got.MaxSGE == 0 {
			t.Errorf("Query = %+v, %v", got, err)
		}
		created := q.Created()
		q.mustClose()
		q.mustClose()
		wantClosed(t, "Query", errorOf(q.Query()))
		wantClosed(t, "PostRecv", q.PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{m.SGE(0, 64)}}))
		if got := q.Created(); got != created {
			t.Errorf("Created after Close = %+v, want %+v", got, created)
		}
	})
	s.run(t, "out of range", func(t *testing.T, d *device) {
		p := d.mustPD()
		p.mustSRQ(verbs.SRQAttr{MaxWR: 1, MaxSGE: 1})
		for _, attr := range []verbs.SRQAttr{{MaxWR: math.MaxUint32, MaxSGE: 1}, {MaxWR: 1, MaxSGE: math.MaxUint32}} {
			if _, err := p.CreateSRQ(attr); err == nil {
				t.Errorf("CreateSRQ(%+v) succeeded", attr)
			}
		}
	})
	s.run(t, "post", func(t *testing.T, d *device) {
		p := d.mustPD()
		q := p.mustSRQ(verbs.SRQAttr{MaxWR: 4, MaxSGE: 1})
		m := p.mustMR(64)
		for id := range uint64(4) {
			if err := q.PostRecv(verbs.RecvWR{ID: id, SGEs: []verbs.SGE{m.SGE(0, 64)}}); err != nil {
				t.Fatalf("PostRecv %d of 4: %v", id+1, err)
			}
		}
		tooMany := make([]verbs.SGE, q.Created().MaxSGE+1)
		for i := range tooMany {
			tooMany[i] = m.SGE(0, 1)
		}
		wantError(t, "PostRecv with too many SGEs", q.PostRecv(verbs.RecvWR{ID: 5, SGEs: tooMany}))
		// How many more fit is the driver's affair; that there is no end is not.
		for i := uint32(0); ; i++ {
			if err := q.PostRecv(verbs.RecvWR{ID: 6}); err != nil {
				break
			}
			if i > 64*q.Created().MaxWR {
				t.Errorf("more than %d receives fit into an SRQ of %d", i, q.Created().MaxWR)
				break
			}
		}
	})
	s.run(t, "limit", func(t *testing.T, d *device) {
		q := d.mustPD().mustSRQ(verbs.SRQAttr{MaxWR: 16, MaxSGE: 1})
		// Whether it can be armed is the device's affair.
		for _, limit := range []uint32{4, 0} {
			switch err := q.SetLimit(limit); {
			case verbs.IsNotSupported(err):
				t.Skipf("the device has no limits of SRQs: %v", err)
			case err != nil:
				t.Errorf("SetLimit(%d): %v", limit, err)
			}
		}
		wantError(t, "SetLimit of more than there can be", q.SetLimit(math.MaxUint32))
		q.mustClose()
		wantClosed(t, "SetLimit", q.SetLimit(1))
	})
	s.run(t, "close while a QP uses it", func(t *testing.T, d *device) {
		s.requireType(t, verbs.RC)
		p := d.mustPD()
		shared := p.mustSRQ(verbs.SRQAttr{MaxWR: 4, MaxSGE: 1})
		c := d.mustCQ(16, nil, 0)
		q := must(p.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, SRQ: shared, Cap: smallCap()}))(t, "CreateQP with an SRQ")
		if err := shared.Close(); err != nil {
			wantErrno(t, "Close", err, syscall.EBUSY)
			if _, err := shared.Query(); err != nil {
				t.Errorf("Query after the refused Close: %v", err)
			}
		} else {
			t.Log("the device destroyed an SRQ that a QP uses")
		}
		q.mustBe(verbs.Reset)
		q.mustClose()
		shared.mustClose()
	})
	s.run(t, "with each type of QP", func(t *testing.T, d *device) {
		p := d.mustPD()
		shared := p.mustSRQ(verbs.SRQAttr{MaxWR: 4, MaxSGE: 1})
		c := d.mustCQ(16, nil, 0)
		for _, typ := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
			q, err := p.CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: c, RecvCQ: c, SRQ: shared, Cap: smallCap()})
			switch {
			case err != nil && typ == verbs.RC && s.offers(typ):
				t.Errorf("CreateQP(%s) with an SRQ: %v", typ, err)
			case err == nil && !s.offers(typ):
				t.Errorf("CreateQP(%s) with an SRQ succeeded, though the device does not offer the type", typ)
			case err == nil:
				q.mustBe(verbs.Reset)
			}
		}
	})
	s.run(t, "post to the QP", func(t *testing.T, d *device) {
		s.requireType(t, verbs.RC)
		p := d.mustPD()
		shared := p.mustSRQ(verbs.SRQAttr{MaxWR: 4, MaxSGE: 1})
		c := d.mustCQ(16, nil, 0)
		q := must(p.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, SRQ: shared, Cap: smallCap()}))(t, "CreateQP with an SRQ")
		q.mustModify(verbs.ToInit(verbs.RC, 1, access))
		// A QP with an SRQ has no receive queue of its own.
		m := p.mustMR(64)
		if err := q.PostRecv(verbs.RecvWR{ID: 1, SGEs: []verbs.SGE{m.SGE(0, 64)}}); err != nil && errors.Is(err, verbs.ErrClosed) {
			t.Errorf("PostRecv: %v", err)
		}
	})
}
