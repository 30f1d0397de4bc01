package simulated_test

import (
	"math"
	"syscall"
	"testing"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

func TestRule(t *testing.T) {
	rule := func(name string) simulated.Rule { return simulated.Rule{{Name: name}} }
	of := func(n int) simulated.Rule { return simulated.Rule{{Name: simulated.RuleMultipleOf, N: n}} }
	step := func(name string, n int) simulated.Rule { return simulated.Rule{{Name: name, N: n}} }
	for _, test := range []struct {
		rule        simulated.Rule
		asked, want int
	}{
		{simulated.Rule{}, 17, 17},
		{rule(simulated.RuleExact), 17, 17},
		{rule(simulated.RulePowerOfTwo), 1, 1},
		{rule(simulated.RulePowerOfTwo), 2, 2},
		{rule(simulated.RulePowerOfTwo), 16, 16},
		{rule(simulated.RulePowerOfTwo), 17, 32},
		{rule(simulated.RulePowerOfTwo), 1 << 30, 1 << 30},
		{rule(simulated.RulePowerOfTwoMinusOne), 1, 1},
		{rule(simulated.RulePowerOfTwoMinusOne), 2, 3},
		{rule(simulated.RulePowerOfTwoMinusOne), 15, 15},
		{rule(simulated.RulePowerOfTwoMinusOne), 16, 31},
		{rule(simulated.RulePowerOfTwoMinusOne), 256, 511},
		{rule(simulated.RulePowerOfTwoMinusOne), 4096, 8191},
		{of(1), 17, 17},
		{of(64), 1, 64},
		{of(64), 64, 64},
		{of(64), 65, 128},
		{of(1 << 20), 1 << 30, 1 << 30},
		{of(0), 17, 17},
		{rule(simulated.RulePowerOfTwo), 0, 0},
		{rule(simulated.RulePowerOfTwo), -3, -3},
		{rule(simulated.RulePowerOfTwoMinusOne), math.MaxInt32, math.MaxInt32},
		{step(simulated.RulePlus, 1), 16, 17},
		{step(simulated.RulePlus, -20), 16, 0},
		{step(simulated.RulePlus, 1), 0, 0},
		{step(simulated.RuleTimes, 2), 16, 32},
		{step(simulated.RuleAtLeast, 64), 16, 64},
		{step(simulated.RuleAtLeast, 64), 100, 100},
		{step(simulated.RuleAtLeast, 64), 0, 0},
		{step(simulated.RuleAtMost, 64), 100, 64},
		{step(simulated.RuleAlways, 96), 16, 96},
		{step(simulated.RuleAlways, 96), 0, 96},
		{simulated.Rule{{Name: simulated.RuleTimes, N: 2}, {Name: simulated.RulePowerOfTwoMinusOne}}, 16, 63},
		{simulated.Rule{{Name: simulated.RuleAtLeast, N: 64}, {Name: simulated.RulePowerOfTwo}, {Name: simulated.RulePlus, N: -1}}, 100, 127},
	} {
		if got := test.rule.Apply(test.asked); got != test.want {
			t.Errorf("%+v of %d is %d, want %d", test.rule, test.asked, got, test.want)
		}
	}
}

func TestDefaultSizes(t *testing.T) {
	for _, test := range []struct {
		device       string
		cqe          map[int]int
		srq, queried verbs.SRQAttr // of 16 work requests of 3 elements
		qp, qpQuery  verbs.QPCap   // of 16 and 20 work requests of 1 and 2 elements, 20 bytes inline
	}{
		{
			"sim_rxe0",
			map[int]int{1: 1, 16: 31, 256: 511, 4096: 8191, 32767: 32767},
			verbs.SRQAttr{MaxWR: 16, MaxSGE: 3},
			verbs.SRQAttr{MaxWR: 31, MaxSGE: 3},
			verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 20, MaxSendSGE: 1, MaxRecvSGE: 2, MaxInlineData: 20},
			verbs.QPCap{MaxSendWR: 31, MaxRecvWR: 31, MaxSendSGE: 1, MaxRecvSGE: 2, MaxInlineData: 20},
		},
		{
			"sim_siw0",
			map[int]int{1: 1, 16: 16, 256: 256, 4096: 4096},
			verbs.SRQAttr{MaxWR: 16, MaxSGE: 3},
			verbs.SRQAttr{MaxWR: 16, MaxSGE: 3},
			verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 20, MaxSendSGE: 1, MaxRecvSGE: 2, MaxInlineData: 20},
			verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 20, MaxSendSGE: 1, MaxRecvSGE: 2, MaxInlineData: 20},
		},
		{
			"sim_ib0",
			map[int]int{1: 1, 16: 31, 4096: 8191, 4194303: 4194303},
			verbs.SRQAttr{MaxWR: 31, MaxSGE: 3},
			verbs.SRQAttr{MaxWR: 31, MaxSGE: 3},
			verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 32, MaxSendSGE: 1, MaxRecvSGE: 2, MaxInlineData: 32},
			verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 32, MaxSendSGE: 1, MaxRecvSGE: 2, MaxInlineData: 32},
		},
	} {
		t.Run(test.device, func(t *testing.T) {
			d := open(t, like(t, test.device, nil))
			pd := must[verbs.PD](t)(d.AllocPD())
			for asked, want := range test.cqe {
				c := must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: asked}))
				if c.Entries() != want {
					t.Errorf("CQ of %d has %d entries, want %d", asked, c.Entries(), want)
				}
			}
			s := must[verbs.SRQ](t)(pd.CreateSRQ(verbs.SRQAttr{MaxWR: 16, MaxSGE: 3, Limit: 1000}))
			if s.Created() != test.srq {
				t.Errorf("SRQ %+v, want %+v", s.Created(), test.srq)
			}
			if got := must[verbs.SRQAttr](t)(s.Query()); got != test.queried {
				t.Errorf("SRQ queried %+v, want %+v", got, test.queried)
			}
			c := must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: 16}))
			q := must[verbs.QP](t)(pd.CreateQP(verbs.QPInitAttr{
				Type: verbs.RC, SendCQ: c, RecvCQ: c,
				Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 20, MaxSendSGE: 1, MaxRecvSGE: 2, MaxInlineData: 20},
			}))
			if q.Created() != test.qp {
				t.Errorf("QP %+v, want %+v", q.Created(), test.qp)
			}
			if got := must[verbs.QPQuery](t)(q.Query()); got.Cap != test.qpQuery {
				t.Errorf("QP queried %+v, want %+v", got.Cap, test.qpQuery)
			}
			// With an SRQ the sizes of the receive queue do not matter, however absurd.
			q = must[verbs.QP](t)(pd.CreateQP(verbs.QPInitAttr{
				Type: verbs.RC, SendCQ: c, RecvCQ: c, SRQ: s,
				Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: math.MaxUint32, MaxSendSGE: 1, MaxRecvSGE: math.MaxUint32},
			}))
			if got := q.Created(); got.MaxRecvWR != 0 || got.MaxRecvSGE != 0 {
				t.Errorf("QP with SRQ has %+v", got)
			}
		})
	}
}

