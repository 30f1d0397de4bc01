// Package ask is the child process that asks one device of a peer: it requests a session over
// HTTP, exchanges datagrams, and says whether the path works, and if not, what is to blame.
package ask

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"time"

	"rdma_exporter/internal/path"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
)

const (
	// labels are the flows of one run where flow labels make them, and pairs where queue pairs do.
	labels, pairs = 3, 2
	// rounds is how many packets each flow has. The last round is of large ones.
	rounds = 3
	// roundTime is how long the answers of a round may take.
	roundTime = 500 * time.Millisecond
	// messageTime is how long a message on a reliable connection may take: more than its retries.
	messageTime = 5 * time.Second
	// requestTime is the time limit for one HTTP request.
	requestTime = 12 * time.Second
	// labelStep keeps the flow labels apart. They stay below 0x4000.
	labelStep = 0x1111
	// maxRTT is more than any round trip takes. A clock that was set back shows more.
	maxRTT = time.Minute
)

// Options says what to ask.
type Options struct {
	session.Options
	// Path has the peer and where both ends are. RC adds a message on a reliable connection.
	Path state.Path
	RC   bool
	// HasFlowLabels is true if the UDP source port follows from the flow label.
	HasFlowLabels bool
	// Client sends the requests to Base, such as http://host:port.
	Client *http.Client
	Base   string
}

// asker is one run.
type asker struct {
	Options
	found  state.Path
	e      *path.Endpoint
	flows  int
	opened path.Opened
	id     uint64
	// packets are those sent, round after round one of each flow.
	packets []packet
}

// packet has the times at which it was sent and came back, by the clock. Nil means not yet.
type packet struct{ sent, back *uint64 }

// Run asks the peer, and writes the report. It returns an error only if the report could not be
// written or ctx ended.
func Run(ctx context.Context, o Options) error {
	a := &asker{Options: o, found: o.Path, flows: labels}
	a.found.Result = ""
	a.Ended = func(err error) error {
		if err != nil && a.found.Result == "" {
			a.failVerb(path.ErrorOf(err), state.PathSource, state.SuspectDevice)
			err = nil
		}
		return errors.Join(err, o.Out.Send(wire.Line{Path: &a.found}))
	}
	if err := a.choose(ctx); err != nil {
		a.failControl(err)
		return errors.Join(a.Ended(nil), o.Out.Send(wire.Line{End: &wire.End{}}))
	}
	qps := 1
	if !a.HasFlowLabels {
		a.flows, qps = pairs, pairs
	}
	return path.Run(ctx, a.Options.Options, qps, 2*a.flows*rounds, a.exchange)
}

func (a *asker) fail(r state.PathResult, who string, format string, args ...any) {
	a.found.Result, a.found.Suspect, a.found.Detail = r, who, fmt.Sprintf(format, args...)
}

// failVerb says that a device is to blame, unless a verb was asked for an address that does not
// answer, or for what the device does not have.
func (a *asker) failVerb(e *path.Error, result state.PathResult, who string) {
	a.found.Verb, a.found.Errno = e.Verb, e.Errno
	switch {
	case e.Verb == string(verbs.CreateAH) && slices.Contains([]string{"ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"}, e.Errno):
		a.fail(state.PathAddress, state.SuspectPath, "the address of the other end does not answer the %s: %v", who, e)
	case e.Status == http.StatusNotImplemented:
		a.fail(state.PathUnsupported, "", "%v", e)
	default:
		a.fail(result, who, "%v", e)
	}
}

