package probe

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

const (
	// maxLoopbackPorts is the most ports whose way to themselves is measured.
	maxLoopbackPorts = 4
	// leastShare is the least time that a measurement is given, if as much is
	// left: one share of very many would be too short for a single sample.
	leastShare = 20 * time.Millisecond
	// The first samples of a batch are thrown away: a tenth as many as are kept,
	// within these bounds, if there is the time.
	leastWarmup, mostWarmup = 5, 100
	// maxRunSamples is the most samples of all measurements together: they are to
	// fit into one line of the report.
	maxRunSamples = 1 << 15
)

// notification measures how long completions take to reach the process: asleep
// (ibv_req_notify_cq(3), ibv_get_cq_event(3)) and awake (ibv_poll_cq(3)).
func (r *run) notification(s *step) {
	n := &notification{step: s, cfg: r.cfg.Notification, start: time.Now()}
	n.plan = n.measurements()
	n.samples = n.cfg.Samples
	if most := maxRunSamples / len(n.plan); n.samples > most {
		n.cut(state.Clamp{
			Subject: state.Subject{Object: "measurement"}, Attribute: "samples", Limit: "samples_per_run",
			Configured: int64(n.samples), Used: int64(most),
		})
		n.samples = most
	}
	done := n.measureAll()
	if n.giveBack() && done {
		n.inlineSends()
	}
}

// notification is the probe under way.
type notification struct {
	*step
	cfg   NotificationConfig
	start time.Time
	// samples is the number of samples of each measurement.
	samples int
	// ways are those of each path and port; plan are the measurements to come, in order.
	ways []*way
	plan []measurement
	// loan is what the last measurement left to the next one; nil for nothing.
	loan *loan
	// empty tells that no memory can be registered for messages.
	empty bool
	// late are the measurements whose time was used up before their first sample.
	late []measurement
}

// measurement is one measurement of the plan.
type measurement struct {
	*way
	mode   state.LatencyMode
	vector int
	// combination is the subject of the measurement on any vector.
	combination state.Subject
}

// subject is what the measurement is about.
func (m measurement) subject() state.Subject {
	s := m.combination
	s.Vector = &m.vector
	return s
}

// measurements returns the plan, the figures that matter most first: should the
// time not suffice, the others are what is left out.
func (n *notification) measurements() []measurement {
	all := n.loopbacks()
	choice := among(all)
	ways, vectors := all, n.Vectors
	if n.depth == state.DepthShort {
		ways, vectors = ways[:min(len(ways), 1)], vectors[:1]
	}
	n.ways = slices.Insert(slices.Clone(ways), min(1, len(ways)), flushes(n.driver))
	for _, w := range n.ways {
		n.recallWay(w, choice)
	}
	var plan []measurement
	for i, w := range n.ways {
		m := measurement{way: w}
		// The vectors differ in which processor is interrupted; one way shows it.
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

// loopbacks returns the ports that may reach themselves, and notes why others do not.
func (n *notification) loopbacks() []*way {
	var ways []*way
	for port := 1; port <= n.Attr.Ports; port++ {
		subject := state.Subject{Object: string(state.PathLoopback), Port: port}
		if len(ways) == maxLoopbackPorts {
			n.skip(subject, state.SkipBudget, "one run measures no more than %d ports", maxLoopbackPorts)
			continue
		}
		routes, err := n.Routes(port)
		if o := session.ObstacleOf(err); o != nil {
			n.skip(subject, o.Reason, "%s", o.Detail)
		} else if err != nil {
			n.fail(subject, err)
		} else {
			w := &way{path: state.PathLoopback, port: port}
			for _, r := range routes {
				w.candidates = append(w.candidates, candidate{route: r})
			}
			ways = append(ways, w)
		}
	}
	return ways
}

// measureAll takes the measurements of the plan until the time is used up. It tells
// whether more may be created after them.
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
			n.plan = slices.DeleteFunc(n.plan, func(o measurement) bool { return o.way != m.way })
		}
	}
	n.leaveOut(slices.Concat(n.late, n.plan), state.SkipBudget, "the %s for all measurements were used up", n.cfg.Budget)
	return true
}

