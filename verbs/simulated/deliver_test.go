package simulated_test

import (
	"errors"
	"slices"
	"syscall"
	"testing"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

const (
	remOpErr verbs.WCStatus = 11
)

// send is a signalled send of 8 bytes.
func send(e *end) verbs.SendWR {
	return verbs.SendWR{ID: 7, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{e.mr.SGE(0, 8)}}
}

func recv(e *end) verbs.RecvWR {
	return verbs.RecvWR{ID: 9, SGEs: []verbs.SGE{e.mr.SGE(1024, 8)}}
}

// TestFailedMessages has an RC connection over which one message fails.
func TestFailedMessages(t *testing.T) {
	foreign := func(t *testing.T, d verbs.Device) verbs.MR {
		t.Helper()
		return must[verbs.MR](t)(must[verbs.PD](t)(d.AllocPD()).RegMR(64, verbs.AccessLocalWrite))
	}
	none := verbs.WCStatus(-1)
	for _, test := range []struct {
		name             string
		send             func(*testing.T, verbs.Device, verbs.PD, *end, *verbs.SendWR)
		recv             func(*testing.T, verbs.Device, verbs.PD, *end, *verbs.RecvWR)
		sent, received   verbs.WCStatus
		sender, receiver verbs.QPState
	}{
		{"none", nil, nil, verbs.WCSuccess, verbs.WCSuccess, verbs.RTS, verbs.RTS},
		{
			"unknown key",
			func(_ *testing.T, _ verbs.Device, _ verbs.PD, _ *end, wr *verbs.SendWR) { wr.SGEs[0].LKey++ },
			nil, verbs.WCLocProtErr, none, verbs.Err, verbs.RTS,
		},
		{
			"beyond the end",
			func(_ *testing.T, _ verbs.Device, _ verbs.PD, _ *end, wr *verbs.SendWR) { wr.SGEs[0].Addr += 4089 },
			nil, verbs.WCLocProtErr, none, verbs.Err, verbs.RTS,
		},
		{
			"before the beginning",
			func(_ *testing.T, _ verbs.Device, _ verbs.PD, _ *end, wr *verbs.SendWR) { wr.SGEs[0].Addr-- },
			nil, verbs.WCLocProtErr, none, verbs.Err, verbs.RTS,
		},
		{
			"wrapping address",
			func(_ *testing.T, _ verbs.Device, _ verbs.PD, _ *end, wr *verbs.SendWR) {
				wr.SGEs[0].Addr = ^uint64(0) - 3
			},
			nil, verbs.WCLocProtErr, none, verbs.Err, verbs.RTS,
		},
		{
			"memory of another domain",
			func(t *testing.T, d verbs.Device, _ verbs.PD, _ *end, wr *verbs.SendWR) {
				wr.SGEs[0] = foreign(t, d).SGE(0, 8)
			},
			nil, verbs.WCLocProtErr, none, verbs.Err, verbs.RTS,
		},
		{
			"closed memory", func(t *testing.T, _ verbs.Device, _ verbs.PD, e *end, _ *verbs.SendWR) { ok(t, e.mr.Close()) },
			nil, verbs.WCLocProtErr, none, verbs.Err, verbs.RTS,
		},
		{
			"too much",
			func(_ *testing.T, _ verbs.Device, _ verbs.PD, e *end, wr *verbs.SendWR) {
				wr.SGEs = []verbs.SGE{e.mr.SGE(0, 8), e.mr.SGE(0, 8)}
				wr.SGEs[0].Length, wr.SGEs[1].Length = 1<<31, 1<<31
			},
			nil, verbs.WCLocLenErr, none, verbs.Err, verbs.RTS,
		},
		{
			"does not fit",
			func(_ *testing.T, _ verbs.Device, _ verbs.PD, e *end, wr *verbs.SendWR) { wr.SGEs[0] = e.mr.SGE(0, 9) },
			nil, verbs.WCRemInvReq, verbs.WCLocLenErr, verbs.Err, verbs.Err,
		},
		{
			"receive with unknown key", nil,
			func(_ *testing.T, _ verbs.Device, _ verbs.PD, _ *end, wr *verbs.RecvWR) { wr.SGEs[0].LKey = 0 },
			remOpErr, verbs.WCLocProtErr, verbs.Err, verbs.Err,
		},
		{
			"receive into read-only memory", nil,
			func(t *testing.T, _ verbs.Device, pd verbs.PD, _ *end, wr *verbs.RecvWR) {
				wr.SGEs[0] = must[verbs.MR](t)(pd.RegMR(64, 0)).SGE(0, 8)
			},
			remOpErr, verbs.WCLocProtErr, verbs.Err, verbs.Err,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := open(t, like(t, "sim_ib0", nil))
			pd := must[verbs.PD](t)(d.AllocPD())
			a, b := pair(t, d, pd, verbs.RC)
			rw := recv(b)
			if test.recv != nil {
				test.recv(t, d, pd, b, &rw)
			}
			ok(t, b.PostRecv(rw))
			sw := send(a)
			if test.send != nil {
				test.send(t, d, pd, a, &sw)
			}
			ok(t, a.PostSend(sw))
			if wc := one(t, a.send, test.sent); wc.ID != 7 || wc.QPNum != a.Number() {
				t.Errorf("completion of the send %+v", wc)
			}
			if test.received != none {
				if wc := one(t, b.recv, test.received); wc.ID != 9 || wc.QPNum != b.Number() {
					t.Errorf("completion of the receive %+v", wc)
				}
			}
			a.state(t, test.sender)
			b.state(t, test.receiver)
		})
	}
}

