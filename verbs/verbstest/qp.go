package verbstest

import (
	"math"
	"slices"
	"syscall"
	"testing"

	"rdma_exporter/verbs"
)

// qp tests queue pairs of each type.
func (s *suite) qp(t *testing.T) {
	for _, typ := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD, verbs.SRD} {
		t.Run(typ.String(), func(t *testing.T) {
			if !s.offers(typ) {
				s.run(t, "not offered", func(t *testing.T, d *device) {
					c := d.mustCQ(4, nil, 0)
					_, err := d.mustPD().CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: c, RecvCQ: c, Cap: smallCap()})
					wantError(t, "CreateQP", err)
					if !slices.Contains(s.types, typ) {
						wantErrno(t, "CreateQP of another driver's type", err, syscall.EOPNOTSUPP)
						if calls := d.b.rec.since(0, verbs.CreateQP); len(calls) > 0 {
							t.Errorf("CreateQP of another driver's type called the device: %+v", calls)
						}
					}
				})
				return
			}
			s.qpCreation(t, typ)
			s.qpStates(t, typ)
			s.qpFlush(t, typ)
		})
	}
}

func (s *suite) qpCreation(t *testing.T, typ verbs.QPType) {
	s.run(t, "create and close", func(t *testing.T, d *device) {
		p := d.mustPD()
		send, recv := d.mustCQ(16, nil, 0), d.mustCQ(16, nil, 0)
		numbers := make(map[uint32]bool)
		for range 4 {
			q := p.mustQP(typ, send, recv)
			if n := q.raw.Number(); n == 0 || n >= 1<<24 || numbers[n] {
				t.Errorf("Number = %d, others %v: want one of 24 bits of its own", n, numbers)
			}
			numbers[q.raw.Number()] = true
			if got := q.raw.Type(); got != typ {
				t.Errorf("Type = %s, want %s", got, typ)
			}
			got := q.raw.Created()
			if got.MaxSendWR == 0 || got.MaxRecvWR == 0 || got.MaxSendSGE == 0 || got.MaxRecvSGE == 0 {
				t.Errorf("Created = %+v, asked %+v", got, smallCap())
			}
			now := must(q.Query())(t, "Query")
			if now.State != verbs.Reset {
				t.Errorf("state of a new QP is %s", now.State)
			}
			if now.Cap.MaxSendWR == 0 || now.Cap.MaxRecvWR == 0 {
				t.Errorf("Query: Cap = %+v, asked %+v", now.Cap, smallCap())
			}
		}
	})
	s.run(t, "closed", func(t *testing.T, d *device) {
		p := d.mustPD()
		c := d.mustCQ(16, nil, 0)
		m := p.mustMR(64)
		q := p.mustQP(typ, c, c)
		number, created := q.raw.Number(), q.raw.Created()
		q.mustClose()
		q.mustClose()
		wantClosed(t, "Query", errorOf(q.Query()))
		wantClosed(t, "Modify", q.Modify(verbs.ToError()))
		wantClosed(t, "PostSend", q.PostSend(verbs.SendWR{SGEs: []verbs.SGE{m.SGE(0, 8)}}))
		wantClosed(t, "PostRecv", q.PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{m.SGE(0, 8)}}))
		if q.raw.Number() != number || q.raw.Type() != typ || q.raw.Created() != created {
			t.Error("Number, Type or Created changed with Close")
		}
	})
	s.run(t, "signal all", func(t *testing.T, d *device) {
		p := d.mustPD()
		c := d.mustCQ(16, nil, 0)
		for _, all := range []bool{false, true} {
			q := must(p.CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: c, RecvCQ: c, Cap: smallCap(), SignalAll: all}))(t, "CreateQP")
			if got, err := q.Query(); err != nil || got.SignalAll != all && !s.cfg.SignalAllUntold {
				t.Errorf("Query: SignalAll = %t, %v; want %t", got.SignalAll, err, all)
			}
		}
	})
	s.run(t, "sizes out of range", func(t *testing.T, d *device) {
		p := d.mustPD()
		c := d.mustCQ(16, nil, 0)
		for name, change := range map[string]func(*verbs.QPCap){
			"MaxSendWR":     func(c *verbs.QPCap) { c.MaxSendWR = math.MaxUint32 },
			"MaxRecvWR":     func(c *verbs.QPCap) { c.MaxRecvWR = math.MaxUint32 },
			"MaxSendSGE":    func(c *verbs.QPCap) { c.MaxSendSGE = math.MaxUint32 },
			"MaxRecvSGE":    func(c *verbs.QPCap) { c.MaxRecvSGE = math.MaxUint32 },
			"MaxInlineData": func(c *verbs.QPCap) { c.MaxInlineData = math.MaxUint32 },
		} {
			attr := verbs.QPInitAttr{Type: typ, SendCQ: c, RecvCQ: c, Cap: smallCap()}
			change(&attr.Cap)
			if _, err := p.CreateQP(attr); err == nil && !slices.Contains(s.cfg.Unbounded, name) {
				t.Errorf("CreateQP with %s %d succeeded", name, uint32(math.MaxUint32))
			}
		}
		p.mustQP(typ, c, c)
	})
}

