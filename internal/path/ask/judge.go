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

// passes reports whether fewer than a third of the packets were lost.
func passes(lost, sent int) bool { return lost*3 < sent }

// conclude takes the report of the peer, and says how the path is. reportErr is why it is missing.
func (a *asker) conclude(report path.Report, reportErr error) {
	var times []time.Duration
	found, large, byFlow := &a.found, 0, make([]int, a.flows) // the lost ones
	for i, p := range a.packets {
		var at *path.Received
		if i < len(report.Packets) {
			at = report.Packets[i]
		}
		if p.back != nil {
			if at != nil && p.sent != nil && !a.isLarge(i) {
				times = append(times, a.e.Between(*p.sent, *p.back)-at.Turnaround)
			}
			continue
		}
		if at == nil {
			found.LostForward++
		} else {
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
