package apitest

import (
	"time"

	"rdma_exporter/internal/state"
)

// Paths returns the paths of a device: one that works, one that works no more, one that is slow,
// and one to a peer that could never be asked.
func Paths() []state.PathState {
	at := Now().Add(-20 * time.Second)
	ok := state.Path{
		Peer: "node-18:10879", PeerDevice: "mlx5_0", Rail: "rail0", Result: state.PathOK, Sent: 9, Flows: 3, MTU: 4096, Clock: "device",
		RTTMin: 2900 * time.Nanosecond, RTTMedian: 3400 * time.Nanosecond, RTTMax: 81 * time.Microsecond, RC: "success",
	}
	lost := ok
	lost.Peer, lost.Result, lost.Suspect, lost.LostForward, lost.LostReverse = "node-19:10879", state.PathForward, state.SuspectPath, 6, 1
	lost.Detail, lost.RC, lost.RTTMin, lost.RTTMedian, lost.RTTMax = "6 of 9 packets were lost on the way there, 1 on the way back", "", 0, 0, 0
	slow := ok
	slow.Peer, slow.PeerDevice, slow.Result, slow.Suspect, slow.RC = "node-20:10879", "mlx5_3", state.PathSlow, state.SuspectPath, ""
	slow.Detail = "the round trip takes 90µs, and used to take 3.4µs"
	return []state.PathState{
		{Path: ok, At: at, Worked: at, Usual: ok.RTTMedian},
		{Path: lost, At: at, Worked: at.Add(-10 * time.Minute), Failures: 2},
		{Path: slow, At: at, Worked: at, Late: 3},
		{Path: state.Path{Peer: "node-21:10879", Result: state.PathControl, Detail: "dial tcp: connection refused"}, At: at, Failures: 1},
	}
}
