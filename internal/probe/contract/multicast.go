package contract

import (
	"fmt"
	"net/netip"
	"time"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/verbs"
)

// multicastWhere says which devices are judged by what they send to a group. What an
// adapter sends leaves its port, for whoever is a member; Soft-RoCE sends through the
// host's network stack.
const multicastWhere = "Only Soft-RoCE is judged, by the interface-local group ff01::1, which the kernel belongs to and never sends out (RFC 4291); what an adapter sends to a group leaves the port."

// keepsMulticast is the driver whose messages to a group of interface-local scope stay
// within the host.
const keepsMulticast = "rxe"

// localGroup is the group of all nodes of interface-local scope. Linux joins it on each
// interface (ipv6_add_dev), without which Soft-RoCE would receive nothing, and drops what
// would leave the interface (ip6_finish_output2).
func localGroup() verbs.GID { return verbs.GID{0: 0xff, 1: 0x01, 15: 0x01} }

const (
	// groupQPN is the destination of messages to a group.
	groupQPN = 0xffffff
	// groupSends is how often a message is sent that does not arrive.
	groupSends = 3
	// grhLength is the room of the global route header before the data of a datagram.
	grhLength = 40
)

// multicast sends to a group, to which QPs of its own are attached.
type multicast struct {
	j     *judge
	pd    verbs.PD
	route session.Route
	lid   uint16
	from  verbs.QP
	sent  verbs.CQ
	to    verbs.AH
	mem   verbs.MR
	// key is that of all its QPs: a QP of somebody else in the group takes nothing.
	key     uint32
	members []*member
}

// member is a QP in the group, or one that was.
type member struct {
	qp       verbs.QP
	cq       verbs.CQ
	attached bool
	// got is how many messages arrived, by their length.
	got map[int]int
}

// multicast returns what sends to a group without members.
func (j *judge) multicast() (*multicast, error) {
	if n := j.Attr.Limits.MaxMcastGroup; n <= 0 {
		return nil, notSupported("the device says max_mcast_grp %d", n)
	}
	if j.driver.Name != keepsMulticast {
		return nil, notSupported("a message to a group would leave the port: only those of %s stay within the host", keepsMulticast)
	}
	if err := j.needRoute(); err != nil {
		return nil, err
	}
	m := &multicast{j: j}
	var err error
	if m.route, err = j.routeIPv6(); err != nil {
		return nil, err
	}
	port, err := j.Port(m.route.Port)
	if err != nil {
		return nil, cannot("query a port", err)
	}
	if port.LinkLayer == verbs.LinkInfiniBand {
		m.lid = multicastLID
	}
	if m.pd, err = j.pd(); err != nil {
		return nil, err
	}
	if err := j.refused(func() (err error) {
		m.mem, err = j.MR(m.pd, 4096, verbs.AccessLocalWrite)
		return err
	}); err != nil {
		return nil, cannot("register memory", err)
	}
	if m.sent, err = j.cq(nil, 0); err != nil {
		return nil, err
	}
	if m.from, err = m.qp(m.sent); err != nil {
		return nil, err
	}
	address := m.route.AH
	address.DGID, address.HopLimit = localGroup(), 1
	if m.to, err = j.AH(m.pd, address); err != nil {
		return nil, cannot("create the address handle of a group", err)
	}
	return m, nil
}

// routeIPv6 returns a way from a port to itself by an IPv6 address.
func (j *judge) routeIPv6() (session.Route, error) {
	var last error
	for port := 1; port <= j.Attr.Ports; port++ {
		routes, err := j.Routes(port)
		for _, r := range routes {
			if r.AH.Global && !netip.AddrFrom16(r.AH.DGID).Is4In6() {
				return r, nil
			}
		}
		if last = err; err == nil {
			last = fmt.Errorf("port %d has no GID that is an IPv6 address", port)
		}
	}
	return session.Route{}, last
}

// qp returns a UD QP that is ready to send.
func (m *multicast) qp(q verbs.CQ) (verbs.QP, error) {
	var qp verbs.QP
	// Not every device has the type.
	err := m.j.refused(func() (err error) {
		qp, err = m.j.qp(m.pd, verbs.UD, q, q, nil, false)
		return err
	})
	if err != nil {
		return nil, err
	}
	if m.key == 0 {
		m.key = qp.Number() // nobody else's, and not privileged
	}
	attr, mask := verbs.ToInit(verbs.UD, m.route.Port, 0)
	attr.PKeyIndex, attr.QKey = m.route.PKeyIndex, m.key
	if err := qp.Modify(attr, mask); err != nil {
		return nil, cannot("move a UD QP to INIT", err)
	}
	if err := qp.Modify(verbs.ToRTR(verbs.UD, verbs.Peer{})); err != nil {
		return nil, cannot("move a UD QP to RTR", err)
	}
	if err := qp.Modify(verbs.ToRTS(verbs.UD)); err != nil {
		return nil, cannot("move a UD QP to RTS", err)
	}
	return qp, nil
}

// join adds a member with receives for every message that there may be.
func (m *multicast) join() (*member, error) {
	q, err := m.j.cq(nil, 0)
	if err != nil {
		return nil, err
	}
	r := &member{cq: q, got: make(map[int]int)}
	if r.qp, err = m.qp(q); err != nil {
		return nil, err
	}
	for id := range uint64(smallQP().MaxRecvWR) {
		if err := r.qp.PostRecv(verbs.RecvWR{ID: id, SGEs: []verbs.SGE{m.mem.SGE(64, 64)}}); err != nil {
			return nil, cannot("post a receive", err)
		}
	}
	m.members = append(m.members, r)
	return r, m.attach(r)
}