func TestReceiverNotReady(t *testing.T) {
	d := open(t, like(t, "sim_ib0", nil))
	pd := must[verbs.PD](t)(d.AllocPD())
	a, b := pair(t, d, pd, verbs.RC)
	ok(t, a.PostSend(send(a)))
	one(t, a.send, verbs.WCRNRRetryExc)
	a.state(t, verbs.Err)
	b.state(t, verbs.RTS)
}

func TestSendQueueSlots(t *testing.T) {
	d := open(t, like(t, "sim_ib0", nil))
	pd := must[verbs.PD](t)(d.AllocPD())
	a, b := pair(t, d, pd, verbs.RC)
	exchange := func(flags verbs.SendFlags) error {
		if err := b.PostRecv(recv(b)); err != nil {
			return err
		}
		wr := send(a)
		wr.Flags = flags
		return a.PostSend(wr)
	}
	for range 3 * qpCap.MaxSendWR { // unsignalled: the slot is free at once
		ok(t, exchange(0))
		one(t, b.recv, verbs.WCSuccess)
	}
	for range qpCap.MaxSendWR {
		ok(t, exchange(verbs.SendSignaled))
	}
	wantErrno(t, a.PostSend(send(a)), verbs.PostSend, syscall.ENOMEM)
	must[[]verbs.WC](t)(a.send.Poll(1))
	ok(t, exchange(verbs.SendSignaled))
	a.modify(t, verbs.QPAttr{State: verbs.Reset}, verbs.MaskState)
	must[[]verbs.WC](t)(a.send.Poll(16)) // of before the reset: frees nothing
	attr, mask := verbs.ToError()
	a.modify(t, attr, mask)
	for range qpCap.MaxSendWR {
		ok(t, a.PostSend(send(a)))
	}
	wantErrno(t, a.PostSend(send(a)), verbs.PostSend, syscall.ENOMEM)
}

func TestOverflow(t *testing.T) {
	d := open(t, like(t, "sim_siw0", nil)) // exact sizes
	pd := must[verbs.PD](t)(d.AllocPD())
	ch := must[verbs.CompChannel](t)(d.CreateCompChannel())
	c := must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: 2, Channel: ch}))
	q := must[verbs.QP](t)(pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, Cap: qpCap}))
	ok(t, q.Modify(verbs.ToError()))
	for i := range 4 {
		if i == 2 {
			ok(t, c.ReqNotify(false))
		}
		ok(t, q.PostRecv(verbs.RecvWR{ID: uint64(i)}))
	}
	if _, err := ch.GetEvent(0); !errors.Is(err, verbs.ErrTimeout) {
		t.Errorf("an event for a dropped completion: %v", err)
	}
	if wcs := must[[]verbs.WC](t)(c.Poll(16)); len(wcs) != 2 || wcs[0].ID != 0 || wcs[1].ID != 1 {
		t.Errorf("completions %+v", wcs)
	}
	ok(t, q.PostRecv(verbs.RecvWR{ID: 4}))
	if wc := one(t, c, verbs.WCWRFlushErr); wc.ID != 4 {
		t.Errorf("completion %+v", wc)
	}
	must[verbs.CQEvent](t)(ch.GetEvent(0))
	ok(t, c.AckEvents(1))
}