// failControl says why the peer gives no session.
func (a *asker) failControl(err error) {
	var answer *path.Error
	switch {
	case !errors.As(err, &answer):
		a.fail(state.PathControl, "", "%v", err)
	case answer.Status >= http.StatusInternalServerError, answer.Status == http.StatusConflict:
		a.failVerb(answer, state.PathTarget, state.SuspectPeer)
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
	i := slices.IndexFunc(devices, func(d path.Device) bool { return len(devices) == 1 || d.Rail == a.Path.Rail })
	if i < 0 {
		return path.Refuse(http.StatusNotFound, "of its %d devices, none is on rail %q", len(devices), a.Path.Rail)
	}
	d := devices[i]
	a.found.PeerDevice, a.found.PeerRail, a.found.PeerReached = d.Name, d.Rail, d.Reached
	a.found.PeerToR = cmp.Or(a.found.PeerToR, d.ToR)
	return nil
}

// exchange asks for a session, sends the packets, and classifies the result. It stops if a verb of this
// device fails.
func (a *asker) exchange(ctx context.Context, e *path.Endpoint) {
	a.e = e
	ask := path.Session{
		Device: a.found.PeerDevice, QKey: e.QKey, Packets: a.flows * rounds, Life: int(path.MaxLife.Seconds()), MTU: e.Size,
	}
	for _, r := range e.Routes {
		ask.Addresses = append(ask.Addresses, path.AddressOf(r))
	}
	for _, q := range e.QPs {
		ask.QPNs = append(ask.QPNs, q.Number())
	}
	var rc verbs.QP
	if a.RC {
		rc = session.Must(e.QP(verbs.RC, 1))
		ask.RC = rc.Number()
	}
	body, _ := json.Marshal(ask) // It has nothing that JSON lacks.
	if err := a.request(ctx, http.MethodPost, path.SessionsPath, body, &a.opened); err != nil {
		a.failControl(err)
		return
	}
	end := time.Now().Add(path.MaxLife - path.Reserve)
	_, to, err := path.Match(e.Routes, []path.Address{a.opened.Address})
	if err != nil || a.opened.MTU < path.PacketSize {
		a.fail(state.PathRefused, "", "the peer answers nonsense: %+v", a.opened)
		return
	}
	a.found.MTU, a.found.Clock, a.found.Flows = min(a.opened.MTU, e.Size), e.Clock, a.flows
	a.id = path.SessionOf(a.opened.ID)
	a.send(to, end)
	if rc != nil {
		a.message(rc, to)
	}
	var report path.Report
	err = a.request(ctx, http.MethodGet, path.SessionsPath+"/"+url.PathEscape(a.opened.ID), nil, &report)
	// A peer that waited for the address of another node answers late, which is no loss.
	a.await(roundTime, a.complete)
	a.conclude(report, err)
}

// send sends all packets, round after round, and waits for the answers of each.
func (a *asker) send(to verbs.AHAttr, end time.Time) {
	handles, label, total := make([]verbs.AH, a.flows), 1+rand.IntN(labelStep), a.flows*rounds
	for f := range handles {
		to.FlowLabel = uint32(label + f*labelStep)
		handles[f] = session.Must(a.e.To(to))
	}
	for i := range total {
		a.e.Receive(a.e.QPs[i%len(a.e.QPs)], total+i)
	}
	for i := range total {
		f, n := i%a.flows, path.PacketSize
		if a.isLarge(i) {
			n = a.found.MTU
		}
		if f == 0 && !time.Now().Before(end) {
			return
		}
		path.Packet{Type: path.TypeRequest, Flow: uint8(f), Session: a.id, Sequence: uint32(i), Sent: uint64(time.Now().UnixNano())}.Put(a.e.Payload(i))
		a.packets = append(a.packets, packet{sent: a.e.Send(a.e.QPs[f%len(a.e.QPs)], i, n, handles[f], a.opened.QPN, a.opened.QKey)})
		if f == a.flows-1 {
			a.await(roundTime, a.complete)
		}
	}
}

// isLarge reports whether a packet is one of the last round.
func (a *asker) isLarge(sequence int) bool { return sequence/a.flows == rounds-1 }

// message sends the message on a reliable connection, and notes the status of its completion, or why
// it is missing.
func (a *asker) message(rc verbs.QP, to verbs.AHAttr) {
	if err := a.e.Connect(rc, to, a.opened.RC, a.found.MTU, true); err != nil {
		a.found.RC = "connect_failed"
		return
	}
	defer func() { a.found.RC = cmp.Or(a.found.RC, "no_completion") }() // also if a verb fails meanwhile
	a.await(messageTime, func() bool { return a.found.RC != "" })
}

// complete reports whether each packet was sent and came back.
func (a *asker) complete() bool {
	return !slices.ContainsFunc(a.packets, func(p packet) bool { return p.sent == nil || p.back == nil })
}

// await takes completions until it is done, or the time is over.
func (a *asker) await(length time.Duration, done func() bool) {
	for wait := verbs.NewWait(length); ; {
		left := wait.Left()
		ev, ok := a.e.Next(wait.Pause(length))
		switch {
		case !ok:
		case ev.Buffer == path.MessageBuffer:
			a.found.RC = ev.Status.String()
		case ev.Status != verbs.WCSuccess:
			session.Stop(fmt.Errorf("a completion has the status %s", ev.Status))
		case !ev.Sent:
			p, isPacket := path.Parse(ev.Payload)
			if isPacket && p.Type == path.TypeReply && p.Session == a.id && ev.SrcQP == a.opened.QPN && int(p.Sequence) < len(a.packets) {
				a.packets[p.Sequence].back = &ev.At
			}
		case a.e.IsDevice():
			a.packets[ev.Buffer].sent = &ev.At
		}
		if left <= 0 && !ok || done() {
			return
		}
	}
}

// conclude takes the report of the peer, and says how the path is. reportErr is why it is missing.
func (a *asker) conclude(report path.Report, reportErr error) {
	var times []time.Duration
	found, large, byFlow := &a.found, 0, make([]int, a.flows) // the lost ones
	received := slices.Concat(report.Packets, make([]*path.Received, len(a.packets)))
	for i, p := range a.packets {
		switch at := received[i]; {
		case p.back != nil:
			if at != nil && p.sent != nil && !a.isLarge(i) {
				times = append(times, a.e.Between(*p.sent, *p.back)-at.Turnaround)
			}
			continue
		case at == nil:
			found.LostForward++
		default:
			found.LostReverse++
		}
		if a.isLarge(i) {
			large++
		}
		if byFlow[i%a.flows]++; byFlow[i%a.flows] == rounds {
			found.FlowsFailed++
		}
	}
	times = slices.DeleteFunc(times, func(rtt time.Duration) bool { return rtt <= 0 || rtt >= maxRTT })
	if slices.Sort(times); len(times) > 0 {
		found.RTTMin, found.RTTMedian, found.RTTMax = times[0], times[len(times)/2], times[len(times)-1]
	}
	found.Sent = len(a.packets)
	lost, sent, failed := found.LostForward+found.LostReverse, found.Sent, found.FlowsFailed*rounds
	where := fmt.Sprintf("%d of %d packets were lost on the way there, %d on the way back", found.LostForward, sent, found.LostReverse)
	passes := func(lost, sent int) bool { return lost*3 < sent } // if fewer than a third are lost
	var answer *path.Error
	switch {
	case sent > 0 && lost == 0:
		found.Result = state.PathOK
	case sent < a.flows*rounds || report.Late:
		a.fail(state.PathControl, "", "the session was over before all packets were sent or came")
	case !a.e.PortActive():
		a.fail(state.PathSource, state.SuspectDevice, "the port of this device went down")
	case errors.As(reportErr, &answer) && (answer.Status == http.StatusNotFound || answer.Status >= http.StatusInternalServerError):
		a.failVerb(answer, state.PathTarget, state.SuspectPeer)
	case reportErr != nil:
		a.fail(state.PathControl, "", "%d of %d packets were lost, and the peer does not say where: %v", lost, sent, reportErr)
	case !report.PortActive:
		a.fail(state.PathTarget, state.SuspectPeer, "the port of the peer went down")
	case passes(lost, sent):
		a.fail(state.PathOK, "", "%s", where)
	case lost == large && large == a.flows:
		a.fail(state.PathMTU, state.SuspectPath, "all packets of %d bytes passed, and none of %d; %s", path.PacketSize, found.MTU, where)
	case failed > 0 && passes(lost-failed, sent-failed):
		a.fail(state.PathFlow, state.SuspectPath, "%d of %d flows lost all packets, and the others few; %s", found.FlowsFailed, found.Flows, where)
	case found.LostForward >= found.LostReverse:
		a.fail(state.PathForward, state.SuspectPath, "%s", where)
	default:
		a.fail(state.PathReverse, state.SuspectPath, "%s", where)
	}
	if found.Result == state.PathOK && found.Failed() {
		a.fail(state.PathOK, state.SuspectPath, "%s, and the message on a reliable connection ended with %s", where, found.RC)
	}
}

// request sends a request and decodes the answer. An answer of the peer other than success is a
// *path.Error. Any other error says nothing about RDMA.
func (a *asker) request(ctx context.Context, method, where string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, a.Base+where, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask %s: %w", a.Path.Peer, err)
	}
	response, err := a.Client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(response.Body, path.MaxBody))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", a.Path.Peer, err)
	}
	if response.StatusCode/100 != 2 {
		answer := new(path.Error)
		_ = json.Unmarshal(b, answer)
		declined := response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden
		if answer.Message == "" && !declined {
			return fmt.Errorf("the answer of %s is not that of an exporter with --peer.respond: %s", a.Path.Peer, response.Status)
		}
		answer.Status, answer.Message = response.StatusCode, cmp.Or(answer.Message, response.Status)
		return answer
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("the answer of %s: %w", a.Path.Peer, err)
	}
	return nil
}
