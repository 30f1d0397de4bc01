package verbstest

import (
	"bytes"
	"errors"
	"testing"

	"rdma_exporter/verbs"
)

// room is the size of the two halves of a peer's buffer: it sends from the
// first and receives into the second.
const room = 128 << 10

// peer is one of two connected QPs.
type peer struct {
	*qp
	send, recv *cq
	events     *channel
	shared     *srq
	buf        *mr
}

func (p *peer) outbox() []byte { return p.buf.Bytes()[:room] }
func (p *peer) inbox() []byte  { return p.buf.Bytes()[room:] }

// expect posts one receive of the whole inbox, after clearing it.
func (p *peer) expect(id uint64) {
	p.b.t.Helper()
	clear(p.inbox())
	wr := verbs.RecvWR{ID: id, SGEs: []verbs.SGE{p.buf.SGE(room, room)}}
	post := p.PostRecv
	if p.shared != nil {
		post = p.shared.PostRecv
	}
	wantNoError(p.b.t, "PostRecv", post(wr))
}

// mustSend posts one send work request.
func (p *peer) mustSend(wr verbs.SendWR) {
	p.b.t.Helper()
	wantNoError(p.b.t, "PostSend", p.PostSend(wr))
}

// link says what the two peers are to be like.
type link struct {
	typ       verbs.QPType
	signalAll bool
	inline    uint32
	shared    bool // receive from SRQs
	tellSent  bool // the send CQs have the peer's channel too
	// fields are those of extended completions of receives.
	fields verbs.WCFields
}

// connect returns two QPs on one port that are each other's peers. It skips the
// test if the device cannot have them.
func (s *suite) connect(t *testing.T, d *device, l link) (a, b *peer) {
	t.Helper()
	s.requireType(t, l.typ)
	s.requirePort(t)
	way := d.mustPath()
	p := d.mustPD()
	sizes := smallCap()
	sizes.MaxInlineData = l.inline
	newPeer := func() *peer {
		e := &peer{events: d.mustChannel()}
		if l.tellSent {
			e.send = d.mustCQ(32, e.events, contextB)
		} else {
			e.send = d.mustCQ(32, nil, 0)
		}
		var err error
		e.recv, err = d.CreateCQ(verbs.CQInitAttr{Entries: 32, Channel: e.events, Context: contextA, Fields: l.fields})
		if l.fields != 0 && verbs.IsNotSupported(err) {
			t.Skipf("%s has no extended CQs: %v", d.device, err)
		}
		if err != nil {
			t.Fatalf("CreateCQ: %v", err)
		}
		e.buf = p.mustMR(2 * room)
		attr := verbs.QPInitAttr{
			Type: l.typ, SendCQ: e.send, RecvCQ: e.recv, Cap: sizes, SignalAll: l.signalAll,
		}
		if l.shared {
			e.shared = p.mustSRQ(verbs.SRQAttr{MaxWR: 8, MaxSGE: 1})
			attr.SRQ = e.shared
		}
		q := must(p.CreateQP(attr))(t, "CreateQP(%+v)", attr)
		e.qp = q
		e.mustModify(verbs.ToInit(l.typ, 1, access))
		return e
	}
	a, b = newPeer(), newPeer()
	for _, e := range [][2]*peer{{a, b}, {b, a}} {
		err := e[0].Modify(verbs.ToRTR(l.typ, verbs.Peer{AH: way.ah, QPN: e[1].raw.Number(), PathMTU: way.mtu}))
		if err != nil && d.raw.Transport() == verbs.TransportIWARP {
			t.Skipf("%s speaks iWARP, which connects through a connection manager only: %v", d.device, err)
		}
		if err != nil {
			t.Fatalf("Modify to RTR: %v", err)
		}
		e[0].mustModify(verbs.ToRTS(l.typ))
	}
	return a, b
}

// transfer sends n bytes and checks all that there is to see of it.
func transfer(t *testing.T, from, to *peer, id uint64, n int) {
	t.Helper()
	to.expect(^id)
	fill(from.outbox()[:n], byte(id))
	wr := verbs.SendWR{ID: id, Flags: verbs.SendSignaled}
	if n > 0 {
		wr.SGEs = []verbs.SGE{from.buf.SGE(0, n)}
	}
	from.mustSend(wr)
	wantReceived(t, to.qp, to.recv.await(1)[0], ^id, n)
	wantSent(t, from.qp, from.send.await(1)[0], id)
	wantInbox(t, to, from.outbox()[:n])
}

