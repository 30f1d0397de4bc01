package probe

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

const (
	// maxLoopbackPorts limits the ports whose loopback path is measured.
	maxLoopbackPorts = 4
	// minShare is the least time that a measurement gets, if as much is left: one share of
	// many would be too short for a single sample.
	minShare = 20 * time.Millisecond
	// The first samples of a batch are dropped: a tenth as many as are kept, within these
	// bounds, if there is time.
	minWarmup, maxWarmup = 5, 100
	// maxRunSamples limits the samples of all measurements, which must fit into one line of
	// the report.
	maxRunSamples = 1 << 15
)

// notification measures how long completions take to reach the process: asleep
// (ibv_req_notify_cq(3), ibv_get_cq_event(3)) and awake (ibv_poll_cq(3)).
func (r *run) notification(s *step) {
	n := &notification{step: s, cfg: r.cfg.Notification, start: time.Now()}
	n.plan = n.measurements()
	n.samples = n.clamp(state.Subject{Object: "measurement"}, "samples", n.cfg.Samples, "samples_per_run", maxRunSamples/len(n.plan))
	done := n.measureAll()
	if n.destroyKept() && done {
		n.inlineSends()
	}
}

type notification struct {
	*step
	cfg   NotificationConfig
	start time.Time
	// samples is the number of samples of each measurement.
	samples int
	// methods has one method for each path and port. plan has the measurements to come.
	methods []*method
	plan    []measurement
	// kept are the objects of the measurement keptFor, for the next one.
	kept    *trial
	keptFor measurement
	// empty is true if no memory can be registered for messages.
	empty bool
	// late are the measurements whose time was used up before their first sample.
	late []measurement
}

type measurement struct {
	*method
	mode   state.LatencyMode
	vector int
	// combination is the subject of the measurement on any vector.
	combination state.Subject
}

func (m measurement) subject() state.Subject {
	s := m.combination
	s.Vector = &m.vector
	return s
}

// measurements returns the plan with the most important figures first, since the last ones
// are left out if time is short.
func (n *notification) measurements() []measurement {
	all := n.loopbacks()
	choice := among(all)
	ports, vectors := all, n.Vectors
	if n.depth == state.DepthShort {
		ports, vectors = ports[:min(len(ports), 1)], vectors[:1]
	}
	n.methods = slices.Insert(slices.Clone(ports), min(1, len(ports)), flushes(n.driver))
	var plan []measurement
	for i, w := range n.methods {
		n.recallMethod(w, choice)
		m := measurement{method: w}
		// The vectors differ in which CPU is interrupted; one path shows it.
		of := vectors
		if i > 0 {
			of = vectors[:1]
		}
		// With the same objects, polling comes last.
		for _, mode := range []state.LatencyMode{state.ModeAny, state.ModeSolicited, state.ModePoll} {
			m.mode, m.combination = mode, state.Subject{Object: string(m.path), Profile: string(mode)}
			if m.path == state.PathLoopback && n.Attr.Ports > 1 {
				m.combination.Port = m.port
			}
			for _, m.vector = range of {
				plan = append(plan, m)
			}
			of = vectors[:1]
		}
	}
	return plan
}

// loopbacks returns the ports that may reach themselves, and skips the others.
func (n *notification) loopbacks() []*method {
	var list []*method
	for port := 1; port <= n.Attr.Ports; port++ {
		subject := state.Subject{Object: string(state.PathLoopback), Port: port}
		if len(list) == maxLoopbackPorts {
			n.skip(subject, state.SkipBudget, "one run measures no more than %d ports", maxLoopbackPorts)
			continue
		}
		routes, err := n.Routes(port)
		if o := session.ObstacleOf(err); o != nil {
			n.skip(subject, o.Reason, "%s", o.Detail)
		} else if err != nil {
			n.fail(subject, err)
		} else {
			w := &method{path: state.PathLoopback, port: port}
			for _, r := range routes {
				w.candidates = append(w.candidates, candidate{route: r})
			}
			list = append(list, w)
		}
	}
	return list
}

// measureAll takes the measurements of the plan until the time is used up. It reports whether
// more objects may be created.
func (n *notification) measureAll() bool {
	for len(n.plan) > 0 && n.left() > 0 {
		if n.Out.Err() != nil {
			return false
		}
		m := n.plan[0]
		n.plan = n.plan[1:]
		if errors.Is(n.measure(m), session.ErrUndestroyed) {
			n.leaveOut(slices.Concat(n.late, n.plan), state.SkipNeeds, "an object of an earlier measurement could not be destroyed")
			return false
		}
		if n.depth == state.DepthShort && n.done > 0 {
			// One path is enough.
			n.plan = slices.DeleteFunc(n.plan, func(o measurement) bool { return o.method != m.method })
		}
	}
	n.leaveOut(slices.Concat(n.late, n.plan), state.SkipBudget, "the %s for all measurements were used up", n.cfg.Budget)
	return true
}

