package verbstest

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/verbs"
)

// access is what the memory regions and connected QPs of the suite allow.
const access = verbs.AccessLocalWrite

// smallCap returns the sizes of the suite's QPs.
func smallCap() verbs.QPCap {
	return verbs.QPCap{MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 2, MaxRecvSGE: 2}
}

// mustPD allocates a protection domain.
func (d *device) mustPD() *pd {
	d.b.t.Helper()
	p, err := d.AllocPD()
	if err != nil {
		d.b.t.Fatalf("AllocPD: %v", err)
	}
	return p
}

// mustChannel creates a completion channel.
func (d *device) mustChannel() *channel {
	d.b.t.Helper()
	c, err := d.CreateCompChannel()
	if err != nil {
		d.b.t.Fatalf("CreateCompChannel: %v", err)
	}
	return c
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
	c, err := d.CreateCQ(attr)
	if err != nil {
		d.b.t.Fatalf("CreateCQ(%d entries): %v", entries, err)
	}
	return c
}

// mustMR registers a memory region.
func (p *pd) mustMR(size int) *mr {
	p.b.t.Helper()
	m, err := p.RegMR(size, access)
	if err != nil {
		p.b.t.Fatalf("RegMR(%d): %v", size, err)
	}
	return m
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
	got, err := q.Query()
	if err != nil {
		q.b.t.Fatalf("Query: %v", err)
	}
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
		wcs, err := c.Poll(n - len(got))
		if err != nil {
			c.b.t.Fatalf("Poll: %v", err)
		}
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
		wcs, err := c.Poll(4)
		if err != nil {
			c.b.t.Fatalf("Poll: %v", err)
		}
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
	ev, err := c.GetEvent(soon)
	if err != nil {
		c.b.t.Fatalf("GetEvent: %v", err)
	}
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

// connects tells whether a QP of the device can be connected without a manager.
func (d *device) connects() bool {
	return d.b.cfg.PortActive && d.raw.Transport() != verbs.TransportIWARP
}

// complete posts one send, which is flushed.
func (f *failing) complete(id uint64) {
	f.b.t.Helper()
	wr := verbs.SendWR{ID: id, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{f.buf.SGE(0, 8)}}
	if err := f.PostSend(wr); err != nil {
		f.b.t.Fatalf("PostSend to a QP in state ERR: %v", err)
	}
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
