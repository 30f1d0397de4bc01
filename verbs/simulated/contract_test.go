package simulated_test

import (
	"errors"
	"math"
	"slices"
	"syscall"
	"testing"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// client has a device of its own, of which it finds out whether it breaks a
// contract.
type client struct {
	*testing.T
	d  verbs.Device
	pd verbs.PD
}

const multicastLID = 0xc001

func (c client) channel() verbs.CompChannel {
	c.Helper()
	return must[verbs.CompChannel](c.T)(c.d.CreateCompChannel())
}

// cqContext is the context of the CQs of clients.
const cqContext = 0xabc

func (c client) cq(ch verbs.CompChannel) verbs.CQ {
	c.Helper()
	return must[verbs.CQ](c.T)(c.d.CreateCQ(verbs.CQInitAttr{Entries: 16, Context: cqContext, Channel: ch}))
}

func (c client) srq() verbs.SRQ {
	c.Helper()
	return must[verbs.SRQ](c.T)(c.pd.CreateSRQ(verbs.SRQAttr{MaxWR: 4, MaxSGE: 1}))
}

// failing returns a QP whose work is flushed.
func (c client) failing(q verbs.CQ) verbs.QP {
	c.Helper()
	qp := must[verbs.QP](c.T)(c.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: q, RecvCQ: q, Cap: qpCap}))
	ok(c.T, qp.Modify(verbs.ToError()))
	return qp
}

// flush makes an unsuccessful completion.
func (c client) flush(qp verbs.QP) {
	c.Helper()
	ok(c.T, qp.PostRecv(verbs.RecvWR{ID: 1}))
}

// receiver is the end of a connection on which messages arrive, and its peer.
type receiver struct {
	c        client
	from, at *end
	ch       verbs.CompChannel
	cq       verbs.CQ
}

// receiver returns one whose receives complete in a CQ with a channel.
func (c client) receiver() *receiver {
	c.Helper()
	r := &receiver{c: c, ch: c.channel()}
	r.cq = c.cq(r.ch)
	r.from = newEnd(c.T, c.d, c.pd, verbs.RC)
	r.at = &end{recv: r.cq, mr: must[verbs.MR](c.T)(c.pd.RegMR(4096, verbs.AccessLocalWrite))}
	r.at.QP = must[verbs.QP](c.T)(c.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c.cq(nil), RecvCQ: r.cq, Cap: qpCap}))
	r.from.rtr(c.T, c.d, r.at)
	r.at.rtr(c.T, c.d, r.from)
	r.from.rts(c.T)
	r.at.rts(c.T)
	return r
}

// limited is an SRQ with four receives and a limit of two.
type limited struct {
	verbs.SRQ
	c        client
	from, at *end
}

func (c client) limited() *limited {
	c.Helper()
	s := &limited{c: c, SRQ: c.srq(), from: newEnd(c.T, c.d, c.pd, verbs.RC)}
	s.at = &end{recv: c.cq(nil), mr: must[verbs.MR](c.T)(c.pd.RegMR(4096, verbs.AccessLocalWrite))}
	s.at.QP = must[verbs.QP](c.T)(c.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c.cq(nil), RecvCQ: s.at.recv, SRQ: s.SRQ, Cap: qpCap}))
	s.from.rtr(c.T, c.d, s.at)
	s.at.rtr(c.T, c.d, s.from)
	s.from.rts(c.T)
	s.at.rts(c.T)
	for range 4 {
		ok(c.T, s.PostRecv(recv(s.at)))
	}
	ok(c.T, s.SetLimit(2))
	if got := must[verbs.SRQAttr](c.T)(s.Query()).Limit; got != 2 {
		c.Errorf("the query tells the limit %d, want 2", got)
	}
	return s
}

// take has messages take receives.
func (s *limited) take(n int) {
	s.c.Helper()
	for range n {
		ok(s.c.T, s.from.PostSend(send(s.from)))
		one(s.c.T, s.from.send, verbs.WCSuccess)
		one(s.c.T, s.at.recv, verbs.WCSuccess)
	}
}

