package simulated

import (
	"fmt"
	"math"
	"slices"
	"syscall"
	"time"

	"rdma_exporter/verbs"
)

// behaviour answers every question about how one device behaves: what it
// permits, which sizes it gives, when it refuses, signals and notifies. The
// objects keep the state; what the manual promises about them is decided here.
// It is immutable.
type behaviour struct {
	profile   DeviceProfile
	attr      verbs.DeviceAttr
	transport verbs.Transport
	ports     []port
	gids      []verbs.GIDEntry
	types     []verbs.QPType
	broken    map[string]bool // contracts
}

// port is a port of a device.
type port struct {
	attr  verbs.PortAttr
	gids  map[int]verbs.GID
	pkeys []verbs.PKey
}

// pkey returns an entry of the partition key table.
func (p port) pkey(index int) verbs.PKey {
	if index < len(p.pkeys) {
		return p.pkeys[index]
	}
	return 0
}

func (p port) active() bool { return p.attr.State == verbs.PortActive }

// newBehaviour takes over a valid profile.
func newBehaviour(p DeviceProfile) *behaviour {
	guid, _ := parseGUID(p.NodeGUID)
	b := &behaviour{
		profile: p,
		attr: verbs.DeviceAttr{
			Firmware: p.Firmware, NodeGUID: guid,
			VendorID: p.VendorID, VendorPartID: p.VendorPartID, HWVersion: p.HWVersion,
			Ports: len(p.Ports), Limits: verbs.Limits(p.Limits), XRC: p.XRC,
		},
		transport: value(p.Transport, verbs.TransportIB, verbs.TransportUnspecified),
		broken:    make(map[string]bool),
	}
	for _, contract := range p.Violate {
		b.broken[contract] = true
	}
	for _, t := range p.QPTypes {
		b.types = append(b.types, value(t, verbs.RC, verbs.SRD))
	}
	for _, pp := range p.Ports {
		made := port{gids: make(map[int]verbs.GID)}
		made.attr = verbs.PortAttr{
			State:     value(pp.State, verbs.PortNop, verbs.PortActiveDefer),
			LinkLayer: value(pp.LinkLayer, verbs.LinkUnspecified, verbs.LinkEthernet),
			LID:       pp.LID, ActiveMTU: pp.ActiveMTU, PKeys: max(1, pp.PKeys, len(pp.PKeyTable)), GRHRequired: pp.GRHRequired,
		}
		for _, key := range pp.PKeyTable {
			made.pkeys = append(made.pkeys, verbs.PKey(key))
		}
		if len(made.pkeys) == 0 {
			made.pkeys = []verbs.PKey{0xffff}
		}
		for _, g := range pp.GIDs {
			gid, _ := parseGID(g.GID)
			made.gids[g.Index] = gid
			b.gids = append(b.gids, verbs.GIDEntry{
				Port: pp.Number, Index: g.Index, GID: gid, Type: value(g.Type, verbs.GIDTypeIB, verbs.GIDTypeRoCEv2),
			})
		}
		b.ports = append(b.ports, made)
	}
	return b
}

// breaks reports whether the device breaks a contract.
func (b *behaviour) breaks(contract string) bool { return b.broken[contract] }

// port returns a port by its number.
func (b *behaviour) port(number int) (port, bool) {
	if number < 1 || number > len(b.ports) {
		return port{}, false
	}
	return b.ports[number-1], true
}

// latency returns the least time that a verb takes.
func (b *behaviour) latency(v verbs.Verb) time.Duration {
	if d, ok := b.profile.Latency[v]; ok {
		return d
	}
	switch v {
	case verbs.PollCQ, verbs.ReqNotifyCQ, verbs.GetCQEvent, verbs.AckCQEvents,
		verbs.PostSend, verbs.PostRecv, verbs.PostSRQRecv:
		return 0
	}
	return b.profile.DefaultLatency
}

