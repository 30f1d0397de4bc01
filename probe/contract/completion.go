package contract

import (
	"errors"
	"fmt"
	"time"

	"rdma_exporter/probe/session"
	"rdma_exporter/report"
	"rdma_exporter/verbs"
)

// A completer brings about one completion after the other on a CQ.
type completer interface {
	// complete brings about one. Solicited asks for one that is a solicited
	// completion in any case; where there is none to be had but unsuccessful ones,
	// it makes no difference.
	complete(solicited bool) error
	// String says in words what the completions are of.
	String() string
}

// ways is how completions can be had on the device.
type ways struct {
	// route is how a port reaches itself; nil if none does, for the reason
	// noRoute.
	route   *session.Route
	noRoute error
	// noFlush tells for each way of flushing why the device does not; nil if it
	// does.
	noFlush map[flushWay]error
	// qpType is a type of QP that the device has: RC, or UD where there is no RC.
	qpType verbs.QPType
}

// noWays says that no completion was found because looking for it was the end of
// a process.
func noWays() ways {
	why := errors.New("the process that tried it before did not come to its end")
	w := ways{noRoute: why, noFlush: make(map[flushWay]error), qpType: verbs.RC}
	for _, way := range flushWays() {
		w.noFlush[way] = why
	}
	return w
}

// flushes tells whether the device flushes work requests in a way.
func (w *ways) flushes(way flushWay) bool { return w.noFlush[way] == nil }

// survey tries which completions the device gives. It creates and destroys
// objects of its own.
func (a *audit) survey() {
	w := &a.ways
	w.noFlush = make(map[flushWay]error)
	w.qpType = a.findType()
	for port := 1; port <= a.Attr.Ports && w.route == nil; port++ {
		r, err := a.Loopback(port)
		if err == nil {
			w.route, w.noRoute = &r, nil
		} else if w.noRoute == nil {
			w.noRoute = err
		}
	}
	if w.route != nil {
		if err := a.try((*judge).receiver); err != nil {
			w.route, w.noRoute = nil, fmt.Errorf("no message goes from port %d to itself: %w", w.route.Port, err)
		}
	}
	for _, way := range flushWays() {
		w.noFlush[way] = a.try(func(j *judge, q verbs.CQ) (completer, error) { return j.flusher(q, way) })
	}
}

// findType returns the type of QP with which to judge what holds for any.
func (a *audit) findType() verbs.QPType {
	for _, t := range []verbs.QPType{verbs.RC, verbs.UD} {
		j := &judge{audit: a, Scope: a.Scope()}
		err := j.refused(func() error {
			pd, err := j.pd()
			if err != nil {
				return err
			}
			cq, err := j.cq(nil, 0)
			if err != nil {
				return err
			}
			_, err = j.qp(pd, t, cq, cq, nil, false)
			return err
		})
		if errors.Join(err, j.Close()) == nil {
			return t
		}
	}
	return verbs.RC
}

// try tells whether a completer leads to a completion.
func (a *audit) try(create func(*judge, verbs.CQ) (completer, error)) (err error) {
	j := &judge{audit: a, Scope: a.Scope()}
	defer func() { err = errors.Join(err, j.Close()) }()
	q, err := j.cq(nil, 0)
	if err != nil {
		return err
	}
	// What is not offered here is no failure of the device's.
	j.Expecting(func(error) bool { return true }, func() {
		var c completer
		if c, err = create(j, q); err == nil {
			err = c.complete(false)
		}
	})
	if err != nil {
		return err
	}
	_, err = j.await(q, 1)
	return err
}

// errNoCompletion is matched by the error of a completion that did not come. It
// is no contract of this catalogue, and nothing can be judged without it.
var errNoCompletion = errors.New("the completion did not come")

// await waits until a CQ has had n completions, and returns them.
func (j *judge) await(q verbs.CQ, n int) ([]verbs.WC, error) {
	var got []verbs.WC
	w := verbs.NewWait(patience)
	// Each look is a line of the report, so there are ever fewer.
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		left := w.Left()
		wcs, err := q.Poll(n - len(got))
		if err != nil {
			return got, cannot("poll a CQ", err)
		}
		if got = append(got, wcs...); len(got) >= n {
			return got, nil
		}
		if left <= 0 {
			return got, fmt.Errorf("%d of %d within %v: %w", len(got), n, patience, errNoCompletion)
		}
		time.Sleep(w.Pause(pause))
	}
}

