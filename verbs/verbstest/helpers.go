package verbstest

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/verbs"
)

// access is what the memory regions and connected QPs of the suite allow.
const access = verbs.AccessLocalWrite

// again opens the device once more.
func (d *device) again() *device {
	d.b.t.Helper()
	return d.b.open(d.device)
}

// smallCap returns the sizes of the suite's QPs.
func smallCap() verbs.QPCap {
	return verbs.QPCap{MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 2, MaxRecvSGE: 2}
}

// must returns a function that returns the value, or fails the test.
func must[T any](v T, err error) func(t *testing.T, format string, args ...any) T {
	return func(t *testing.T, format string, args ...any) T {
		t.Helper()
		wantNoError(t, fmt.Sprintf(format, args...), err)
		return v
	}
}

// errorOf drops the value.
func errorOf[T any](_ T, err error) error { return err }

// mustPD allocates a protection domain.
func (d *device) mustPD() *pd {
	d.b.t.Helper()
	return must(d.AllocPD())(d.b.t, "AllocPD")
}

// mustChannel creates a completion channel.
func (d *device) mustChannel() *channel {
	d.b.t.Helper()
	return must(d.CreateCompChannel())(d.b.t, "CreateCompChannel")
}

// mustCQ creates a completion queue. The channel may be nil. With one it may be
// armed, which no CQ of some devices may be before there is a protection domain.
func (d *device) mustCQ(entries int, ch *channel, context uint64) *cq {
	d.b.t.Helper()
	attr := verbs.CQInitAttr{Entries: entries, Context: context}
	if ch != nil {
		if d.armed == nil {
			d.armed = d.mustPD()
		}
		attr.Channel = ch.raw
	}
	return must(d.CreateCQ(attr))(d.b.t, "CreateCQ(%d entries)", entries)
}

// mustMR registers a memory region.
func (p *pd) mustMR(size int) *mr {
	p.b.t.Helper()
	return must(p.RegMR(size, access))(p.b.t, "RegMR(%d)", size)
}

// mustQP creates a small QP.
func (p *pd) mustQP(typ verbs.QPType, send, recv *cq) *qp {
	p.b.t.Helper()
	q, err := p.CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: send, RecvCQ: recv, Cap: smallCap()})
	if err != nil {
		p.b.t.Fatalf("CreateQP(%s): %v", typ, err)
	}
	return q
}

// mustModify changes the QP's state.
func (q *qp) mustModify(attr verbs.QPAttr, mask verbs.QPAttrMask) {
	q.b.t.Helper()
	if err := q.Modify(attr, mask); err != nil {
		q.b.t.Fatalf("Modify to %s: %v", attr.State, err)
	}
}

// mustBe checks the QP's state.
func (q *qp) mustBe(want verbs.QPState) {
	q.b.t.Helper()
	got := must(q.Query())(q.b.t, "Query")
	if got.State != want {
		q.b.t.Fatalf("state is %s, want %s", got.State, want)
	}
}

// await polls until n completions have come, and fails the test if they do not
// come soon, or if more come.
func (c *cq) await(n int) []verbs.WC {
	c.b.t.Helper()
	var got []verbs.WC
	for deadline := time.Now().Add(soon); len(got) < n; {
		wcs := must(c.Poll(n-len(got)))(c.b.t, "Poll")
		if len(wcs) > n-len(got) {
			c.b.t.Fatalf("Poll(%d) returned %d completions", n-len(got), len(wcs))
		}
		got = append(got, wcs...)
		if len(got) == n {
			break
		}
		if time.Now().After(deadline) {
			c.b.t.Fatalf("%d of %d completions after %v", len(got), n, soon)
		}
		if len(wcs) == 0 {
			time.Sleep(100 * time.Microsecond)
		}
	}
	return got
}

// mustBeEmpty checks that no completion is there, nor comes for a moment.
func (c *cq) mustBeEmpty() {
	c.b.t.Helper()
	for end := time.Now().Add(moment); ; time.Sleep(time.Millisecond) {
		wcs := must(c.Poll(4))(c.b.t, "Poll")
		if len(wcs) > 0 {
			c.b.t.Fatalf("unexpected completions: %+v", wcs)
		}
		if time.Now().After(end) {
			return
		}
	}
}

// mustArm asks for an event.
func (c *cq) mustArm(solicitedOnly bool) {
	c.b.t.Helper()
	if err := c.ReqNotify(solicitedOnly); err != nil {
		c.b.t.Fatalf("ReqNotify(%t): %v", solicitedOnly, err)
	}
}

