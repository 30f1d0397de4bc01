package simulated_test

import (
	"errors"
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

// failure is what a message is to fail with.
type failure struct {
	*testing.T
	d  verbs.Device
	pd verbs.PD
	a  *end
}

// TestFailedMessages has an RC connection over which one message fails.
func TestFailedMessages(t *testing.T) {
	none := verbs.WCStatus(-1)
	for _, test := range []struct {
		name             string
		send             func(*failure, *verbs.SGE)
		recv             func(*failure, *verbs.SGE)
		sent, received   verbs.WCStatus
		sender, receiver verbs.QPState
	}{
		{"none", nil, nil, verbs.WCSuccess, verbs.WCSuccess, verbs.RTS, verbs.RTS},
		{"unknown key", func(_ *failure, s *verbs.SGE) { s.LKey++ }, nil, verbs.WCLocProtErr, none, verbs.Err, verbs.RTS},
		{"beyond the end", func(_ *failure, s *verbs.SGE) { s.Addr += 4089 }, nil, verbs.WCLocProtErr, none, verbs.Err, verbs.RTS},
		{"before the beginning", func(_ *failure, s *verbs.SGE) { s.Addr-- }, nil, verbs.WCLocProtErr, none, verbs.Err, verbs.RTS},
		{"wrapping address", func(_ *failure, s *verbs.SGE) { s.Addr = ^uint64(0) - 3 }, nil, verbs.WCLocProtErr, none, verbs.Err, verbs.RTS},
		{
			"memory of another domain",
			func(f *failure, s *verbs.SGE) {
				*s = must(must(f.d.AllocPD())(f.T).RegMR(64, verbs.AccessLocalWrite))(f.T).SGE(0, 8)
			},
			nil, verbs.WCLocProtErr, none, verbs.Err, verbs.RTS,
		},
		{"closed memory", func(f *failure, _ *verbs.SGE) { ok(f.T, f.a.mr.Close()) }, nil, verbs.WCLocProtErr, none, verbs.Err, verbs.RTS},
		{
			"does not fit", func(f *failure, s *verbs.SGE) { *s = f.a.mr.SGE(0, 9) },
			nil, verbs.WCRemInvReq, verbs.WCLocLenErr, verbs.Err, verbs.Err,
		},
		{
			"receive with unknown key", nil, func(_ *failure, s *verbs.SGE) { s.LKey = 0 },
			remOpErr, verbs.WCLocProtErr, verbs.Err, verbs.Err,
		},
		{
			"receive into read-only memory", nil,
			func(f *failure, s *verbs.SGE) { *s = must(f.pd.RegMR(64, 0))(f.T).SGE(0, 8) },
			remOpErr, verbs.WCLocProtErr, verbs.Err, verbs.Err,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, pd, a, b := connected(t, verbs.RC, nil)
			f := &failure{t, d, pd, a}
			rw, sw := recv(b), send(a)
			if test.recv != nil {
				test.recv(f, &rw.SGEs[0])
			}
			ok(t, b.PostRecv(rw))
			if test.send != nil {
				test.send(f, &sw.SGEs[0])
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
	_, _, a, b := connected(t, verbs.RC, nil)
	ok(t, a.PostSend(send(a)))
	one(t, a.send, verbs.WCRNRRetryExc)
	a.state(t, verbs.Err)
	b.state(t, verbs.RTS)
}

func TestSendQueueSlots(t *testing.T) {
	_, _, a, b := connected(t, verbs.RC, nil)
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
	must(a.send.Poll(1))(t)
	ok(t, exchange(verbs.SendSignaled))
	a.modify(t, verbs.QPAttr{State: verbs.Reset}, verbs.MaskState)
	must(a.send.Poll(16))(t) // of before the reset: frees nothing
	attr, mask := verbs.ToError()
	a.modify(t, attr, mask)
	for range qpCap.MaxSendWR {
		ok(t, a.PostSend(send(a)))
	}
	wantErrno(t, a.PostSend(send(a)), verbs.PostSend, syscall.ENOMEM)
}

func TestOverflow(t *testing.T) {
	d := open(t, like(t, "sim_siw0", nil)) // exact sizes
	pd := must(d.AllocPD())(t)
	ch := must(d.CreateCompChannel())(t)
	c := must(d.CreateCQ(verbs.CQInitAttr{Entries: 2, Channel: ch}))(t)
	q := must(pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, Cap: qpCap}))(t)
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
	if wcs := must(c.Poll(16))(t); len(wcs) != 2 || wcs[0].ID != 0 || wcs[1].ID != 1 {
		t.Errorf("completions %+v", wcs)
	}
	ok(t, q.PostRecv(verbs.RecvWR{ID: 4}))
	if wc := one(t, c, verbs.WCWRFlushErr); wc.ID != 4 {
		t.Errorf("completion %+v", wc)
	}
	must(ch.GetEvent(0))(t)
	ok(t, c.AckEvents(1))
}

func TestUnreliable(t *testing.T) {
	_, _, a, b := connected(t, verbs.UC, nil)
	ok(t, a.PostSend(send(a))) // no receive is posted: lost
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
	d, pd, a, b := connected(t, verbs.RC, nil)
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
	c := must(d.CreateCQ(verbs.CQInitAttr{Entries: 1}))(t)
	s := must(pd.CreateSRQ(verbs.SRQAttr{MaxWR: 1, MaxSGE: 1}))(t)
	q := must(pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, SRQ: s, Cap: qpCap}))(t)
	attr, mask := verbs.ToInit(verbs.RC, 1, verbs.AccessLocalWrite)
	ok(t, q.Modify(attr, mask))
	wantErrno(t, q.PostRecv(verbs.RecvWR{}), verbs.PostRecv, syscall.EINVAL)
	ok(t, s.PostRecv(verbs.RecvWR{}))
	wantErrno(t, s.PostRecv(verbs.RecvWR{}), verbs.PostSRQRecv, syscall.ENOMEM)
}