// attach attaches a QP to the group.
func (m *multicast) attach(r *member) error {
	if err := r.qp.AttachMulticast(localGroup(), m.lid); err != nil {
		return cannot("attach a QP to a multicast group", err)
	}
	r.attached = true
	return nil
}

// detach detaches a QP from the group.
func (m *multicast) detach(r *member) error {
	if err := r.qp.DetachMulticast(localGroup(), m.lid); err != nil {
		return cannot("detach a QP from a multicast group", err)
	}
	r.attached = false
	return nil
}

// end detaches who is attached: their QPs could not be destroyed.
func (m *multicast) end() {
	for _, r := range m.members {
		if r.attached {
			m.j.left = append(m.j.left, m.detach(r))
		}
	}
}

// send sends a message of that many bytes until it has arrived at all who are asked for,
// groupSends times at most, and returns how often.
func (m *multicast) send(size int, at ...*member) (int, error) {
	for n := 1; ; n++ {
		err := m.from.PostSend(verbs.SendWR{
			ID: uint64(n), Flags: verbs.SendSignaled, SGEs: []verbs.SGE{m.mem.SGE(0, size)},
			AH: m.to, RemoteQPN: groupQPN, RemoteQKey: m.key,
		})
		if err != nil {
			return n, cannot("post a send", err)
		}
		if err := m.j.successful(m.sent); err != nil {
			return n, err
		}
		within := quiet
		if n == groupSends {
			within = patience
		}
		if arrived, err := m.arrived(size, within, at); arrived || n == groupSends || err != nil {
			return n, err
		}
	}
}

// arrived waits until a message of that many bytes has arrived at all of these, and
// reports whether it has.
func (m *multicast) arrived(size int, within time.Duration, at []*member) (bool, error) {
	w := verbs.NewWait(within)
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		left, all := w.Left(), true
		for _, r := range at {
			if err := r.poll(); err != nil {
				return false, err
			}
			all = all && r.got[size] > 0
		}
		if all || left <= 0 {
			return all, nil
		}
		time.Sleep(w.Pause(pause))
	}
}

// poll counts what has arrived.
func (r *member) poll() error {
	wcs, err := r.cq.Poll(smallCQ)
	if err != nil {
		return cannot("poll a CQ", err)
	}
	for _, wc := range wcs {
		if wc.Status != verbs.WCSuccess {
			return fmt.Errorf("a receive completed with %s", wc.Status)
		}
		r.got[int(wc.ByteLen)-grhLength]++
	}
	return nil
}

// nowhere is the error of messages none of which arrived.
func nowhere(sends int) error {
	return fmt.Errorf("%d messages to the group arrived nowhere: datagrams may be lost, and a firewall may drop them", sends)
}

// The messages differ in length, so that one that is late is not taken for another.
const (
	firstMessage  = 8
	secondMessage = 16
)

func multicastDelivers(j *judge) error {
	j.asks("ibv_attach_mcast of two UD QPs to a group, and a message to it; then ibv_detach_mcast of one, and another message",
		"the first message arrives at both, the second at the QP that is attached")
	m, err := j.multicast()
	if err != nil {
		return err
	}
	defer m.end()
	stays, leaves, err := m.two()
	if err != nil {
		return err
	}
	sends, err := m.send(firstMessage, stays, leaves)
	if err != nil {
		return err
	}
	a, b := stays.got[firstMessage], leaves.got[firstMessage]
	if a == 0 && b == 0 {
		return nowhere(sends)
	}
	j.see(a > 0 && b > 0, "both attached: %d sent, %d arrived at one and %d at the other", sends, a, b)
	if a == 0 || b == 0 {
		return nil
	}
	if err := m.detach(leaves); err != nil {
		return err
	}
	if sends, err = m.send(secondMessage, stays); err != nil {
		return err
	}
	if _, err := m.arrived(secondMessage, quiet, []*member{leaves}); err != nil {
		return err
	}
	a, b = stays.got[secondMessage], leaves.got[secondMessage]
	if a == 0 && b == 0 {
		return nowhere(sends)
	}
	j.see(a > 0 && b == 0, "one detached: %d sent, %d arrived at the other and %d at the one detached", sends, a, b)
	return nil
}

// two returns two members.
func (m *multicast) two() (a, b *member, err error) {
	if a, err = m.join(); err != nil {
		return nil, nil, err
	}
	b, err = m.join()
	return a, b, err
}

func multicastSingleCopy(j *judge) error {
	j.asks("ibv_attach_mcast of a UD QP to the same group twice, and a message to it", "one copy of it arrives")
	m, err := j.multicast()
	if err != nil {
		return err
	}
	defer m.end()
	r, err := m.join()
	if err != nil {
		return err
	}
	if err := m.attach(r); err != nil {
		return err
	}
	sends, err := m.send(firstMessage, r)
	if err != nil {
		return err
	}
	if r.got[firstMessage] == 0 {
		return nowhere(sends)
	}
	// Another copy would come after the first.
	if _, err := m.arrived(secondMessage, quiet, m.members); err != nil {
		return err
	}
	j.see(r.got[firstMessage] <= sends, "attached twice: %d sent, %d arrived", sends, r.got[firstMessage])
	return nil
}
