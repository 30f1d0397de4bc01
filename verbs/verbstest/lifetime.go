package verbstest

import (
	"errors"
	"syscall"
	"testing"

	"rdma_exporter/verbs"
)

// lifetime tests the order in which objects end.
func (s *suite) lifetime(t *testing.T) {
	for _, child := range []struct {
		name string
		open func(d *device) *handle
	}{
		{"PD", func(d *device) *handle { return d.mustPD().handle }},
		{"completion channel", func(d *device) *handle { return d.mustChannel().handle }},
		{"CQ", func(d *device) *handle { return d.mustCQ(4, nil, 0).handle }},
	} {
		s.run(t, "device closed before its "+child.name, func(t *testing.T, d *device) {
			c := child.open(d)
			mark := d.b.rec.mark()
			for range 2 {
				wantErrno(t, "Close", d.Close(), syscall.EBUSY)
			}
			if n := len(d.b.rec.since(mark, verbs.CloseDevice)); n > 0 {
				t.Errorf("Close called ibv_close_device %d times", n)
			}
			if _, err := d.Query(); err != nil {
				t.Errorf("Query after the refused Close: %v", err)
			}
			child.open(d).mustClose()
			c.mustClose()
			d.mustClose()
		})
	}
	s.run(t, "device closed before all", func(t *testing.T, d *device) {
		p := d.mustPD()
		ch := d.mustChannel()
		c := d.mustCQ(16, ch, 0)
		q := d.mustFailing(p, c, c)
		// Newest first, with the device tried before each.
		for _, h := range []*handle{q.handle, q.buf.handle, c.handle, ch.handle, p.handle} {
			wantErrno(t, "Close of the device", d.Close(), syscall.EBUSY)
			h.mustClose()
		}
		d.armed.mustClose()
		d.mustClose()
	})
	s.run(t, "failures hold nothing", func(t *testing.T, d *device) {
		p := d.mustPD()
		wantError(t, "RegMR(-1)", errorOf(p.RegMR(-1, access)))
		wantError(t, "CreateQP without CQs", errorOf(p.CreateQP(verbs.QPInitAttr{Type: verbs.RC, Cap: smallCap()})))
		wantError(t, "CreateSRQ", errorOf(p.CreateSRQ(verbs.SRQAttr{MaxWR: 1 << 31, MaxSGE: 1})))
		ch := d.mustChannel()
		wantError(t, "CreateCQ", errorOf(d.CreateCQ(verbs.CQInitAttr{Entries: 1 << 30, Channel: ch.raw})))
		ch.mustClose()
		p.mustClose()
		d.mustClose()
	})
	s.run(t, "closed arguments", func(t *testing.T, d *device) {
		p := d.mustPD()
		ch := d.mustChannel()
		ch.mustClose()
		wantRefused(t, "CreateCQ with a closed channel", errorOf(d.CreateCQ(verbs.CQInitAttr{Entries: 4, Channel: ch.raw})))
		open, closed := d.mustCQ(4, nil, 0), d.mustCQ(4, nil, 0)
		closed.mustClose()
		_, err := p.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: closed, RecvCQ: open, Cap: smallCap()})
		wantRefused(t, "CreateQP with a closed send CQ", err)
		_, err = p.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: open, RecvCQ: closed, Cap: smallCap()})
		wantRefused(t, "CreateQP with a closed receive CQ", err)
		open.mustClose() // nothing holds it
	})
	s.run(t, "closed SRQ", func(t *testing.T, d *device) {
		p := d.mustPD()
		q := p.mustSRQ(verbs.SRQAttr{MaxWR: 4, MaxSGE: 1})
		q.mustClose()
		c := d.mustCQ(4, nil, 0)
		_, err := p.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, SRQ: q, Cap: smallCap()})
		wantRefused(t, "CreateQP with a closed SRQ", err)
	})
	s.run(t, "closed AH", func(t *testing.T, d *device) {
		s.requireType(t, verbs.UD)
		s.requirePort(t)
		p, c := d.mustPD(), d.mustCQ(16, nil, 0)
		m := p.mustMR(64)
		q := d.mustDatagramQP(verbs.UD, p, c, c)
		a := must(p.CreateAH(d.mustPath().ah))(t, "CreateAH")
		a.mustClose()
		wantRefused(t, "PostSend with a closed AH", q.PostSend(verbs.SendWR{
			SGEs: []verbs.SGE{m.SGE(0, 8)},
			AH:   a, RemoteQPN: q.raw.Number(), RemoteQKey: verbs.UDQKey,
		}))
	})
}

// wantRefused checks the error of a call with a closed argument.
func wantRefused(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, verbs.ErrClosed) && !errors.Is(err, syscall.EINVAL) {
		t.Errorf("%s: %v, want ErrClosed or EINVAL", what, err)
	}
}
