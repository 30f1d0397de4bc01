package simulated_test

import (
	"errors"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// soon bounds what must happen, on the busiest of hosts; moment what must not.
const (
	soon   = 2 * time.Minute
	moment = 20 * time.Millisecond
)

// must returns a function that returns the value, or fails the test.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErrno(t *testing.T, err error, verb verbs.Verb, errno syscall.Errno) {
	t.Helper()
	var e *verbs.Error
	if !errors.As(err, &e) || e.Verb != verb || e.Errno != errno || !errors.Is(err, errno) {
		t.Errorf("error %v, want %s of %s", err, verbs.ErrnoName(errno), verb)
	}
}

// like returns a device of the default profile whose verbs take no time.
func like(t *testing.T, name string, change func(*simulated.DeviceProfile)) *simulated.Profile {
	t.Helper()
	for _, d := range simulated.Default().Devices {
		if d.Name != name {
			continue
		}
		d.DefaultLatency, d.Latency = 0, nil
		if change != nil {
			change(&d)
		}
		return &simulated.Profile{Devices: []simulated.DeviceProfile{d}}
	}
	t.Fatalf("no device %s", name)
	return nil
}

func open(t *testing.T, p *simulated.Profile) verbs.Device {
	t.Helper()
	return must(simulated.New(p, nil).Open(p.Devices[0].Name))(t)
}

// calls is a tracer that remembers.
type calls struct {
	mu    sync.Mutex // for tests of what hangs
	begun []verbs.Verb
	ended []verbs.Call
}

func (c *calls) Begin(v verbs.Verb) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = append(c.begun, v)
}

func (c *calls) End(call verbs.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = append(c.ended, call)
}

func (c *calls) of(v verbs.Verb) []verbs.Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.ended), func(call verbs.Call) bool { return call.Verb != v })
}

// began reports whether a verb has begun.
func (c *calls) began(v verbs.Verb) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.begun, v)
}

var qpCap = verbs.QPCap{MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 2, MaxRecvSGE: 2, MaxInlineData: 32}

type end struct {
	verbs.QP
	send, recv verbs.CQ
	mr         verbs.MR
}

func newEnd(t *testing.T, d verbs.Device, pd verbs.PD, typ verbs.QPType) *end {
	t.Helper()
	e := &end{
		send: must(d.CreateCQ(verbs.CQInitAttr{Entries: 16}))(t),
		recv: must(d.CreateCQ(verbs.CQInitAttr{Entries: 16}))(t),
		mr:   must(pd.RegMR(4096, verbs.AccessLocalWrite))(t),
	}
	e.QP = must(pd.CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: e.send, RecvCQ: e.recv, Cap: qpCap}))(t)
	return e
}

// modify calls Modify with what ToInit and the others return.
func (e *end) modify(t *testing.T, attr verbs.QPAttr, mask verbs.QPAttrMask) {
	t.Helper()
	ok(t, e.Modify(attr, mask))
}

// rtr brings the QP from RESET to RTR, with the peer as its only partner.
func (e *end) rtr(t *testing.T, d verbs.Device, peer *end) {
	t.Helper()
	attr, mask := verbs.ToInit(e.Type(), 1, verbs.AccessLocalWrite)
	e.modify(t, attr, mask)
	attr, mask = verbs.ToRTR(e.Type(), verbs.Peer{AH: ahAttr(t, d), QPN: peer.Number(), PathMTU: 1024})
	e.modify(t, attr, mask)
}

// rts brings the QP from RTR to RTS.
func (e *end) rts(t *testing.T) {
	t.Helper()
	attr, mask := verbs.ToRTS(e.Type())
	e.modify(t, attr, mask)
}

func ahAttr(t *testing.T, d verbs.Device) verbs.AHAttr {
	t.Helper()
	for _, g := range must(d.GIDTable())(t) {
		if g.Port == 1 {
			return verbs.AHAttr{Port: 1, Global: true, DGID: g.GID, SGIDIndex: g.Index}
		}
	}
	t.Fatal("port 1 has no GID")
	return verbs.AHAttr{}
}

// pair returns two queue pairs that are connected to each other.
func pair(t *testing.T, d verbs.Device, pd verbs.PD, typ verbs.QPType) (a, b *end) {
	t.Helper()
	a, b = newEnd(t, d, pd, typ), newEnd(t, d, pd, typ)
	a.rtr(t, d, b)
	b.rtr(t, d, a)
	a.rts(t)
	b.rts(t)
	return a, b
}

// connected returns a device like sim_ib0 with a domain and a pair of queue pairs.
func connected(t *testing.T, typ verbs.QPType, change func(*simulated.DeviceProfile)) (d verbs.Device, pd verbs.PD, a, b *end) {
	t.Helper()
	d = open(t, like(t, "sim_ib0", change))
	pd = must(d.AllocPD())(t)
	a, b = pair(t, d, pd, typ)
	return d, pd, a, b
}

// one polls a CQ that must hold one completion of that status.
func one(t *testing.T, c verbs.CQ, status verbs.WCStatus) verbs.WC {
	t.Helper()
	wcs := must(c.Poll(16))(t)
	if len(wcs) != 1 || wcs[0].Status != status {
		t.Fatalf("completions %+v, want one with %s", wcs, status)
	}
	return wcs[0]
}

func none(t *testing.T, c verbs.CQ) {
	t.Helper()
	if wcs := must(c.Poll(16))(t); len(wcs) > 0 {
		t.Errorf("completions %+v, want none", wcs)
	}
}

func (e *end) state(t *testing.T, want verbs.QPState) {
	t.Helper()
	if q := must(e.Query())(t); q.State != want {
		t.Errorf("state %s, want %s", q.State, want)
	}
}

// client has a device with completions that fail.
type client struct {
	*testing.T
	d  verbs.Device
	pd verbs.PD
}

func newClient(t *testing.T, faults ...simulated.CompletionFault) client {
	t.Helper()
	d := open(t, like(t, "sim_ib0", func(d *simulated.DeviceProfile) { d.CompletionFaults = faults }))
	return client{T: t, d: d, pd: must(d.AllocPD())(t)}
}

func (c client) channel() verbs.CompChannel {
	c.Helper()
	return must(c.d.CreateCompChannel())(c.T)
}

const cqContext = 0xabc

func (c client) cq(ch verbs.CompChannel) verbs.CQ {
	c.Helper()
	return must(c.d.CreateCQ(verbs.CQInitAttr{Entries: 16, Context: cqContext, Channel: ch}))(c.T)
}

// failing returns a QP whose work is flushed.
func (c client) failing(q verbs.CQ) verbs.QP {
	c.Helper()
	qp := must(c.pd.CreateQP(verbs.QPInitAttr{
		Type: verbs.RC, SendCQ: q, RecvCQ: q, Cap: verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1},
	}))(c.T)
	ok(c.T, qp.Modify(verbs.ToError()))
	return qp
}

// flush makes an unsuccessful completion.
func (c client) flush(qp verbs.QP) {
	c.Helper()
	ok(c.T, qp.PostRecv(verbs.RecvWR{ID: 1}))
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