func TestUnreliable(t *testing.T) {
	d := open(t, like(t, "sim_ib0", nil))
	pd := must[verbs.PD](t)(d.AllocPD())
	a, b := pair(t, d, pd, verbs.UC)
	ok(t, a.PostSend(send(a))) // nobody is ready: lost
	one(t, a.send, verbs.WCSuccess)
	ok(t, b.PostRecv(recv(b)))
	long := send(a)
	long.SGEs[0] = a.mr.SGE(0, 9)
	ok(t, a.PostSend(long)) // does not fit: lost
	one(t, a.send, verbs.WCSuccess)
	none(t, b.recv)
	ok(t, a.PostSend(send(a)))
	one(t, b.recv, verbs.WCSuccess)
	one(t, a.send, verbs.WCSuccess)
	bad := send(a)
	bad.SGEs[0].LKey = 0
	ok(t, a.PostSend(bad))
	one(t, a.send, verbs.WCLocProtErr)
	a.state(t, verbs.SQE)
	ok(t, a.PostSend(send(a)))
	one(t, a.send, verbs.WCWRFlushErr)
}

func TestWrongPosts(t *testing.T) {
	d := open(t, like(t, "sim_ib0", nil))
	pd := must[verbs.PD](t)(d.AllocPD())
	a, b := pair(t, d, pd, verbs.RC)
	wr := send(a)
	wr.SGEs = append(wr.SGEs, wr.SGEs[0], wr.SGEs[0])
	wantErrno(t, a.PostSend(wr), verbs.PostSend, syscall.EINVAL)
	wr = send(a)
	wr.Flags |= verbs.SendInline
	wr.SGEs[0].Length = 33
	wantErrno(t, a.PostSend(wr), verbs.PostSend, syscall.EINVAL)
	wr.SGEs[0].Length, wr.SGEs[0].Addr = 8, 4096
	wantErrno(t, a.PostSend(wr), verbs.PostSend, syscall.EFAULT)
	rw := recv(b)
	rw.SGEs = append(rw.SGEs, rw.SGEs[0], rw.SGEs[0])
	wantErrno(t, b.PostRecv(rw), verbs.PostRecv, syscall.EINVAL)
	for range qpCap.MaxRecvWR {
		ok(t, b.PostRecv(recv(b)))
	}
	wantErrno(t, b.PostRecv(recv(b)), verbs.PostRecv, syscall.ENOMEM)
	fresh := newEnd(t, d, pd, verbs.RC)
	wantErrno(t, fresh.PostRecv(recv(fresh)), verbs.PostRecv, syscall.EINVAL)
	wantErrno(t, fresh.PostSend(send(fresh)), verbs.PostSend, syscall.EINVAL)
	c := must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: 1}))
	s := must[verbs.SRQ](t)(pd.CreateSRQ(verbs.SRQAttr{MaxWR: 1, MaxSGE: 1}))
	q := must[verbs.QP](t)(pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, SRQ: s, Cap: qpCap}))
	attr, mask := verbs.ToInit(verbs.RC, 1, verbs.AccessLocalWrite)
	ok(t, q.Modify(attr, mask))
	wantErrno(t, q.PostRecv(verbs.RecvWR{}), verbs.PostRecv, syscall.EINVAL)
	ok(t, s.PostRecv(verbs.RecvWR{}))
	wantErrno(t, s.PostRecv(verbs.RecvWR{}), verbs.PostSRQRecv, syscall.ENOMEM)
}

