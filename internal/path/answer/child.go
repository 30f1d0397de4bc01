// Package answer lets other nodes ask the devices of this one: an HTTP handler, and for each
// device that is asked a child process that answers datagrams for a minute, and then ends.
package answer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"rdma_exporter/internal/path"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
)

const (
	// buffers are datagrams that can arrive while others are answered.
	buffers = 24
	// tick is how long a request from the parent may wait for datagrams.
	tick = 20 * time.Millisecond
	// maxReplies and maxMessages limit the answers, and the queue pairs for messages, of one lease.
	maxReplies  = 40
	maxMessages = 3
)

// call is a request of the parent, a line of JSON, and reply its answer.
type call struct {
	Open *path.Session `json:"open,omitempty"`
	// Report is the id of a session.
	Report string `json:"report,omitempty"`
}

type reply struct {
	Error  *path.Error  `json:"error,omitempty"`
	Status int          `json:"status"`
	Opened *path.Opened `json:"opened,omitempty"`
	Report *path.Report `json:"report,omitempty"`
}

func failed(status int, err error) reply {
	return reply{Status: status, Error: path.ErrorOf(status, err)}
}

// responder is the child.
type responder struct {
	s        *session.Session
	sc       *session.Scope
	e        *path.Endpoint
	routes   []session.Route
	until    time.Time
	budget   int
	messages int
	sessions map[uint64]*peer
}

// peer is a session.
type peer struct {
	ask     path.Session
	to      verbs.AH
	expires time.Time
	report  path.Report
	// index has the index in the report of each sequence number.
	index map[uint32]int
	// came is when the packets in the report did, until their answers are sent.
	came []uint64
}

