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
	// complete produces one, or stops the check. Solicited requests a solicited completion. It
	// makes no difference where only unsuccessful completions are possible.
	complete(solicited bool)
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
		err := a.try(func(j *check, q verbs.CQ) completer { return j.flusher(q, f, session.FlushDepth) })
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
		var err error
		j.Tolerating(func() {
			err = session.Catch(func() {
				cq := j.cq(nil, 0)
				j.qp(t, cq, cq, nil, false)
			})
		})
		if errors.Join(err, j.Close()) == nil {
			return t
		}
	}
	return verbs.RC
}

// try returns an error unless a completer produces a completion.
func (a *suite) try(create func(*check, verbs.CQ) completer) error {
	j := &check{suite: a, Scope: a.Scope()}
	err := session.Catch(func() {
		q := j.cq(nil, 0)
		// A missing feature is not a device failure.
		j.Tolerating(func() { create(j, q).complete(false) })
		session.Must(j.await(q, 1))
	})
	return errors.Join(err, j.Close())
}

// errNoCompletion is matched by the error of a completion that did not come. No contract
// requires it, and nothing can be checked without it.
var errNoCompletion = errors.New("the completion did not come")

// await waits until a CQ has had n completions, and returns them.
func (j *check) await(q verbs.CQ, n int) ([]verbs.WC, error) {
	got, err := session.Completions(q, n, verbs.NewWait(eventTimeout))
	switch {
	case err != nil:
		return got, cannot("poll a CQ", err)
	case len(got) < n:
		return got, fmt.Errorf("%d of %d within %v: %w", len(got), n, eventTimeout, errNoCompletion)
	}
	return got, nil
}

// event reports whether an event comes within a time.
func (j *check) event(ch verbs.CompChannel, wait time.Duration) (e verbs.CQEvent, ok bool) {
	e, err := verbs.NewWait(wait).Event(ch)
	if errors.Is(err, verbs.ErrTimeout) {
		return e, false
	}
	session.Stop(cannot("get an event", err))
	// The event may name a wrong CQ.
	session.Stop(cannot("acknowledge an event", e.CQ.AckEvents(1)))
	return e, true
}

// completes produces a completion and reports whether an event came, which it should or should
// not. Without a completion it stops the check.
func (j *check) completes(c completer, solicited bool, n notified, should bool) (came bool) {
	c.complete(solicited)
	if should {
		_, came = j.event(n.ch, eventTimeout)
	}
	session.Must(j.await(n.cq, 1))
	if !came {
		// If it should, the completion may have come only now, on a host that stood still.
		_, came = j.event(n.ch, silenceWindow)
	}
	return came
}

// best returns the most dependable completer for a CQ: messages on the loopback
// path, which can be solicited or not; otherwise unsuccessful completions.
func (j *check) best(q verbs.CQ) completer {
	switch flushes := j.sources.flushes; {
	case j.sources.route != nil:
		return j.receiver(q)
	case len(flushes) == 0:
		session.Stop(j.noCompletions())
	}
	return j.flusher(q, j.sources.flushes[0], session.FlushDepth)
}

func (j *check) needRoute() {
	if j.sources.route == nil {
		session.Stop(cannot("the loopback path is needed", j.sources.noRoute))
	}
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
func (j *check) connect(sent, rcvd verbs.CQ, srq verbs.SRQ, signalAll bool) *pair {
	j.needRoute()
	idle := j.cq(nil, 0) // The other CQ of each QP sees nothing.
	p := &pair{j: j, data: j.sge()}
	p.from = j.qp(verbs.RC, sent, idle, nil, signalAll)
	p.to = j.qp(verbs.RC, idle, rcvd, srq, false)
	session.Stop(session.Connect(p.from, p.to, *j.sources.route))
	return p
}

func (p *pair) send(flags verbs.SendFlags) (id uint64) {
	p.posted++
	session.Stop(cannot("post a receive", p.to.PostRecv(verbs.RecvWR{ID: p.posted, SGEs: p.data})))
	session.Stop(cannot("post a send", p.from.PostSend(verbs.SendWR{ID: p.posted, Flags: flags, SGEs: p.data})))
	return p.posted
}

type messages struct {
	*pair
	// other is the CQ of the side that is not measured.
	other verbs.CQ
	text  string
}

// receiver returns a completer of successful receives on a CQ.
func (j *check) receiver(q verbs.CQ) completer {
	other := j.cq(nil, 0)
	return messages{j.connect(other, q, nil, false), other, "receives of messages (RC, loopback)"}
}

// sender returns a completer of successful sends on a CQ, which are not solicited.
func (j *check) sender(q verbs.CQ) completer {
	other := j.cq(nil, 0)
	return messages{j.connect(q, other, nil, false), other, "sends of messages (RC, loopback)"}
}

func (m messages) complete(solicited bool) {
	flags := verbs.SendSignaled
	if solicited {
		flags |= verbs.SendSolicited
	}
	m.send(flags)
	// The queues must not fill up.
	m.j.successful(m.other)
}

func (m messages) String() string { return m.text }

// successful awaits a completion, which must be successful.
func (j *check) successful(q verbs.CQ) verbs.WC {
	wc := session.Must(j.await(q, 1))[0]
	if wc.Status != verbs.WCSuccess {
		session.Stop(fmt.Errorf("a message completed with %s", wc.Status))
	}
	return wc
}

type flusher struct {
	*session.Flushing
	posted uint64
}

// flusher returns a completer of flushed work requests on a CQ, with room for depth of them.
func (j *check) flusher(q verbs.CQ, method session.Flush, depth int) *flusher {
	idle := j.cq(nil, 0)
	return &flusher{Flushing: session.Must(j.Flushing(method, q, idle, j.sge(), depth))}
}

func (f *flusher) complete(bool) { f.flush(1) }

func (f *flusher) flush(n int) {
	ids := make([]uint64, n)
	for i := range ids {
		f.posted++
		ids[i] = f.posted
	}
	session.Stop(cannot("have work requests flushed", f.Post(ids...)))
}

func (f *flusher) String() string { return f.Method.String() + " (flushed)" }

func notSupported(format string, args ...any) error {
	return &session.ObstacleError{Reason: state.SkipNotSupported, Detail: fmt.Sprintf(format, args...)}
}