func (n *notification) left() time.Duration { return n.cfg.Budget - time.Since(n.start) }

// leaveOut skips measurements, with one skip for each combination.
func (n *notification) leaveOut(list []measurement, reason state.SkipReason, format string, args ...any) {
	for len(list) > 0 {
		combination := list[0].combination
		var vectors []int
		list = slices.DeleteFunc(list, func(m measurement) bool {
			same := m.combination == combination
			if same {
				vectors = append(vectors, m.vector)
			}
			return same
		})
		n.skip(combination, reason, "vector %s: %s", session.Join(vectors), fmt.Sprintf(format, args...))
	}
}

// measure takes one measurement and records the result. The error is about objects that are
// left.
func (n *notification) measure(m measurement) error {
	if m.none != nil {
		n.skipAll(m, m.none)
		return nil
	}
	t, err := n.trial(m)
	if err != nil {
		return err
	}
	clean := false
	if t.err == nil {
		clean, t.err = n.sample(m, t)
	}
	if o := session.ObstacleOf(t.err); o != nil {
		n.skipAll(m, o)
	} else if t.err != nil {
		n.fail(m.subject(), t.err)
	}
	if clean && n.keep(m, t) {
		return nil
	}
	return n.close(m, t)
}

// skipAll skips a combination on every vector.
func (n *notification) skipAll(m measurement, o *session.ObstacleError) {
	n.skip(m.combination, o.Reason, "%s", o.Detail)
	n.plan = slices.DeleteFunc(n.plan, func(o measurement) bool { return o.combination == m.combination })
}

// close destroys the objects of a trial. The error is about those that are left.
func (n *notification) close(m measurement, t *trial) error {
	err := t.scope.Close()
	if err != nil {
		n.fail(m.subject(), err)
		f := &n.Failures[len(n.Failures)-1]
		f.Message = strings.ReplaceAll(f.Message, "\n", "; ") // one line for each object
	}
	return err
}

// maxRenewals limits the samples of a measurement that takes its QP through all its states
// each time, by commands to the firmware of an adapter.
const maxRenewals = 10

// sample takes the samples of a measurement in one batch and records the figures. The first
// sample was taken by single verbs, so that the report names a verb that hangs or crashes.
// Clean is true if nothing went wrong, so that the objects can be reused.
func (n *notification) sample(m measurement, t *trial) (clean bool, err error) {
	o, found := t.o, t.found
	if found.Stopped == verbs.StopNone {
		left := n.left()
		o.Budget = min(left, max(left/time.Duration(len(n.plan)+1), minShare))
		o.Samples = n.samples
		if o.Init != nil {
			o.Samples = min(o.Samples, maxRenewals)
		}
		// At least half of the time is for samples that are kept.
		o.Warmup = min(max(minWarmup, o.Samples/10), maxWarmup, max(0, int(o.Budget/2/t.took)))
		spurious := found.Spurious
		if found.Stopped = verbs.StopBudget; o.Budget > 0 {
			found, err = n.Device.Measure(o)
			found.Spurious += spurious
		}
		if why := usedOnce(o, found, err); why != nil {
			m.none = session.NotFlushed(fmt.Errorf("%s: one, and then no more, for the QP cannot be used again: %w", session.FlushRecv, why))
			return false, m.none
		}
	}
	l := latency(m, found)
	switch {
	case l.Count > 0 || l.Wrong():
		n.Latencies = append(n.Latencies, l)
		n.describe(m, l)
	case err == nil:
		n.late = append(n.late, m)
	}
	if l.Count > 0 {
		n.done++
	}
	// Waiting in vain takes long, and will probably do so again.
	switch {
	case l.Missing > 0:
		n.postpone(func(o measurement) bool { return o.method == m.method })
	case l.Missed+l.Misdirected > 0:
		n.postpone(func(o measurement) bool { return o.combination == m.combination })
	}
	return err == nil && found.Stopped == verbs.StopNone && !l.Wrong(), err
}

// usedOnce returns why the QP of a measurement that takes it through all its states for each
// sample works only once, as with software iWARP. Nil means that it works again.
func usedOnce(o verbs.Measurement, found verbs.Samples, err error) error {
	var failed *verbs.Error
	switch {
	case o.Init == nil || len(found.Latency) > 0:
		return nil
	case errors.As(err, &failed) && failed.Verb == verbs.ModifyQP && session.IsRefused(session.Refused(err)):
		return err
	case err == nil && found.Missing > 0:
		return errors.New("the receive did not complete")
	default:
		return nil
	}
}

// postpone moves measurements to the end of the plan.
func (n *notification) postpone(which func(measurement) bool) {
	later := slices.DeleteFunc(slices.Clone(n.plan), func(m measurement) bool { return !which(m) })
	n.plan = append(slices.DeleteFunc(n.plan, which), later...)
}