// qpStates tests the states of a QP.
func (s *suite) qpStates(t *testing.T, typ verbs.QPType) {
	s.run(t, "states", func(t *testing.T, d *device) {
		c := d.mustCQ(16, nil, 0)
		q := d.mustPD().mustQP(typ, c, c)
		for range 2 {
			q.mustBe(verbs.Reset)
			q.mustModify(verbs.ToInit(typ, 1, access))
			q.mustBe(verbs.Init)
			if q.toReady(d, typ) {
				q.mustBe(verbs.RTS)
			}
			q.mustModify(verbs.ToError())
			q.mustBe(verbs.Err)
			q.mustModify(verbs.ToReset())
			if s.cfg.SingleUse {
				wantErrno(t, "RESET→INIT", q.Modify(verbs.ToInit(typ, 1, access)), syscall.EINVAL)
				return
			}
		}
		q.mustBe(verbs.Reset)
		for _, from := range []verbs.QPState{verbs.Init, verbs.RTR, verbs.Err} {
			q.mustModify(verbs.ToInit(typ, 1, access))
			if from == verbs.RTR {
				if err := q.toRTR(d, typ); err != nil {
					t.Logf("no RTR: %v", err)
				}
			}
			if from == verbs.Err {
				q.mustModify(verbs.ToError())
			}
			q.mustModify(verbs.ToError())
			q.mustBe(verbs.Err)
			q.mustModify(verbs.ToReset())
			q.mustBe(verbs.Reset)
		}
		// The InfiniBand specification allows this one, Linux does not.
		want := verbs.Err
		if err := q.Modify(verbs.ToError()); err != nil {
			wantErrno(t, "RESET→ERR", err, syscall.EINVAL)
			want = verbs.Reset
		}
		q.mustBe(want)
	})
	s.run(t, "illegal transitions", func(t *testing.T, d *device) {
		c := d.mustCQ(16, nil, 0)
		q := d.mustPD().mustQP(typ, c, c)
		illegal := func(attr verbs.QPAttr, mask verbs.QPAttrMask) {
			t.Helper()
			before := must(q.Query())(t, "Query")
			what := before.State.String() + "→" + attr.State.String()
			wantErrno(t, what, q.Modify(attr, mask), syscall.EINVAL)
			q.mustBe(before.State)
		}
		illegal(verbs.ToRTS(typ))
		illegal(verbs.ToRTR(typ, verbs.Peer{QPN: q.raw.Number(), PathMTU: 1024}))
		illegal(verbs.QPAttr{State: verbs.QPState(42)}, verbs.MaskState)
		illegal(verbs.QPAttr{State: verbs.QPState(-1)}, verbs.MaskState)
		illegal(verbs.QPAttr{State: verbs.Err + 256}, verbs.MaskState) // would be ERR, cut to a byte
		illegal(verbs.QPAttr{State: verbs.Init}, verbs.MaskState)      // port and key are missing
		q.mustModify(verbs.ToInit(typ, 1, access))
		illegal(verbs.ToRTS(typ))
		q.mustModify(verbs.ToError())
		illegal(verbs.ToInit(typ, 1, access))
		illegal(verbs.ToRTS(typ))
	})
	s.run(t, "port out of range", func(t *testing.T, d *device) {
		attr := must(d.Query())(t, "Query")
		c := d.mustCQ(16, nil, 0)
		q := d.mustPD().mustQP(typ, c, c)
		for _, port := range []int{0, attr.Ports + 1, -1, -255, 257} {
			if err := q.Modify(verbs.ToInit(typ, port, access)); err == nil {
				t.Errorf("Modify to INIT on port %d of %d succeeded", port, attr.Ports)
			}
			q.mustBe(verbs.Reset)
		}
	})
	if typ.IsDatagram() {
		return
	}
	s.run(t, "path out of range", func(t *testing.T, d *device) {
		s.requirePort(t)
		way := d.mustPath()
		c := d.mustCQ(16, nil, 0)
		q := d.mustPD().mustQP(typ, c, c)
		q.mustModify(verbs.ToInit(typ, 1, access))
		good := verbs.Peer{AH: way.ah, QPN: q.raw.Number(), PathMTU: way.mtu}
		bad := map[string]verbs.Peer{}
		for name, change := range map[string]func(*verbs.Peer){
			"MTU 0":     func(p *verbs.Peer) { p.PathMTU = 0 },
			"MTU 1000":  func(p *verbs.Peer) { p.PathMTU = 1000 },
			"MTU -1024": func(p *verbs.Peer) { p.PathMTU = -1024 },
			"MTU 1":     func(p *verbs.Peer) { p.PathMTU = 1 },    // IBV_MTU_256
			"MTU 8192":  func(p *verbs.Peer) { p.PathMTU = 8192 }, // more than verbs can say
			"port 257":  func(p *verbs.Peer) { p.AH.Port += 256 }, // a byte more
			"port -255": func(p *verbs.Peer) { p.AH.Port -= 256 }, // a byte less
			"GID index": func(p *verbs.Peer) { p.AH.SGIDIndex += 256 },
		} {
			peer := good
			change(&peer)
			// iWARP has no GIDs to choose from.
			if name != "GID index" || way.ah.Global && d.raw.Transport() != verbs.TransportIWARP {
				bad[name] = peer
			}
		}
		for name, peer := range bad {
			if err := q.Modify(verbs.ToRTR(typ, peer)); err == nil {
				t.Errorf("Modify to RTR with %s succeeded", name)
				q.mustModify(verbs.ToReset())
				q.mustModify(verbs.ToInit(typ, 1, access))
			}
			q.mustBe(verbs.Init)
		}
		q.mustModify(verbs.ToRTR(typ, good))
	})
}