// loopback tests the exchange of messages between connected QPs on one port.
func (s *suite) loopback(t *testing.T) {
	entered, ran, iwarp := 0, 0, false
	run := func(name string, test func(t *testing.T, d *device)) {
		t.Helper()
		s.run(t, name, func(t *testing.T, d *device) {
			entered++
			iwarp = d.raw.Transport() == verbs.TransportIWARP
			defer func() {
				if !t.Skipped() {
					ran++
				}
			}()
			test(t, d)
		})
	}
	run("RC send", func(t *testing.T, d *device) {
		a, b := s.connect(t, d, link{typ: verbs.RC})
		for i, n := range []int{0, 1, 64, 1023, 4097, room} {
			transfer(t, a, b, uint64(i)<<40|7, n)
			transfer(t, b, a, uint64(i)<<40|8, n)
		}
		a.recv.mustBeEmpty()
		a.send.mustBeEmpty()
	})
	run("RC send, extended completions", func(t *testing.T, d *device) {
		extended := must(d.QueryExtended())(t, "QueryExtended")
		fields := verbs.WCStandard
		if extended.TimestampMask != 0 {
			fields |= verbs.WCTimestamp
		}
		a, b := s.connect(t, d, link{typ: verbs.RC, fields: fields})
		for i, n := range []int{0, 1, 4097} {
			transfer(t, a, b, uint64(i), n)
		}
		b.recv.mustBeEmpty()
		// Several that wait, and one that fails. They are polled one at a time, for a batch that
		// comes to the end is a contract which not every library keeps.
		for id := range uint64(3) {
			b.expect(id)
			a.mustSend(verbs.SendWR{ID: id, Flags: verbs.SendSignaled})
			a.send.await(1)
		}
		last := uint64(0)
		for id := range uint64(3) {
			wc := b.recv.await(1)[0]
			wantReceived(t, b.qp, wc, id, 0)
			if wc.Timestamp > extended.TimestampMask || wc.Timestamp < last {
				t.Errorf("timestamp %d after %d, of at most %#x", wc.Timestamp, last, extended.TimestampMask)
			}
			last = wc.Timestamp
		}
		b.expect(9)
		b.mustModify(verbs.ToError())
		wantFlushed(t, b.qp, b.recv.await(1), 9)
	})
	run("UC send", func(t *testing.T, d *device) {
		a, b := s.connect(t, d, link{typ: verbs.UC})
		for i, n := range []int{1, 64, 4097} {
			transfer(t, a, b, uint64(i), n)
			transfer(t, b, a, uint64(i)|1<<63, n)
		}
	})
	run("SRQ", func(t *testing.T, d *device) {
		a, b := s.connect(t, d, link{typ: verbs.RC, shared: true})
		for i := range uint64(20) {
			transfer(t, a, b, i, 100)
			transfer(t, b, a, i, 200)
		}
	})
	run("order", func(t *testing.T, d *device) {
		a, b := s.connect(t, d, link{typ: verbs.RC})
		for range 10 {
			for i := range 4 {
				wr := verbs.RecvWR{ID: uint64(10 + i), SGEs: []verbs.SGE{b.buf.SGE(room+8*i, 8)}}
				wantNoError(t, "PostRecv", b.PostRecv(wr))
			}
			fill(a.outbox()[:32], 3)
			for i := range 4 {
				a.mustSend(verbs.SendWR{
					ID: uint64(i), Flags: verbs.SendSignaled, SGEs: []verbs.SGE{a.buf.SGE(8*i, 8)},
				})
			}
			for i, wc := range b.recv.await(4) {
				wantReceived(t, b.qp, wc, uint64(10+i), 8)
			}
			for i, wc := range a.send.await(4) {
				wantSent(t, a.qp, wc, uint64(i))
			}
			wantInbox(t, b, a.outbox()[:32])
		}
	})
	run("gather and scatter", func(t *testing.T, d *device) {
		a, b := s.connect(t, d, link{typ: verbs.RC})
		fill(a.outbox(), 1)
		clear(b.inbox())
		wr := verbs.RecvWR{ID: 1, SGEs: []verbs.SGE{b.buf.SGE(room+100, 30), b.buf.SGE(room+500, 200)}}
		wantNoError(t, "PostRecv", b.PostRecv(wr))
		a.mustSend(verbs.SendWR{
			ID: 2, Flags: verbs.SendSignaled,
			SGEs: []verbs.SGE{a.buf.SGE(1000, 50), a.buf.SGE(0, 70)},
		})
		wantReceived(t, b.qp, b.recv.await(1)[0], 1, 120)
		a.send.await(1)
		sent := append(bytes.Clone(a.outbox()[1000:1050]), a.outbox()[:70]...)
		want := make([]byte, room)
		copy(want[100:], sent[:30])
		copy(want[500:], sent[30:])
		if !bytes.Equal(b.inbox(), want) {
			t.Error("the bytes were not gathered and scattered as asked")
		}
	})
	run("inline", func(t *testing.T, d *device) {
		a, b := s.connect(t, d, link{typ: verbs.RC, inline: 32})
		if got := a.raw.Created().MaxInlineData; got < 32 {
			t.Skipf("%d inline bytes given of 32", got)
		}
		want := make([]byte, 32)
		fill(want, 9)
		copy(a.outbox(), want)
		b.expect(1)
		sge := a.buf.SGE(0, 32)
		sge.LKey = 0 // does not matter to inline data
		a.mustSend(verbs.SendWR{
			ID: 2, Flags: verbs.SendSignaled | verbs.SendInline, SGEs: []verbs.SGE{sge},
		})
		clear(a.outbox()) // the data was taken when it was posted
		wantReceived(t, b.qp, b.recv.await(1)[0], 1, 32)
		wantSent(t, a.qp, a.send.await(1)[0], 2)
		wantInbox(t, b, want)
		tooMuch := int(a.raw.Created().MaxInlineData) + 1
		if tooMuch <= room {
			wantError(t, "PostSend of too much inline data", a.PostSend(verbs.SendWR{
				ID: 3, Flags: verbs.SendSignaled | verbs.SendInline,
				SGEs: []verbs.SGE{a.buf.SGE(0, tooMuch)},
			}))
		}
	})
	run("unsignalled", func(t *testing.T, d *device) {
		a, b := s.connect(t, d, link{typ: verbs.RC})
		for id := range uint64(3) {
			b.expect(id)
			a.mustSend(verbs.SendWR{ID: id, SGEs: []verbs.SGE{a.buf.SGE(0, 8)}})
			wantReceived(t, b.qp, b.recv.await(1)[0], id, 8)
		}
		a.send.mustBeEmpty()
		transfer(t, a, b, 77, 8)
		a.send.mustBeEmpty()
	})
	run("signal all", func(t *testing.T, d *device) {
		a, b := s.connect(t, d, link{typ: verbs.RC, signalAll: true})
		for id := range uint64(3) {
			b.expect(id)
			a.mustSend(verbs.SendWR{ID: id, SGEs: []verbs.SGE{a.buf.SGE(0, 8)}})
			wantReceived(t, b.qp, b.recv.await(1)[0], id, 8)
			wantSent(t, a.qp, a.send.await(1)[0], id)
		}
	})
	run("event", func(t *testing.T, d *device) {
		a, b := s.connect(t, d, link{typ: verbs.RC})
		for id := range uint64(3) {
			b.expect(id)
			b.recv.mustArm(false)
			a.mustSend(verbs.SendWR{ID: id, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{a.buf.SGE(0, 8)}})
			b.events.awaitEvent(b.recv)
			wantReceived(t, b.qp, b.recv.await(1)[0], id, 8)
		}
		b.events.mustBeQuiet()
		wantNoError(t, "AckEvents(3)", b.recv.AckEvents(3))
	})
	run("solicited event", func(t *testing.T, d *device) {
		a, b := s.connect(t, d, link{typ: verbs.RC})
		wr := verbs.SendWR{ID: 1, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{a.buf.SGE(0, 8)}}
		b.expect(1)
		b.recv.mustArm(true)
		a.mustSend(wr)
		b.recv.await(1)
		if ev, err := b.events.GetEvent(moment); !errors.Is(err, verbs.ErrTimeout) {
			t.Errorf("armed for solicited: event %+v, %v for a message that is not", ev, err)
		}
		b.expect(2)
		wr.Flags |= verbs.SendSolicited
		a.mustSend(wr)
		b.events.awaitEvent(b.recv)
		wantReceived(t, b.qp, b.recv.await(1)[0], 2, 8)
	})
	run("peer gone", func(t *testing.T, d *device) {
		a, b := s.connect(t, d, link{typ: verbs.RC})
		transfer(t, a, b, 1, 8)
		b.mustClose()
		a.mustSend(verbs.SendWR{ID: 2, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{a.buf.SGE(0, 8)}})
		if wc := a.send.await(1)[0]; wc.ID != 2 || wc.Status == verbs.WCSuccess {
			t.Errorf("completion %+v of a send to a closed QP", wc)
		}
	})
	if s.cfg.PortActive && s.offers(verbs.RC) && !iwarp && entered > 0 && ran == 0 {
		t.Errorf("every loopback test of %s was skipped, though its port is active", s.cfg.Device)
	}
}