// TestReported: what creation writes back, what a query tells and what an object has are
// three sizes, and those of the two queues of a QP need not be alike.
func TestReported(t *testing.T) {
	p := parse(t, `
devices:
  - name: sim0
    like: sim_ib0
    rounding:
      cq_entries: {created: {plus: -1}, usable: exact}
      srq_wr: {created: power_of_two_minus_one, queried: [{times: 2}, power_of_two_minus_one], usable: power_of_two_minus_one}
      qp_inline: {always: 96}
      qp_recv_wr: {created: exact, queried: {always: 7}}
      qp_recv_sge: {at_least: 3}
`)
	d := open(t, p)
	pd := must[verbs.PD](t)(d.AllocPD())
	c := must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: 4}))
	if c.Entries() != 3 {
		t.Errorf("the CQ has %d entries, want 3", c.Entries())
	}
	q := must[verbs.QP](t)(pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, Cap: verbs.QPCap{MaxSendWR: 5, MaxRecvWR: 5, MaxSendSGE: 1, MaxRecvSGE: 1}}))
	if want := (verbs.QPCap{MaxSendWR: 8, MaxRecvWR: 5, MaxSendSGE: 1, MaxRecvSGE: 3, MaxInlineData: 96}); q.Created() != want {
		t.Errorf("created %+v, want %+v", q.Created(), want)
	}
	if got := must[verbs.QPQuery](t)(q.Query()).Cap.MaxRecvWR; got != 7 {
		t.Errorf("the query tells %d receives, want 7", got)
	}
	ok(t, q.Modify(verbs.ToInit(verbs.RC, 1, 0)))
	for range 5 {
		ok(t, q.PostRecv(verbs.RecvWR{}))
	}
	ok(t, q.Modify(verbs.ToError()))
	if got := len(must[[]verbs.WC](t)(c.Poll(9))); got != 4 {
		t.Errorf("%d completions fit into the CQ, want 4", got)
	}
	s := must[verbs.SRQ](t)(pd.CreateSRQ(verbs.SRQAttr{MaxWR: 16, MaxSGE: 1}))
	if asked := must[verbs.SRQAttr](t)(s.Query()); s.Created().MaxWR != 31 || asked.MaxWR != 63 {
		t.Errorf("the SRQ has %d receives, and the query tells %d; want 31 and 63", s.Created().MaxWR, asked.MaxWR)
	}
	for range 31 {
		ok(t, s.PostRecv(verbs.RecvWR{}))
	}
	wantErrno(t, s.PostRecv(verbs.RecvWR{}), verbs.PostSRQRecv, syscall.ENOMEM)
	shared := must[verbs.QP](t)(pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, SRQ: s, Cap: verbs.QPCap{MaxSendWR: 5, MaxRecvWR: 5}}))
	if got := must[verbs.QPQuery](t)(shared.Query()).Cap; got.MaxRecvWR != 0 || got.MaxRecvSGE != 0 {
		t.Errorf("with an SRQ the query tells %+v", got)
	}
}