// events takes all events, which must be of the limit, and counts them.
func (s *limited) events() (n int) {
	s.c.Helper()
	for ; ; n++ {
		e, err := s.c.d.AsyncEvent(0)
		if errors.Is(err, verbs.ErrTimeout) {
			return n
		}
		ok(s.c.T, err)
		if e.Type != verbs.EventSRQLimitReached || e.SRQ != s.SRQ || e.Port != 0 {
			s.c.Errorf("event %+v", e)
		}
	}
}

// localGroup is a multicast group.
var localGroup = verbs.GID{0: 0xff, 1: 1, 15: 1}

// group is a UD QP that sends to a multicast group.
type group struct {
	*end
	c  client
	to verbs.AH
}

func (c client) group() *group {
	c.Helper()
	g := &group{c: c, end: c.datagrams()}
	to := ahAttr(c.T, c.d)
	to.DGID = localGroup
	g.to = must[verbs.AH](c.T)(c.pd.CreateAH(to))
	return g
}

// datagrams returns a UD QP that is ready.
func (c client) datagrams() *end {
	c.Helper()
	e := newEnd(c.T, c.d, c.pd, verbs.UD)
	e.rtr(c.T, c.d, e)
	e.rts(c.T)
	return e
}

// member returns a UD QP in the group.
func (g *group) member() *end {
	g.c.Helper()
	e := g.c.datagrams()
	ok(g.c.T, e.AttachMulticast(localGroup, multicastLID))
	return e
}

// message sends a message to the group, and returns how many copies each has.
func (g *group) message(to ...*end) []int {
	g.c.Helper()
	for _, e := range to {
		for range 2 {
			ok(g.c.T, e.PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{e.mr.SGE(0, 64)}}))
		}
	}
	wr := send(g.end)
	wr.AH, wr.RemoteQPN, wr.RemoteQKey = g.to, 0xffffff, verbs.UDQKey
	ok(g.c.T, g.PostSend(wr))
	one(g.c.T, g.send, verbs.WCSuccess)
	var copies []int
	for _, e := range to {
		copies = append(copies, len(must[[]verbs.WC](g.c.T)(e.recv.Poll(4))))
	}
	return copies
}

// message has a message arrive, and its completion polled.
func (r *receiver) message(flags verbs.SendFlags) {
	r.c.Helper()
	ok(r.c.T, r.at.PostRecv(recv(r.at)))
	wr := send(r.from)
	wr.Flags = flags | verbs.SendSignaled
	ok(r.c.T, r.from.PostSend(wr))
	one(r.c.T, r.from.send, verbs.WCSuccess)
	one(r.c.T, r.cq, verbs.WCSuccess)
}

// notified takes and acknowledges an event, if there is one.
func (c client) notified(ch verbs.CompChannel) (verbs.CQEvent, bool) {
	c.Helper()
	ev, err := ch.GetEvent(0)
	if errors.Is(err, verbs.ErrTimeout) {
		return ev, false
	}
	ok(c.T, err)
	ok(c.T, ev.CQ.AckEvents(1))
	return ev, true
}

func (r *receiver) notified() bool {
	r.c.Helper()
	_, is := r.c.notified(r.ch)
	return is
}

// destroyed tries to destroy what is in use, and reports whether it is gone.
func (c client) destroyed(o interface{ Close() error }) bool { return o.Close() == nil }

