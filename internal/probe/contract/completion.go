package contract

import (
	"errors"
	"fmt"
	"time"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
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
	// send is how sends are flushed. noFlush tells of sends and of receives why the
	// device does not flush them; nil if it does.
	send    session.Flush
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
func (a *judging) survey() {
	w := &a.ways
	w.noFlush = make(map[flushWay]error)
	w.qpType = a.findType()
	a.findRoute()
	for _, way := range flushWays() {
		w.noFlush[way] = a.findFlush(way)
	}
	// Without the control nothing is known to be a refusal.
	control := w.noFlush[flushRecv]
	if control != nil && session.ObstacleOf(control) == nil && session.ObstacleOf(w.noFlush[flushSend]) != nil {
		w.noFlush[flushSend] = control
	}
}

// maxSearch is the most time that is spent on ways that lead nowhere.
const maxSearch = 10 * time.Second

// findRoute looks for a way by which a port reaches itself.
func (a *judging) findRoute() {
	w := &a.ways
	start := time.Now()
	for port := 1; port <= a.Attr.Ports; port++ {
		routes, err := a.Routes(port)
		for _, r := range routes {
			w.route = &r
			if err = a.try((*judge).receiver); err == nil {
				w.noRoute = nil
				return
			}
			w.route = nil
			err = fmt.Errorf("no message goes from port %d to itself by %s: %w", port, r, err)
			if time.Since(start) > maxSearch {
				break
			}
		}
		if w.noRoute == nil {
			w.noRoute = err
		}
		if time.Since(start) > maxSearch {
			return
		}
	}
}

// findFlush looks for a way by which the device flushes sends, or receives, and
// returns why there is none: an *session.ObstacleError unless something failed.
func (a *judging) findFlush(way flushWay) error {
	var errs []error
	var lost error
	for _, f := range session.Flushes() {
		if (f == session.FlushRecv) != (way == flushRecv) {
			continue
		}
		if fact, quiet := f.Quiet(a.driver); quiet {
			errs = append(errs, fmt.Errorf("%s: known of the driver: %s", f, fact.What))
			continue
		}
		if way == flushSend {
			a.ways.send = f
		}
		err := a.try(func(j *judge, q verbs.CQ) (completer, error) { return j.flusher(q, way) })
		if err == nil {
			return nil
		}
		err = fmt.Errorf("%s: %w", f, err)
		switch {
		case session.IsRefused(err):
		case errors.Is(err, errNoCompletion):
			// Of a QP that never was ready the device need not know.
			if f.BeenReady() && lost == nil {
				lost = err
			}
		default:
			return err
		}
		errs = append(errs, err)
	}
	if lost != nil {
		return lost
	}
	return session.NotFlushed(errs...)
}

// findType returns the type of QP with which to judge what holds for any.
func (a *judging) findType() verbs.QPType {
	for _, t := range []verbs.QPType{verbs.RC, verbs.UD} {
		j := &judge{judging: a, Scope: a.Scope()}
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
func (a *judging) try(create func(*judge, verbs.CQ) (completer, error)) (err error) {
	j := &judge{judging: a, Scope: a.Scope()}
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

// noFlushes is why no work request is flushed: what failed, or else what is not offered.
func (j *judge) noFlushes() error {
	for _, way := range flushWays() {
		if err := j.ways.noFlush[way]; err != nil && session.ObstacleOf(err) == nil {
			return err
		}
	}
	return errors.Join(j.ways.noFlush[flushSend], j.ways.noFlush[flushRecv])
}

// by says how work requests are flushed.
func (w *ways) by(way flushWay) session.Flush {
	if way == flushSend {
		return w.send
	}
	return session.FlushRecv
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
	err = p.from.PostSend(verbs.SendWR{ID: p.posted, Flags: flags, SGEs: p.data})
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

// flushWay is which work requests are flushed. Devices differ in which they flush.
type flushWay int

const (
	flushSend flushWay = iota
	flushRecv
)

func flushWays() []flushWay { return []flushWay{flushSend, flushRecv} }

// flusher is a completer of flushed work requests.
type flusher struct {
	*session.Flushing
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
	f, err := j.Flushing(j.ways.by(way), q, idle, data)
	return &flusher{Flushing: f}, err
}

// complete implements completer.
func (f *flusher) complete(bool) error {
	f.posted++
	if err := f.Post(f.posted); err != nil {
		return cannot("have a work request flushed", err)
	}
	return nil
}

// String implements completer.
func (f *flusher) String() string { return f.Way.String() + " (flushed)" }

// notSupported is an obstacle in words.
func notSupported(format string, args ...any) error {
	return &session.ObstacleError{Reason: state.SkipNotSupported, Detail: fmt.Sprintf(format, args...)}
}