// Serve answers on a device until the lease ends, in ends, or ctx is done. It reads requests from
// in and writes an answer to each to out. Reduced is why nothing may be created now; nil means
// that it may.
func Serve(ctx context.Context, o session.Options, reduced error, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, path.Lease)
	defer cancel()
	calls := make(chan call)
	go func() { // It ends with the process, since a read from a pipe cannot be interrupted.
		defer close(calls)
		for dec := json.NewDecoder(in); ; {
			var c call
			if err := dec.Decode(&c); err != nil {
				return
			}
			select {
			case calls <- c:
			case <-ctx.Done():
				return
			}
		}
	}()
	enc := json.NewEncoder(out)
	// The device is not opened again in this lease, however often it is asked for.
	refuse := func(status int, err error) {
		for {
			select {
			case _, ok := <-calls:
				if !ok || enc.Encode(failed(status, err)) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
	if reduced != nil {
		refuse(http.StatusTooManyRequests, reduced) // The device is not to blame.
		return nil
	}
	o.Out = wire.NewWriter(io.Discard)
	served := false
	o.Ended = func(err error) {
		if err != nil && !served {
			refuse(statusOf(err), err)
		}
	}
	err := session.Run(ctx, o, func(ctx context.Context, s *session.Session) (err error) {
		sc := s.Scope()
		defer func() { err = errors.Join(err, sc.Close()) }()
		r := &responder{s: s, sc: sc, until: time.Now().Add(path.Lease), budget: maxReplies, messages: maxMessages, sessions: make(map[uint64]*peer)}
		if err := r.open(); err != nil {
			return err
		}
		served = true
		return r.serve(ctx, calls, enc)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // The lease is over.
	}
	return err
}

// statusOf returns the status of an answer for a failure to open a device.
func statusOf(err error) int {
	if o := session.ObstacleOf(err); o != nil && o.Reason != "not_permitted" {
		return http.StatusConflict // The port is down, or there are no UD queue pairs.
	}
	return http.StatusServiceUnavailable
}

// open opens the first active port.
func (r *responder) open() (err error) {
	if r.routes, err = path.Routes(r.s); err != nil {
		return err
	}
	r.e, err = path.Open(r.s, r.sc, path.Options{Route: r.routes[0], QPs: 1, Buffers: buffers, RC: true})
	for i := 0; i < buffers && err == nil; i++ {
		err = r.e.Receive(r.e.QPs[0], i)
	}
	return err
}

// serve answers requests and datagrams.
func (r *responder) serve(ctx context.Context, calls <-chan call, out *json.Encoder) error {
	for ctx.Err() == nil {
		select {
		case c, ok := <-calls:
			if !ok {
				return nil
			}
			if err := out.Encode(r.call(c)); err != nil {
				return fmt.Errorf("answer the parent: %w", err)
			}
			continue
		default:
		}
		ev, ok, err := r.e.Next(tick)
		if err == nil && ok {
			err = r.datagram(ev)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *responder) call(c call) reply {
	if c.Open == nil {
		id, err := strconv.ParseUint(c.Report, 16, 64) //nolint:mnd // bits
		p := r.sessions[id]
		if err != nil || p == nil {
			return failed(http.StatusNotFound, errors.New("there is no such session"))
		}
		attr, err := r.s.Device.QueryPort(r.routes[0].Port)
		p.report.PortActive = err == nil && attr.State == verbs.PortActive
		return reply{Status: http.StatusOK, Report: &p.report}
	}
	opened, err := r.accept(c.Open)
	var refused *path.Error
	switch {
	case errors.As(err, &refused):
		return reply{Status: refused.Status, Error: refused}
	case err != nil:
		return failed(http.StatusServiceUnavailable, err)
	default:
		return reply{Status: http.StatusCreated, Opened: opened}
	}
}

// accept opens a session.
func (r *responder) accept(ask *path.Session) (*path.Opened, error) {
	life := time.Duration(ask.Life) * time.Second
	left := time.Until(r.until)
	if attr, err := r.s.Device.QueryPort(r.routes[0].Port); err != nil || attr.State != verbs.PortActive {
		return nil, refuse(http.StatusConflict, "the port went down")
	}
	if life > left || ask.Packets > r.budget || ask.RC != 0 && r.messages == 0 {
		return nil, refuse(http.StatusTooManyRequests, "of the lease, %d packets, %d messages and %s are left: try again after that time", r.budget, r.messages, left.Round(time.Second))
	}
	route, source, err := path.Match(r.routes, ask.Addresses)
	if err != nil {
		return nil, refuse(http.StatusConflict, "%v", err)
	}
	r.budget -= ask.Packets // An attempt counts, as it makes the others wait.
	to := ask.Addresses[source].To(route, 0)
	p := &peer{ask: *ask, expires: time.Now().Add(life), index: make(map[uint32]int)}
	if p.to, err = r.e.To(r.sc, to); err != nil {
		return nil, err
	}
	opened := &path.Opened{
		Address: path.AddressOf(route), Source: source, QPN: r.e.QPs[0].Number(), QKey: r.e.QKey, MTU: min(r.e.Size, ask.MTU),
		Expires: p.expires, Life: ask.Life,
	}
	if ask.RC != 0 {
		r.messages--
		q, err := r.e.RC(r.sc)
		if err != nil {
			return nil, err
		}
		if err := r.e.Connect(q, to, ask.RC, opened.MTU, true); err != nil {
			return nil, err
		}
		opened.RC = q.Number()
	}
	id := rand.Uint64()
	opened.ID = fmt.Sprintf("%016x", id)
	r.sessions[id] = p
	return opened, nil
}

// datagram answers a request, if it belongs to a session, and makes room for the next. What is
// sent is never longer than what came, and goes to the address of the session alone, whatever
// route the datagram says it took.
func (r *responder) datagram(ev path.Event) error {
	q := r.e.QPs[0]
	switch {
	case ev.Buffer == path.MessageBuffer:
		return nil
	case ev.Status == verbs.WCWRFlushErr:
		return fmt.Errorf("a completion has the status %s: the queue pair is of no more use", ev.Status)
	case ev.Sent:
		r.sent(ev)
	case ev.Status == verbs.WCSuccess:
		answered, err := r.answer(q, ev)
		if answered || err != nil {
			return err // The buffer is free once the answer is sent.
		}
	}
	return r.e.Receive(q, ev.Buffer)
}

func (r *responder) answer(q verbs.QP, ev path.Event) (answered bool, err error) {
	b := r.e.Payload(ev.Buffer)
	n := min(ev.Length, len(b))
	packet, ok := path.Parse(b[:n])
	p := r.sessions[packet.Session]
	if !ok || packet.Type != path.TypeRequest || p == nil || time.Now().After(p.expires) || int(packet.Sequence) >= p.ask.Packets {
		return false, nil
	}
	if _, again := p.index[packet.Sequence]; again || !slices.Contains(p.ask.QPNs, ev.SrcQP) {
		return false, nil
	}
	p.index[packet.Sequence] = len(p.came)
	p.came = append(p.came, ev.At)
	p.report.Packets = append(p.report.Packets, path.Received{Sequence: packet.Sequence, Flow: packet.Flow})
	packet.Type = path.TypeReply
	packet.Put(b)
	at, err := r.e.Send(q, ev.Buffer, n, p.to, ev.SrcQP, p.ask.QKey)
	if err == nil && !r.e.Clock.IsDevice() {
		p.report.Packets[len(p.came)-1].Turnaround = r.e.Clock.Between(ev.At, at)
	}
	return true, err
}

// sent notes that an answer was sent, or was not.
func (r *responder) sent(ev path.Event) {
	packet, _ := path.Parse(r.e.Payload(ev.Buffer))
	p := r.sessions[packet.Session]
	if p == nil {
		return
	}
	i := p.index[packet.Sequence]
	got := &p.report.Packets[i]
	got.Answered = ev.Status == verbs.WCSuccess
	if r.e.Clock.IsDevice() {
		got.Turnaround = r.e.Clock.Between(p.came[i], ev.At)
	}
}
