package state

import (
	"cmp"
	"slices"
	"time"
)

// Path is what one run found out about the path from a device to a device of a peer. The request for
// a run has the peer, and where both ends are if that is known.
type Path struct {
	// Peer is the host and port of the peer, as in the list of peers.
	Peer       string `json:"peer" wire:"name,key"`
	PeerDevice string `json:"peer_device,omitempty" wire:"name,key"`
	// Rail and ToR are where the device is, and PeerRail and PeerToR where the peer's is.
	Rail     string     `json:"rail,omitempty" wire:"name"`
	ToR      string     `json:"tor,omitempty" wire:"name"`
	PeerRail string     `json:"peer_rail,omitempty" wire:"name"`
	PeerToR  string     `json:"peer_tor,omitempty" wire:"name"`
	Result   PathResult `json:"result"`
	// Suspect is what is to blame. Empty if nothing is.
	Suspect string `json:"suspect,omitempty" wire:"word"`
	// Detail is the evidence, in words, with the verb and errno that failed, if one did.
	Detail string `json:"detail,omitempty"`
	Verb   string `json:"verb,omitempty" wire:"name"`
	Errno  string `json:"errno,omitempty" wire:"name"`
	// Sent are packets, and the others those that did not reach the peer, or whose answer did
	// not come back.
	Sent        int `json:"packets_sent"`
	LostForward int `json:"packets_lost_forward"`
	LostReverse int `json:"packets_lost_reverse"`
	// Flows are packets with the same addresses and UDP ports. FlowsFailed lost all.
	Flows       int `json:"flows"`
	FlowsFailed int `json:"flows_failed"`
	// MTU is the payload of the large packets in bytes.
	MTU int `json:"mtu_bytes,omitempty"`
	// RTTMin, RTTMedian and RTTMax are of the small packets, without the time in the peer's
	// process. Zero means that none came back.
	RTTMin    time.Duration `json:"rtt_min_ns,omitempty"`
	RTTMedian time.Duration `json:"rtt_median_ns,omitempty"`
	RTTMax    time.Duration `json:"rtt_max_ns,omitempty"`
	// Clock is device if the adapter took the times, else software.
	Clock string `json:"clock,omitempty" wire:"word"`
	// PeerReached is true if others reached the peer's device lately.
	PeerReached bool `json:"peer_reached,omitempty"`
	// RC is the completion status of a message on a reliable connection, if one was sent.
	RC string `json:"rc,omitempty" wire:"word"`
}

// Failed reports whether the path does not work. A slow one works, and one that loses messages on a
// reliable connection does not.
func (p *Path) Failed() bool {
	return p.Result != PathOK && p.Result != PathSlow || p.RC != "" && p.RC != "success"
}

// Tried reports whether the result says anything about RDMA.
func (p *Path) Tried() bool {
	return p.Result != PathControl && p.Result != PathRefused && p.Result != PathUnsupported
}

// PathResult is how a path was found, or why it could not be tried.
type PathResult string

// The results.
const (
	PathOK PathResult = "ok"
	// PathControl means that the peer could not be asked over HTTP, which says nothing about RDMA,
	// and PathRefused that it declined.
	PathControl PathResult = "control_unreachable"
	PathRefused PathResult = "refused"
	// PathSource and PathTarget mean that a verb failed here or at the peer, or a port is down.
	PathSource PathResult = "source_device"
	PathTarget PathResult = "target_device"
	// PathAddress means that ibv_create_ah could not resolve the address of the peer.
	PathAddress PathResult = "address"
	PathForward PathResult = "lost_forward"
	PathReverse PathResult = "lost_reverse"
	// PathMTU means that small packets pass and large ones do not.
	PathMTU PathResult = "mtu"
	// PathFlow means that some flows lose all packets, as if one of several links did.
	PathFlow PathResult = "flow"
	// PathSlow means that the round trip takes much longer than it used to.
	PathSlow PathResult = "slow"
	// PathUnsupported means that the device has no UD queue pairs.
	PathUnsupported PathResult = "unsupported"
)

// PathResults returns every result.
func PathResults() []PathResult {
	return []PathResult{
		PathOK, PathControl, PathRefused, PathSource, PathTarget, PathAddress,
		PathForward, PathReverse, PathMTU, PathFlow, PathSlow, PathUnsupported,
	}
}

// Valid reports whether the result is known.
func (r PathResult) Valid() bool { return slices.Contains(PathResults(), r) }

// What can be to blame for a path that does not work.
const (
	SuspectDevice = "device"
	SuspectPeer   = "peer"
	SuspectPath   = "path"
)

// PathState is the last result for a pair of devices, and its past.
type PathState struct {
	Path
	// At is when the run started, and Worked when one last found the path working.
	At     time.Time `json:"at"`
	Worked time.Time `json:"worked,omitzero"`
	// Failures counts the runs in a row that failed. Those that say nothing about RDMA count apart.
	Failures int `json:"failures"`
	// Usual is the round trip that the pair used to have, and Late counts the runs in a row
	// that took much longer.
	Usual time.Duration `json:"rtt_usual_ns,omitempty"`
	Late  int           `json:"late,omitempty"`
	// AllSent, AllForward and AllReverse are the packets of all runs since the exporter started:
	// those sent, and those lost on the way there and back.
	AllSent    uint64 `json:"-"`
	AllForward uint64 `json:"-"`
	AllReverse uint64 `json:"-"`
}

const (
	// lateFactor and lateRuns are how much longer the round trip must take, in how many runs in
	// a row, to be slow. Differences below lateLeast are noise.
	lateFactor = 3
	lateRuns   = 3
	lateLeast  = 20 * time.Microsecond
	// usualWeight is the weight of the past against one new round trip.
	usualWeight = 7
)

// Next returns the state after a run. A run that does not know the device of the peer keeps the one
// before, and one with another device starts from nothing.
func (s PathState) Next(p Path, at time.Time) PathState {
	switch p.PeerDevice {
	case s.PeerDevice:
	case "":
		p.PeerDevice, p.PeerRail = s.PeerDevice, s.PeerRail
	default:
		s = PathState{}
	}
	next := s
	next.Path, next.At, next.Failures, next.Late = p, at, 0, 0
	next.AllSent += uint64(max(p.Sent, 0))
	next.AllForward += uint64(max(p.LostForward, 0))
	next.AllReverse += uint64(max(p.LostReverse, 0))
	if p.Failed() {
		if next.Failures = 1; s.Failures > 0 && s.Tried() == p.Tried() {
			next.Failures += s.Failures
		}
		return next
	}
	next.Worked = at
	switch rtt, usual := p.RTTMedian, cmp.Or(s.Usual, p.RTTMedian); {
	case rtt == 0:
	case rtt > lateFactor*usual && rtt-usual > lateLeast:
		if next.Late = s.Late + 1; next.Late >= lateRuns {
			next.Result, next.Suspect = PathSlow, SuspectPath
			next.Detail = "the round trip takes " + rtt.String() + ", and used to take " + s.Usual.String()
		}
	default:
		next.Usual = (usualWeight*usual + rtt) / (usualWeight + 1)
	}
	return next
}
