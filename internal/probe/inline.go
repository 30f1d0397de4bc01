package probe

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// inlineMax is the most inline data that QPs of a type were given, in bytes.
type inlineMax struct {
	typ   verbs.QPType
	bytes int
}

// subject names a send of so much.
func (m inlineMax) subject() state.Subject {
	return state.Subject{Object: "inline", QPType: m.typ.Label()}
}

// maxInline finds the most inline data that a QP with one work request and one
// scatter/gather entry can be given. No verb tells it, so it is searched for:
// doubled until refused, then bisected.
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
	// Drivers say ENOMEM for too much inline data, and the kernel for too little
	// memory. In the latter case what was given before is refused now.
	if outOfMemory {
		if _, err := q.tryInline(best); err != nil {
			q.fail(inlineMax{typ: q.typ}.subject(), fmt.Errorf("%d bytes, given before: %w", best, err))
			return
		}
	}
	q.inline = best
	q.Inline = append(q.Inline, state.InlineMax{Type: q.label, Bytes: int64(best)})
	q.inlineMax = append(q.inlineMax, inlineMax{typ: q.typ, bytes: best})
}

// tryInline creates a QP with n bytes of inline data, tells how many were given,
// and destroys it.
func (q *qpProbe) tryInline(n int) (given int, err error) {
	var qp verbs.QP
	q.Expecting(tooMuchInline, func() { qp, err = q.create(smallest(n)) })
	if err != nil {
		return 0, err
	}
	given = int(min(qp.Created().MaxInlineData, maxInlineBytes))
	return given, q.Destroy("qp", qp)
}

// tooMuchInline reports whether err can mean that a QP cannot be given that much
// inline data.
func tooMuchInline(err error) bool {
	return !errors.Is(err, session.ErrUndestroyed) && (errors.Is(err, syscall.EINVAL) ||
		errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.E2BIG) || errors.Is(err, verbs.NoErrno) || verbs.IsNotSupported(err))
}

const (
	// inlineTries is how often a message is sent before it counts as lost: those of UC
	// and UD may be.
	inlineTries = 3
	// routeHeader is how many bytes there are before a datagram where it is received.
	routeHeader = 40
)

// inlineSends sends a message of each size that the search found: there are drivers
// that accept any size, and a figure that no send can carry is worth nothing. It needs a
// port that was seen to reach itself.
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

// unsendable notes that inline data of the size that was given cannot be sent: less was
// given than the device says.
func (n *notification) unsendable(m inlineMax, err error) {
	err = fmt.Errorf("given max_inline_data %d, of which no message can be sent: %w", m.bytes, err)
	if fact, ok := n.driver.Explains("qp_at_least_requested", errata.ModeUnsent, 0); ok {
		n.known(m.subject(), session.OneLine([]error{err}), fact)
		return
	}
	n.fail(m.subject(), err)
}

