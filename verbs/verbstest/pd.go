package verbstest

import (
	"syscall"
	"testing"

	"rdma_exporter/verbs"
)

// pd tests protection domains.
func (s *suite) pd(t *testing.T) {
	s.run(t, "create and close", func(t *testing.T, d *device) {
		p, other := d.mustPD(), d.mustPD()
		p.mustClose()
		p.mustClose()
		wantClosed(t, "RegMR", errorOf(p.RegMR(64, access)))
		wantClosed(t, "CreateAH", errorOf(p.CreateAH(verbs.AHAttr{Port: 1})))
		wantClosed(t, "CreateSRQ", errorOf(p.CreateSRQ(verbs.SRQAttr{MaxWR: 1, MaxSGE: 1})))
		c := d.mustCQ(4, nil, 0)
		_, err := p.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, Cap: smallCap()})
		wantClosed(t, "CreateQP", err)
		other.mustMR(64)
	})
	s.run(t, "close while an MR is open", func(t *testing.T, d *device) {
		p := d.mustPD()
		m := p.mustMR(64)
		wantErrno(t, "Close", p.Close(), syscall.EBUSY)
		m.Bytes()[0] = 1
		p.mustMR(64).mustClose()
		m.mustClose()
		p.mustClose()
	})
	s.run(t, "close while a QP is open", func(t *testing.T, d *device) {
		p := d.mustPD()
		c := d.mustCQ(16, nil, 0)
		q := d.mustFailing(p, c, c)
		wantErrno(t, "Close", p.Close(), syscall.EBUSY)
		q.complete(1)
		wantFlushed(t, q.qp, c.await(1), 1)
		q.mustClose()
		q.buf.mustClose()
		p.mustClose()
	})
	s.run(t, "close while an SRQ is open", func(t *testing.T, d *device) {
		p := d.mustPD()
		q := p.mustSRQ(verbs.SRQAttr{MaxWR: 4, MaxSGE: 1})
		wantErrno(t, "Close", p.Close(), syscall.EBUSY)
		if _, err := q.Query(); err != nil {
			t.Errorf("Query after the PD's refused Close: %v", err)
		}
		q.mustClose()
		p.mustClose()
	})
}