// checks find out of each contract whether the device breaks it.
func checks() map[string]func(client) bool {
	const vectors = 64
	vector := func(c client, v int) bool {
		_, err := c.d.CreateCQ(verbs.CQInitAttr{Entries: 1, Vector: v})
		return err == nil
	}
	withSRQ := func(c client, typ verbs.QPType, asked verbs.QPCap) error {
		q := c.cq(nil)
		_, err := c.pd.CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: q, RecvCQ: q, SRQ: c.srq(), Cap: asked})
		return err
	}
	atLeast := func(got, asked verbs.QPCap) bool {
		return got.MaxSendWR >= asked.MaxSendWR && got.MaxRecvWR >= asked.MaxRecvWR &&
			got.MaxSendSGE >= asked.MaxSendSGE && got.MaxRecvSGE >= asked.MaxRecvSGE && got.MaxInlineData >= asked.MaxInlineData
	}
	return map[string]func(client) bool{
		"cq_at_least_requested": func(c client) bool { return c.cq(nil).Entries() < 16 },
		"cq_ex_at_least_requested": func(c client) bool {
			q := must[verbs.CQ](c.T)(c.d.CreateCQ(verbs.CQInitAttr{Entries: 16, Fields: verbs.WCStandard | verbs.WCTimestamp}))
			_, err := c.d.CreateCQ(verbs.CQInitAttr{Entries: 16, Fields: 1 << 8})
			wantErrno(c.T, err, verbs.CreateCQEx, syscall.EOPNOTSUPP)
			c.flush(c.failing(q))
			if wc := one(c.T, q, verbs.WCWRFlushErr); wc.Timestamp != 0 {
				c.Errorf("an unsuccessful completion has the timestamp %d", wc.Timestamp)
			}
			return q.Entries() < 16
		},
		"cq_ex_batch_keeps_completions": func(c client) bool {
			q := must[verbs.CQ](c.T)(c.d.CreateCQ(verbs.CQInitAttr{Entries: 16, Fields: verbs.WCStandard}))
			qp := c.failing(q)
			c.flush(qp)
			c.flush(qp)
			if n := len(must[[]verbs.WC](c.T)(q.Poll(2))); n != 2 {
				c.Errorf("%d completions, want 2", n)
			}
			none(c.T, q) // it did not come to the end
			c.flush(qp)
			one(c.T, q, verbs.WCWRFlushErr)
			return len(must[[]verbs.WC](c.T)(q.Poll(2))) > 0
		},
		"cq_comp_vector_accepted": func(c client) bool { return !vector(c, 0) || !vector(c, vectors-1) },
		"cq_comp_vector_rejected": func(c client) bool { return vector(c, -1) || vector(c, vectors) },
		"cq_destroy_busy": func(c client) bool {
			q := c.cq(nil)
			qp := c.failing(q)
			gone := c.destroyed(q)
			c.flush(qp) // must not crash
			if !gone {
				one(c.T, q, verbs.WCWRFlushErr)
			}
			ok(c.T, qp.Close())
			ok(c.T, q.Close())
			return gone
		},
		"cq_moderation_notifies": func(c client) bool {
			ch := c.channel()
			q := c.cq(ch)
			qp := c.failing(q)
			most := must[verbs.ExtendedAttr](c.T)(c.d.QueryExtended()).Moderation
			wantErrno(c.T, q.Moderate(verbs.Moderation{Count: 1, Period: most.Period + 1}), verbs.ModifyCQ, syscall.EINVAL)
			ok(c.T, q.Moderate(most))
			ok(c.T, q.Moderate(verbs.Moderation{}))
			ok(c.T, q.ReqNotify(false))
			c.flush(qp)
			_, is := c.notified(ch)
			return !is
		},
		"cq_resize_at_least_requested": func(c client) bool {
			q := c.cq(nil)
			ok(c.T, q.Resize(40))
			return q.Entries() < 40
		},
		"cq_resize_too_small_refused": func(c client) bool {
			q := c.cq(nil)
			qp := c.failing(q)
			for range 3 {
				c.flush(qp)
			}
			entries, err := q.Entries(), q.Resize(2)
			if err != nil {
				wantErrno(c.T, err, verbs.ResizeCQ, syscall.EINVAL)
				if q.Entries() != entries {
					c.Errorf("%d entries after a refusal, want %d", q.Entries(), entries)
				}
				ok(c.T, q.Resize(3))
			}
			return err == nil
		},
		"cq_resize_keeps_completions": func(c client) bool {
			q := c.cq(nil)
			qp := c.failing(q)
			c.flush(qp)
			c.flush(qp)
			ok(c.T, q.Resize(20))
			c.flush(qp)
			return len(must[[]verbs.WC](c.T)(q.Poll(4))) != 3
		},
		"channel_destroy_busy": func(c client) bool {
			ch := c.channel()
			q := c.cq(ch)
			qp := c.failing(q)
			ok(c.T, q.ReqNotify(false))
			gone := c.destroyed(ch)
			c.flush(qp)
			one(c.T, q, verbs.WCWRFlushErr)
			if _, is := c.notifiedUnless(gone, ch); is == gone {
				c.Errorf("event %t, channel destroyed %t", is, gone)
			}
			ok(c.T, qp.Close())
			ok(c.T, q.Close())
			ok(c.T, ch.Close())
			return gone
		},
		"channel_steering": func(c client) bool {
			own, other := c.channel(), c.channel()
			q := c.cq(own)
			c.cq(other)
			c.channel() // without a CQ: nothing arrives there
			ok(c.T, q.ReqNotify(false))
			c.flush(c.failing(q))
			ev, astray := c.notified(other)
			if _, right := c.notified(own); right == astray {
				c.Errorf("event on the own channel %t, on the other %t", right, astray)
			}
			if astray && ev.CQ != q {
				c.Error("the event names another CQ")
			}
			return astray
		},
		"srq_at_least_requested": func(c client) bool { return c.srq().Created().MaxWR < 4 },
		"srq_reports_actual": func(c client) bool {
			s := c.srq()
			return must[verbs.SRQAttr](c.T)(s.Query()) != s.Created()
		},
		"srq_limit_ignored": func(c client) bool {
			_, err := c.pd.CreateSRQ(verbs.SRQAttr{MaxWR: 4, MaxSGE: 1, Limit: 5})
			return err != nil
		},
		"srq_limit_event": func(c client) bool {
			s := c.limited()
			s.take(2)
			if n := s.events(); n != 0 {
				c.Errorf("%d events at the limit", n)
			}
			s.take(1)
			return s.events() != 1
		},
		"srq_limit_disarmed": func(c client) bool {
			s := c.limited()
			s.take(4)
			events := s.events()
			told := must[verbs.SRQAttr](c.T)(s.Query()).Limit
			if again := told != 0; again != (events > 1) {
				c.Errorf("%d events, and the query tells %d", events, told)
			}
			return events != 1
		},
		"srq_destroy_busy": func(c client) bool {
			s, q := c.srq(), c.cq(nil)
			qp := must[verbs.QP](c.T)(c.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: q, RecvCQ: q, SRQ: s, Cap: qpCap}))
			gone := c.destroyed(s)
			if !gone {
				ok(c.T, s.PostRecv(verbs.RecvWR{}))
			}
			ok(c.T, qp.Modify(verbs.ToError()))
			ok(c.T, qp.Close())
			ok(c.T, s.Close())
			return gone
		},
		"qp_at_least_requested": func(c client) bool { return !atLeast(c.failing(c.cq(nil)).Created(), qpCap) },
		"qp_reports_actual": func(c client) bool {
			qp := c.failing(c.cq(nil))
			return must[verbs.QPQuery](c.T)(qp.Query()).Cap != qp.Created()
		},
		"qp_srq_type_restricted": func(c client) bool { return withSRQ(c, verbs.UC, qpCap) == nil },
		"qp_recv_caps_ignored_with_srq": func(c client) bool {
			return withSRQ(c, verbs.RC, verbs.QPCap{MaxSendWR: 1, MaxRecvWR: math.MaxUint32}) != nil
		},
		"qp_sq_sig_all": func(c client) bool {
			a, b := pair(c.T, c.d, c.pd, verbs.RC)
			ok(c.T, b.PostRecv(recv(b)))
			wr := send(a)
			wr.Flags = 0
			ok(c.T, a.PostSend(wr))
			one(c.T, b.recv, verbs.WCSuccess)
			return len(must[[]verbs.WC](c.T)(a.send.Poll(2))) > 0
		},
		"qp_destroy_busy_multicast": func(c client) bool {
			e := newEnd(c.T, c.d, c.pd, verbs.UD)
			group := verbs.GID{0: 0xff, 15: 1}
			ok(c.T, e.AttachMulticast(group, multicastLID))
			gone := c.destroyed(e)
			if !gone {
				ok(c.T, e.DetachMulticast(group, multicastLID))
				ok(c.T, e.Close())
			}
			return gone
		},
		"multicast_delivers": func(c client) bool {
			g := c.group()
			a, b := g.member(), g.member()
			got := g.message(a, b)
			if got[0] != 1 || got[1] > 1 {
				c.Errorf("%v copies", got)
			}
			ok(c.T, a.DetachMulticast(localGroup, multicastLID))
			if left := g.message(a, b); left[0] != 0 || left[1] != 1 {
				c.Errorf("%v copies after one was detached", left)
			}
			return got[1] == 0
		},
		"multicast_single_copy": func(c client) bool {
			g := c.group()
			a := g.member()
			ok(c.T, a.AttachMulticast(localGroup, multicastLID))
			got := g.message(a)
			ok(c.T, a.DetachMulticast(localGroup, multicastLID))
			if left := g.message(a); left[0] != 0 {
				c.Errorf("%v copies after it was detached", left)
			}
			return got[0] != 1
		},
		"xrc_at_least_requested": func(c client) bool {
			x := must[verbs.XRCD](c.T)(c.d.OpenXRCD())
			s := must[verbs.SRQ](c.T)(x.CreateSRQ(c.pd, c.cq(nil), verbs.SRQAttr{MaxWR: 4, MaxSGE: 1}))
			wantErrno(c.T, x.Close(), verbs.CloseXRCD, syscall.EBUSY)
			ok(c.T, s.Close())
			ok(c.T, x.Close())
			return s.Created().MaxWR < 4
		},
		"notify_any": func(c client) bool {
			r := c.receiver()
			ok(c.T, r.cq.ReqNotify(false))
			r.message(0)
			missed := !r.notified()
			ok(c.T, r.cq.ReqNotify(false))
			r.message(verbs.SendSolicited)
			if !r.notified() {
				c.Error("no event for a solicited completion")
			}
			return missed
		},
		"notify_one_shot": func(c client) bool {
			ch := c.channel()
			q := c.cq(ch)
			qp := c.failing(q)
			ok(c.T, q.ReqNotify(false))
			c.flush(qp)
			if _, is := c.notified(ch); !is {
				c.Error("no first event")
			}
			c.flush(qp)
			_, again := c.notified(ch)
			return again
		},
		"notify_requires_arming": func(c client) bool {
			ch := c.channel()
			q := c.cq(ch)
			qp := c.failing(q)
			c.flush(qp)
			_, is := c.notified(ch)
			return is
		},
		"notify_solicited_skips_unsolicited": func(c client) bool {
			r := c.receiver()
			ok(c.T, r.cq.ReqNotify(true))
			r.message(0)
			return r.notified()
		},
		"notify_solicited_delivers_solicited": func(c client) bool {
			r := c.receiver()
			ok(c.T, r.cq.ReqNotify(true))
			r.message(verbs.SendSolicited)
			return !r.notified()
		},
		"notify_solicited_delivers_errors": func(c client) bool {
			ch := c.channel()
			q := c.cq(ch)
			qp := c.failing(q)
			ok(c.T, q.ReqNotify(true))
			c.flush(qp)
			_, is := c.notified(ch)
			return !is
		},
		"notify_identifies_cq": func(c client) bool {
			ch := c.channel()
			q, other := c.cq(ch), c.cq(ch)
			qp := c.failing(q)
			c.failing(other)
			ok(c.T, q.ReqNotify(false))
			c.flush(qp)
			ev, is := c.notified(ch)
			if !is || ev.CQ != q {
				c.Errorf("event %t of %v", is, ev.CQ)
			}
			return ev.Context != cqContext
		},
	}
}

