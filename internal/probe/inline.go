package probe

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"time"

	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// inlineMax is the maximum inline data that QPs of a type were given, in bytes.
type inlineMax struct {
	typ   verbs.QPType
	bytes int
}

func (m inlineMax) subject() state.Subject {
	return state.Subject{Object: "inline", QPType: m.typ.Label()}
}

// maxInline finds the maximum inline data of a QP with one work request and one
// scatter/gather entry. No verb reports it, so the size is doubled until refused, then
// bisected.
func (q *qpProbe) maxInline() {
	best, refused := 0, maxInlineBytes+1
	outOfMemory := false
	for refused-best > 1 {
		try := best + (refused-best)/2
		if refused > maxInlineBytes {
			try = min(max(2*best, 64), maxInlineBytes)
		}
		given, err := q.tryInline(try)
		switch {
		case err == nil && given >= try:
			best = given
		case err == nil || tooMuchInline(err):
			refused = try
			outOfMemory = outOfMemory || errors.Is(err, syscall.ENOMEM)
		default:
			q.fail(inlineMax{typ: q.typ}.subject(), err)
			return
		}
	}
	// Drivers return ENOMEM for too much inline data, and the kernel if memory is short. In
	// the latter case it now refuses what it gave before.
	if outOfMemory {
		if _, err := q.tryInline(best); err != nil {
			q.fail(inlineMax{typ: q.typ}.subject(), fmt.Errorf("%d bytes, given before: %w", best, err))
			return
		}
	}
	q.inline = best
	found := state.InlineMax{Type: q.label, Bytes: int64(best)}
	q.Inline = append(q.Inline, found)
	q.facts.Inline, q.facts.changed = append(q.facts.Inline, found), true
	q.inlineMax = append(q.inlineMax, inlineMax{typ: q.typ, bytes: best})
}

// tryInline returns how many bytes a QP is given if n are requested.
func (q *qpProbe) tryInline(n int) (given int, err error) {
	var qp verbs.QP
	q.Expecting(tooMuchInline, func() { qp, err = q.create(smallest(n)) })
	if err != nil {
		return 0, err
	}
	given = int(min(qp.Created().MaxInlineData, maxInlineBytes))
	return given, q.Destroy("qp", qp)
}

// tooMuchInline reports whether err can mean that so much inline data is refused.
func tooMuchInline(err error) bool {
	return !errors.Is(err, session.ErrUndestroyed) && (errors.Is(err, syscall.EINVAL) ||
		errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.E2BIG) || errors.Is(err, verbs.NoErrno) || verbs.IsNotSupported(err))
}

const (
	// inlineTries is how often a message is sent that may be lost, as those of UC and UD may.
	inlineTries = 3
	// routeHeader is the number of bytes before a received datagram.
	routeHeader = 40
)

// errLost says that a message was sent and did not arrive.
var errLost = fmt.Errorf("%d times, and it never arrived", inlineTries)

// inlineSends sends a message of each size that was found, since some drivers accept any
// size.
func (n *notification) inlineSends() {
	for _, m := range n.inlineMax {
		err := n.inlineSend(m)
		if errors.Is(err, session.ErrUndestroyed) {
			n.fail(m.subject(), err)
			return
		}
		s := state.InlineSend{Type: m.typ.Label(), Bytes: int64(m.bytes), Result: state.InlineSent}
		if o := session.ObstacleOf(err); o != nil {
			s.Result, s.Detail = state.InlineUntried, o.Detail
		} else if err != nil {
			s.Result, s.Detail = state.InlineFailed, session.OneLine([]error{err})
			n.unsendable(m, err)
		}
		n.InlineSends = append(n.InlineSends, s)
	}
}

// unsendable records that inline data of the size that was given cannot be sent.
func (n *notification) unsendable(m inlineMax, err error) {
	err = fmt.Errorf("given max_inline_data %d, of which no message can be sent: %w", m.bytes, err)
	if erratum, ok := n.driver.Explains("qp_at_least_requested", errata.ModeUnsent, 0); ok {
		n.known(m.subject(), session.OneLine([]error{err}), erratum)
		return
	}
	n.fail(m.subject(), err)
}

// inlineSend sends one message as inline data over a loopback path that was seen to work. The
// error is an obstacle unless the same message passes when it is not inline.
func (n *notification) inlineSend(m inlineMax) error {
	route := n.loopbackRoute()
	switch {
	case m.bytes == 0:
		return notTried("there is none")
	case route == nil:
		return notTried("no port was seen to reach itself")
	case n.leftToSearch() <= 0:
		return notTried("the time for it was used up")
	case m.typ != verbs.RC && m.typ != verbs.UC && m.typ != verbs.UD:
		return notTried("no message is sent by %s", m.typ)
	case m.typ == verbs.UD && m.bytes > route.MTU:
		return notTried("a datagram of port %d has no more than %d bytes", route.Port, route.MTU)
	}
	err := n.sendMessage(m, route, verbs.SendInline)
	if err == nil || session.ObstacleOf(err) != nil || errors.Is(err, session.ErrUndestroyed) {
		return err
	}
	if control := n.sendMessage(m, route, 0); session.ObstacleOf(control) != nil {
		return control
	} else if control != nil {
		return notTried("a message of that size does not get through by %s in any way: %v", m.typ, control)
	}
	return err
}

