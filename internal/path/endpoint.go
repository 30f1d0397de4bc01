package path

import (
	"context"
	"errors"
	"math/bits"
	"math/rand/v2"
	"time"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/verbs"
)

// Endpoint is the first active port of a device with UD queue pairs, one completion queue and
// buffers. One goroutine uses it.
type Endpoint struct {
	// Routes are those of the port, the best first.
	Routes []session.Route
	QPs    []verbs.QP
	// QKey is random, with a clear top bit, so that no privilege is needed.
	QKey uint32
	// Size is the length of the payload of a buffer in bytes.
	Size int
	// Clock is what takes the times of events: device if the adapter does, else software.
	Clock string

	mask, kHz uint64 // of the clock
	s         *session.Session
	sc        *session.Scope
	pd        verbs.PD
	cq        verbs.CQ
	ch        verbs.CompChannel
	mr        verbs.MR
	route     session.Route // the best, with the Q_Key
}

// sent marks the ID of a send. The rest is the number of the buffer.
const sent = 1 << 32

// MessageBuffer is the buffer of completions on a reliable connection.
const MessageBuffer = sent - 1

// rcMessages is the length of the message on a reliable connection, in MTUs.
const rcMessages = 2

// Run opens a device, calls f with an Endpoint, destroys all that was created, and ends the report. f may
// end with [session.Stop]. The error of Run is that of [session.Run].
func Run(ctx context.Context, o session.Options, qps, buffers int, f func(context.Context, *Endpoint)) error {
	return session.Run(ctx, o, func(ctx context.Context, s *session.Session) (err error) {
		e := &Endpoint{QKey: rand.Uint32()>>1 | 1, s: s, sc: s.Scope()}
		err = session.Catch(func() {
			e.open(qps, buffers)
			f(ctx, e)
		})
		return errors.Join(err, e.sc.Close())
	})
}

// open takes the MTU and the partition of the best route. The queue pairs are then ready to send.
func (e *Endpoint) open(qps, buffers int) {
	e.Routes = session.Must(e.s.SelfRoutes())
	e.route = e.Routes[0]
	e.route.QKey = e.QKey
	ext, err := e.s.Device.QueryExtended()
	e.pd = session.Must(e.s.PD())
	e.ch = session.Must(e.sc.CompChannel())
	e.Size, e.Clock, e.mask, e.kHz = e.route.MTU, "software", 1<<64-1, 1e6
	attr := verbs.CQInitAttr{Entries: 2*buffers + 2, Channel: e.ch, Vector: e.s.Vectors[0], Fields: verbs.WCStandard | verbs.WCTimestamp}
	const enough = 32 // Short counters wrap too often.
	if err == nil && bits.Len64(ext.TimestampMask) >= enough && ext.CoreClock > 0 {
		if e.cq, err = e.sc.CQ(attr); err == nil {
			e.Clock, e.mask, e.kHz = "device", ext.TimestampMask, ext.CoreClock
		}
	}
	if attr.Fields = 0; !e.IsDevice() {
		e.cq = session.Must(e.sc.CQ(attr))
	}
	e.mr = session.Must(e.sc.MR(e.pd, buffers*(grh+e.Size)+rcMessages*e.Size, verbs.AccessLocalWrite))
	for range qps {
		q := session.Must(e.QP(verbs.UD, buffers))
		session.Stop(e.route.Ready(q, verbs.Peer{}))
		e.QPs = append(e.QPs, q)
	}
}

// PortActive reports whether the port of the endpoint is active now.
func (e *Endpoint) PortActive() bool {
	attr, err := e.s.Device.QueryPort(e.route.Port)
	return err == nil && attr.State == verbs.PortActive
}

// QP creates a queue pair with room for n requests of each kind.
func (e *Endpoint) QP(t verbs.QPType, n int) (verbs.QP, error) {
	return e.sc.QP(e.pd, verbs.QPInitAttr{
		Type: t, SendCQ: e.cq, RecvCQ: e.cq, SignalAll: true,
		Cap: verbs.QPCap{MaxSendWR: uint32(n), MaxRecvWR: uint32(n), MaxSendSGE: 1, MaxRecvSGE: 1},
	})
}

