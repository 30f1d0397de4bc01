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

// leftToSearch returns how long a run may still wait for what never comes. That time does
// not count as that of the measurements.
func (r *run) leftToSearch() time.Duration {
	return searchDeadlines*r.cfg.Notification.Deadline - r.searched
}

// method is how the completions of a path are produced on a port. Only trying shows which
// of the candidates works; the first measurement does that.
type method struct {
	path state.LatencyPath
	port int
	// candidates has the best first. used is the one that is taken, once settled.
	candidates []candidate
	used       candidate
	settled    bool
	// skipped says why better candidates are not tried.
	skipped []error
	// none says that no candidate works. Nil means that one does or may.
	none *session.ObstacleError
	// known is the result of earlier runs for these candidates.
	known *state.Method
	among string
}

// candidate is a route of the loopback path, or how work requests are flushed.
type candidate struct {
	route session.Route
	flush session.Flush
}

// flushes returns the candidates of the flush path, without those that raise no events on
// this driver: a single sample does not show that.
func flushes(d errata.Driver) *method {
	w := &method{path: state.PathFlush, port: 1}
	for _, f := range session.Flushes() {
		if erratum, quiet := f.Quiet(d); quiet {
			w.skipped = []error{fmt.Errorf("sends posted to a QP in the error state: known of the driver: %s", erratum.What)}
			continue
		}
		w.candidates = append(w.candidates, candidate{flush: f})
	}
	return w
}

func (w *method) name(c candidate) string {
	if w.path == state.PathFlush {
		return c.flush.String()
	}
	return c.route.String()
}

// trial is the first sample of a measurement by one candidate, with its objects.
type trial struct {
	candidate
	scope *session.Scope
	o     verbs.Measurement
	port  int
	found verbs.Samples
	took  time.Duration
	err   error
	// final is true if no other candidate would avoid err.
	final bool
}

// completed reports whether the work request completed as it should, with an event or not.
func (t *trial) completed() bool {
	return t.err == nil && t.found.Missing == 0 && len(t.found.Unsuccessful) == 0
}

// lost reports whether a work request was accepted and did not complete as it should.
func (t *trial) lost() bool { return t.err == nil && !t.completed() }

// why returns why the candidate does not work.
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

// try takes the first sample of a measurement by a candidate.
func (n *notification) try(m measurement, c candidate) *trial {
	t := n.reuse(m)
	if t == nil {
		t = &trial{candidate: c, scope: n.Scope(), port: m.port}
		t.o.Deadline = n.cfg.Deadline
		t.err = n.objects(t, m)
	}
	if t.err == nil {
		t.found, t.took, t.err = n.first(m, t.o)
		t.final = t.err != nil && !session.IsRefused(t.err)
	}
	return t
}

// trial returns the first sample of a measurement by the settled candidate, or else by the
// first one that completes, which it settles on. The error is about objects that are left.
func (n *notification) trial(m measurement) (*trial, error) {
	if m.settled {
		return n.try(m, m.used), nil
	}
	var failed []*trial
	start, limit := time.Now(), n.leftToSearch()
	defer func() {
		if len(failed) > 0 {
			took := min(time.Since(start), limit)
			n.searched += took
			n.start = n.start.Add(took)
		}
	}()
	for i, c := range m.candidates {
		t := n.try(m, c)
		if t.completed() {
			return n.settle(m, t, failed)
		}
		if t.final {
			return t, nil
		}
		if err := n.close(m, t); err != nil {
			return nil, err
		}
		failed = append(failed, t)
		if took := time.Since(start); took > limit && i+1 < len(m.candidates) {
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

// settle settles on the candidate that completed, unless the best one that failed completes
// when tried again: then a completion was lost. A refusal on the flush path is no loss.
func (n *notification) settle(m measurement, t *trial, failed []*trial) (*trial, error) {
	i := slices.IndexFunc(failed, func(f *trial) bool { return f.lost() || m.path != state.PathFlush })
	if i >= 0 {
		again := n.try(m, failed[i].candidate)
		completed := again.completed()
		if err := n.close(m, again); err != nil {
			return nil, errors.Join(err, n.close(m, t))
		}
		if completed {
			if err := n.close(m, t); err != nil {
				return nil, err
			}
			t, failed = failed[i], nil
		}
	}
	before := m.port
	m.settled, m.used, m.port = true, t.candidate, t.port
	w := state.Method{Port: m.port, Path: m.path, By: m.name(t.candidate)}
	if others := slices.Concat(m.skipped, n.reasons(m, failed)); len(others) > 0 {
		w.InsteadOf = session.OneLine(others)
	}
	n.Methods = append(n.Methods, n.learnMethod(m.method, before, w, len(failed)))
	return t, nil
}

// nowhere settles a path on which no candidate completes, and returns the trial that shows
// why.
func (n *notification) nowhere(m measurement, failed []*trial) *trial {
	shown := failed[0]
	if m.path == state.PathLoopback && len(failed) > 1 {
		n.Methods = append(n.Methods, state.Method{Port: m.port, Path: m.path, InsteadOf: session.OneLine(n.reasons(m, failed))})
	}
	if m.path == state.PathFlush {
		// A device must complete what it accepts from a QP that it knows, and nothing else.
		i := slices.IndexFunc(failed, func(t *trial) bool { return t.lost() && t.flush.BeenReady() })
		if i < 0 {
			shown = failed[len(failed)-1]
			m.none = session.NotFlushed(slices.Concat(m.skipped, n.reasons(m, failed))...)
			shown.err = m.none
			return shown
		}
		shown = failed[i]
	}
	m.settled, m.used, m.port = true, shown.candidate, shown.port
	return shown
}

func (n *notification) reasons(m measurement, failed []*trial) []error {
	var list []error
	for _, t := range failed {
		list = append(list, fmt.Errorf("%s: %w", m.name(t.candidate), t.why()))
	}
	return list
}
