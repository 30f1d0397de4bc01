package verbstest

import (
	"errors"
	"slices"
	"time"

	"rdma_exporter/verbs"
)

// The types below wrap the objects of the provider under test. Each method
// checks the form of its error and the trace of its verb; the objects that they
// create are closed when the subtest ends. Those that are arguments of others
// implement the interface of package verbs, and are unwrapped on their way.

// object is what the wrappers have in common.
type object[T any] struct {
	*handle
	raw T
}

func (o object[T]) unwrapped() T { return o.raw }

// unwrap returns the provider's own object.
func unwrap[T any](o T) T {
	if w, ok := any(o).(interface{ unwrapped() T }); ok {
		return w.unwrapped()
	}
	return o
}

// create calls the verb that makes an object, tracks what it made, and wraps it.
func create[T interface{ Close() error }, W any](of *handle, kind string, verb, destroy verbs.Verb,
	method func() (T, error), wrap func(object[T]) *W,
) (*W, error) {
	of.b.t.Helper()
	raw, err := observe(of.b, of.device, verb, method)
	if err != nil {
		return nil, err
	}
	return wrap(object[T]{of.b.track(kind, of.device, destroy, raw.Close), raw}), nil
}

// device wraps a verbs.Device.
type device struct {
	object[verbs.Device]
	armed *pd // there before anything is armed; nil if nothing is
}

func (d *device) Query() (verbs.DeviceAttr, error) {
	d.b.t.Helper()
	return observe(d.b, d.device, verbs.QueryDevice, d.raw.Query)
}

func (d *device) QueryPort(port int) (verbs.PortAttr, error) {
	d.b.t.Helper()
	return observe(d.b, d.device, verbs.QueryPort, func() (verbs.PortAttr, error) { return d.raw.QueryPort(port) })
}

func (d *device) GIDTable() ([]verbs.GIDEntry, error) {
	d.b.t.Helper()
	return observe(d.b, d.device, verbs.QueryGIDTable, d.raw.GIDTable)
}

func (d *device) AllocPD() (*pd, error) {
	d.b.t.Helper()
	return create(d.handle, "PD", verbs.AllocPD, verbs.DeallocPD, d.raw.AllocPD,
		func(o object[verbs.PD]) *pd { return &pd{o, d} })
}

func (d *device) CreateCompChannel() (*channel, error) {
	d.b.t.Helper()
	return create(d.handle, "completion channel", verbs.CreateCompChannel, verbs.DestroyCompChannel, d.raw.CreateCompChannel,
		func(o object[verbs.CompChannel]) *channel { return &channel{o, d} })
}

func (d *device) CreateCQ(attr verbs.CQInitAttr) (*cq, error) {
	d.b.t.Helper()
	attr.Channel = unwrap(attr.Channel)
	verb, poll := verbs.CreateCQ, verbs.PollCQ
	if attr.Fields != 0 {
		verb, poll = verbs.CreateCQEx, verbs.StartPoll
	}
	return create(d.handle, "CQ", verb, verbs.DestroyCQ, func() (verbs.CQ, error) { return d.raw.CreateCQ(attr) },
		func(o object[verbs.CQ]) *cq {
			c := &cq{object: o, d: d, context: attr.Context, poll: poll}
			c.beforeClose = func() {
				if c.unacked > 0 {
					_ = c.AckEvents(c.unacked)
				}
			}
			return c
		})
}

func (d *device) QueryExtended() (verbs.ExtendedAttr, error) {
	d.b.t.Helper()
	return observe(d.b, d.device, verbs.QueryDeviceEx, d.raw.QueryExtended)
}

func (d *device) AsyncEvent(timeout time.Duration) (verbs.AsyncEvent, error) {
	d.b.t.Helper()
	return observe(d.b, d.device, verbs.GetAsyncEvent, func() (verbs.AsyncEvent, error) { return d.raw.AsyncEvent(timeout) })
}

// Measure checks the form of the error and what holds of every result. It
// must return in time, and tell the tracer of nothing.
func (d *device) Measure(m verbs.Measurement) (verbs.Samples, error) {
	d.b.t.Helper()
	m.Sender, m.Receiver, m.Send.AH = unwrap(m.Sender), unwrap(m.Receiver), unwrap(m.Send.AH)
	m.CQ, m.Other = unwrap(m.CQ), unwrap(m.Other)
	m.Channel, m.Bystander = unwrap(m.Channel), unwrap(m.Bystander)
	mark := d.b.rec.mark()
	start := time.Now()
	got, err := d.raw.Measure(m)
	took := time.Since(start)
	// At most of the one that failed.
	var failed *verbs.Error
	if calls := d.b.rec.all(mark); len(calls) > 0 {
		if !errors.As(err, &failed) || len(calls) > 1 || calls[0].Verb != failed.Verb || calls[0].Errno != failed.Errno {
			d.b.t.Errorf("Measure failed with %v, and told the tracer of %+v", err, calls)
		}
	}
	if in := d.b.rec.inside(); in != "no verb" {
		d.b.t.Errorf("Measure: the tracer saw %s begin", in)
	}
	if limit := max(m.Budget, 0) + 3*max(m.Deadline, 0) + soon; took > limit {
		d.b.t.Errorf("Measure took %v, want no more than %v", took, limit)
	}
	var e *verbs.Error
	if errors.As(err, &e) && slices.Contains(measuredVerbs(), e.Verb) {
		d.b.checkError(d.device, e.Verb, err)
	} else {
		d.b.checkError(d.device, verbs.PostSend, err)
	}
	wantCoherent(d.b.t, m, got, took)
	return got, err
}