// TestTransitions tries every mask that lacks or adds one attribute.
func TestTransitions(t *testing.T) {
	d := open(t, like(t, "sim_ib0", func(p *simulated.DeviceProfile) { p.RawPacketNeedsPermission = false }))
	pd := must[verbs.PD](t)(d.AllocPD())
	ah := ahAttr(t, d)
	for _, typ := range verbs.QPTypes() {
		c := must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: 1}))
		q := must[verbs.QP](t)(pd.CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: c, RecvCQ: c, Cap: qpCap}))
		for _, step := range []func() (verbs.QPAttr, verbs.QPAttrMask){
			func() (verbs.QPAttr, verbs.QPAttrMask) { return verbs.ToInit(typ, 1, verbs.AccessLocalWrite) },
			func() (verbs.QPAttr, verbs.QPAttrMask) {
				return verbs.ToRTR(typ, verbs.Peer{AH: ah, QPN: 99, PathMTU: 1024})
			},
			func() (verbs.QPAttr, verbs.QPAttrMask) { return verbs.ToRTS(typ) },
		} {
			attr, mask := step()
			for bit := verbs.MaskAccess; bit <= verbs.MaskDestQPN; bit <<= 1 {
				if mask&bit == 0 {
					continue
				}
				wantErrno(t, q.Modify(attr, mask&^bit), verbs.ModifyQP, syscall.EINVAL)
			}
			wantErrno(t, q.Modify(attr, mask|1<<25), verbs.ModifyQP, syscall.EINVAL)
			before := must[verbs.QPQuery](t)(q.Query()).State
			for _, s := range []verbs.QPState{verbs.RTR, verbs.RTS, verbs.SQD, verbs.SQE, 7, -1} {
				if s == before || s == attr.State {
					continue
				}
				wantErrno(t, q.Modify(verbs.QPAttr{State: s}, verbs.MaskState), verbs.ModifyQP, syscall.EINVAL)
			}
			ok(t, q.Modify(attr, mask))
		}
		ok(t, q.Modify(verbs.ToError()))
		ok(t, q.Modify(verbs.ToReset()))
		ok(t, q.Close())
	}
}

// TestTwoOpenings has queue pairs of two openings of one device communicate, and
// each opening keep to its own objects.
func TestTwoOpenings(t *testing.T) {
	p := simulated.New(like(t, "sim_ib0", nil), nil)
	d1 := must[verbs.Device](t)(p.Open("sim_ib0"))
	d2 := must[verbs.Device](t)(p.Open("sim_ib0"))
	pd1, pd2 := must[verbs.PD](t)(d1.AllocPD()), must[verbs.PD](t)(d2.AllocPD())
	a, b := newEnd(t, d1, pd1, verbs.RC), newEnd(t, d2, pd2, verbs.RC)
	a.rtr(t, d1, b)
	b.rtr(t, d2, a)
	a.rts(t)
	ok(t, b.PostRecv(recv(b)))
	copy(a.mr.Bytes(), "openings")
	ok(t, a.PostSend(send(a)))
	one(t, b.recv, verbs.WCSuccess)
	if got := string(b.mr.Bytes()[1024:1032]); got != "openings" {
		t.Errorf("received %q", got)
	}
	_, err := pd2.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: a.send, RecvCQ: a.send})
	wantErrno(t, err, verbs.CreateQP, syscall.EINVAL)
}

// TestUnacknowledged has the destruction of a CQ refused where libibverbs would
// wait for ever.
func TestUnacknowledged(t *testing.T) {
	tracer := &calls{}
	d := must[verbs.Device](t)(simulated.New(like(t, "sim_ib0", nil), tracer).Open("sim_ib0"))
	pd := must[verbs.PD](t)(d.AllocPD())
	ch := must[verbs.CompChannel](t)(d.CreateCompChannel())
	c := must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: 4, Channel: ch, Context: 77}))
	q := must[verbs.QP](t)(pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, Cap: qpCap}))
	ok(t, q.Modify(verbs.ToError()))
	if _, err := ch.GetEvent(moment); !errors.Is(err, verbs.ErrTimeout) {
		t.Errorf("GetEvent without an event: %v", err)
	}
	if tracer.began(verbs.GetCQEvent) {
		t.Error("ibv_get_cq_event was called without an event")
	}
	ok(t, c.ReqNotify(true))
	ok(t, q.PostRecv(verbs.RecvWR{}))
	if ev := must[verbs.CQEvent](t)(ch.GetEvent(soon)); ev.CQ != c || ev.Context != 77 {
		t.Errorf("event %+v", ev)
	}
	ok(t, q.Close())
	err := c.Close()
	wantErrno(t, err, verbs.DestroyCQ, syscall.EBUSY)
	if !errors.Is(err, verbs.ErrUnacknowledged) {
		t.Errorf("error %v, want ErrUnacknowledged", err)
	}
	if tracer.began(verbs.DestroyCQ) {
		t.Error("ibv_destroy_cq was called")
	}
	wantErrno(t, c.AckEvents(2), verbs.AckCQEvents, syscall.EINVAL)
	ok(t, c.AckEvents(1))
	wantErrno(t, ch.Close(), verbs.DestroyCompChannel, syscall.EBUSY)
	ok(t, c.Close())
	ok(t, ch.Close())
}