// event waits for an event and acknowledges it. Without one, ok is false.
func (j *judge) event(ch verbs.CompChannel, wait time.Duration) (e verbs.CQEvent, ok bool, err error) {
	e, err = verbs.NewWait(wait).Event(ch)
	if errors.Is(err, verbs.ErrTimeout) {
		return e, false, nil
	}
	if err != nil {
		return e, false, cannot("get an event", err)
	}
	// The event may name another CQ than the one that it is for.
	if err := e.CQ.AckEvents(1); err != nil {
		return e, false, cannot("acknowledge an event", err)
	}
	return e, true, nil
}

// completesWithEvent brings about a completion on a CQ and tells whether an event
// came to the channel. The error says that there was no completion, so that
// nothing can be said of its event.
func (j *judge) completesWithEvent(c completer, solicited bool, q verbs.CQ, ch verbs.CompChannel) (bool, error) {
	if err := c.complete(solicited); err != nil {
		return false, err
	}
	_, came, err := j.event(ch, patience)
	if err != nil {
		return false, err
	}
	if _, err := j.await(q, 1); err != nil || came {
		return came, err
	}
	// The completion may have come only now, on a host that stood still.
	_, came, err = j.event(ch, quiet)
	return came, err
}

// completesQuietly brings about a completion on a CQ, waits for it, and tells
// whether an event came to the channel all the same.
func (j *judge) completesQuietly(c completer, solicited bool, q verbs.CQ, ch verbs.CompChannel) (bool, error) {
	if err := c.complete(solicited); err != nil {
		return false, err
	}
	if _, err := j.await(q, 1); err != nil {
		return false, err
	}
	_, came, err := j.event(ch, quiet)
	return came, err
}

// best returns the most dependable completer for a CQ: messages on the loopback
// path, which can be solicited or not; otherwise unsuccessful completions.
func (j *judge) best(q verbs.CQ) (completer, error) {
	if j.ways.route != nil {
		return j.receiver(q)
	}
	for _, way := range flushWays() {
		if j.ways.flushes(way) {
			return j.flusher(q, way)
		}
	}
	return nil, j.noCompletions()
}

// needRoute returns why the loopback path cannot be had, if so.
func (j *judge) needRoute() error {
	if j.ways.route == nil {
		return cannot("the loopback path is needed", j.ways.noRoute)
	}
	return nil
}

// noCompletions is why nothing can be judged that takes a completion. The
// obstacle that it stands for, if there is one, is that of the loopback path.
func (j *judge) noCompletions() error {
	return fmt.Errorf("no completion can be had: no loopback (%w), and %w", j.ways.noRoute, j.noFlushes())
}

// noFlushes is why no work request is flushed.
func (j *judge) noFlushes() error {
	ways := flushWays()
	return fmt.Errorf("no flushed %s (%w), no flushed %s (%w)", ways[0], j.ways.noFlush[ways[0]], ways[1], j.ways.noFlush[ways[1]])
}

// pair are two RC QPs that are connected on one port.
type pair struct {
	j        *judge
	from, to verbs.QP
	data     []verbs.SGE
	posted   uint64
}

// connect connects a sender and a receiver whose CQs are given; the sender's QP
// makes each send leave a completion if signalAll is set.
func (j *judge) connect(sent, rcvd verbs.CQ, signalAll bool) (*pair, error) {
	if err := j.needRoute(); err != nil {
		return nil, err
	}
	pd, err := j.pd()
	if err != nil {
		return nil, err
	}
	// The other CQ of each QP sees nothing.
	idle, err := j.cq(nil, 0)
	if err != nil {
		return nil, err
	}
	p := &pair{j: j}
	if p.data, err = j.sge(pd); err != nil {
		return nil, err
	}
	if p.from, err = j.qp(pd, verbs.RC, sent, idle, nil, signalAll); err != nil {
		return nil, err
	}
	if p.to, err = j.qp(pd, verbs.RC, idle, rcvd, nil, false); err != nil {
		return nil, err
	}
	if err := session.Connect(p.from, p.to, *j.ways.route); err != nil {
		return nil, err
	}
	return p, nil
}

// send posts a receive and a message for it.
func (p *pair) send(flags verbs.SendFlags) (id uint64, err error) {
	p.posted++
	if err := p.to.PostRecv(verbs.RecvWR{ID: p.posted, SGEs: p.data}); err != nil {
		return 0, cannot("post a receive", err)
	}
	err = p.from.PostSend(verbs.SendWR{ID: p.posted, Opcode: verbs.OpSend, Flags: flags, SGEs: p.data})
	if err != nil {
		return 0, cannot("post a send", err)
	}
	return p.posted, nil
}

// messages is a completer of messages: of their receives, or of their sends.
type messages struct {
	*pair
	// other is the CQ of the side that is not measured.
	other verbs.CQ
	text  string
}

