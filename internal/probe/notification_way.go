package probe

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// leftToSearch returns the time that is left of a run for what leads nowhere. It does
// not count as that of the measurements.
func (r *run) leftToSearch() time.Duration {
	return searchDeadlines*r.cfg.Notification.Deadline - r.searched
}

// way is how the completions of a path are brought about on a port. Which of the
// candidates does that, only trying tells: the first measurement does.
type way struct {
	path state.LatencyPath
	port int
	// candidates are the ways that there may be, the best first; used is the one that
	// is taken, once settled.
	candidates []candidate
	used       candidate
	settled    bool
	// left tells of better ways that are not tried, and why.
	left []error
	// none tells that there is no way; nil if there is or may be one.
	none *session.ObstacleError
	// known is what earlier runs found, among what there is; nil for nothing.
	known *state.Method
	among string
}

// candidate is one way: the route of the loopback path, or how work requests are
// flushed.
type candidate struct {
	route session.Route
	flush session.Flush
}

// flushes returns the ways to have work requests flushed. Those that raise no events, as
// is known of the driver, are left out: a single sample does not show it.
func flushes(d errata.Driver) *way {
	w := &way{path: state.PathFlush, port: 1}
	for _, f := range session.Flushes() {
		if fact, quiet := f.Quiet(d); quiet {
			w.left = []error{fmt.Errorf("sends posted to a QP in the error state: known of the driver: %s", fact.What)}
			continue
		}
		w.candidates = append(w.candidates, candidate{flush: f})
	}
	return w
}

// name names one of the candidates.
func (w *way) name(c candidate) string {
	if w.path == state.PathFlush {
		return c.flush.String()
	}
	return c.route.String()
}

// trial is the first sample of a measurement, by one candidate, with the objects of
// the measurement.
type trial struct {
	candidate
	scope *session.Scope
	o     verbs.Measurement
	port  int
	found verbs.Samples
	took  time.Duration
	err   error
	// whatever tells that the error is none of the candidate's: no other would do
	// better.
	whatever bool
}

// completed tells whether the work request completed as it should. What became of
// its event is another matter.
func (t *trial) completed() bool {
	return t.err == nil && t.found.Missing == 0 && len(t.found.Unsuccessful) == 0
}

// lost tells whether a work request that was taken did not complete, or not as it
// should.
func (t *trial) lost() bool { return t.err == nil && !t.completed() }

// why tells why the candidate does not do.
func (t *trial) why() error {
	var refused *session.RefusedError
	switch {
	case errors.As(t.err, &refused):
		return refused.Err
	case t.err != nil:
		return t.err
	case t.found.Missing > 0:
		return errors.New("the work request was taken and did not complete")
	default:
		return fmt.Errorf("the work request completed with %s", t.found.Unsuccessful[0])
	}
}

// try creates the objects of a measurement for a candidate, and takes the first
// sample.
func (n *notification) try(m measurement, c candidate) *trial {
	t := n.borrow(m)
	if t == nil {
		t = &trial{candidate: c, scope: n.Scope(), port: m.port}
		t.o.Deadline = n.cfg.Deadline
		t.err = n.objects(t, m)
	}
	if t.err == nil {
		t.found, t.took, t.err = n.first(m, t.o)
		t.whatever = t.err != nil && !session.IsRefused(t.err)
	}
	return t
}

// trial returns the first sample of a measurement: by the way that is settled, or
// by the first that leads to a completion, which then is. The error tells of objects
// that are left.
func (n *notification) trial(m measurement) (*trial, error) {
	if m.settled {
		return n.try(m, m.used), nil
	}
	var failed []*trial
	start, most := time.Now(), n.leftToSearch()
	defer func() {
		if len(failed) > 0 {
			took := min(time.Since(start), most)
			n.searched += took
			n.start = n.start.Add(took)
		}
	}()
	for i, c := range m.candidates {
		t := n.try(m, c)
		if t.whatever {
			return t, nil
		}
		if t.completed() {
			return n.settle(m, t, failed)
		}
		if err := n.close(m, t); err != nil {
			return nil, err
		}
		failed = append(failed, t)
		if took := time.Since(start); took > most && i+1 < len(m.candidates) {
			m.none = &session.ObstacleError{
				Reason: state.SkipBudget,
				Detail: fmt.Sprintf("%d of %d ways led nowhere within %s: %s", len(failed), len(m.candidates), took.Round(time.Millisecond), session.OneLine(n.reasons(m, failed))),
			}
			t.err = m.none
			return t, nil
		}
	}
	return n.nowhere(m, failed), nil
}

// settle settles on the way by which a work request completed, unless the best one
// that failed does after all: once is a loss, always is a trait. That a device does
// not take a work request of a QP in the error state is a trait.
func (n *notification) settle(m measurement, t *trial, failed []*trial) (*trial, error) {
	for _, f := range failed {
		if !f.lost() && m.path == state.PathFlush {
			continue
		}
		again := n.try(m, f.candidate)
		completed := again.completed()
		if err := n.close(m, again); err != nil {
			return nil, errors.Join(err, n.close(m, t))
		}
		if completed {
			if err := n.close(m, t); err != nil {
				return nil, err
			}
			t, failed = f, nil
		}
		break
	}
	n.use(m, t, failed)
	return t, nil
}

// use settles on the way of a trial, and notes it.
func (n *notification) use(m measurement, t *trial, failed []*trial) {
	before := m.port
	m.settled, m.used, m.port = true, t.candidate, t.port
	w := state.Method{Port: m.port, Path: m.path, By: m.name(t.candidate)}
	if others := slices.Concat(m.left, n.reasons(m, failed)); len(others) > 0 {
		w.InsteadOf = session.OneLine(others)
	}
	n.Methods = append(n.Methods, n.learnWay(m.way, before, w, len(failed)))
}

// nowhere settles a path on which no candidate leads to a completion, and returns
// the trial that tells of it.
func (n *notification) nowhere(m measurement, failed []*trial) *trial {
	tells := failed[0]
	if m.path == state.PathLoopback && len(failed) > 1 {
		n.Methods = append(n.Methods, state.Method{Port: m.port, Path: m.path, InsteadOf: session.OneLine(n.reasons(m, failed))})
	}
	if m.path == state.PathFlush {
		// A device that takes a request of a QP that it knows is to complete it. What
		// it does not take, or never knew of, is none of its business.
		tells = failed[len(failed)-1]
		for _, t := range failed {
			if t.lost() && t.flush.BeenReady() {
				tells = t
				break
			}
		}
		if !tells.lost() || !tells.flush.BeenReady() {
			m.none = session.NotFlushed(slices.Concat(m.left, n.reasons(m, failed))...)
			tells.err = m.none
			return tells
		}
	}
	m.settled, m.used, m.port = true, tells.candidate, tells.port
	return tells
}

// reasons says why candidates do not do.
func (n *notification) reasons(m measurement, failed []*trial) []error {
	var list []error
	for _, t := range failed {
		list = append(list, fmt.Errorf("%s: %w", m.name(t.candidate), t.why()))
	}
	return list
}
