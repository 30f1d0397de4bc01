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

// tolerated: a path works if fewer than one packet in this number is lost.
const tolerated = 3

// conclude takes the report of the peer, and says how the path is. reportErr is why it is missing.
func (a *asker) conclude(report *path.Report, reportErr error, portActive bool) {
	for _, p := range report.Packets {
		if i := int(p.Sequence); i < len(a.packets) {
			sent := &a.packets[i]
			sent.received = true
			if rtt := a.e.Clock.Between(sent.sent, sent.back) - p.Turnaround; sent.isSent && sent.isBack && rtt > 0 && rtt < maxRTT {
				sent.rtt = rtt
			}
		}
	}
	count(a.packets, &a.found)
	var answer *path.Error
	lost := slices.ContainsFunc(a.packets, func(p packet) bool { return !p.isBack })
	switch {
	case len(a.packets) == 0:
		a.fail(state.PathControl, "", "the session was over before a packet was sent")
	case !lost:
		a.found.Result = state.PathOK
	case !portActive:
		a.fail(state.PathSource, state.SuspectDevice, "the port of this device went down")
	case errors.As(reportErr, &answer) && answer.Status != http.StatusTooManyRequests:
		a.found.Verb, a.found.Errno = answer.Verb, answer.Errno
		a.fail(state.PathTarget, state.SuspectPeer, "the peer lost the session: %v", reportErr)
	case reportErr != nil:
		a.fail(state.PathControl, "", "%d of %d packets were lost, and the peer does not say where: %v", a.found.LostForward, a.found.Sent, reportErr)
	case !report.PortActive:
		a.fail(state.PathTarget, state.SuspectPeer, "the port of the peer went down")
	default:
		a.found.Result, a.found.Detail = classify(a.packets, &a.found)
		if a.found.Failed() {
			a.found.Suspect = state.SuspectPath
		}
	}
}

// count counts the packets.
func count(packets []packet, found *state.Path) {
	found.Sent = len(packets)
	var times []time.Duration
	came := make(map[int]bool) // by flow: a small packet
	for _, p := range packets {
		switch {
		case p.isBack:
		case p.received:
			found.LostReverse++
		default:
			found.LostForward++
		}
		if !p.large {
			came[p.flow] = came[p.flow] || p.isBack
			if p.rtt > 0 {
				times = append(times, p.rtt)
			}
		}
	}
	for _, ok := range came {
		if !ok {
			found.FlowsFailed++
		}
	}
	if slices.Sort(times); len(times) > 0 {
		found.RTTMin, found.RTTMedian, found.RTTMax = times[0], times[len(times)/2], times[len(times)-1]
	}
}

// classify names what a loss of packets looks like, with the evidence.
func classify(packets []packet, found *state.Path) (state.PathResult, string) {
	var small, large, smallLost, largeLost int
	for _, p := range packets {
		switch {
		case p.large && p.isBack:
			large++
		case p.large:
			largeLost++
		case p.isBack:
			small++
		default:
			smallLost++
		}
	}
	lost := found.LostForward + found.LostReverse
	where := fmt.Sprintf("%d of %d packets were lost on the way there, %d on the way back", found.LostForward, found.Sent, found.LostReverse)
	switch {
	case lost*tolerated < found.Sent:
		return state.PathOK, where
	case small > 0 && smallLost == 0 && large == 0 && largeLost > 0:
		return state.PathMTU, fmt.Sprintf("all packets of %d bytes passed, and none of %d; %s", path.PacketSize, found.MTU, where)
	case found.FlowsFailed > 0 && found.FlowsFailed < found.Flows:
		return state.PathFlow, fmt.Sprintf("%d of %d flows lost all packets, and the others few; %s", found.FlowsFailed, found.Flows, where)
	case found.LostForward >= found.LostReverse:
		return state.PathForward, where
	default:
		return state.PathReverse, where
	}
}