// Connect connects an RC queue pair, and posts the message, or else the receive of one. Its
// completion has the MessageBuffer.
func (e *Endpoint) Connect(q verbs.QP, to verbs.AHAttr, qpn uint32, mtu int, sends bool) error {
	if err := e.route.Ready(q, verbs.Peer{AH: to, QPN: qpn, PathMTU: mtu}); err != nil {
		return err
	}
	// It comes after all datagrams.
	sges := []verbs.SGE{e.mr.SGE(len(e.mr.Bytes())-rcMessages*e.Size, rcMessages*mtu)}
	if sends {
		return q.PostSend(verbs.SendWR{ID: MessageBuffer, SGEs: sges})
	}
	return q.PostRecv(verbs.RecvWR{ID: MessageBuffer, SGEs: sges})
}

// To creates the address handle of a peer.
func (e *Endpoint) To(to verbs.AHAttr) (verbs.AH, error) { return e.sc.AH(e.pd, to) }

// Payload returns the payload of a buffer.
func (e *Endpoint) Payload(buffer int) []byte {
	at := buffer*(grh+e.Size) + grh
	return e.mr.Bytes()[at : at+e.Size]
}

// Receive posts a buffer to receive a datagram, or stops.
func (e *Endpoint) Receive(q verbs.QP, buffer int) {
	session.Stop(q.PostRecv(verbs.RecvWR{ID: uint64(buffer), SGEs: []verbs.SGE{e.mr.SGE(buffer*(grh+e.Size), grh+e.Size)}}))
}

// Send sends n bytes of the payload of a buffer, or stops. It returns when, or nil if the completion says when.
func (e *Endpoint) Send(q verbs.QP, buffer, n int, to verbs.AH, qpn, qkey uint32) (at *uint64) {
	sge := e.mr.SGE(buffer*(grh+e.Size)+grh, n)
	session.Stop(q.PostSend(verbs.SendWR{ID: sent | uint64(buffer), SGEs: []verbs.SGE{sge}, AH: to, RemoteQPN: qpn, RemoteQKey: qkey}))
	if e.IsDevice() {
		return nil
	}
	return new(uint64(e.s.LastCall().Began))
}

// Event is a completion. Sent is true for a send, else a datagram was received.
type Event struct {
	verbs.WC
	Sent   bool
	Buffer int
	// Payload is that of the buffer, without the route header and what was not received.
	Payload []byte
	// At is when, by the clock.
	At uint64
}

// Next returns the next completion, or stops. It may return none, not ok, before the timeout.
func (e *Endpoint) Next(timeout time.Duration) (ev Event, ok bool) {
	session.Stop(e.cq.ReqNotify(false))
	if ev, ok = e.poll(); ok { // A completion that came before is not notified.
		return ev, ok
	}
	_, err := e.ch.GetEvent(timeout)
	if errors.Is(err, verbs.ErrTimeout) {
		return ev, false
	}
	session.Stop(err)
	session.Stop(e.cq.AckEvents(1))
	return e.poll()
}

func (e *Endpoint) poll() (ev Event, ok bool) {
	list := session.Must(e.cq.Poll(1))
	if len(list) == 0 {
		return ev, false
	}
	wc, last := list[0], e.s.LastCall()
	ev = Event{WC: wc, Sent: wc.ID&sent != 0, Buffer: int(wc.ID &^ sent), At: uint64(last.Began + last.Duration)}
	if e.IsDevice() {
		ev.At = wc.Timestamp
	}
	if ev.Buffer != MessageBuffer {
		ev.Payload = e.Payload(ev.Buffer)
	}
	if !ev.Sent {
		ev.Payload = ev.Payload[:min(max(0, int(wc.ByteLen)-grh), len(ev.Payload))]
	}
	return ev, true
}

// IsDevice reports whether the adapter takes the times.
func (e *Endpoint) IsDevice() bool { return e.Clock == "device" }

// Between returns the time from one event to another.
func (e *Endpoint) Between(from, to uint64) time.Duration {
	const perMillisecond = 1e6
	return time.Duration(float64((to-from)&e.mask) * perMillisecond / float64(e.kHz))
}