// notTried is why no message was sent.
func notTried(format string, args ...any) error {
	return &session.ObstacleError{Reason: state.SkipNeeds, Detail: fmt.Sprintf(format, args...)}
}

// loopbackRoute returns the route by which a port was seen to reach itself, if any.
func (n *notification) loopbackRoute() *session.Route {
	for _, w := range n.methods {
		for _, l := range n.Latencies {
			if w.path == state.PathLoopback && w.settled && l.Path == w.path && l.Port == w.port && l.Count > 0 {
				return &w.used.route
			}
		}
	}
	return nil
}

// sendMessage sends a message, again if it may be lost, and returns why it did not arrive.
func (n *notification) sendMessage(m inlineMax, route *session.Route, flags verbs.SendFlags) (err error) {
	for range inlineTries {
		if err = n.sendOnce(m, route, flags); !errors.Is(err, errLost) {
			break
		}
	}
	return err
}

func (n *notification) sendOnce(m inlineMax, route *session.Route, flags verbs.SendFlags) error {
	scope := n.Scope()
	err := session.Catch(func() { n.sendWithin(scope, m, route, flags) })
	return errors.Join(err, scope.Close())
}

// sendWithin sends a message by objects of a scope, and stops if it did not arrive.
func (n *notification) sendWithin(scope *session.Scope, m inlineMax, route *session.Route, flags verbs.SendFlags) {
	pd := session.Must(n.PD())
	header := 0
	if m.typ == verbs.UD {
		header = routeHeader
	}
	memory, err := scope.MR(pd, m.bytes+header+m.bytes, verbs.AccessLocalWrite)
	if session.MayNotPin(err) {
		err = notTried("the memory for it cannot be registered: %v", err)
	}
	session.Stop(err)
	o := verbs.Measurement{Deadline: min(n.cfg.Deadline, n.leftToSearch())}
	o.CQ = session.Must(scope.CQ(verbs.CQInitAttr{Entries: 1, Vector: n.Vectors[0]}))
	o.Other = session.Must(scope.CQ(verbs.CQInitAttr{Entries: 1, Vector: n.Vectors[0]}))
	// As in the search: the limit may depend on the other sizes.
	attr := verbs.QPInitAttr{Type: m.typ, SendCQ: o.Other, RecvCQ: o.CQ, Cap: smallest(m.bytes)}
	o.Sender = session.Must(scope.QP(pd, attr))
	o.Recv = verbs.RecvWR{SGEs: []verbs.SGE{memory.SGE(m.bytes, header+m.bytes)}}
	o.Send = verbs.SendWR{Flags: verbs.SendSignaled | flags, SGEs: []verbs.SGE{memory.SGE(0, m.bytes)}}
	if flags&verbs.SendInline != 0 {
		o.Send.SGEs[0].LKey = 0 // Inline data need no key.
	}
	if m.typ == verbs.UD {
		o.Receiver = o.Sender
		o.Send.RemoteQPN, o.Send.RemoteQKey = o.Sender.Number(), verbs.UDQKey
		o.Send.AH = session.Must(scope.AH(pd, route.AH))
	} else {
		o.Receiver = session.Must(scope.QP(pd, attr))
	}
	session.Stop(session.Connect(o.Sender, o.Receiver, *route))
	data, payload := memory.Bytes()[:m.bytes], memory.Bytes()[m.bytes+header:]
	for i := range data {
		data[i] = byte(i%251 + 1)
	}
	start := time.Now()
	defer func() { n.searched += time.Since(start) }()
	f := firstSample{Measurement: o}
	f.take(o.Deadline)
	switch {
	case len(f.found.Unsuccessful) > 0:
		err = fmt.Errorf("it completed with %s", f.found.Unsuccessful[0])
	case f.found.Missing > 0 && o.Deadline < n.cfg.Deadline:
		// It might still have completed.
		err = notTried("the time for it was used up")
	case f.found.Missing == 1 && m.typ != verbs.RC:
		err = errLost
	case f.found.Missing > 0:
		err = fmt.Errorf("it did not complete within %s", o.Deadline)
	case !bytes.Equal(payload, data):
		err = errors.New("other bytes arrived")
	}
	session.Stop(err)
}