// pd wraps a verbs.PD.
type pd struct {
	object[verbs.PD]
	d *device
}

func (p *pd) RegMR(size int, access verbs.Access, node ...int) (*mr, error) {
	p.b.t.Helper()
	return create(p.handle, "MR", verbs.RegMR, verbs.DeregMR, func() (verbs.MR, error) { return p.raw.RegMR(size, access, node...) },
		func(o object[verbs.MR]) *mr { return &mr{o.handle, o.raw} })
}

func (p *pd) CreateAH(attr verbs.AHAttr) (*ah, error) {
	p.b.t.Helper()
	return create(p.handle, "AH", verbs.CreateAH, verbs.DestroyAH, func() (verbs.AH, error) { return p.raw.CreateAH(attr) },
		func(o object[verbs.AH]) *ah { return &ah{o} })
}

func (p *pd) CreateSRQ(attr verbs.SRQAttr) (*srq, error) {
	p.b.t.Helper()
	return create(p.handle, "SRQ", verbs.CreateSRQ, verbs.DestroySRQ, func() (verbs.SRQ, error) { return p.raw.CreateSRQ(attr) },
		func(o object[verbs.SRQ]) *srq { return &srq{o} })
}

func (p *pd) CreateQP(attr verbs.QPInitAttr) (*qp, error) {
	p.b.t.Helper()
	attr.SendCQ, attr.RecvCQ, attr.SRQ = unwrap(attr.SendCQ), unwrap(attr.RecvCQ), unwrap(attr.SRQ)
	return create(p.handle, "QP", verbs.CreateQP, verbs.DestroyQP, func() (verbs.QP, error) { return p.raw.CreateQP(attr) },
		func(o object[verbs.QP]) *qp { return &qp{o} })
}

// mr wraps a verbs.MR.
type mr struct {
	*handle
	verbs.MR
}

func (m *mr) Close() error {
	m.b.t.Helper()
	return m.handle.Close()
}

// ah wraps a verbs.AH.
type ah struct {
	object[verbs.AH]
}

// channel wraps a verbs.CompChannel.
type channel struct {
	object[verbs.CompChannel]
	d *device
}

func (c *channel) GetEvent(timeout time.Duration) (verbs.CQEvent, error) {
	c.b.t.Helper()
	ev, err := observe(c.b, c.device, verbs.GetCQEvent, func() (verbs.CQEvent, error) { return c.raw.GetEvent(timeout) })
	if err == nil && ev.CQ == nil {
		c.b.t.Fatal("GetEvent: no error and no CQ")
	}
	return ev, err
}

// cq wraps a verbs.CQ.
type cq struct {
	object[verbs.CQ]
	d       *device
	context uint64
	poll    verbs.Verb
	unacked int
}

func (c *cq) Entries() int { return c.raw.Entries() }

func (c *cq) Poll(n int) ([]verbs.WC, error) {
	c.b.t.Helper()
	return observe(c.b, c.device, c.poll, func() ([]verbs.WC, error) { return c.raw.Poll(n) })
}

func (c *cq) ReqNotify(solicitedOnly bool) error {
	c.b.t.Helper()
	return c.b.call(c.device, verbs.ReqNotifyCQ, func() error { return c.raw.ReqNotify(solicitedOnly) })
}

func (c *cq) Resize(entries int) error {
	c.b.t.Helper()
	return c.b.call(c.device, verbs.ResizeCQ, func() error { return c.raw.Resize(entries) })
}

func (c *cq) AckEvents(n int) error {
	c.b.t.Helper()
	err := c.b.call(c.device, verbs.AckCQEvents, func() error { return c.raw.AckEvents(n) })
	if err == nil {
		c.unacked -= n
	}
	return err
}

// srq wraps a verbs.SRQ.
type srq struct {
	object[verbs.SRQ]
}

func (s *srq) Created() verbs.SRQAttr { return s.raw.Created() }

func (s *srq) Query() (verbs.SRQAttr, error) {
	s.b.t.Helper()
	return observe(s.b, s.device, verbs.QuerySRQ, s.raw.Query)
}

func (s *srq) SetLimit(limit uint32) error {
	s.b.t.Helper()
	return s.b.call(s.device, verbs.ModifySRQ, func() error { return s.raw.SetLimit(limit) })
}

func (s *srq) PostRecv(wr verbs.RecvWR) error {
	s.b.t.Helper()
	return s.b.call(s.device, verbs.PostSRQRecv, func() error { return s.raw.PostRecv(wr) })
}

// qp wraps a verbs.QP.
type qp struct {
	object[verbs.QP]
}

func (q *qp) Number() uint32       { return q.raw.Number() }
func (q *qp) Type() verbs.QPType   { return q.raw.Type() }
func (q *qp) Created() verbs.QPCap { return q.raw.Created() }

func (q *qp) Query() (verbs.QPQuery, error) {
	q.b.t.Helper()
	return observe(q.b, q.device, verbs.QueryQP, q.raw.Query)
}

func (q *qp) Modify(attr verbs.QPAttr, mask verbs.QPAttrMask) error {
	q.b.t.Helper()
	return q.b.call(q.device, verbs.ModifyQP, func() error { return q.raw.Modify(attr, mask) })
}

func (q *qp) PostSend(wr verbs.SendWR) error {
	q.b.t.Helper()
	wr.AH = unwrap(wr.AH)
	return q.b.call(q.device, verbs.PostSend, func() error { return q.raw.PostSend(wr) })
}

func (q *qp) PostRecv(wr verbs.RecvWR) error {
	q.b.t.Helper()
	return q.b.call(q.device, verbs.PostRecv, func() error { return q.raw.PostRecv(wr) })
}