func TestPortDown(t *testing.T) {
	d := open(t, like(t, "sim_ib0", func(p *simulated.DeviceProfile) { p.Ports[0].State = "down" }))
	pd := must[verbs.PD](t)(d.AllocPD())
	a, b := pair(t, d, pd, verbs.RC)
	ok(t, b.PostRecv(recv(b)))
	ok(t, a.PostSend(send(a)))
	one(t, a.send, verbs.WCRetryExc)
	a.state(t, verbs.Err)
	none(t, b.recv)
}

// TestDatagrams has UD queue pairs, of which the receiver listens or does not.
func TestDatagrams(t *testing.T) {
	const grh = 40
	group := verbs.GID{0: 0xff, 15: 9}
	const mlid = 0xc001
	for _, test := range []struct {
		name     string
		send     func(*verbs.SendWR, *end)
		room     int
		sent     verbs.WCStatus
		received bool
	}{
		{"arrives", nil, grh + 8, verbs.WCSuccess, true},
		{"wrong queue key", func(wr *verbs.SendWR, _ *end) { wr.RemoteQKey++ }, grh + 8, verbs.WCSuccess, false},
		{"to nobody", func(wr *verbs.SendWR, _ *end) { wr.RemoteQPN += 100 }, grh + 8, verbs.WCSuccess, false},
		{"does not fit", nil, grh + 7, verbs.WCSuccess, false},
		{"more than a packet", func(wr *verbs.SendWR, e *end) { wr.SGEs = []verbs.SGE{e.mr.SGE(0, 4096), e.mr.SGE(0, 1)} }, grh + 8, verbs.WCLocLenErr, false},
		{"to the group", func(wr *verbs.SendWR, _ *end) { wr.RemoteQPN = 0xffffff }, grh + 8, verbs.WCSuccess, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := open(t, like(t, "sim_ib0", nil))
			pd := must[verbs.PD](t)(d.AllocPD())
			a, b := newEnd(t, d, pd, verbs.UD), newEnd(t, d, pd, verbs.UD)
			a.rtr(t, d, b)
			b.rtr(t, d, a)
			a.rts(t)
			to := ahAttr(t, d)
			wr := send(a)
			wr.RemoteQPN, wr.RemoteQKey = b.Number(), verbs.UDQKey
			if test.send != nil {
				test.send(&wr, a)
			}
			if wr.RemoteQPN == 0xffffff {
				to.DGID, to.DLID = group, mlid
				ok(t, b.AttachMulticast(group, mlid))
			}
			wr.AH = must[verbs.AH](t)(pd.CreateAH(to))
			copy(a.mr.Bytes(), "datagram")
			ok(t, b.PostRecv(verbs.RecvWR{ID: 9, SGEs: []verbs.SGE{b.mr.SGE(0, test.room)}}))
			ok(t, a.PostSend(wr))
			one(t, a.send, test.sent)
			if !test.received {
				none(t, b.recv)
				return
			}
			wc := one(t, b.recv, verbs.WCSuccess)
			if wc.ByteLen != grh+8 || wc.SrcQP != a.Number() {
				t.Errorf("completion %+v", wc)
			}
			buf := b.mr.Bytes()
			if got := string(buf[grh : grh+8]); got != "datagram" {
				t.Errorf("received %q", got)
			}
			if got := verbs.GID(buf[24:40]); got != to.DGID || buf[0]>>4 != 6 {
				t.Errorf("header %x", buf[:grh])
			}
		})
	}
}

