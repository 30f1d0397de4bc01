// Package ask is the child process that asks one device of a peer: it requests a session over
// HTTP, exchanges datagrams, and says whether the path works, and if not, what is to blame.
package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"rdma_exporter/internal/path"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
)

const (
	// flows are those of one run, and rounds how many packets each has. The last round is of
	// large ones.
	flows  = 3
	rounds = 3
	// roundTime is how long the answers of a round may take.
	roundTime = 500 * time.Millisecond
	// messageTime is how long a message on a reliable connection may take: more than its retries.
	messageTime = 5 * time.Second
	// requestTime is the time limit for one HTTP request.
	requestTime = 12 * time.Second
	// labelStep keeps the flow labels apart. They stay below 0x4000.
	labelStep = 0x1111
)

// Options says what to ask.
type Options struct {
	session.Options
	Target wire.PathTarget
	// HasFlowLabels is true if the UDP source port follows from the flow label.
	HasFlowLabels bool
	// Client sends the requests to Base, such as http://host:port.
	Client *http.Client
	Base   string
	// Reduced is why nothing may be sent now. Nil means that it may.
	Reduced *state.Reduced
	// Random returns the first flow label, from 0 to n-1.
	Random func(n int) int
}

// asker is one run.
type asker struct {
	Options
	found   state.Path
	e       *path.Endpoint
	opened  path.Opened
	packets []packet
}

// packet is one that was sent.
type packet struct {
	flow           int
	large          bool
	sent, back     uint64
	isSent, isBack bool
	received       bool
	rtt            time.Duration
}

// Run asks the peer, and writes the report. It returns an error only if the report could not be
// written or ctx ended.
func Run(ctx context.Context, o Options) error {
	a := &asker{Options: o, found: state.Path{Peer: o.Target.Peer, Rail: o.Target.Rail, ToR: o.Target.ToR, PeerToR: o.Target.PeerToR}}
	if o.Reduced != nil {
		return errors.Join(o.Out.Send(wire.Line{Reduced: o.Reduced}), o.Out.Send(wire.Line{End: &wire.End{}}))
	}
	if err := a.choose(ctx); err != nil {
		a.failControl(err)
		return errors.Join(o.Out.Send(wire.Line{Path: &a.found}), o.Out.Send(wire.Line{End: &wire.End{}}))
	}
	a.Ended = func(err error) {
		if err != nil && a.found.Result == "" {
			a.failVerb(err)
		}
		_ = o.Out.Send(wire.Line{Path: &a.found}) // Run returns the error of the writer.
	}
	return session.Run(ctx, a.Options.Options, func(ctx context.Context, s *session.Session) (err error) {
		sc := s.Scope()
		defer func() { err = errors.Join(err, sc.Close()) }()
		if err := a.exchange(ctx, s, sc); err != nil {
			a.failVerb(err)
		}
		return nil
	})
}

func (a *asker) fail(r state.PathResult, who state.PathSuspect, format string, args ...any) {
	a.found.Result, a.found.Suspect, a.found.Detail = r, who, fmt.Sprintf(format, args...)
}

// failVerb says that this device is to blame, unless the verb was asked for an address that does
// not answer, or for what the device does not have.
func (a *asker) failVerb(err error) {
	e := path.ErrorOf(0, err)
	a.found.Verb, a.found.Errno = e.Verb, e.Errno
	switch obstacle := session.ObstacleOf(err); {
	case unresolved(e):
		a.fail(state.PathAddress, state.SuspectPath, "the address of the peer %s does not answer: %v", a.opened.Address.GID, err)
	case obstacle != nil && obstacle.Reason == state.SkipNotSupported:
		a.fail(state.PathUnsupported, "", "%v", err)
	default:
		a.fail(state.PathSource, state.SuspectDevice, "%v", err)
	}
}

// unresolved reports whether an address does not answer the side that failed.
func unresolved(e *path.Error) bool {
	return e.Verb == string(verbs.CreateAH) && slices.Contains([]string{"ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"}, e.Errno)
}