// fill fills b with a pattern that repeats late and differs with the seed.
func fill(b []byte, seed byte) {
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)*31 + seed | 1
	}
}

// wantSent checks the completion of a send work request.
func wantSent(t *testing.T, q *qp, wc verbs.WC, id uint64) {
	t.Helper()
	if wc.ID != id || wc.Status != verbs.WCSuccess || wc.QPNum != q.raw.Number() {
		t.Errorf("completion of a send: %s %+v; want ID %#x, success, QP %d", wc.Status, wc, id, q.raw.Number())
	}
}

// wantReceived checks the completion of a receive work request.
func wantReceived(t *testing.T, q *qp, wc verbs.WC, id uint64, n int) {
	t.Helper()
	if wc.ID != id || wc.Status != verbs.WCSuccess || wc.QPNum != q.raw.Number() ||
		wc.ByteLen != uint32(n) {
		t.Errorf("completion of a receive: %s %+v; want ID %#x, success, QP %d, %d bytes",
			wc.Status, wc, id, q.raw.Number(), n)
	}
}

// wantInbox checks that the inbox begins with what was sent, and goes on empty.
func wantInbox(t *testing.T, p *peer, want []byte) {
	t.Helper()
	in := p.inbox()
	if !bytes.Equal(in[:len(want)], want) {
		t.Errorf("%d bytes did not arrive as they were sent", len(want))
	}
	if n := bytes.Count(in[len(want):], []byte{0}); n != len(in)-len(want) {
		t.Errorf("%d bytes beyond the %d sent were written", len(in)-len(want)-n, len(want))
	}
}