// left returns the time that is left for the probe.
func (n *notification) left() time.Duration { return n.cfg.Budget - time.Since(n.start) }

// leaveOut notes measurements that are not taken: one skip for each combination.
func (n *notification) leaveOut(list []measurement, reason state.SkipReason, format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	for len(list) > 0 {
		combination := list[0].combination
		var vectors []string
		list = slices.DeleteFunc(list, func(m measurement) bool {
			same := m.combination == combination
			if same {
				vectors = append(vectors, strconv.Itoa(m.vector))
			}
			return same
		})
		n.skip(combination, reason, "vector %s: %s", strings.Join(vectors, ", "), why)
	}
}

// measure takes one measurement, with objects that nobody else uses, and notes what
// came of it. The error tells of objects that are left.
func (n *notification) measure(m measurement) error {
	if m.none != nil {
		n.leaveAside(m, m.none)
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
		n.leaveAside(m, o)
	} else if t.err != nil {
		n.fail(m.subject(), t.err)
	}
	if clean && n.lend(m, t) {
		return nil
	}
	n.loan = nil
	return n.close(m, t)
}

// leaveAside notes an obstacle, which is in the way of all vectors.
func (n *notification) leaveAside(m measurement, o *session.ObstacleError) {
	n.skip(m.combination, o.Reason, "%s", o.Detail)
	n.plan = slices.DeleteFunc(n.plan, func(o measurement) bool { return o.combination == m.combination })
}

// close destroys the objects of a trial. The error tells of those that are left.
func (n *notification) close(m measurement, t *trial) error {
	err := t.scope.Close()
	if err != nil {
		n.fail(m.subject(), err)
		f := &n.Failures[len(n.Failures)-1]
		f.Message = strings.ReplaceAll(f.Message, "\n", "; ") // one line for each object
	}
	return err
}

// maxRenewals is the most samples of a measurement that takes its QP through all
// its states for each: those are commands to the firmware of an adapter.
const maxRenewals = 10

// sample takes the samples of a measurement and notes what was found. The first
// sample was taken by the ordinary calls: should a verb hang or crash, the report
// has named it. The others are taken in one batch, from which the figures are. Clean
// tells that all of them went well, and so that the objects are of further use.
func (n *notification) sample(m measurement, t *trial) (clean bool, err error) {
	o, found := t.o, t.found
	if found.Stopped == verbs.StopNone {
		left := n.left()
		o.Budget = min(left, max(left/time.Duration(len(n.plan)+1), leastShare))
		o.Samples = n.samples
		if o.Init != nil {
			o.Samples = min(o.Samples, maxRenewals)
		}
		// Half of the time at least is for samples that are kept.
		o.Warmup = min(max(leastWarmup, o.Samples/10), mostWarmup, max(0, int(o.Budget/2/t.took)))
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
		n.tell(m, l)
	case err == nil:
		n.late = append(n.late, m)
	}
	if l.Count > 0 {
		n.done++
	}
	// What is awaited in vain takes long, and is probably so again.
	switch {
	case l.Missing > 0:
		n.postpone(func(o measurement) bool { return o.way == m.way })
	case l.Missed+l.Misdirected > 0:
		n.postpone(func(o measurement) bool { return o.combination == m.combination })
	}
	return err == nil && found.Stopped == verbs.StopNone && !l.Wrong(), err
}

// usedOnce returns why the QP of a measurement that takes it through all its states
// for each sample can be used once only, as with software iWARP; nil if it can be used again.
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
	var now, later []measurement
	for _, m := range n.plan {
		if which(m) {
			later = append(later, m)
		} else {
			now = append(now, m)
		}
	}
	n.plan = slices.Concat(now, later)
}
