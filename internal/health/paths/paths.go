// Package paths says what is wrong with the paths from a device to peers, and who is to blame.
package paths

import (
	"cmp"
	"fmt"
	"slices"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// A path that worked must fail in confirmed runs in a row, as one may be a restart. A message
// lists maxListed paths, and maxDetail characters of the evidence.
const confirmed, maxListed, maxDetail = 2, 3, 300

// Finding is about one suspect. What it has from outside is cleaned.
type Finding struct {
	// Slow is true if the paths work, but take longer than they used to.
	Slow bool
	// Case is device, peer, path, or unasked if a peer could not be asked. Subject has its name.
	Case, Subject string
	Severity      state.Severity
	// Reason has no names and numbers, unlike Message. Action says what to do.
	Reason, Message, Action, Verb, Errno string
}

// Of returns one finding for each suspect. host has all devices of the host. It modifies neither.
func Of(d *state.DeviceState, host []state.DeviceState) []Finding {
	works, dead := agree(d)
	all, members := []Finding(nil), [][]*state.PathState(nil)
	for i := range 2 * len(d.Paths) { // Those that are worse than an info come first.
		p := &d.Paths[i%len(d.Paths)]
		f := Finding{Slow: !p.Failed(), Severity: severity(p, works, dead)}
		switch {
		case f.Severity == "", (f.Severity == state.SeverityInfo || dead && p.Worked.IsZero()) != (i >= len(d.Paths)):
			continue
		case !p.Tried():
			f.Case, f.Subject = "unasked", "peer "+text.Name(p.Peer)
		case dead, p.Suspect == state.SuspectDevice && !f.Slow:
			f.Case, f.Subject = "device", "device"
		case p.Suspect == state.SuspectPeer && !f.Slow:
			f.Case, f.Subject = "peer", "peer "+text.Name(p.Peer)
		default:
			f.Case, f.Subject = "path", "path "+text.Name(p.Peer)
		}
		n := slices.IndexFunc(all, func(o Finding) bool { return o.Slow == f.Slow && o.Subject == f.Subject })
		if n < 0 {
			n, all, members = len(all), append(all, f), append(members, nil)
		}
		members[n] = append(members[n], p)
	}
	for i := range all {
		all[i].describe(members[i], host)
	}
	return all
}

// agree reports whether a path of the device works, and whether several peers agree that it is
// dead although it worked.
func agree(d *state.DeviceState) (works, dead bool) {
	peers, worked := make(map[string]bool), false
	for i := range d.Paths {
		p := &d.Paths[i]
		works = works || !p.Failed()
		if p.Tried() && p.Suspect != state.SuspectPeer && severity(p, false, false) != "" {
			peers[p.Peer], worked = true, worked || !p.Worked.IsZero()
		}
	}
	return works, !works && worked && len(peers) > 1
}

// severity is empty if there is nothing to say. works and dead are as of agree.
func severity(p *state.PathState, works, dead bool) state.Severity {
	known := !p.Worked.IsZero()
	switch {
	case p.Result == state.PathOK, p.Result == state.PathUnsupported, p.Tried() && p.Failed() && known && p.Failures < confirmed:
		return ""
	case p.Tried() && dead:
		return state.SeverityCritical
	case !p.Tried(), p.Failed() && !known && (!works || !p.PeerReached):
		return state.SeverityInfo
	}
	return state.SeverityWarning
}

func (f *Finding) describe(members []*state.PathState, host []state.DeviceState) {
	p := members[0]
	f.Verb, f.Errno = p.Verb, p.Errno
	f.Reason, f.Action = Texts(p.Result)
	head, past, suspect := "A path fails", "It has never worked.", f.Case
	switch {
	case f.Slow:
		head, past = "A path is slow", fmt.Sprintf("So it was in %d runs in a row.", p.Late)
	case !p.Tried():
		head, past, suspect = "A peer cannot be asked, which says nothing about RDMA", "", "exporter of the peer"
	case !p.Worked.IsZero():
		past = fmt.Sprintf("It worked at %s, and failed in %d runs in a row.", text.Moment(p.Worked), p.Failures)
	case p.PeerReached:
		past += " Other nodes reach that device."
	}
	if f.Severity == state.SeverityCritical {
		head, f.Reason, f.Verb, f.Errno = "No path of the device works", "no path of the device works", "", ""
		if slices.ContainsFunc(host, func(d state.DeviceState) bool { works, _ := agree(&d); return works }) {
			past += " Other devices of this host reach peers."
		}
	}
	var list []string
	for _, m := range members {
		list = append(list, fmt.Sprintf("%s to %s of %s", text.Name(string(m.Result)), text.Name(m.PeerDevice), text.Name(m.Peer)))
	}
	evidence := "Evidence: " + text.Truncate(text.Clean(cmp.Or(p.Detail, "none")), maxDetail) + "."
	f.Message = text.JoinWords(" ", head+": "+text.Join(list, ", ", maxListed)+".", evidence, past, "The suspect is the "+suspect+".")
}

// Texts returns what is wrong and what to do. Both are empty if nothing is wrong or to be done.
func Texts(r state.PathResult) (reason, action string) {
	const counters = "Look at errors, discards and PFC pauses of the switch ports on the way, and for an ACL or a firewall that drops "
	found := map[state.PathResult][2]string{
		state.PathControl: {"a peer does not answer over HTTP", "Check that the exporter of the peer runs and answers peers, and its address in the list of peers."},
		state.PathRefused: {"a peer refuses to be asked", "The evidence has its answer: it does not answer peers, allows neither this network (path.allow) nor this password, has no such device or rail, or is asked too often."},
		state.PathSource:  {"the device fails", "Look at the port and the other findings of this device, and at `dmesg`."},
		state.PathTarget:  {"the device of a peer fails", "Look at the page of the peer: it shows what is wrong with its device."},
		state.PathAddress: {"the address of a peer is not resolved", "Compare addresses, routes and VLANs of both ends: `ip route get ADDRESS`, `ip neigh`, and whether the peer answers ARP. On InfiniBand, check the subnet manager."},
		state.PathForward: {"packets to a peer are lost", counters + "UDP port 4791 from this host to the peer."},
		state.PathReverse: {"answers of a peer are lost", counters + "UDP port 4791 from the peer to this host."},
		state.PathMTU:     {"only large packets to a peer are lost", "Allow jumbo frames on each switch port on the way: its MTU must exceed the payload by the headers, some 100 bytes. Compare the MTU of both ends with `ip link`."},
		state.PathFlow:    {"some flows to a peer are lost", "One link of a LAG or an ECMP group loses what it gets. Compare the links: `ethtool -S` at both ends, the counters of each member on the switches. Take out the one that loses."},
		state.PathSlow:    {"a path has become slow", "Look for congestion (pauses, ECN marks, CNPs), a detour after a link failed, and a busy peer."},
	}[r]
	return found[0], found[1]
}

// Last returns a run that stands for the newest result. Nil means that there are no paths.
func Last(all []state.PathState) *state.Run {
	if len(all) == 0 {
		return nil
	}
	newest := slices.MaxFunc(all, func(a, b state.PathState) int { return a.At.Compare(b.At) })
	return &state.Run{Kind: state.KindAsk, Started: newest.At}
}