// notifiedUnless is notified unless the channel is gone.
func (c client) notifiedUnless(gone bool, ch verbs.CompChannel) (verbs.CQEvent, bool) {
	c.Helper()
	if gone {
		_, err := ch.GetEvent(0)
		if !errors.Is(err, verbs.ErrClosed) {
			c.Errorf("GetEvent on a destroyed channel: %v", err)
		}
		return verbs.CQEvent{}, false
	}
	return c.notified(ch)
}

// TestContracts has, for each contract, a device that breaks it: a program sees
// that, and that it breaks no other.
func TestContracts(t *testing.T) {
	all := checks()
	if len(all) != len(simulated.Contracts()) {
		t.Errorf("%d checks for %d contracts", len(all), len(simulated.Contracts()))
	}
	for _, broken := range append(simulated.Contracts(), "") {
		t.Run("broken "+broken, func(t *testing.T) {
			p := like(t, "sim_ib0", func(d *simulated.DeviceProfile) {
				if broken != "" {
					d.Violate = []string{broken}
				}
			})
			for _, contract := range simulated.Contracts() {
				t.Run(contract, func(t *testing.T) {
					d := open(t, p)
					c := client{T: t, d: d, pd: must[verbs.PD](t)(d.AllocPD())}
					if got, want := all[contract](c), contract == broken; got != want {
						t.Errorf("broken: %t, want %t", got, want)
					}
				})
			}
		})
	}
}