func TestInlineSharesSGE(t *testing.T) {
	d := open(t, like(t, "sim_rxe0", nil))
	pd := must[verbs.PD](t)(d.AllocPD())
	c := must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: 16}))
	for _, test := range []struct{ sge, inline, wantSGE, wantInline uint32 }{
		{1, 0, 1, 16}, {1, 100, 6, 100}, {4, 10, 4, 64}, {32, 512, 32, 512}, {0, 0, 0, 0},
	} {
		q := must[verbs.QP](t)(pd.CreateQP(verbs.QPInitAttr{
			Type: verbs.RC, SendCQ: c, RecvCQ: c, Cap: verbs.QPCap{MaxSendWR: 1, MaxSendSGE: test.sge, MaxInlineData: test.inline},
		}))
		if got := q.Created(); got.MaxSendSGE != test.wantSGE || got.MaxInlineData != test.wantInline {
			t.Errorf("%d elements and %d bytes inline: %+v, want %d and %d", test.sge, test.inline, got, test.wantSGE, test.wantInline)
		}
	}
}

func TestLimits(t *testing.T) {
	limited := func(change func(*simulated.DeviceProfile)) verbs.Device {
		return open(t, like(t, "sim_ib0", change))
	}
	t.Run("sizes", func(t *testing.T) {
		d := limited(func(p *simulated.DeviceProfile) {
			l := &p.Limits
			l.MaxCQE, l.MaxSRQWR, l.MaxSRQSGE, l.MaxQPWR, l.MaxSGE, l.MaxMRSize = 100, 50, 3, 60, 4, 1<<20
			p.CompletionVectors, p.MaxInlineData = 3, 70
		})
		pd := must[verbs.PD](t)(d.AllocPD())
		for _, attr := range []verbs.CQInitAttr{{Entries: 0}, {Entries: -1}, {Entries: 101}, {Entries: 1, Vector: -1}, {Entries: 1, Vector: 3}} {
			_, err := d.CreateCQ(attr)
			wantErrno(t, err, verbs.CreateCQ, syscall.EINVAL)
		}
		c := must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: 100, Vector: 2}))
		if c.Entries() != 100 {
			t.Errorf("%d entries: rounded beyond the limit", c.Entries())
		}
		for _, attr := range []verbs.SRQAttr{{MaxWR: 0, MaxSGE: 1}, {MaxWR: 51, MaxSGE: 1}, {MaxWR: 1, MaxSGE: 4}, {MaxWR: math.MaxUint32}} {
			_, err := pd.CreateSRQ(attr)
			wantErrno(t, err, verbs.CreateSRQ, syscall.EINVAL)
		}
		must[verbs.SRQ](t)(pd.CreateSRQ(verbs.SRQAttr{MaxWR: 50, MaxSGE: 3}))
		for _, change := range []func(*verbs.QPCap){
			func(c *verbs.QPCap) { c.MaxSendWR++ }, func(c *verbs.QPCap) { c.MaxRecvWR++ },
			func(c *verbs.QPCap) { c.MaxSendSGE++ }, func(c *verbs.QPCap) { c.MaxRecvSGE++ },
			func(c *verbs.QPCap) { c.MaxInlineData++ },
			func(*verbs.QPCap) {},
		} {
			most := verbs.QPCap{MaxSendWR: 60, MaxRecvWR: 60, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 70}
			asked := most
			change(&asked)
			q, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, Cap: asked})
			if asked != most {
				wantErrno(t, err, verbs.CreateQP, syscall.EINVAL)
			} else if err != nil || q.Created() != most {
				t.Errorf("the largest QP: %v", err)
			}
		}
		_, err := pd.RegMR(1<<20+1, 0)
		wantErrno(t, err, verbs.RegMR, syscall.EINVAL)
	})
	t.Run("counts", func(t *testing.T) {
		d := limited(func(p *simulated.DeviceProfile) {
			l := &p.Limits
			l.MaxPD, l.MaxCQ, l.MaxMR, l.MaxSRQ, l.MaxAH, l.MaxQP, l.MaxMcastGroup, l.MaxMcastQP = 2, 2, 2, 2, 2, 3, 2, 2
		})
		pd := must[verbs.PD](t)(d.AllocPD())
		c := must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: 1}))
		ah := ahAttr(t, d)
		for _, kind := range []struct {
			verb   verbs.Verb
			room   int
			create func() (interface{ Close() error }, error)
		}{
			{verbs.AllocPD, 1, func() (interface{ Close() error }, error) { return d.AllocPD() }},
			{verbs.CreateCQ, 1, func() (interface{ Close() error }, error) { return d.CreateCQ(verbs.CQInitAttr{Entries: 1}) }},
			{verbs.RegMR, 2, func() (interface{ Close() error }, error) { return pd.RegMR(8, 0) }},
			{verbs.CreateSRQ, 2, func() (interface{ Close() error }, error) { return pd.CreateSRQ(verbs.SRQAttr{MaxWR: 1}) }},
			{verbs.CreateAH, 2, func() (interface{ Close() error }, error) { return pd.CreateAH(ah) }},
			{verbs.CreateQP, 3, func() (interface{ Close() error }, error) {
				return pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: c, RecvCQ: c})
			}},
		} {
			var last interface{ Close() error }
			for range kind.room {
				o, err := kind.create()
				if err != nil {
					t.Fatalf("%s: %v", kind.verb, err)
				}
				last = o
			}
			_, err := kind.create()
			wantErrno(t, err, kind.verb, syscall.ENOMEM)
			ok(t, last.Close())
			if _, err := kind.create(); err != nil {
				t.Errorf("%s after a destroy: %v", kind.verb, err)
			}
		}
	})
	t.Run("groups", func(t *testing.T) {
		d := limited(func(p *simulated.DeviceProfile) { p.Limits.MaxMcastGroup, p.Limits.MaxMcastQP = 2, 1 })
		pd := must[verbs.PD](t)(d.AllocPD())
		a, b := newEnd(t, d, pd, verbs.UD), newEnd(t, d, pd, verbs.UD)
		group := func(i byte) verbs.GID { return verbs.GID{0: 0xff, 15: i} }
		const mlid = 0xc001
		ok(t, a.AttachMulticast(group(1), mlid))
		ok(t, a.AttachMulticast(group(1), mlid))
		wantErrno(t, b.AttachMulticast(group(1), mlid), verbs.AttachMcast, syscall.ENOMEM)
		ok(t, b.AttachMulticast(group(2), mlid))
		wantErrno(t, b.AttachMulticast(group(3), mlid), verbs.AttachMcast, syscall.ENOMEM)
		wantErrno(t, b.AttachMulticast(group(3), 1), verbs.AttachMcast, syscall.EINVAL)
		wantErrno(t, b.AttachMulticast(verbs.GID{}, mlid), verbs.AttachMcast, syscall.EINVAL)
		wantErrno(t, a.Close(), verbs.DestroyQP, syscall.EBUSY)
		ok(t, a.DetachMulticast(group(1), mlid))
		wantErrno(t, a.DetachMulticast(group(1), mlid), verbs.DetachMcast, syscall.EINVAL)
		ok(t, a.Close())
	})
	t.Run("types", func(t *testing.T) {
		for _, test := range []struct {
			device  string
			typ     verbs.QPType
			withSRQ bool
			errno   syscall.Errno
		}{
			{"sim_rxe0", verbs.RC, true, 0},
			{"sim_rxe0", verbs.UD, true, 0},
			{"sim_rxe0", verbs.UC, true, syscall.EINVAL},
			{"sim_rxe0", verbs.RawPacket, false, syscall.EOPNOTSUPP},
			{"sim_siw0", verbs.RC, true, 0},
			{"sim_siw0", verbs.UC, false, syscall.EOPNOTSUPP},
			{"sim_siw0", verbs.UD, false, syscall.EOPNOTSUPP},
			{"sim_ib0", verbs.UC, true, syscall.EINVAL},
			{"sim_ib0", verbs.RawPacket, false, syscall.EPERM},
			{"sim_ib0", 0, false, syscall.EINVAL},
		} {
			d := open(t, like(t, test.device, nil))
			pd := must[verbs.PD](t)(d.AllocPD())
			c := must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: 1}))
			attr := verbs.QPInitAttr{Type: test.typ, SendCQ: c, RecvCQ: c, Cap: qpCap}
			if test.withSRQ {
				attr.SRQ = must[verbs.SRQ](t)(pd.CreateSRQ(verbs.SRQAttr{MaxWR: 1, MaxSGE: 1}))
			}
			_, err := pd.CreateQP(attr)
			if test.errno == 0 {
				if err != nil {
					t.Errorf("%s on %s: %v", test.typ, test.device, err)
				}
				continue
			}
			wantErrno(t, err, verbs.CreateQP, test.errno)
		}
	})
	t.Run("raw packets with SRQ", func(t *testing.T) {
		d := limited(func(p *simulated.DeviceProfile) { p.RawPacketNeedsPermission = false })
		pd := must[verbs.PD](t)(d.AllocPD())
		c := must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: 1}))
		s := must[verbs.SRQ](t)(pd.CreateSRQ(verbs.SRQAttr{MaxWR: 1, MaxSGE: 1}))
		_, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.RawPacket, SendCQ: c, RecvCQ: c, SRQ: s, Cap: qpCap})
		wantErrno(t, err, verbs.CreateQP, syscall.EINVAL)
		must[verbs.QP](t)(pd.CreateQP(verbs.QPInitAttr{Type: verbs.RawPacket, SendCQ: c, RecvCQ: c, Cap: qpCap}))
	})
	t.Run("absent kinds", func(t *testing.T) {
		d := limited(func(p *simulated.DeviceProfile) {
			p.Limits.MaxSRQ, p.Limits.MaxSRQWR, p.Limits.MaxAH, p.Limits.MaxMcastGroup = 0, 0, 0, 0
		})
		pd := must[verbs.PD](t)(d.AllocPD())
		_, err := pd.CreateSRQ(verbs.SRQAttr{MaxWR: 1})
		wantErrno(t, err, verbs.CreateSRQ, syscall.EOPNOTSUPP)
		_, err = pd.CreateAH(verbs.AHAttr{Port: 1})
		wantErrno(t, err, verbs.CreateAH, syscall.EOPNOTSUPP)
		q := newEnd(t, d, pd, verbs.UD)
		wantErrno(t, q.AttachMulticast(verbs.GID{0: 0xff}, 0xc001), verbs.AttachMcast, syscall.EOPNOTSUPP)
	})
}

