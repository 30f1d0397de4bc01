// Package answer lets other nodes ask the devices of this one: an HTTP handler, and for each
// device that is asked a child process that answers datagrams for a minute, and then ends.
package answer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"rdma_exporter/internal/path"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
)

const (
	// buffers are datagrams that can arrive while others are answered.
	buffers = 24
	// tick is how long a request of the parent waits for another datagram. It waits for maxTaken at most.
	tick     = 20 * time.Millisecond
	maxTaken = 256
	// maxPackets limits the answers of one lease. With them, a device that asks a peer in the same
	// minute, and acknowledges a message, sends 100 packets.
	maxPackets = 90
	// maxOutput limits what a child answers, in bytes.
	maxOutput = 16 << 20
)

// call is a request of the parent, a line of JSON, and reply its answer.
type call struct {
	Client netip.Addr    `json:"client"`
	Open   *path.Session `json:"open,omitempty"`
	// Report is the id of a session.
	Report string `json:"report,omitempty"`
}

type reply struct {
	Error  *path.Error `json:"error,omitempty"`
	Opened path.Opened `json:"opened,omitzero"`
	Report path.Report `json:"report,omitzero"`
}

// responder is the child.
type responder struct {
	device string
	inUse  func(context.Context) *state.Reduced
	e      *path.Endpoint
	until  time.Time
	// packets are those that sessions of each client asked for, and left those that none did. A lease has
	// one message.
	packets   map[netip.Addr]int
	left      int
	connected bool
	sessions  map[uint64]*peer
}

// peer is a session.
type peer struct {
	ask     path.Session
	client  netip.Addr
	to      verbs.AH
	expires time.Time
	report  path.Report
}

// Serve answers on a device until the lease ends, the parent ends it, or ctx is done. Requests come
// from the connection with the parent. inUse returns why nothing may be answered now, or nil.
func Serve(ctx context.Context, o session.Options, inUse func(context.Context) *state.Reduced, parent io.ReadWriter) {
	ctx, cancel := context.WithTimeout(ctx, path.Lease)
	defer cancel()
	calls, out := make(chan call), json.NewEncoder(parent)
	go func() { // It ends with the process, since a read cannot be interrupted.
		defer cancel()
		for dec := json.NewDecoder(parent); ; {
			var c call
			if dec.Decode(&c) != nil {
				return
			}
			select {
			case calls <- c:
			case <-ctx.Done():
				return
			}
		}
	}()
	r := &responder{
		device: o.Device, inUse: inUse, until: time.Now().Add(path.Lease),
		packets: make(map[netip.Addr]int), left: maxPackets, sessions: make(map[uint64]*peer),
	}
	err := r.refuse(ctx)
	if err == nil {
		o.Out, o.Ended = wire.NewWriter(io.Discard), func(e error) error { err = e; return nil }
		_ = path.Run(ctx, o, 1, buffers, func(ctx context.Context, e *path.Endpoint) {
			r.e = e
			r.serve(ctx, calls, out)
		}) // Its error is that of ctx.
	}
	for { // The device is closed. What failed is the answer until the lease ends.
		select {
		case <-calls:
			_ = out.Encode(reply{Error: path.ErrorOf(err)}) // The parent reads it, or is gone.
		case <-ctx.Done():
			return
		}
	}
}

// refuse returns an error if the device is in use.
func (r *responder) refuse(ctx context.Context) error {
	if why := r.inUse(ctx); why != nil { // The device is not to blame.
		return path.Refuse(http.StatusTooManyRequests, "the device is in use, and --probe.when=idle: %s", why.Detail)
	}
	return nil
}

// serve answers requests and datagrams. A request waits for the datagrams that came before it, so
// that its report has them.
func (r *responder) serve(ctx context.Context, calls <-chan call, out *json.Encoder) {
	for i := range buffers {
		r.e.Receive(r.e.QPs[0], i)
	}
	for ctx.Err() == nil {
		for range maxTaken {
			ev, ok := r.e.Next(tick)
			if !ok {
				break
			}
			r.datagram(ev)
		}
		select {
		case c := <-calls:
			_ = out.Encode(r.call(ctx, c)) // The parent reads it, or is gone.
		default:
		}
	}
}

