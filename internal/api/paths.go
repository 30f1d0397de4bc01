package api

import (
	"cmp"
	"fmt"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// ProbePath is the URL path of the metrics of a pair. PeersPath precedes those by which peers ask.
const (
	ProbePath = "/probe"
	PeersPath = "/api/v1/path/"
)

// PathColumns returns the names of the cells of a PathRow.
func PathColumns() []string {
	return []string{"peer", "its device", "result", "suspect", "round trip (min, median, max)", "lost there, back", "MTU", "last worked"}
}

// PathRow is the last result for a device and a device of a peer.
type PathRow struct {
	*state.PathState
	Device string
	Cells  []string
	// Like is the severity whose look the result has, and Meaning what to make of the result.
	// Both are empty if the path works as usual.
	Like    health.Severity
	Meaning string
}

// PathRows returns the results of a device, as seen at a moment. They share memory with the device.
func PathRows(d *state.DeviceState, now time.Time) (rows []PathRow) {
	known := func(is bool, words string) string {
		if is {
			return words
		}
		return ""
	}
	for i := range d.Paths {
		p := &d.Paths[i]
		r := PathRow{PathState: p, Device: d.Name, Like: health.SeverityWarning, Meaning: pathMeaning(p.Result)}
		switch p.Result {
		case state.PathOK:
			r.Like = ""
		case state.PathControl, state.PathRefused, state.PathUnsupported: // They say nothing about RDMA.
			r.Like = health.SeverityInfo
		}
		r.Cells = []string{
			p.Peer, p.PeerDevice, text.JoinWords(", RC ", string(p.Result), p.RC), string(p.Suspect),
			known(p.RTTMedian > 0, text.Duration(p.RTTMin)+", "+text.Duration(p.RTTMedian)+", "+text.Duration(p.RTTMax)),
			known(p.Sent > 0, fmt.Sprintf("%d, %d of %d", p.LostForward, p.LostReverse, p.Sent)), known(p.MTU > 0, text.Number(p.MTU)),
			cmp.Or(known(!p.Worked.IsZero(), text.Ago(now, p.Worked)), "not yet") + known(p.Failures > 0, ", failed "+text.Count(p.Failures, "time", "times")),
		}
		rows = append(rows, r)
	}
	return rows
}

// pathMeaning returns what to make of a result. docs/path.md has the same sentences.
func pathMeaning(r state.PathResult) string {
	return map[state.PathResult]string{
		state.PathControl:     "The peer could not be asked over HTTP. That says nothing about RDMA: check that its exporter runs and can be reached.",
		state.PathRefused:     "The peer declined. Check its networks (path.allow), its password and the names of its devices and rails.",
		state.PathSource:      "This device cannot send. Look at its findings and at the state of its port.",
		state.PathTarget:      "The peer's device cannot answer. Look at the status page of the peer.",
		state.PathAddress:     "No route leads to the peer's address. Check IP addresses, VLAN, routes and ARP on both sides.",
		state.PathForward:     "Packets get lost on the way to the peer. Check drops, ACLs and PFC of the switches on that way.",
		state.PathReverse:     "Packets get lost on the way back. Check drops, ACLs and PFC of the switches on that way.",
		state.PathMTU:         "Large packets get lost. Check the MTU of every switch port on the way.",
		state.PathFlow:        "One of several parallel links loses its packets. Check the members of the LAG or ECMP group.",
		state.PathSlow:        "Packets take much longer than before. Look for congestion, and for a detour after a link failed.",
		state.PathUnsupported: "This device has no UD queue pairs, so its paths cannot be tried.",
	}[r]
}