// cost returns what an object costs.
func (b *behaviour) cost(k kind, entries int) verbs.Memory {
	m := b.profile.Memory
	c := [kinds]Cost{
		kindChannel: m.CompChannel, kindCQ: m.CQ, kindSRQ: m.SRQ, kindQP: m.QP,
	}[k]
	n := uint64(max(0, entries))
	return verbs.Memory{Virtual: c.Virtual + n*c.VirtualPerEntry, Locked: c.Locked + n*c.LockedPerEntry}
}

// admits decides whether one more object of a kind can be had.
func (b *behaviour) admits(k kind, live int) *failure {
	l := b.attr.Limits
	limit, name := math.MaxInt, ""
	switch k {
	case kindPD:
		limit, name = l.MaxPD, "max_pd"
	case kindMR:
		limit, name = l.MaxMR, "max_mr"
	case kindAH:
		limit, name = l.MaxAH, "max_ah"
	case kindCQ:
		limit, name = l.MaxCQ, "max_cq"
	case kindSRQ:
		limit, name = l.MaxSRQ, "max_srq"
	case kindQP:
		limit, name = l.MaxQP, "max_qp"
	}
	if limit == 0 {
		return fail(syscall.EOPNOTSUPP, "%s is 0", name)
	}
	if live >= limit {
		return fail(syscall.ENOMEM, "there are %d already, and %s is %d", live, name, limit)
	}
	return nil
}

// refusesDestroy decides whether an object cannot be destroyed.
func (b *behaviour) refusesDestroy(o *object) *failure {
	switch {
	case o.kind == kindCQ && b.breaks(cqDestroyBusy),
		o.kind == kindChannel && b.breaks(channelDestroyBusy),
		o.kind == kindSRQ && b.breaks(srqDestroyBusy):
		return nil // nothing but the objects of the contract uses one of these
	}
	if n := len(o.groups); n > 0 && !b.breaks(qpDestroyBusyMulticast) {
		return fail(syscall.EBUSY, "the QP is attached to %d multicast groups", n)
	}
	if users := o.usage(); users != "" {
		return fail(syscall.EBUSY, "the %s is in use (%s)", o.kind, users)
	}
	return nil
}

// fit rounds a size without exceeding the limit, which it is not above.
func fit(r Rule, asked, limit int) int {
	return min(r.Apply(asked), max(asked, limit))
}

// above reports an attribute that is above its limit.
func above(what string, asked int64, limit int) *failure {
	if asked <= int64(limit) {
		return nil
	}
	return fail(syscall.EINVAL, "%s %d is above %d", what, asked, limit)
}

// first returns the first failure that is one.
func first(failures ...*failure) *failure {
	for _, f := range failures {
		if f != nil {
			return f
		}
	}
	return nil
}

// cq decides over the creation of a CQ and returns how many entries it gets. No
// verb queries a CQ.
func (b *behaviour) cq(entries, vector int, fields verbs.WCFields) (s sizes[int], f *failure) {
	can, contract := verbs.WCStandard, cqAtLeastRequested
	if b.profile.Extended.TimestampMask != 0 {
		can |= verbs.WCTimestamp
	}
	if fields != 0 {
		contract = cqExAtLeastRequested
	}
	if fields&^can != 0 {
		return s, fail(syscall.EOPNOTSUPP, "fields %#x of completions cannot be had", uint64(fields&^can))
	}
	if entries < 1 {
		return s, fail(syscall.EINVAL, "cqe %d is below 1", entries)
	}
	last := b.profile.CompletionVectors - 1
	switch {
	case (vector < 0 || vector > last) && !b.breaks(cqCompVectorRejected):
		return s, fail(syscall.EINVAL, "comp_vector %d is not from 0 to %d", vector, last)
	case vector == last && b.breaks(cqCompVectorAccepted):
		return s, fail(syscall.EINVAL, "comp_vector %d is broken", vector)
	}
	if f := above("cqe", int64(entries), b.attr.Limits.MaxCQE); f != nil {
		return s, f
	}
	n := reported(b.profile.Rounding.CQEntries, uint32(entries), b.attr.Limits.MaxCQE)
	s.created, s.real = int(n.created), int(n.real)
	if b.breaks(contract) {
		s.created = less(entries, 1)
	}
	return s, nil
}