// TestAllContracts has a device that breaks all contracts at once. Some are not
// to be seen then, but nothing crashes.
func TestAllContracts(t *testing.T) {
	d := open(t, like(t, "sim_rxe0", func(d *simulated.DeviceProfile) { d.Violate = simulated.Contracts() }))
	c := client{T: t, d: d, pd: must[verbs.PD](t)(d.AllocPD())}
	ch, other := c.channel(), c.channel()
	q := c.cq(ch)
	c.cq(other)
	qp := c.failing(q)
	ok(t, q.ReqNotify(false))
	c.flush(qp)
	if ev, is := c.notified(other); !is || ev.Context == cqContext {
		t.Errorf("event %t, %+v", is, ev)
	}
	ok(t, ch.Close())
	ok(t, q.Close())
	c.flush(qp)
	ok(t, qp.Close())
}

// TestMisreportedOnly has sizes that are said to be smaller than they are.
func TestMisreportedOnly(t *testing.T) {
	d := open(t, like(t, "sim_siw0", func(d *simulated.DeviceProfile) {
		d.Violate = []string{"cq_at_least_requested", "qp_at_least_requested", "qp_reports_actual"}
	}))
	pd := must[verbs.PD](t)(d.AllocPD())
	q := must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: 4}))
	qp := must[verbs.QP](t)(pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: q, RecvCQ: q, Cap: verbs.QPCap{MaxRecvWR: 4}}))
	if got := qp.Created().MaxRecvWR; q.Entries() != 3 || got != 3 {
		t.Errorf("%d entries and %d work requests, want 3", q.Entries(), got)
	}
	if got := must[verbs.QPQuery](t)(qp.Query()).Cap; got != (verbs.QPCap{MaxRecvWR: 5}) {
		t.Errorf("queried %+v, want 5 receives", got)
	}
	ok(t, qp.Modify(verbs.ToError()))
	for range 4 {
		ok(t, qp.PostRecv(verbs.RecvWR{}))
	}
	if wcs := must[[]verbs.WC](t)(q.Poll(8)); len(wcs) != 4 {
		t.Errorf("%d completions, want 4", len(wcs))
	}
}

