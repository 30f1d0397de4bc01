package path

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"time"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/verbs"
)

// Endpoint is a port with UD queue pairs, one completion queue and buffers. One goroutine uses
// it. The Scope that it was opened with destroys it.
type Endpoint struct {
	QPs   []verbs.QP
	QKey  uint32
	Clock Clock
	// Size is the length of the payload of a buffer in bytes.
	Size int

	s     *session.Session
	pd    verbs.PD
	cq    verbs.CQ
	ch    verbs.CompChannel
	mr    verbs.MR
	route session.Route
}

// Options says what an Endpoint has.
type Options struct {
	// Route is one of the port: it has the MTU and the partition.
	Route session.Route
	// QPs are queue pairs, Buffers datagrams.
	QPs, Buffers int
	// RC adds room for a queue pair of a reliable connection.
	RC bool
}

// sent marks the ID of a send. The rest is the number of the buffer.
const sent = 1 << 32

// MessageBuffer is the buffer of completions on a reliable connection.
const MessageBuffer = sent - 1

// rcMessages is the length of the message on a reliable connection, in MTUs.
const rcMessages = 2

// Open creates an Endpoint whose queue pairs are ready to send, with a random Q_Key whose top
// bit is clear, so that no privilege is needed.
func Open(s *session.Session, sc *session.Scope, o Options) (*Endpoint, error) {
	e := &Endpoint{QKey: rand.Uint32() >> 1, Size: o.Route.MTU, s: s, route: o.Route}
	ext, err := s.Device.QueryExtended()
	// Short counters wrap too often.
	const enough = 32
	fields := verbs.WCFields(0)
	software := Clock{mask: 1<<64 - 1, kHz: 1e6, Name: "software"}
	e.Clock = software
	if err == nil && bits.Len64(ext.TimestampMask) >= enough && ext.CoreClock > 0 {
		e.Clock, fields = Clock{mask: ext.TimestampMask, kHz: ext.CoreClock, Name: "device"}, verbs.WCStandard|verbs.WCTimestamp
	}
	if e.pd, err = s.PD(); err != nil {
		return nil, fmt.Errorf("allocate a protection domain: %w", err)
	}
	if e.ch, err = sc.CompChannel(); err != nil {
		return nil, fmt.Errorf("create a completion channel: %w", err)
	}
	attr := verbs.CQInitAttr{Entries: 2*o.Buffers + 2, Channel: e.ch, Vector: s.Vectors[0], Fields: fields}
	e.cq, err = sc.CQ(attr)
	if err != nil && fields != 0 {
		attr.Fields, e.Clock = 0, software
		e.cq, err = sc.CQ(attr)
	}
	if err != nil {
		return nil, fmt.Errorf("create a completion queue: %w", err)
	}
	size := o.Buffers * (grh + e.Size)
	if o.RC {
		size += rcMessages * e.Size
	}
	if e.mr, err = sc.MR(e.pd, size, verbs.AccessLocalWrite); err != nil {
		return nil, fmt.Errorf("register memory: %w", err)
	}
	for range o.QPs {
		q, err := sc.QP(e.pd, e.attr(verbs.UD, uint32(o.Buffers)))
		if err != nil {
			return nil, fmt.Errorf("create a queue pair: %w", err)
		}
		if err := e.ready(q, verbs.Peer{}); err != nil {
			return nil, err
		}
		e.QPs = append(e.QPs, q)
	}
	return e, nil
}

// Routes returns those of the first active port.
func Routes(s *session.Session) (routes []session.Route, err error) {
	for port := 1; port <= s.Attr.Ports; port++ {
		var portErr error
		if routes, portErr = s.Routes(port); portErr == nil {
			return routes, nil
		}
		err = errors.Join(err, portErr)
	}
	return nil, err
}

func (e *Endpoint) attr(t verbs.QPType, n uint32) verbs.QPInitAttr {
	return verbs.QPInitAttr{
		Type: t, SendCQ: e.cq, RecvCQ: e.cq, SignalAll: true,
		Cap: verbs.QPCap{MaxSendWR: n, MaxRecvWR: n, MaxSendSGE: 1, MaxRecvSGE: 1},
	}
}

// ready takes a queue pair from RESET to RTS. A UD one has no peer.
func (e *Endpoint) ready(q verbs.QP, peer verbs.Peer) error {
	attr, mask := verbs.ToInit(q.Type(), e.route.Port, verbs.AccessLocalWrite)
	attr.PKeyIndex, attr.QKey = e.route.PKeyIndex, e.QKey
	if err := q.Modify(attr, mask); err != nil {
		return fmt.Errorf("take a queue pair to INIT: %w", err)
	}
	if err := q.Modify(verbs.ToRTR(q.Type(), peer)); err != nil {
		return fmt.Errorf("take a queue pair to RTR: %w", err)
	}
	if err := q.Modify(verbs.ToRTS(q.Type())); err != nil {
		return fmt.Errorf("take a queue pair to RTS: %w", err)
	}
	return nil
}

// RC creates a queue pair for a reliable connection.
func (e *Endpoint) RC(sc *session.Scope) (verbs.QP, error) {
	q, err := sc.QP(e.pd, e.attr(verbs.RC, 1))
	if err != nil {
		return nil, fmt.Errorf("create an RC queue pair: %w", err)
	}
	return q, nil
}