// timestamp returns when something completes, by the clock of the device, of nanoseconds.
func (b *behaviour) timestamp() uint64 {
	return uint64(time.Now().UnixNano()) & b.profile.Extended.TimestampMask
}

// moderates decides whether a CQ can be moderated.
func (b *behaviour) moderates(m verbs.Moderation) *failure {
	most := b.profile.CQModeration
	if most == (Moderation{}) {
		return fail(syscall.EOPNOTSUPP, "the device does not moderate CQs")
	}
	return first(above("cq_count", int64(m.Count), int(most.Count)), above("cq_period", int64(m.Period), int(most.Period)))
}

// resize decides over the resizing of a CQ in which some completions are waiting, and
// returns how many entries it gets.
func (b *behaviour) resize(entries, waiting int) (s sizes[int], f *failure) {
	if entries < 1 {
		return s, fail(syscall.EINVAL, "cqe %d is below 1", entries)
	}
	if f := above("cqe", int64(entries), b.attr.Limits.MaxCQE); f != nil {
		return s, f
	}
	if entries < waiting && !b.breaks(cqResizeTooSmallRefused) {
		return s, fail(syscall.EINVAL, "cqe %d is below the %d completions in the CQ", entries, waiting)
	}
	n := reported(b.profile.Rounding.CQEntries, uint32(entries), b.attr.Limits.MaxCQE)
	s.created, s.real = int(n.created), max(int(n.real), waiting)
	if entries < waiting {
		s.created = entries
	}
	if b.breaks(cqResizeAtLeastRequested) {
		s.created = less(entries, 1)
	}
	return s, nil
}

// sizes are what is said of an object's sizes and what they are.
type sizes[T any] struct {
	created, queried, real T
}

// srq decides over the creation of an SRQ and returns its sizes. Its limit is
// that of the queue, not of the request: creation ignores it.
func (b *behaviour) srq(asked verbs.SRQAttr) (s sizes[verbs.SRQAttr], f *failure) {
	l, r := b.attr.Limits, b.profile.Rounding
	if asked.MaxWR == 0 && l.MaxSRQ > 0 {
		return s, fail(syscall.EINVAL, "max_wr is 0")
	}
	if l.MaxSRQ > 0 {
		f = first(above("max_wr", int64(asked.MaxWR), l.MaxSRQWR), above("max_sge", int64(asked.MaxSGE), l.MaxSRQSGE))
		if f != nil {
			return s, f
		}
	}
	if b.breaks(srqLimitIgnored) && asked.Limit > asked.MaxWR {
		return s, fail(syscall.EINVAL, "srq_limit %d is above max_wr %d", asked.Limit, asked.MaxWR)
	}
	wr := reported(r.SRQWR, asked.MaxWR, l.MaxSRQWR)
	sge := reported(r.SRQSGE, asked.MaxSGE, l.MaxSRQSGE)
	b.misreport(&wr, asked.MaxWR, srqAtLeastRequested, srqReportsActual)
	s.created = verbs.SRQAttr{MaxWR: wr.created, MaxSGE: sge.created}
	s.queried = verbs.SRQAttr{MaxWR: wr.queried, MaxSGE: sge.queried}
	s.real = verbs.SRQAttr{MaxWR: wr.real, MaxSGE: sge.real}
	return s, nil
}

// reachesLimit decides whether an SRQ with so many work requests left raises the event of
// its limit, and returns the limit afterwards: 0 if it is not armed any more.
func (b *behaviour) reachesLimit(limit uint32, left int) (bool, uint32) {
	below := limit
	if b.breaks(srqLimitEvent) && limit > 0 {
		below--
	}
	switch {
	case left >= int(below):
		return false, limit
	case b.breaks(srqLimitDisarmed):
		return true, limit
	default:
		return true, 0
	}
}

