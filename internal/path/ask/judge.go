package ask

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"rdma_exporter/internal/path"
	"rdma_exporter/internal/state"
)

// maxRTT is more than any round trip takes. A clock that was set back shows more.
const maxRTT = time.Minute

// tolerated: packets pass if fewer than one in this number is lost.
const tolerated = 3

// tally counts packets.
type tally struct{ sent, lost int }

func (t *tally) add(p packet) {
	if t.sent++; !p.isBack {
		t.lost++
	}
}

func (t *tally) passes() bool { return t.lost*tolerated < t.sent }
func (t *tally) dead() bool   { return t.sent > 0 && t.lost == t.sent }

// conclude takes the report of the peer, and says how the path is. reportErr is why it is missing.
func (a *asker) conclude(report path.Report, reportErr error) {
	var all, small, large, others tally // others are those of flows that did not fail
	var times []time.Duration
	found, flows := &a.found, make([]tally, a.found.Flows)
	for i, p := range a.packets {
		var at *path.Received
		if i < len(report.Packets) {
			at = report.Packets[i]
		}
		switch {
		case !p.isBack && at == nil:
			found.LostForward++
		case !p.isBack:
			found.LostReverse++
		case at != nil && p.isSent && !p.large:
			if rtt := a.e.Between(p.sent, p.back) - at.Turnaround; rtt > 0 && rtt < maxRTT {
				times = append(times, rtt)
			}
		}
		all.add(p)
		flows[p.flow].add(p)
		if p.large {
			large.add(p)
		} else {
			small.add(p)
		}
	}
	found.Sent = all.sent
	for _, f := range flows {
		if f.dead() {
			found.FlowsFailed++
		} else {
			others.sent, others.lost = others.sent+f.sent, others.lost+f.lost
		}
	}
	if slices.Sort(times); len(times) > 0 {
		found.RTTMin, found.RTTMedian, found.RTTMax = times[0], times[len(times)/2], times[len(times)-1]
	}
	where := fmt.Sprintf("%d of %d packets were lost on the way there, %d on the way back", found.LostForward, all.sent, found.LostReverse)
	var answer *path.Error
	switch {
	case all.sent > 0 && all.lost == 0:
		found.Result = state.PathOK
	case all.sent < len(flows)*rounds || report.Late:
		a.fail(state.PathControl, "", "the session was over before all packets were sent or came")
	case !a.e.PortActive():
		a.fail(state.PathSource, state.SuspectDevice, "the port of this device went down")
	case errors.As(reportErr, &answer) && (answer.Status == http.StatusNotFound || answer.Status >= http.StatusInternalServerError):
		a.failVerb(answer, state.PathTarget, state.SuspectPeer)
	case reportErr != nil:
		a.fail(state.PathControl, "", "%d of %d packets were lost, and the peer does not say where: %v", all.lost, all.sent, reportErr)
	case !report.PortActive:
		a.fail(state.PathTarget, state.SuspectPeer, "the port of the peer went down")
	case all.passes():
		a.fail(state.PathOK, "", "%s", where)
	case small.lost == 0 && large.dead():
		a.fail(state.PathMTU, state.SuspectPath, "all packets of %d bytes passed, and none of %d; %s", path.PacketSize, found.MTU, where)
	case found.FlowsFailed > 0 && others.passes():
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