func TestPortDown(t *testing.T) {
	_, _, a, b := connected(t, verbs.RC, func(p *simulated.DeviceProfile) { p.Ports[0].State = "down" })
	ok(t, b.PostRecv(recv(b)))
	ok(t, a.PostSend(send(a)))
	one(t, a.send, verbs.WCRetryExc)
	a.state(t, verbs.Err)
	none(t, b.recv)
}

// TestReliableDatagrams verifies that the sender of an SRD message gets a completion,
// and goes on.
func TestReliableDatagrams(t *testing.T) {
	for _, test := range []struct {
		name string
		send func(*verbs.SendWR, *verbs.AHAttr)
		room int // no receive if negative
		want verbs.WCStatus
		recv verbs.WCStatus // nothing is received if negative
	}{
		{"arrives", nil, 8, verbs.WCSuccess, verbs.WCSuccess},
		{"wrong queue key", func(wr *verbs.SendWR, _ *verbs.AHAttr) { wr.RemoteQKey++ }, 8, verbs.WCRetryExc, -1},
		{"to no queue pair", func(wr *verbs.SendWR, _ *verbs.AHAttr) { wr.RemoteQPN += 100 }, 8, verbs.WCRetryExc, -1},
		{"to another port", func(_ *verbs.SendWR, to *verbs.AHAttr) { to.DGID[15]++ }, 8, verbs.WCRetryExc, -1},
		{"without a receive", nil, -1, verbs.WCRNRRetryExc, -1},
		{"does not fit", nil, 7, verbs.WCRemInvReq, verbs.WCLocLenErr},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, pd, a, b := connected(t, verbs.SRD, func(p *simulated.DeviceProfile) { p.QPTypes = []string{"SRD"} })
			wr, to := send(a), ahAttr(t, d)
			wr.RemoteQPN, wr.RemoteQKey = b.Number(), verbs.UDQKey
			if test.send != nil {
				test.send(&wr, &to)
			}
			wr.AH = must(pd.CreateAH(to))(t)
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

// TestBrokenDatagramReceiver has a UD receive whose memory is not valid.
func TestBrokenDatagramReceiver(t *testing.T) {
	d := open(t, like(t, "sim_ib0", nil))
	pd := must(d.AllocPD())(t)
	a, b := newEnd(t, d, pd, verbs.UD), newEnd(t, d, pd, verbs.UD)
	a.rtr(t, d, b)
	b.rtr(t, d, a)
	a.rts(t)
	bad := verbs.RecvWR{SGEs: []verbs.SGE{b.mr.SGE(0, 100)}}
	bad.SGEs[0].LKey = 0
	ok(t, b.PostRecv(bad))
	wr := send(a)
	wr.AH = must(pd.CreateAH(ahAttr(t, d)))(t)
	wr.RemoteQPN, wr.RemoteQKey = b.Number(), verbs.UDQKey
	ok(t, a.PostSend(wr))
	one(t, a.send, verbs.WCSuccess)
	one(t, b.recv, verbs.WCLocProtErr)
	b.state(t, verbs.Err)
}