// reported rounds a size, for creation and for queries.
func reported(r ReportedRule, asked uint32, limit int) sizes[uint32] {
	s := sizes[uint32]{
		created: uint32(fit(r.Created, int(asked), limit)),
		queried: uint32(fit(r.Queried, int(asked), limit)),
	}
	s.real = max(s.created, s.queried)
	if len(r.Usable) > 0 {
		s.real = uint32(fit(r.Usable, int(asked), limit))
	}
	return s
}

// misreport has a size reported wrongly, if the device breaks a contract about
// it. The real size stays, and whether creation and queries say the same does
// not depend on how much they say.
func (b *behaviour) misreport(s *sizes[uint32], asked uint32, atLeastRequested, reportsActual string) {
	if asked == 0 {
		return
	}
	same := s.queried == s.created
	if b.breaks(atLeastRequested) {
		s.created = asked - 1
		if same {
			s.queried = s.created
		}
	}
	if b.breaks(reportsActual) && same {
		s.queried = max(asked, s.created) + 1
	}
}

// qpTypes returns the types of QP that the device may have. A type of one driver
// alone is unknown to all devices but those that have it.
func (b *behaviour) qpTypes() []verbs.QPType {
	types := verbs.QPTypes()
	for _, t := range b.types {
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	slices.Sort(types)
	return types
}

// qpType decides whether a QP of a type can be had, with an SRQ or without.
func (b *behaviour) qpType(t verbs.QPType, withSRQ bool) *failure {
	// The kernel asks for the permission before it asks the driver.
	if t == verbs.RawPacket && b.profile.RawPacketNeedsPermission {
		return fail(syscall.EPERM, "a simulated device never permits raw packets")
	}
	if !slices.Contains(b.types, t) {
		return fail(syscall.EOPNOTSUPP, "the device has no %s queue pairs", t)
	}
	if withSRQ && t != verbs.RC && t != verbs.UD && !b.breaks(qpSRQTypeRestricted) {
		return fail(syscall.EINVAL, "a %s queue pair cannot have an SRQ", t)
	}
	return nil
}

// qpCap decides over the sizes of a QP. Those of the receive queue do not matter
// with an SRQ.
func (b *behaviour) qpCap(asked verbs.QPCap, withSRQ bool) (s sizes[verbs.QPCap], f *failure) {
	l, r := b.attr.Limits, b.profile.Rounding
	if withSRQ && !b.breaks(qpRecvCapsIgnoredWithSRQ) {
		asked.MaxRecvWR, asked.MaxRecvSGE = 0, 0
	}
	f = first(
		above("max_send_wr", int64(asked.MaxSendWR), l.MaxQPWR), above("max_recv_wr", int64(asked.MaxRecvWR), l.MaxQPWR),
		above("max_send_sge", int64(asked.MaxSendSGE), l.MaxSGE), above("max_recv_sge", int64(asked.MaxRecvSGE), l.MaxSGE),
		above("max_inline_data", int64(asked.MaxInlineData), b.profile.MaxInlineData),
	)
	if f != nil {
		return s, f
	}
	if withSRQ {
		asked.MaxRecvWR, asked.MaxRecvSGE = 0, 0
	}
	if r.QPInlineSharesSGE {
		const sgeSize = 16 // struct ibv_sge
		room := max(int(asked.MaxSendSGE)*sgeSize, int(asked.MaxInlineData))
		asked.MaxSendSGE = max(asked.MaxSendSGE, uint32(min(room/sgeSize, l.MaxSGE)))
		asked.MaxInlineData = max(asked.MaxInlineData, uint32(min(room, b.profile.MaxInlineData)))
	}
	recvWRRule, recvSGERule := r.recv()
	if withSRQ { // there is no receive queue
		recvWRRule, recvSGERule = ReportedRule{}, ReportedRule{}
	}
	sendWR, recvWR := reported(r.QPWR, asked.MaxSendWR, l.MaxQPWR), reported(recvWRRule, asked.MaxRecvWR, l.MaxQPWR)
	sendSGE, recvSGE := reported(r.QPSGE, asked.MaxSendSGE, l.MaxSGE), reported(recvSGERule, asked.MaxRecvSGE, l.MaxSGE)
	inline := reported(r.QPInline, asked.MaxInlineData, b.profile.MaxInlineData)
	b.misreport(&sendWR, asked.MaxSendWR, qpAtLeastRequested, qpReportsActual)
	b.misreport(&recvWR, asked.MaxRecvWR, qpAtLeastRequested, qpReportsActual)
	s.created = verbs.QPCap{
		MaxSendWR: sendWR.created, MaxRecvWR: recvWR.created,
		MaxSendSGE: sendSGE.created, MaxRecvSGE: recvSGE.created, MaxInlineData: inline.created,
	}
	s.queried = verbs.QPCap{
		MaxSendWR: sendWR.queried, MaxRecvWR: recvWR.queried,
		MaxSendSGE: sendSGE.queried, MaxRecvSGE: recvSGE.queried, MaxInlineData: inline.queried,
	}
	s.real = verbs.QPCap{
		MaxSendWR: sendWR.real, MaxRecvWR: recvWR.real,
		MaxSendSGE: sendSGE.real, MaxRecvSGE: recvSGE.real, MaxInlineData: inline.real,
	}
	return s, nil
}

// signals decides whether a send leaves a completion.
func (b *behaviour) signals(signalAll bool, flags verbs.SendFlags, status verbs.WCStatus) bool {
	return signalAll || flags&verbs.SendSignaled != 0 || status != verbs.WCSuccess || b.breaks(qpSQSigAll)
}

// request is what a program asked to be notified of.
type request int

const (
	forNothing request = iota
	forSolicited
	forAny
)

// arming is how a CQ is armed.
type arming struct {
	now   request
	spent request // raised the last event, if nothing was asked for since
	ever  bool    // whether it was armed at any time
}

// arms returns the arming after ibv_req_notify_cq. Asking for less does not take
// back that any completion was asked for.
func (b *behaviour) arms(a arming, solicitedOnly bool) arming {
	asked := forAny
	if solicitedOnly {
		asked = max(a.now, forSolicited)
	}
	return arming{now: asked, ever: true}
}

// notifies decides whether a new completion raises an event, and returns the
// arming afterwards.
func (b *behaviour) notifies(a arming, solicited bool, status verbs.WCStatus) (bool, arming) {
	switch {
	case b.concerns(a.now, solicited, status):
		return true, arming{spent: a.now, ever: true}
	case b.breaks(notifyOneShot) && b.concerns(a.spent, solicited, status),
		b.breaks(notifyRequiresArming) && !a.ever:
		return true, a
	}
	return false, a
}

// concerns decides whether a completion is among those that were asked for.
func (b *behaviour) concerns(r request, solicited bool, status verbs.WCStatus) bool {
	failed := status != verbs.WCSuccess
	switch {
	case r == forNothing:
		return false
	case r == forAny:
		return failed || solicited || !b.breaks(notifyAny)
	case failed:
		return !b.breaks(notifySolicitedDeliversErrors)
	case solicited:
		return !b.breaks(notifySolicitedDeliversSolicited)
	default:
		return b.breaks(notifySolicitedSkipsUnsolicited)
	}
}

// event returns what an event of a CQ says, and the channel that it goes to,
// which may be nil. The channels are those that there are, oldest first.
func (b *behaviour) event(c *cq, channels []*channel) (*channel, verbs.CQEvent) {
	to, says := c.channel, verbs.CQEvent{CQ: c, Context: c.context}
	if to != nil && b.breaks(channelSteering) {
		hasCQ := func(o *channel) bool { return o.users[kindCQ] > 0 }
		if other := newestOther(channels, to, hasCQ); other != nil {
			to = other
		}
	}
	if b.breaks(notifyIdentifiesCQ) {
		says.Context = ^says.Context
	}
	return to, says
}

// newestOther returns the newest channel of the same opening of the device as
// the given one, but not that one, which suits; nil if there is none.
func newestOther(channels []*channel, than *channel, suits func(*channel) bool) *channel {
	for _, c := range slices.Backward(channels) {
		if c != than && c.dev == than.dev && suits(c) {
			return c
		}
	}
	return nil
}

// partition decides whether ports with these keys talk: they are members of one
// partition, and one at least is a full one.
func partition(a, b verbs.PKey) bool {
	const number = 1<<15 - 1
	return a&number == b&number && a&number != 0 && (a.IsFull() || b.IsFull())
}

// pkey returns the partition key that a QP uses.
func (b *behaviour) pkey(q *qp) verbs.PKey {
	p, _ := b.port(q.attr.Port)
	return p.pkey(int(q.attr.PKeyIndex))
}

// address checks where packets are to go.
func (b *behaviour) address(a verbs.AHAttr) *failure {
	p, ok := b.port(a.Port)
	if !ok {
		return fail(syscall.EINVAL, "there is no port %d", a.Port)
	}
	if a.SGIDIndex < 0 || a.SGIDIndex > math.MaxUint8 {
		return fail(syscall.EINVAL, "the GID index %d does not fit a byte", a.SGIDIndex)
	}
	if b.transport == verbs.TransportIWARP {
		return nil // TCP carries it; the address is not used
	}
	if (p.attr.LinkLayer == verbs.LinkEthernet || p.attr.GRHRequired) && !a.Global {
		return fail(syscall.EINVAL, "port %d needs a global address", a.Port)
	}
	if _, ok := p.gids[a.SGIDIndex]; a.Global && !ok {
		return fail(syscall.EINVAL, "port %d has no GID with index %d", a.Port, a.SGIDIndex)
	}
	return nil
}

// reaches reports whether packets from a port arrive at a port of this device.
func (b *behaviour) reaches(a verbs.AHAttr) bool {
	from, ok := b.port(a.Port)
	if !ok || !from.active() {
		return false
	}
	if b.transport == verbs.TransportIWARP {
		return true
	}
	for _, p := range b.ports {
		if !p.active() || p.attr.LinkLayer != from.attr.LinkLayer {
			continue
		}
		if p.attr.LinkLayer == verbs.LinkInfiniBand && a.DLID != 0 {
			if a.DLID == p.attr.LID {
				return true
			}
			continue
		}
		for _, gid := range p.gids {
			if a.Global && gid == a.DGID {
				return true
			}
		}
	}
	return false
}

// multicast decides whether a QP can be attached to a group.
func (b *behaviour) multicast(t verbs.QPType, g group) *failure {
	if b.attr.Limits.MaxMcastGroup == 0 {
		return fail(syscall.EOPNOTSUPP, "max_mcast_grp is 0")
	}
	if t != verbs.UD {
		return fail(syscall.EINVAL, "only UD queue pairs can be attached, not %s", t)
	}
	if !isMulticast(g.gid) {
		return fail(syscall.EINVAL, "%s is not a multicast GID", g.gid)
	}
	const lowestMLID, highestMLID = 0xc000, 0xfffe
	for _, p := range b.ports {
		if p.attr.LinkLayer == verbs.LinkInfiniBand && (g.lid < lowestMLID || g.lid > highestMLID) {
			return fail(syscall.EINVAL, "%#x is not a multicast LID", g.lid)
		}
	}
	return nil
}

// delivers returns at which members of a group a message arrives.
func (b *behaviour) delivers(members []*qp) []*qp {
	if b.breaks(multicastDelivers) {
		return members[:1]
	}
	return members
}

func isMulticast(gid verbs.GID) bool { return gid[0] == 0xff }

// group is a multicast group.
type group struct {
	gid verbs.GID
	lid uint16
}

// String names the group in messages.
func (g group) String() string { return fmt.Sprintf("%s (LID %#x)", g.gid, g.lid) }