// inlineSend sends one message as inline data. The error is an obstacle unless it is
// because of them: the same message goes through if it is sent the ordinary way.
func (n *notification) inlineSend(m inlineMax) error {
	if m.bytes == 0 {
		return notTried("there is none")
	}
	route := n.reached()
	if route == nil {
		return notTried("no port was seen to reach itself")
	}
	if n.leftToSearch() <= 0 {
		return notTried("the time for it was used up")
	}
	switch m.typ {
	case verbs.RC, verbs.UC:
	case verbs.UD:
		if m.bytes > route.MTU {
			return notTried("a datagram of port %d has no more than %d bytes", route.Port, route.MTU)
		}
	default:
		return notTried("no message is sent by %s", m.typ)
	}
	err := n.passes(m, route, verbs.SendInline)
	if err == nil || session.ObstacleOf(err) != nil || errors.Is(err, session.ErrUndestroyed) {
		return err
	}
	if control := n.passes(m, route, 0); session.ObstacleOf(control) != nil {
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

// reached returns the route by which a port was seen to reach itself; nil if none was.
func (n *notification) reached() *session.Route {
	for _, w := range n.ways {
		for _, l := range n.Latencies {
			if w.path == state.PathLoopback && w.settled && l.Path == w.path && l.Port == w.port && l.Count > 0 {
				return &w.used.route
			}
		}
	}
	return nil
}

// passes sends one message of a size, with objects of its own, and returns why it did
// not arrive as it was sent.
func (n *notification) passes(m inlineMax, route *session.Route, flags verbs.SendFlags) (err error) {
	scope := n.Scope()
	defer func() { err = errors.Join(err, scope.Close()) }()
	pd, err := n.PD()
	if err != nil {
		return err
	}
	memory, err := scope.MR(pd, 2*m.bytes+routeHeader, verbs.AccessLocalWrite)
	if session.MayNotPin(err) {
		return notTried("the memory for it cannot be registered: %v", err)
	} else if err != nil {
		return err
	}
	t := transfer{payload: memory.Bytes()[m.bytes:][:m.bytes], data: memory.Bytes()[:m.bytes], reliable: m.typ == verbs.RC}
	t.send = verbs.SendWR{Flags: verbs.SendSignaled | flags, SGEs: []verbs.SGE{memory.SGE(0, m.bytes)}}
	if flags&verbs.SendInline != 0 {
		t.inline = true
		t.send.SGEs[0].LKey = 0 // which does not matter to inline data
	}
	t.recv.SGEs = []verbs.SGE{memory.SGE(m.bytes, m.bytes)}
	if t.cq, err = scope.CQ(verbs.CQInitAttr{Entries: 2 * inlineTries, Vector: n.Vectors[0]}); err != nil {
		return err
	}
	// As in the search: how much there can be may depend on the other sizes.
	attr := verbs.QPInitAttr{Type: m.typ, SendCQ: t.cq, RecvCQ: t.cq, Cap: smallest(m.bytes)}
	if t.from, err = scope.QP(pd, attr); err != nil {
		return err
	}
	t.to = t.from
	if m.typ == verbs.UD {
		t.recv.SGEs = []verbs.SGE{memory.SGE(m.bytes, routeHeader+m.bytes)}
		t.payload = memory.Bytes()[m.bytes+routeHeader:]
		t.send.RemoteQPN, t.send.RemoteQKey = t.from.Number(), verbs.UDQKey
		t.send.AH, err = scope.AH(pd, route.AH)
	} else {
		t.to, err = scope.QP(pd, attr)
	}
	if err != nil {
		return err
	}
	if err := session.Connect(t.from, t.to, *route); err != nil {
		return err
	}
	return t.run(n)
}

// transfer is one message under way, from a QP to another or to itself.
type transfer struct {
	from, to verbs.QP
	cq       verbs.CQ
	send     verbs.SendWR
	recv     verbs.RecvWR
	// data are what is sent, and payload is where they arrive.
	data, payload []byte
	reliable      bool
	// inline tells that the data are taken when the send is posted, or never were inline.
	inline bool
}

// pattern is the byte of a message at an offset.
func pattern(offset int) byte { return byte(offset%251 + 1) }

// The IDs of the work requests of a transfer.
const (
	sendID = iota + 1
	recvID
)

// run sends the message until it arrives.
func (t *transfer) run(n *notification) error {
	t.send.ID, t.recv.ID = sendID, recvID
	if err := t.to.PostRecv(t.recv); err != nil {
		return err
	}
	for range inlineTries {
		for i := range t.data {
			t.data[i] = pattern(i)
		}
		if err := t.from.PostSend(t.send); err != nil {
			return err
		}
		if t.inline {
			clear(t.data)
		}
		arrived, err := t.await(n)
		if arrived || err != nil || t.reliable {
			return err
		}
	}
	return fmt.Errorf("%d times, and it never arrived", inlineTries)
}

// await waits until the message was sent and arrived. Of one that may be lost, arrived
// tells whether it did.
func (t *transfer) await(n *notification) (arrived bool, err error) {
	sent := false
	start := time.Now()
	most := min(n.cfg.Deadline, n.leftToSearch())
	w := verbs.NewWait(most)
	defer func() { n.searched += time.Since(start) }()
	for !sent || !arrived {
		wc, err := poll(t.cq, w)
		switch {
		case err != nil:
			return false, err
		case wc == nil && most < n.cfg.Deadline:
			// Whether it would have completed is not known.
			return false, notTried("the time for it was used up")
		case wc == nil && sent && !t.reliable:
			return false, nil
		case wc == nil:
			return false, fmt.Errorf("it did not complete within %s", n.cfg.Deadline)
		case wc.Status != verbs.WCSuccess:
			return false, fmt.Errorf("it completed with %s", wc.Status)
		case wc.ID == sendID:
			sent = true
		default:
			arrived = true
		}
	}
	for i, b := range t.payload {
		if b != pattern(i) {
			return false, errors.New("other bytes arrived")
		}
	}
	return true, nil
}