func (r *responder) call(ctx context.Context, c call) (answer reply) {
	err := session.Catch(func() {
		switch p := r.sessions[path.SessionOf(c.Report)]; {
		case c.Open != nil:
			answer.Opened = r.accept(ctx, c.Client, c.Open)
		case p == nil || p.client != c.Client:
			session.Stop(noSession(c.Report))
		default:
			answer.Report, answer.Report.PortActive = p.report, r.e.PortActive()
		}
	})
	if err != nil {
		answer.Error = path.ErrorOf(err)
	}
	return answer
}

func noSession(id string) error {
	return path.Refuse(http.StatusNotFound, "there is no session %.64q", id)
}

// accept opens a session, or stops.
func (r *responder) accept(ctx context.Context, client netip.Addr, ask *path.Session) (opened path.Opened) {
	session.Stop(r.refuse(ctx))
	if !r.e.PortActive() {
		session.Stop(path.Refuse(http.StatusConflict, "the port went down"))
	}
	life, rest := time.Duration(ask.Life)*time.Second, time.Until(r.until)
	left := min(r.left, path.MaxPackets-r.packets[client])
	if life > rest || ask.Packets > left || ask.RC != 0 && r.connected {
		session.Stop(path.Refuse(http.StatusTooManyRequests, "of this minute, %d packets are left to %s, and at most one message: try again in %s",
			left, client, rest.Round(time.Second)))
	}
	own, to, err := path.Match(r.e.Routes, ask.Addresses)
	session.Stop(err)
	r.packets[client] += ask.Packets // An attempt counts, as it makes the others wait.
	r.left -= ask.Packets
	p := &peer{
		ask: *ask, client: client, to: session.Must(r.e.To(to)), expires: time.Now().Add(life),
		report: path.Report{Packets: make([]*path.Received, ask.Packets)},
	}
	id := rand.Uint64()
	opened = path.Opened{
		ID: fmt.Sprintf("%016x-%s", id, r.device), Address: own,
		QPN: r.e.QPs[0].Number(), QKey: r.e.QKey, MTU: min(r.e.Size, ask.MTU), Expires: p.expires,
	}
	if ask.RC != 0 {
		r.connected = true
		q := session.Must(r.e.QP(verbs.RC, 1))
		session.Stop(r.e.Connect(q, to, ask.RC, opened.MTU, false))
		opened.RC = q.Number()
	}
	r.sessions[id] = p
	return opened
}

// datagram answers a request, if it belongs to a session, and makes room for the next. What is
// sent is never longer than what came, and goes to the address of the session alone, whatever
// route the datagram says it took.
func (r *responder) datagram(ev path.Event) {
	switch {
	case ev.Buffer == path.MessageBuffer:
		return
	case ev.Status == verbs.WCWRFlushErr:
		session.Stop(fmt.Errorf("a completion has the status %s: the queue pair is of no more use", ev.Status))
	case ev.Sent:
		r.sent(ev)
	case ev.Status == verbs.WCSuccess && r.answer(ev):
		return // The buffer is free once the answer is sent.
	}
	r.e.Receive(r.e.QPs[0], ev.Buffer)
}

// answer reports whether it answers a datagram.
func (r *responder) answer(ev path.Event) bool {
	packet, ok := path.Parse(ev.Payload)
	p := r.sessions[packet.Session]
	if !ok || packet.Type != path.TypeRequest || p == nil || int(packet.Sequence) >= p.ask.Packets ||
		p.report.Packets[packet.Sequence] != nil || !slices.Contains(p.ask.QPNs, ev.SrcQP) {
		return false
	}
	if time.Now().After(p.expires) {
		p.report.Late = true
		return false
	}
	got := &path.Received{Flow: packet.Flow, At: ev.At}
	p.report.Packets[packet.Sequence] = got
	packet.Type = path.TypeReply
	packet.Put(ev.Payload)
	if at := r.e.Send(r.e.QPs[0], ev.Buffer, len(ev.Payload), p.to, ev.SrcQP, p.ask.QKey); at != nil {
		got.Turnaround = r.e.Between(ev.At, *at)
	}
	return true
}

// sent notes that an answer was sent, or was not.
func (r *responder) sent(ev path.Event) {
	packet, _ := path.Parse(ev.Payload)
	if p := r.sessions[packet.Session]; p != nil {
		got := p.report.Packets[packet.Sequence]
		got.Answered = ev.Status == verbs.WCSuccess
		if r.e.IsDevice() {
			got.Turnaround = r.e.Between(got.At, ev.At)
		}
	}
}