// receiver returns a completer of receives on a CQ.
func (j *judge) receiver(q verbs.CQ) (completer, error) {
	other, err := j.cq(nil, 0)
	if err != nil {
		return nil, err
	}
	p, err := j.connect(other, q, false)
	return messages{p, other, "receives of messages (RC, loopback)"}, err
}

// sender returns a completer of successful sends on a CQ, none of which is
// solicited.
func (j *judge) sender(q verbs.CQ) (completer, error) {
	other, err := j.cq(nil, 0)
	if err != nil {
		return nil, err
	}
	p, err := j.connect(q, other, false)
	return messages{p, other, "sends of messages (RC, loopback)"}, err
}

// complete implements completer.
func (m messages) complete(solicited bool) error {
	flags := verbs.SendSignaled
	if solicited {
		flags |= verbs.SendSolicited
	}
	if _, err := m.send(flags); err != nil {
		return err
	}
	// The queues must not fill up.
	return m.j.successful(m.other)
}

// String implements completer.
func (m messages) String() string { return m.text }

// successful awaits one completion, which must be successful.
func (j *judge) successful(q verbs.CQ) error {
	wcs, err := j.await(q, 1)
	if err != nil {
		return err
	}
	if s := wcs[0].Status; s != verbs.WCSuccess {
		return fmt.Errorf("a message completed with %s", s)
	}
	return nil
}

// flushWay is a way to have work requests flushed, which completes them without
// success and needs neither a port nor a peer.
type flushWay int

// The ways. Devices differ in which they know: iWARP drivers that map their
// queues into the process do not look at what is posted after the error.
const (
	// flushSend: a send is posted to a QP in the error state.
	flushSend flushWay = iota
	// flushRecv: a receive is posted, and then the QP goes into the error state.
	flushRecv
)

// String says what is flushed.
func (w flushWay) String() string {
	if w == flushSend {
		return "sends posted to a QP in the error state"
	}
	return "receives of a QP that goes into the error state"
}

func flushWays() []flushWay { return []flushWay{flushSend, flushRecv} }

// flusher is a completer of flushed work requests.
type flusher struct {
	j   *judge
	way flushWay
	pd  verbs.PD
	// cq is the CQ that the completions go to, and idle the QPs' other one.
	cq, idle verbs.CQ
	// qp is in the error state; nil for flushRecv, which needs a QP each time.
	qp     verbs.QP
	data   []verbs.SGE
	posted uint64
}

// flusher returns a completer of flushed work requests on a CQ.
func (j *judge) flusher(q verbs.CQ, way flushWay) (completer, error) {
	pd, err := j.pd()
	if err != nil {
		return nil, err
	}
	idle, err := j.cq(nil, 0)
	if err != nil {
		return nil, err
	}
	data, err := j.sge(pd)
	if err != nil {
		return nil, err
	}
	f := &flusher{j: j, way: way, pd: pd, cq: q, idle: idle, data: data}
	if way == flushSend {
		if j.ways.qpType != verbs.RC {
			return nil, notSupported("a send on a %s QP needs an address", j.ways.qpType)
		}
		if f.qp, err = j.qp(pd, verbs.RC, q, idle, nil, true); err != nil {
			return nil, err
		}
		if err := session.Break(f.qp, j.flushPort()); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// flushPort is the port by which a QP gets into the error state; it need not be
// active.
func (j *judge) flushPort() int {
	if j.ways.route != nil {
		return j.ways.route.Port
	}
	return 1
}

// complete implements completer.
func (f *flusher) complete(bool) error {
	f.posted++
	if f.way == flushSend {
		err := f.qp.PostSend(verbs.SendWR{ID: f.posted, Opcode: verbs.OpSend, Flags: verbs.SendSignaled, SGEs: f.data})
		if err != nil {
			return cannot("post a send to a QP in the error state", err)
		}
		return nil
	}
	qp, err := f.j.qp(f.pd, f.j.ways.qpType, f.idle, f.cq, nil, false)
	if err != nil {
		return err
	}
	if err := qp.Modify(verbs.ToInit(qp.Type(), f.j.flushPort(), verbs.AccessLocalWrite)); err != nil {
		return cannot("move a QP to INIT", err)
	}
	if err := qp.PostRecv(verbs.RecvWR{ID: f.posted, SGEs: f.data}); err != nil {
		return cannot("post a receive", err)
	}
	if err := qp.Modify(verbs.ToError()); err != nil {
		return cannot("move a QP with a receive to ERR", err)
	}
	return nil
}

// String implements completer.
func (f *flusher) String() string { return f.way.String() + " (flushed)" }

// notSupported is an obstacle in words.
func notSupported(format string, args ...any) error {
	return &session.ObstacleError{Reason: report.SkipNotSupported, Detail: fmt.Sprintf(format, args...)}
}
