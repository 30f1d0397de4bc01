package contract

import (
	"errors"
	"fmt"
	"time"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// A completer produces one completion after the other on a CQ.
type completer interface {
	// complete produces one. Solicited requests a solicited completion. It makes no
	// difference where only unsuccessful completions are possible.
	complete(solicited bool) error
	// String says in words what the completions are of.
	String() string
}

// completionSources says which completions the device produces.
type completionSources struct {
	// route is how a port reaches itself. Nil means that none does, and noRoute says why.
	route   *session.Route
	noRoute error
	// flushes are the methods by which the device flushes, at most one for sends, which is the
	// first. noSends and noReceives are why it has none for them. Nil means that it has.
	flushes             []session.Flush
	noSends, noReceives error
	// qpType is a type of QP that the device has: RC, or UD where there is no RC.
	qpType verbs.QPType
}

// noSources returns no sources, because a process died while it looked for them.
func noSources() completionSources {
	why := errors.New("the process that tried it before died")
	return completionSources{noRoute: why, noSends: why, noReceives: why, qpType: verbs.RC}
}

// survey finds the completions that the device produces. It uses objects of its own.
func (a *suite) survey() {
	w := &a.sources
	w.qpType = a.findType()
	a.findRoute()
	w.noSends = a.findFlush(session.FlushUD, session.FlushRC, session.FlushInit)
	w.noReceives = a.findFlush(session.FlushRecv)
	// Without the control nothing is known to be a refusal.
	if control := w.noReceives; control != nil && session.ObstacleOf(control) == nil && session.ObstacleOf(w.noSends) != nil {
		w.noSends = control
	}
}

// maxSearch limits the time spent on routes that do not work.
const maxSearch = 10 * time.Second

func (a *suite) findRoute() {
	w := &a.sources
	start := time.Now()
	for port := 1; port <= a.Attr.Ports; port++ {
		routes, err := a.Routes(port)
		for _, r := range routes {
			w.route = &r
			if err = a.try((*check).receiver); err == nil {
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

// findFlush adds the first of the methods by which the device flushes, or returns why none
// works: a *session.ObstacleError unless something failed.
func (a *suite) findFlush(methods ...session.Flush) error {
	var errs []error
	var lost error
	for _, f := range methods {
		if fact, eventless := f.Quiet(a.driver); eventless {
			errs = append(errs, fmt.Errorf("%s: known of the driver: %s", f, fact.What))
			continue
		}
		err := a.try(func(j *check, q verbs.CQ) (completer, error) { return j.flusher(q, f, session.FlushDepth) })
		if err == nil {
			a.sources.flushes = append(a.sources.flushes, f)
			return nil
		}
		err = fmt.Errorf("%s: %w", f, err)
		switch {
		case session.IsRefused(err):
		case errors.Is(err, errNoCompletion):
			// The device need not know a QP that was never ready.
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

// findType returns the type of QP for contracts that hold for any type.
func (a *suite) findType() verbs.QPType {
	for _, t := range []verbs.QPType{verbs.RC, verbs.UD} {
		j := &check{suite: a, Scope: a.Scope()}
		err := j.refused(func() error {
			pd, err := j.PD()
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

// try returns an error unless a completer produces a completion.
func (a *suite) try(create func(*check, verbs.CQ) (completer, error)) (err error) {
	j := &check{suite: a, Scope: a.Scope()}
	defer func() { err = errors.Join(err, j.Close()) }()
	q, err := j.cq(nil, 0)
	if err != nil {
		return err
	}
	// A missing feature is not a device failure.
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

// errNoCompletion is matched by the error of a completion that did not come. No contract
// requires it, and nothing can be checked without it.
var errNoCompletion = errors.New("the completion did not come")

// await waits until a CQ has had n completions, and returns them.
func (j *check) await(q verbs.CQ, n int) ([]verbs.WC, error) {
	var got []verbs.WC
	w := verbs.NewWait(eventTimeout)
	// Each poll is a line of the report, so the pauses grow.
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
			return got, fmt.Errorf("%d of %d within %v: %w", len(got), n, eventTimeout, errNoCompletion)
		}
		time.Sleep(w.Pause(pause))
	}
}

func (j *check) event(ch verbs.CompChannel, wait time.Duration) (e verbs.CQEvent, ok bool, err error) {
	e, err = verbs.NewWait(wait).Event(ch)
	if errors.Is(err, verbs.ErrTimeout) {
		return e, false, nil
	}
	if err != nil {
		return e, false, cannot("get an event", err)
	}
	// The event may name a wrong CQ.
	if err := e.CQ.AckEvents(1); err != nil {
		return e, false, cannot("acknowledge an event", err)
	}
	return e, true, nil
}

// completes produces a completion and reports whether an event came, which it should or should
// not. Without a completion it returns an error.
func (j *check) completes(c completer, solicited bool, n notified, should bool) (came bool, err error) {
	if err := c.complete(solicited); err != nil {
		return false, err
	}
	if should {
		if _, came, err = j.event(n.ch, eventTimeout); err != nil {
			return false, err
		}
	}
	if _, err := j.await(n.cq, 1); err != nil || came {
		return came, err
	}
	// If it should, the completion may have come only now, on a host that stood still.
	_, came, err = j.event(n.ch, silenceWindow)
	return came, err
}

// best returns the most dependable completer for a CQ: messages on the loopback
// path, which can be solicited or not; otherwise unsuccessful completions.
func (j *check) best(q verbs.CQ) (completer, error) {
	switch flushes := j.sources.flushes; {
	case j.sources.route != nil:
		return j.receiver(q)
	case len(flushes) > 0:
		return j.flusher(q, flushes[0], session.FlushDepth)
	default:
		return nil, j.noCompletions()
	}
}

func (j *check) needRoute() error {
	if j.sources.route == nil {
		return cannot("the loopback path is needed", j.sources.noRoute)
	}
	return nil
}

// noCompletions is the reason why no contract that needs a completion can be checked. Its
// obstacle, if any, is that of the loopback path.
func (j *check) noCompletions() error {
	return fmt.Errorf("no completion is available: no loopback (%w), and %w", j.sources.noRoute, j.noFlushes())
}

// noFlushes is why no work request is flushed: what failed, or else what is not offered.
func (j *check) noFlushes() error {
	for _, err := range []error{j.sources.noSends, j.sources.noReceives} {
		if err != nil && session.ObstacleOf(err) == nil {
			return err
		}
	}
	return errors.Join(j.sources.noSends, j.sources.noReceives)
}

type pair struct {
	j        *check
	from, to verbs.QP
	data     []verbs.SGE
	posted   uint64
}

// connect connects a sender and a receiver whose CQs are given. Each send leaves a
// completion if signalAll is set. The receiver takes receives from the SRQ, unless that is
// nil.
func (j *check) connect(sent, rcvd verbs.CQ, srq verbs.SRQ, signalAll bool) (*pair, error) {
	if err := j.needRoute(); err != nil {
		return nil, err
	}
	pd, err := j.PD()
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
	if p.to, err = j.qp(pd, verbs.RC, idle, rcvd, srq, false); err != nil {
		return nil, err
	}
	return p, session.Connect(p.from, p.to, *j.sources.route)
}

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

type messages struct {
	*pair
	// other is the CQ of the side that is not measured.
	other verbs.CQ
	text  string
}

// receiver returns a completer of successful receives on a CQ.
func (j *check) receiver(q verbs.CQ) (completer, error) { return j.messages(q, false) }

// sender returns a completer of successful sends on a CQ, which are not solicited.
func (j *check) sender(q verbs.CQ) (completer, error) { return j.messages(q, true) }

func (j *check) messages(q verbs.CQ, sends bool) (completer, error) {
	other, err := j.cq(nil, 0)
	if err != nil {
		return nil, err
	}
	sent, received, text := other, q, "receives of messages (RC, loopback)"
	if sends {
		sent, received, text = q, other, "sends of messages (RC, loopback)"
	}
	p, err := j.connect(sent, received, nil, false)
	return messages{p, other, text}, err
}

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

func (m messages) String() string { return m.text }

func (j *check) successful(q verbs.CQ) error {
	wcs, err := j.await(q, 1)
	if err != nil {
		return err
	}
	if s := wcs[0].Status; s != verbs.WCSuccess {
		return fmt.Errorf("a message completed with %s", s)
	}
	return nil
}

type flusher struct {
	*session.Flushing
	posted uint64
}

// flusher returns a completer of flushed work requests on a CQ, with room for depth of them.
func (j *check) flusher(q verbs.CQ, method session.Flush, depth int) (*flusher, error) {
	pd, err := j.PD()
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
	f, err := j.Flushing(method, q, idle, data, depth)
	return &flusher{Flushing: f}, err
}

func (f *flusher) complete(bool) error { return f.flush(1) }

func (f *flusher) flush(n int) error {
	ids := make([]uint64, n)
	for i := range ids {
		f.posted++
		ids[i] = f.posted
	}
	if err := f.Post(ids...); err != nil {
		return cannot("have work requests flushed", err)
	}
	return nil
}

func (f *flusher) String() string { return f.Method.String() + " (flushed)" }

func notSupported(format string, args ...any) error {
	return &session.ObstacleError{Reason: state.SkipNotSupported, Detail: fmt.Sprintf(format, args...)}
}