// TestArmingBeforeTheFirst has a device whose CQs raise events before they are
// armed, but not after.
func TestArmingBeforeTheFirst(t *testing.T) {
	d := open(t, like(t, "sim_ib0", func(d *simulated.DeviceProfile) { d.Violate = []string{"notify_requires_arming"} }))
	c := client{T: t, d: d, pd: must[verbs.PD](t)(d.AllocPD())}
	ch := c.channel()
	q := c.cq(ch)
	qp := c.failing(q)
	var got []bool
	for i := range 5 {
		if i == 2 {
			ok(t, q.ReqNotify(true))
		}
		c.flush(qp)
		_, is := c.notified(ch)
		got = append(got, is)
	}
	if want := []bool{true, true, true, false, false}; !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}

// TestOneShotForgets has a device that goes on raising events: of what it was
// asked for last.
func TestOneShotForgets(t *testing.T) {
	d := open(t, like(t, "sim_ib0", func(d *simulated.DeviceProfile) { d.Violate = []string{"notify_one_shot"} }))
	r := client{T: t, d: d, pd: must[verbs.PD](t)(d.AllocPD())}.receiver()
	ok(t, r.cq.ReqNotify(false))
	for i, step := range []struct {
		arm   bool // for solicited completions
		flags verbs.SendFlags
		event bool
	}{
		{false, 0, true},
		{false, 0, true},
		{true, 0, false},
		{false, verbs.SendSolicited, true},
		{false, 0, false},
		{false, verbs.SendSolicited, true},
	} {
		if step.arm {
			ok(t, r.cq.ReqNotify(true))
		}
		r.message(step.flags)
		if got := r.notified(); got != step.event {
			t.Errorf("step %d: event %t, want %t", i, got, step.event)
		}
	}
}