// TestReliableDatagrams has SRD queue pairs: whatever becomes of a send, the sender is
// told, and goes on.
func TestReliableDatagrams(t *testing.T) {
	const remInvRdReq, respTimeout verbs.WCStatus = 15, 20
	for _, test := range []struct {
		name string
		send func(*verbs.SendWR, *verbs.AHAttr)
		room int // no receive if negative
		want verbs.WCStatus
		recv verbs.WCStatus // nothing is received if negative
	}{
		{"arrives", nil, 8, verbs.WCSuccess, verbs.WCSuccess},
		{"wrong queue key", func(wr *verbs.SendWR, _ *verbs.AHAttr) { wr.RemoteQKey++ }, 8, remInvRdReq, -1},
		{"to nobody", func(wr *verbs.SendWR, _ *verbs.AHAttr) { wr.RemoteQPN += 100 }, 8, remInvRdReq, -1},
		{"to another port", func(_ *verbs.SendWR, to *verbs.AHAttr) { to.DGID[15]++ }, 8, respTimeout, -1},
		{"without a receive", nil, -1, verbs.WCRNRRetryExc, -1},
		{"does not fit", nil, 7, verbs.WCRemInvReq, verbs.WCLocLenErr},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := open(t, like(t, "sim_ib0", func(p *simulated.DeviceProfile) { p.QPTypes = []string{"SRD"} }))
			pd := must[verbs.PD](t)(d.AllocPD())
			a, b := pair(t, d, pd, verbs.SRD)
			wr, to := send(a), ahAttr(t, d)
			wr.RemoteQPN, wr.RemoteQKey = b.Number(), verbs.UDQKey
			if test.send != nil {
				test.send(&wr, &to)
			}
			wr.AH = must[verbs.AH](t)(pd.CreateAH(to))
			copy(a.mr.Bytes(), "reliable")
			if test.room >= 0 {
				ok(t, b.PostRecv(verbs.RecvWR{ID: 9, SGEs: []verbs.SGE{b.mr.SGE(0, test.room)}}))
			}
			ok(t, a.PostSend(wr))
			one(t, a.send, test.want)
			a.state(t, verbs.RTS)
			b.state(t, verbs.RTS)
			if test.recv < 0 {
				none(t, b.recv)
				return
			}
			wc := one(t, b.recv, test.recv)
			if wc.Status == verbs.WCSuccess && (wc.ByteLen != 8 || wc.SrcQP != a.Number() || string(b.mr.Bytes()[:8]) != "reliable") {
				t.Errorf("completion %+v of %q", wc, b.mr.Bytes()[:8])
			}
		})
	}
}

// TestTypesOfDrivers: a type of one driver alone is one that a device may have if its
// profile lists it.
func TestTypesOfDrivers(t *testing.T) {
	for _, test := range []struct{ listed, want []verbs.QPType }{
		{[]verbs.QPType{verbs.RC}, verbs.QPTypes()},
		{[]verbs.QPType{verbs.SRD, verbs.UD}, append(verbs.QPTypes(), verbs.SRD)},
	} {
		d := open(t, like(t, "sim_ib0", func(p *simulated.DeviceProfile) {
			p.QPTypes = nil
			for _, typ := range test.listed {
				p.QPTypes = append(p.QPTypes, typ.String())
			}
		}))
		if got := d.QPTypes(); !slices.Equal(got, test.want) {
			t.Errorf("with %v: QPTypes = %v, want %v", test.listed, got, test.want)
		}
	}
}

// TestBrokenDatagramReceiver has a UD receive whose memory is not valid.
func TestBrokenDatagramReceiver(t *testing.T) {
	d := open(t, like(t, "sim_ib0", nil))
	pd := must[verbs.PD](t)(d.AllocPD())
	a, b := newEnd(t, d, pd, verbs.UD), newEnd(t, d, pd, verbs.UD)
	a.rtr(t, d, b)
	b.rtr(t, d, a)
	a.rts(t)
	bad := verbs.RecvWR{SGEs: []verbs.SGE{b.mr.SGE(0, 100)}}
	bad.SGEs[0].LKey = 0
	ok(t, b.PostRecv(bad))
	wr := send(a)
	wr.AH = must[verbs.AH](t)(pd.CreateAH(ahAttr(t, d)))
	wr.RemoteQPN, wr.RemoteQKey = b.Number(), verbs.UDQKey
	ok(t, a.PostSend(wr))
	one(t, a.send, verbs.WCSuccess)
	one(t, b.recv, verbs.WCLocProtErr)
	b.state(t, verbs.Err)
}