func TestMemory(t *testing.T) {
	p := like(t, "sim_ib0", func(p *simulated.DeviceProfile) {
		p.Memory = simulated.Costs{
			CQ:  simulated.Cost{Virtual: 100, Locked: 50, VirtualPerEntry: 2, LockedPerEntry: 1},
			SRQ: simulated.Cost{VirtualPerEntry: 3},
			QP:  simulated.Cost{LockedPerEntry: 4},
		}
	})
	d := open(t, p)
	want := func(what string, virtual, locked uint64, create func()) {
		t.Helper()
		if got := must[verbs.Memory](t)(d.Cost(create)); got != (verbs.Memory{Virtual: virtual, Locked: locked}) {
			t.Errorf("%s: %+v, want %d and %d", what, got, virtual, locked)
		}
	}
	var (
		pd verbs.PD
		c  verbs.CQ
		s  verbs.SRQ
		q  verbs.QP
	)
	want("PD", 0, 0, func() { pd = must[verbs.PD](t)(d.AllocPD()) })
	want("CQ", 162, 81, func() { c = must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: 16})) }) // gets 31
	want("SRQ", 21, 0, func() { s = must[verbs.SRQ](t)(pd.CreateSRQ(verbs.SRQAttr{MaxWR: 7})) })
	want("QP", 0, 48, func() {
		q = must[verbs.QP](t)(pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, Cap: verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 8}}))
	})
	want("end of all", 0, 0, func() {
		ok(t, q.Close())
		ok(t, s.Close())
		ok(t, c.Close())
	})
	want("failure", 0, 0, func() {
		_, err := d.CreateCQ(verbs.CQInitAttr{Entries: -1})
		wantErrno(t, err, verbs.CreateCQ, syscall.EINVAL)
	})
	cq := func(d verbs.Device) { ok(t, must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: 16})).Close()) }
	want("two", 324, 162, func() {
		cq(d)
		cq(d)
	})
	other := open(t, p)
	want("another device", 0, 0, func() { cq(other) })
}