// awaitEvent waits for an event, which must name the CQ and its context.
func (c *channel) awaitEvent(want *cq) {
	c.b.t.Helper()
	ev := must(c.GetEvent(soon))(c.b.t, "GetEvent")
	if ev.CQ != want.raw {
		c.b.t.Errorf("the event names another CQ (%v)", ev.CQ)
	}
	if ev.Context != want.context {
		c.b.t.Errorf("the event has context %#x, want %#x", ev.Context, want.context)
	}
	want.unacked++
}

// mustBeQuiet checks that no event comes for a moment.
func (c *channel) mustBeQuiet() {
	c.b.t.Helper()
	if ev, err := c.GetEvent(moment); !errors.Is(err, verbs.ErrTimeout) {
		c.b.t.Fatalf("GetEvent: event %+v, error %v; want ErrTimeout", ev, err)
	}
}

// failing is a QP in the error state. A work request posted to it completes at
// once as flushed: a completion that needs neither peer nor active port.
type failing struct {
	*qp
	buf *mr
}

// mustFailing returns a QP in the error state that completes on the two CQs.
func (d *device) mustFailing(p *pd, send, recv *cq) *failing {
	d.b.t.Helper()
	typ := verbs.RC
	s := &suite{cfg: d.b.cfg, types: d.raw.QPTypes()}
	if !s.offers(typ) {
		typ = verbs.UC
		s.requireType(d.b.t, typ)
	}
	f := &failing{buf: p.mustMR(64), qp: p.mustQP(typ, send, recv)}
	f.mustModify(verbs.ToInit(typ, 1, access))
	d.mustFail(f.qp, typ)
	return f
}

// mustNotifying returns a channel, a CQ that notifies it, and a QP that completes there.
func (d *device) mustNotifying() (*channel, *cq, *failing) {
	d.b.t.Helper()
	ch := d.mustChannel()
	c := d.mustCQ(16, ch, contextA)
	return ch, c, d.mustFailing(d.mustPD(), c, c)
}

// notify has an event arise, which is taken, and not acknowledged.
func (f *failing) notify(ch *channel, c *cq, id uint64) {
	f.b.t.Helper()
	c.mustArm(false)
	f.complete(id)
	ch.awaitEvent(c)
	wantFlushed(f.b.t, f.qp, c.await(1), id)
}

// mustFail brings a QP from INIT to the error state: by way of RTS where it can be
// connected to itself, for some libraries take no send of a QP that was never ready.
func (d *device) mustFail(q *qp, typ verbs.QPType) {
	d.b.t.Helper()
	if d.connects() {
		way := d.mustPath()
		q.mustModify(verbs.ToRTR(typ, verbs.Peer{AH: way.ah, QPN: q.raw.Number(), PathMTU: way.mtu}))
		q.mustModify(verbs.ToRTS(typ))
	}
	q.mustModify(verbs.ToError())
}

// connects reports whether a QP of the device can be connected without a manager.
func (d *device) connects() bool {
	return d.b.cfg.PortActive && d.raw.Transport() != verbs.TransportIWARP
}

// complete posts one send, which is flushed.
func (f *failing) complete(id uint64) {
	f.b.t.Helper()
	wr := verbs.SendWR{ID: id, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{f.buf.SGE(0, 8)}}
	wantNoError(f.b.t, "PostSend to a QP in state ERR", f.PostSend(wr))
}

// wantFlushed checks that completions are those of flushed work requests.
func wantFlushed(t *testing.T, q *qp, wcs []verbs.WC, ids ...uint64) {
	t.Helper()
	if len(wcs) != len(ids) {
		t.Errorf("%d completions, want %d", len(wcs), len(ids))
		return
	}
	for i, wc := range wcs {
		if wc.ID != ids[i] || wc.Status != verbs.WCWRFlushErr {
			t.Errorf("completion %d is ID %#x, %s; want ID %#x, %s", i, wc.ID, wc.Status, ids[i], verbs.WCWRFlushErr)
		}
		if wc.QPNum != q.raw.Number() {
			t.Errorf("completion %d names QP %d, want %d", i, wc.QPNum, q.raw.Number())
		}
	}
}

// wantNoError checks that there is no error.
func wantNoError(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// wantErrno checks that an error carries an errno. Its form was checked when it
// was returned.
func wantErrno(t *testing.T, what string, err error, want syscall.Errno) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %s", what, err, verbs.ErrnoName(want))
	}
}

// wantError checks that there is an error.
func wantError(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s succeeded, want an error", what)
	}
}

// wantClosed checks that the error is that of a closed object.
func wantClosed(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("%s after Close: %v, want ErrClosed", what, err)
	}
}