// failControl says why the peer gives no session.
func (a *asker) failControl(err error) {
	var answer *path.Error
	switch {
	case !errors.As(err, &answer):
		a.fail(state.PathControl, "", "%v", err)
	case answer.Status == http.StatusServiceUnavailable, answer.Status == http.StatusConflict:
		a.found.Verb, a.found.Errno = answer.Verb, answer.Errno
		a.fail(state.PathTarget, state.SuspectPeer, "%v", err)
		if unresolved(answer) {
			a.fail(state.PathAddress, state.SuspectPath, "the address of this device does not answer the peer: %v", err)
		}
	default:
		a.fail(state.PathRefused, "", "%v", err)
	}
}

// choose asks for the devices of the peer, and takes the one on the same rail, or else the only one.
func (a *asker) choose(ctx context.Context) error {
	var devices []path.Device
	if err := a.request(ctx, http.MethodGet, path.DevicesPath, nil, &devices); err != nil {
		return err
	}
	i := slices.IndexFunc(devices, func(d path.Device) bool {
		if a.Target.Device != "" {
			return d.Name == a.Target.Device
		}
		return d.Rail == a.Target.Rail
	})
	switch {
	case i < 0 && a.Target.Device == "" && len(devices) == 1:
		i = 0
	case i < 0:
		return &path.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("of its %d devices, none is on rail %q or called %q", len(devices), a.Target.Rail, a.Target.Device)}
	}
	d := devices[i]
	a.found.PeerDevice, a.found.PeerRail, a.found.PeerReached = d.Name, d.Rail, d.Reached > 0
	if a.found.PeerToR == "" {
		a.found.PeerToR = d.ToR
	}
	return nil
}

// exchange asks for a session, sends the packets, and classifies the result. The error is that
// of a verb of this device.
func (a *asker) exchange(ctx context.Context, s *session.Session, sc *session.Scope) error {
	routes, err := path.Routes(s)
	if err != nil {
		return err
	}
	qps := flows
	if a.HasFlowLabels {
		qps = 1
	}
	a.e, err = path.Open(s, sc, path.Options{Route: routes[0], QPs: qps, Buffers: 2 * flows * rounds, RC: a.Target.RC})
	if err != nil {
		return err
	}
	ask := path.Session{
		Device: a.found.PeerDevice, QKey: a.e.QKey, Packets: flows * rounds, Life: int(path.MaxLife.Seconds()), MTU: a.e.Size,
	}
	for _, r := range routes {
		ask.Addresses = append(ask.Addresses, path.AddressOf(r))
	}
	for _, q := range a.e.QPs {
		ask.QPNs = append(ask.QPNs, q.Number())
	}
	var rc verbs.QP
	if a.Target.RC {
		if rc, err = a.e.RC(sc); err != nil {
			return err
		}
		ask.RC = rc.Number()
	}
	expires := time.Now().Add(path.MaxLife)
	if err := a.request(ctx, http.MethodPost, path.SessionsPath, ask, &a.opened); err != nil {
		a.failControl(err)
		return nil
	}
	route := routes[max(0, min(a.opened.Source, len(routes)-1))]
	if _, _, err := path.Match([]session.Route{route}, []path.Address{a.opened.Address}); err != nil || a.opened.MTU < path.PacketSize {
		a.fail(state.PathRefused, "", "the peer answers nonsense: %+v", a.opened)
		return nil
	}
	a.found.MTU = min(a.opened.MTU, a.e.Size)
	a.found.Clock, a.found.Flows = a.e.Clock.Name, flows
	if err := a.send(sc, route, expires.Add(-path.Reserve)); err != nil {
		return err
	}
	if rc != nil {
		if err := a.e.Connect(rc, a.opened.Address.To(route, 0), a.opened.RC, a.found.MTU, false); err != nil {
			a.found.RC = "connect_failed"
		} else {
			a.found.RC = a.e.SendMessage(rc, a.found.MTU, messageTime)
		}
	}
	var report path.Report
	err = a.request(ctx, http.MethodGet, path.SessionsPath+"/"+a.opened.ID, nil, &report)
	// A peer that waited for the address of another node answers late, which is no loss.
	if lateErr := a.await(sessionID(a.opened.ID)); lateErr != nil {
		return lateErr
	}
	attr, portErr := s.Device.QueryPort(route.Port)
	a.conclude(&report, err, portErr == nil && attr.State == verbs.PortActive)
	return nil
}