// message is the buffer of the message on a reliable connection, after all others.
func (e *Endpoint) message(mtu int) verbs.SGE {
	return e.mr.SGE(len(e.mr.Bytes())-rcMessages*e.Size, rcMessages*mtu)
}

// Connect connects an RC queue pair. The side that does not send receives one message.
func (e *Endpoint) Connect(q verbs.QP, to verbs.AHAttr, qpn uint32, mtu int, receives bool) error {
	if err := e.ready(q, verbs.Peer{AH: to, QPN: qpn, PathMTU: mtu}); err != nil || !receives {
		return err
	}
	if err := q.PostRecv(verbs.RecvWR{ID: MessageBuffer, SGEs: []verbs.SGE{e.message(mtu)}}); err != nil {
		return fmt.Errorf("post a receive on a reliable connection: %w", err)
	}
	return nil
}

// SendMessage sends the message on a connected queue pair, and returns the status of its
// completion, or why it is missing.
func (e *Endpoint) SendMessage(q verbs.QP, mtu int, timeout time.Duration) string {
	if err := q.PostSend(verbs.SendWR{ID: MessageBuffer, SGEs: []verbs.SGE{e.message(mtu)}}); err != nil {
		return "post_failed"
	}
	for wait := verbs.NewWait(timeout); wait.Left() > 0; {
		if ev, ok, err := e.Next(wait.Pause(timeout)); err != nil {
			return "poll_failed"
		} else if ok && ev.Buffer == MessageBuffer {
			return ev.Status.String()
		}
	}
	return "no_completion"
}

// To creates the address handle of a peer.
func (e *Endpoint) To(sc *session.Scope, to verbs.AHAttr) (verbs.AH, error) { return sc.AH(e.pd, to) }

// Payload returns the payload of a buffer.
func (e *Endpoint) Payload(buffer int) []byte {
	at := buffer*(grh+e.Size) + grh
	return e.mr.Bytes()[at : at+e.Size]
}

// Receive posts a buffer to receive a datagram.
func (e *Endpoint) Receive(q verbs.QP, buffer int) error {
	sge := e.mr.SGE(buffer*(grh+e.Size), grh+e.Size)
	if err := q.PostRecv(verbs.RecvWR{ID: uint64(buffer), SGEs: []verbs.SGE{sge}}); err != nil {
		return fmt.Errorf("post a receive: %w", err)
	}
	return nil
}

// Send sends n bytes of the payload of a buffer, and returns when, by the software clock.
func (e *Endpoint) Send(q verbs.QP, buffer, n int, to verbs.AH, qpn, qkey uint32) (at uint64, err error) {
	sge := e.mr.SGE(buffer*(grh+e.Size)+grh, n)
	err = q.PostSend(verbs.SendWR{ID: sent | uint64(buffer), SGEs: []verbs.SGE{sge}, AH: to, RemoteQPN: qpn, RemoteQKey: qkey})
	if err != nil {
		return 0, fmt.Errorf("post a send: %w", err)
	}
	return uint64(e.s.LastCall().Began), nil
}

// Event is a completion.
type Event struct {
	// Sent is true for a send, else a datagram of Length bytes, without its route header, was
	// received.
	Sent   bool
	Buffer int
	Status verbs.WCStatus
	Length int
	// SrcQP is the queue pair that sent it.
	SrcQP uint32
	// At is when, by the Clock.
	At uint64
}

// Next returns the next completion; not ok if none comes within the timeout.
func (e *Endpoint) Next(timeout time.Duration) (ev Event, ok bool, err error) {
	for deadline, armed := time.Now().Add(timeout), false; ; {
		list, err := e.cq.Poll(1)
		if err != nil {
			return ev, false, fmt.Errorf("poll a completion queue: %w", err)
		}
		if len(list) > 0 {
			return e.event(list[0]), true, nil
		}
		if !armed {
			if err := e.cq.ReqNotify(false); err != nil {
				return ev, false, fmt.Errorf("arm a completion queue: %w", err)
			}
			armed = true
			continue // A completion that came before is not notified.
		}
		_, err = e.ch.GetEvent(time.Until(deadline))
		switch {
		case errors.Is(err, verbs.ErrTimeout):
			return ev, false, nil
		case err != nil:
			return ev, false, fmt.Errorf("wait for a completion: %w", err)
		}
		if err := e.cq.AckEvents(1); err != nil {
			return ev, false, fmt.Errorf("acknowledge an event: %w", err)
		}
		armed = false
	}
}

func (e *Endpoint) event(wc verbs.WC) Event {
	last := e.s.LastCall()
	ev := Event{
		Sent: wc.ID&sent != 0, Buffer: int(wc.ID &^ sent), Status: wc.Status,
		Length: max(0, int(wc.ByteLen)-grh), SrcQP: wc.SrcQP, At: uint64(last.Began + last.Duration),
	}
	if e.Clock.Name == "device" {
		ev.At = wc.Timestamp
	}
	return ev
}

// Clock is what the times of events are on.
type Clock struct {
	// Name is device or software.
	Name      string
	mask, kHz uint64
}

// Between returns the time from one event to another.
func (c Clock) Between(from, to uint64) time.Duration {
	const perMillisecond = 1e6
	return time.Duration(float64((to-from)&c.mask) * perMillisecond / float64(c.kHz))
}

// IsDevice reports whether the adapter takes the times.
func (c Clock) IsDevice() bool { return c.Name == "device" }