// qpFlush tests work requests that a QP in the error state flushes.
func (s *suite) qpFlush(t *testing.T, typ verbs.QPType) {
	s.run(t, "flush", func(t *testing.T, d *device) {
		p := d.mustPD()
		send, recv := d.mustCQ(16, nil, 0), d.mustCQ(16, nil, 0)
		m := p.mustMR(128)
		q := p.mustQP(typ, send, recv)
		q.mustModify(verbs.ToInit(typ, 1, access))
		for id := range uint64(3) {
			wantNoError(t, "PostRecv in state INIT", q.PostRecv(verbs.RecvWR{ID: math.MaxUint64 - id, SGEs: []verbs.SGE{m.SGE(0, 64)}}))
		}
		recv.mustBeEmpty()
		q.mustModify(verbs.ToError())
		wantFlushed(t, q, recv.await(3), math.MaxUint64, math.MaxUint64-1, math.MaxUint64-2)
		recv.mustBeEmpty()

		wr := verbs.SendWR{Flags: verbs.SendSignaled, SGEs: []verbs.SGE{m.SGE(64, 64)}}
		if typ.IsDatagram() {
			way, err := d.path()
			if err != nil {
				t.Logf("sends not tested, they need an address: %v", err)
				return
			}
			a, err := p.CreateAH(way.ah)
			if err != nil {
				if s.cfg.PortActive {
					t.Errorf("CreateAH: %v", err)
				}
				t.Logf("sends not tested, they need an address: %v", err)
				return
			}
			wr.AH, wr.RemoteQPN, wr.RemoteQKey = a, q.raw.Number(), verbs.UDQKey
		}
		if d.connects() && !s.cfg.SingleUse {
			q.mustModify(verbs.ToReset())
			q.mustModify(verbs.ToInit(typ, 1, access))
			d.mustFail(q, typ)
		}
		for id := range uint64(2) {
			wr.ID = id
			wantNoError(t, "PostSend in state ERR", q.PostSend(wr))
		}
		wantFlushed(t, q, send.await(2), 0, 1)
		send.mustBeEmpty()

		// A driver may leave a receive that comes after the error to rest until
		// the QP is touched again.
		if err := q.PostRecv(verbs.RecvWR{ID: 9, SGEs: []verbs.SGE{m.SGE(0, 64)}}); err != nil {
			t.Logf("PostRecv in state ERR: %v", err)
		} else if wcs, err := recv.Poll(4); err != nil {
			t.Errorf("Poll: %v", err)
		} else if len(wcs) > 0 {
			wantFlushed(t, q, wcs, 9)
		}
	})
	s.run(t, "full receive queue", func(t *testing.T, d *device) {
		p := d.mustPD()
		c := d.mustCQ(1024, nil, 0)
		m := p.mustMR(64)
		q := p.mustQP(typ, c, c)
		q.mustModify(verbs.ToInit(typ, 1, access))
		// How many fit is the driver's affair. What was accepted must complete.
		var ids []uint64
		for id := range uint64(1024) {
			err := q.PostRecv(verbs.RecvWR{ID: id, SGEs: []verbs.SGE{m.SGE(0, 64)}})
			if err != nil {
				break
			}
			ids = append(ids, id)
		}
		if len(ids) < int(smallCap().MaxRecvWR) {
			t.Errorf("%d receives fit into a QP that was asked for %d", len(ids), smallCap().MaxRecvWR)
		}
		q.mustModify(verbs.ToError())
		wantFlushed(t, q, c.await(len(ids)), ids...)
		c.mustBeEmpty()
	})
	s.run(t, "too many SGEs", func(t *testing.T, d *device) {
		p := d.mustPD()
		c := d.mustCQ(16, nil, 0)
		m := p.mustMR(64)
		q := p.mustQP(typ, c, c)
		q.mustModify(verbs.ToInit(typ, 1, access))
		for _, n := range []uint32{q.raw.Created().MaxRecvSGE + 1, 5000} {
			sges := make([]verbs.SGE, n)
			for i := range sges {
				sges[i] = m.SGE(0, 1)
			}
			wantError(t, "PostRecv with too many SGEs", q.PostRecv(verbs.RecvWR{SGEs: sges}))
		}
		q.mustModify(verbs.ToError())
		c.mustBeEmpty()
	})
}

// toRTR moves a QP in the state INIT to RTR, as its own peer.
func (q *qp) toRTR(d *device, typ verbs.QPType) error {
	q.b.t.Helper()
	peer := verbs.Peer{QPN: q.raw.Number(), PathMTU: 1024}
	if !typ.IsDatagram() {
		way, err := d.path()
		if err != nil {
			return err
		}
		peer.AH, peer.PathMTU = way.ah, way.mtu
	}
	return q.Modify(verbs.ToRTR(typ, peer))
}

// toReady moves a QP in the state INIT to RTS, as its own peer. It reports
// whether that could be done, which it must be if the port is active, and for
// datagrams. iWARP may want a connection manager for it.
func (q *qp) toReady(d *device, typ verbs.QPType) bool {
	q.b.t.Helper()
	if err := q.toRTR(d, typ); err != nil {
		if typ.IsDatagram() || q.b.cfg.PortActive && d.raw.Transport() != verbs.TransportIWARP {
			q.b.t.Fatalf("Modify to RTR: %v", err)
		}
		q.b.t.Logf("no RTR: %v", err)
		return false
	}
	q.mustBe(verbs.RTR)
	q.mustModify(verbs.ToRTS(typ))
	return true
}