// send sends all packets, round after round, and waits for the answers of each.
func (a *asker) send(sc *session.Scope, route session.Route, end time.Time) error {
	id, label := sessionID(a.opened.ID), 1+a.Random(labelStep)
	var to []verbs.AH
	for f := range flows {
		attr := a.opened.Address.To(route, 0)
		if a.HasFlowLabels {
			attr.FlowLabel = uint32(label + f*labelStep)
		} else if f > 0 {
			to = append(to, to[0])
			continue
		}
		ah, err := a.e.To(sc, attr)
		if err != nil {
			return err
		}
		to = append(to, ah)
	}
	total := flows * rounds
	for i := range total {
		if err := a.e.Receive(a.e.QPs[i%len(a.e.QPs)], total+i); err != nil {
			return err
		}
	}
	for round := 0; round < rounds && time.Now().Before(end); round++ {
		for f := range flows {
			i, n := len(a.packets), path.PacketSize
			if round == rounds-1 {
				n = a.found.MTU
			}
			a.packets = append(a.packets, packet{flow: f, large: n > path.PacketSize})
			path.Packet{Type: path.TypeRequest, Flow: uint8(f), Session: id, Sequence: uint32(i), Sent: uint64(time.Now().UnixNano())}.Put(a.e.Payload(i))
			at, err := a.e.Send(a.e.QPs[f%len(a.e.QPs)], i, n, to[f], a.opened.QPN, a.opened.QKey)
			if err != nil {
				return err
			}
			a.packets[i].sent, a.packets[i].isSent = at, !a.e.Clock.IsDevice()
		}
		if err := a.await(id); err != nil {
			return err
		}
	}
	return nil
}

// await waits until each packet was sent and came back, or the time of the round is over.
func (a *asker) await(id uint64) error {
	for wait := verbs.NewWait(roundTime); ; {
		left := wait.Left()
		ev, ok, err := a.e.Next(wait.Pause(roundTime))
		if err != nil {
			return err
		}
		switch {
		case ok && ev.Status != verbs.WCSuccess:
			return fmt.Errorf("a completion has the status %s", ev.Status)
		case ok && ev.Sent:
			if a.e.Clock.IsDevice() && ev.Buffer < len(a.packets) {
				a.packets[ev.Buffer].sent, a.packets[ev.Buffer].isSent = ev.At, true
			}
		case ok:
			p, isPacket := path.Parse(a.e.Payload(ev.Buffer)[:min(ev.Length, a.e.Size)])
			if isPacket && p.Type == path.TypeReply && p.Session == id && ev.SrcQP == a.opened.QPN && int(p.Sequence) < len(a.packets) {
				a.packets[p.Sequence].back, a.packets[p.Sequence].isBack = ev.At, true
			}
		}
		if left <= 0 && !ok || !slices.ContainsFunc(a.packets, func(p packet) bool { return !p.isSent || !p.isBack }) {
			return nil
		}
	}
}

// request sends a request and decodes the answer. An answer other than success is a *path.Error.
func (a *asker) request(ctx context.Context, method, where string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	b, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode a request: %w", err)
	}
	if body == nil {
		b = nil // It may be a GET.
	}
	r, err := http.NewRequestWithContext(ctx, method, a.Base+where, bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("ask %s: %w", a.Target.Peer, err)
	}
	response, err := a.Client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	b, err = io.ReadAll(io.LimitReader(response.Body, path.MaxBody))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", a.Target.Peer, err)
	}
	if response.StatusCode/100 != 2 {
		answer := &path.Error{Status: response.StatusCode, Message: response.Status}
		_ = json.Unmarshal(b, answer) // Otherwise it is an answer of another server.
		return answer
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("the answer of %s: %w", a.Target.Peer, err)
	}
	return nil
}

// sessionID returns the number of a session. Zero belongs to none.
func sessionID(hex string) (id uint64) {
	_, _ = fmt.Sscanf(hex, "%x", &id)
	return id
}
