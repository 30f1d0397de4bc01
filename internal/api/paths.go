package api

import (
	"cmp"
	"fmt"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/health/paths"
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
	Device string `json:"device"`
	state.PathState
	Cells []string `json:"-"`
	// Like is the severity whose look the result has, and Action what to do. Both are empty if the
	// path works as usual.
	Like   health.Severity `json:"-"`
	Action string          `json:"-"`
}

// PathRows returns the results of a device, as seen at a moment.
func PathRows(device string, all []state.PathState, now time.Time) (rows []PathRow) {
	known := func(is bool, words string) string {
		if is {
			return words
		}
		return ""
	}
	for i := range all {
		p := &all[i]
		r := PathRow{Device: device, PathState: *p, Like: health.SeverityWarning}
		switch _, r.Action = paths.Texts(p.Result); {
		case p.Result == state.PathOK && !p.Failed():
			r.Like = ""
		case !p.Tried():
			r.Like = health.SeverityInfo
		}
		r.Cells = []string{
			p.Peer, p.PeerDevice, text.JoinWords(", RC ", string(p.Result), p.RC), p.Suspect,
			known(p.RTTMedian > 0, text.Duration(p.RTTMin)+", "+text.Duration(p.RTTMedian)+", "+text.Duration(p.RTTMax)),
			known(p.Sent > 0, fmt.Sprintf("%d, %d of %d", p.LostForward, p.LostReverse, p.Sent)), known(p.MTU > 0, text.Number(p.MTU)),
			cmp.Or(known(!p.Worked.IsZero(), text.Ago(now, p.Worked)), "not yet") + known(p.Failures > 0, ", failed "+text.Count(p.Failures, "time", "times")),
		}
		rows = append(rows, r)
	}
	return rows
}
