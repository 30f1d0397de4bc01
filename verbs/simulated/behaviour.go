package simulated

import (
	"math"
	"slices"
	"syscall"
	"time"

	"rdma_exporter/verbs"
)

// behaviour decides how one device behaves: what it permits, which sizes it gives, when it
// refuses, signals and notifies. Objects keep the state. It is immutable.
type behaviour struct {
	profile   DeviceProfile
	attr      verbs.DeviceAttr
	transport verbs.Transport
	ports     []port
	gids      []verbs.GIDEntry
	types     []verbs.QPType
	rounding  rounding
}

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

// newBehaviour requires a valid profile.
func newBehaviour(p DeviceProfile) *behaviour {
	guid, _ := parseGUID(p.NodeGUID)
	b := &behaviour{
		profile: p,
		attr: verbs.DeviceAttr{
			Firmware: p.Firmware, NodeGUID: guid,
			VendorID: p.VendorID, VendorPartID: p.VendorPartID, HWVersion: p.HWVersion,
			Ports: len(p.Ports), Limits: verbs.Limits(p.Limits),
		},
		transport: value(p.Transport, verbs.TransportIB, verbs.TransportUnspecified),
		rounding:  roundingOf(p.Rounding),
	}
	for _, t := range p.QPTypes {
		b.types = append(b.types, value(t, verbs.RC, verbs.SRD))
	}
	for _, pp := range p.Ports {
		made := port{gids: make(map[int]verbs.GID), attr: verbs.PortAttr{
			State:     value(pp.State, verbs.PortNop, verbs.PortActiveDefer),
			LinkLayer: value(pp.LinkLayer, verbs.LinkUnspecified, verbs.LinkEthernet),
			LID:       pp.LID, ActiveMTU: pp.ActiveMTU, PKeys: max(1, pp.PKeys, len(pp.PKeyTable)), GRHRequired: pp.GRHRequired,
		}}
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
func (b *behaviour) breaks(contract string) bool { return slices.Contains(b.profile.Violate, contract) }

// port returns a port by its number.
func (b *behaviour) port(number int) (port, bool) {
	if number < 1 || number > len(b.ports) {
		return port{}, false
	}
	return b.ports[number-1], true
}

// latency returns the minimum time of a verb.
func (b *behaviour) latency(v verbs.Verb) time.Duration {
	if d, ok := b.profile.Latency[v]; ok {
		return d
	}
	switch v {
	case verbs.PollCQ, verbs.ReqNotifyCQ, verbs.GetCQEvent, verbs.AckCQEvents, verbs.PostSend, verbs.PostRecv, verbs.PostSRQRecv:
		return 0
	}
	return b.profile.DefaultLatency
}

// cost returns what an object costs.
func (b *behaviour) cost(k kind, entries int) verbs.Memory {
	m := b.profile.Memory
	c := [kinds]Cost{kindChannel: m.CompChannel, kindCQ: m.CQ, kindSRQ: m.SRQ, kindQP: m.QP}[k]
	n := uint64(max(0, entries))
	return verbs.Memory{Virtual: c.Virtual + n*c.VirtualPerEntry, Locked: c.Locked + n*c.LockedPerEntry}
}

// admits decides whether one more object of a kind can be created.
func (b *behaviour) admits(k kind, live int) *failure {
	l := b.attr.Limits
	limit, limited := map[kind]struct {
		name string
		n    int
	}{
		kindPD: {"max_pd", l.MaxPD}, kindMR: {"max_mr", l.MaxMR}, kindAH: {"max_ah", l.MaxAH},
		kindCQ: {"max_cq", l.MaxCQ}, kindSRQ: {"max_srq", l.MaxSRQ}, kindQP: {"max_qp", l.MaxQP},
	}[k]
	switch {
	case limited && limit.n == 0:
		return fail(syscall.EOPNOTSUPP, "%s is 0", limit.name)
	case limited && live >= limit.n:
		return fail(syscall.ENOMEM, "there are %d already, and %s is %d", live, limit.name, limit.n)
	}
	return nil
}

// refusesDestroy decides whether an object cannot be destroyed.
func (b *behaviour) refusesDestroy(o *object) *failure {
	switch {
	case o.kind == kindCQ && b.breaks(cqDestroyBusy),
		o.kind == kindChannel && b.breaks(channelDestroyBusy),
		o.kind == kindSRQ && b.breaks(srqDestroyBusy):
		return nil // only objects of the contract use it
	}
	if users := o.usage(); users != "" {
		return fail(syscall.EBUSY, "the %s is in use (%s)", o.kind, users)
	}
	return nil
}

// above returns a failure if an attribute is above its limit.
func above(what string, requested int64, limit int) *failure {
	if requested <= int64(limit) {
		return nil
	}
	return fail(syscall.EINVAL, "%s %d is above %d", what, requested, limit)
}

// first returns the first failure that is not nil.
func first(failures ...*failure) *failure {
	for _, f := range failures {
		if f != nil {
			return f
		}
	}
	return nil
}

// cq decides over the creation of a CQ. It returns the entries that creation reports, and
// how many there are.
func (b *behaviour) cq(entries, vector int, fields verbs.WCFields) (reported, room int, f *failure) {
	can, contract := verbs.WCStandard, cqAtLeastRequested
	if b.profile.Extended.TimestampMask != 0 {
		can |= verbs.WCTimestamp
	}
	if fields != 0 {
		contract = cqExAtLeastRequested
	}
	if fields&^can != 0 {
		return 0, 0, fail(syscall.EOPNOTSUPP, "fields %#x of completions are not available", uint64(fields&^can))
	}
	last := b.profile.CompletionVectors - 1
	switch {
	case (vector < 0 || vector > last) && !b.breaks(cqCompVectorRejected):
		return 0, 0, fail(syscall.EINVAL, "comp_vector %d is not from 0 to %d", vector, last)
	case vector == last && b.breaks(cqCompVectorAccepted):
		return 0, 0, fail(syscall.EINVAL, "comp_vector %d is broken", vector)
	}
	return b.entries(entries, 0, contract)
}

// resize decides over the resizing of a CQ that holds some completions. It returns the same
// as cq.
func (b *behaviour) resize(entries, waiting int) (reported, room int, f *failure) {
	if entries >= 1 && entries < waiting && !b.breaks(cqResizeTooSmallRefused) {
		return 0, 0, fail(syscall.EINVAL, "cqe %d is below the %d completions in the CQ", entries, waiting)
	}
	return b.entries(entries, waiting, "")
}

// entries rounds the entries of a CQ that holds some completions.
func (b *behaviour) entries(entries, waiting int, contract string) (reported, room int, f *failure) {
	if entries < 1 {
		return 0, 0, fail(syscall.EINVAL, "cqe %d is below 1", entries)
	}
	if f := above("cqe", int64(entries), b.attr.Limits.MaxCQE); f != nil {
		return 0, 0, f
	}
	room = int(round(b.rounding.queue, uint32(entries), b.attr.Limits.MaxCQE, false).real)
	switch {
	case b.breaks(contract):
		return entries - 1, max(room, waiting), nil
	case entries < waiting:
		return entries, waiting, nil
	}
	return room, room, nil
}

// timestamp returns the time of a completion by the clock of the device, in nanoseconds.
func (b *behaviour) timestamp() uint64 {
	return uint64(time.Now().UnixNano()) & b.profile.Extended.TimestampMask
}

// srq decides over the creation of an SRQ and returns its sizes. Creation ignores the limit
// of the request.
func (b *behaviour) srq(requested verbs.SRQAttr) (s sizes[verbs.SRQAttr], f *failure) {
	l := b.attr.Limits
	if l.MaxSRQ > 0 { // else there are no SRQs, which admits reports
		if requested.MaxWR == 0 {
			return s, fail(syscall.EINVAL, "max_wr is 0")
		}
		f = first(above("max_wr", int64(requested.MaxWR), l.MaxSRQWR), above("max_sge", int64(requested.MaxSGE), l.MaxSRQSGE))
		if f != nil {
			return s, f
		}
	}
	if b.breaks(srqLimitIgnored) && requested.Limit > requested.MaxWR {
		return s, fail(syscall.EINVAL, "srq_limit %d is above max_wr %d", requested.Limit, requested.MaxWR)
	}
	wr := round(b.rounding.queue, requested.MaxWR, l.MaxSRQWR, b.rounding.queried)
	b.misreport(&wr, requested.MaxWR, srqAtLeastRequested, srqReportsActual)
	of := func(n uint32) verbs.SRQAttr { return verbs.SRQAttr{MaxWR: n, MaxSGE: requested.MaxSGE} }
	return sizes[verbs.SRQAttr]{created: of(wr.created), queried: of(wr.queried), real: of(wr.real)}, nil
}

// reachesLimit decides whether an SRQ with this many work requests left raises the event of
// its limit. It returns the limit afterwards, which is 0 once it is disarmed.
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

// qpTypes returns the types of QP that the device may have. A type of one driver is unknown
// to devices that do not list it.
func (b *behaviour) qpTypes() []verbs.QPType {
	types := append(verbs.QPTypes(), b.types...)
	slices.Sort(types)
	return slices.Compact(types)
}

// qpType decides whether a QP of a type can be created, with an SRQ or without.
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

// qpCap decides over the sizes of a QP. With an SRQ there is no receive queue.
func (b *behaviour) qpCap(c verbs.QPCap, withSRQ bool) (s sizes[verbs.QPCap], f *failure) {
	l, r := b.attr.Limits, b.rounding
	if withSRQ && !b.breaks(qpRecvCapsIgnoredWithSRQ) {
		c.MaxRecvWR, c.MaxRecvSGE = 0, 0
	}
	f = first(
		above("max_send_wr", int64(c.MaxSendWR), l.MaxQPWR), above("max_recv_wr", int64(c.MaxRecvWR), l.MaxQPWR),
		above("max_send_sge", int64(c.MaxSendSGE), l.MaxSGE), above("max_recv_sge", int64(c.MaxRecvSGE), l.MaxSGE),
		above("max_inline_data", int64(c.MaxInlineData), b.profile.MaxInlineData),
	)
	if f != nil {
		return s, f
	}
	if withSRQ {
		c.MaxRecvWR, c.MaxRecvSGE = 0, 0
	}
	if r.shared {
		const sgeSize = 16 // struct ibv_sge
		space := max(int(c.MaxSendSGE)*sgeSize, int(c.MaxInlineData))
		c.MaxSendSGE = max(c.MaxSendSGE, uint32(min(space/sgeSize, l.MaxSGE)))
		c.MaxInlineData = max(c.MaxInlineData, uint32(min(space, b.profile.MaxInlineData)))
	}
	sendWR := round(r.qpQueue, c.MaxSendWR, l.MaxQPWR, r.queried)
	recvWR := round(r.qpQueue, c.MaxRecvWR, l.MaxQPWR, r.queried)
	b.misreport(&sendWR, c.MaxSendWR, qpAtLeastRequested, qpReportsActual)
	b.misreport(&recvWR, c.MaxRecvWR, qpAtLeastRequested, qpReportsActual)
	return qpSizes(
		sendWR, recvWR, round(nil, c.MaxSendSGE, 0, false), round(nil, c.MaxRecvSGE, 0, false),
		round(r.inline, c.MaxInlineData, b.profile.MaxInlineData, false),
	), nil
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
	spent request // raised the last event, if the CQ was not armed since
	ever  bool
}

// arms returns the arming after ibv_req_notify_cq. A request for less does not weaken one
// for any completion.
func (b *behaviour) arms(a arming, solicitedOnly bool) arming {
	if solicitedOnly {
		return arming{now: max(a.now, forSolicited), ever: true}
	}
	return arming{now: forAny, ever: true}
}

// notifies decides whether a new completion raises an event. It returns the arming
// afterwards.
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

// concerns decides whether a completion is among those of a request.
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

// event returns what an event of a CQ says, and the channel that receives it, which may be
// nil. The channels are sorted by age, the oldest first.
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

// newestOther returns the newest other channel of the same device context that suits; nil
// if there is none.
func newestOther(channels []*channel, than *channel, suits func(*channel) bool) *channel {
	for _, c := range slices.Backward(channels) {
		if c != than && c.dev == than.dev && suits(c) {
			return c
		}
	}
	return nil
}

// partition reports whether ports with these keys can communicate: they are members of one
// partition, and at least one is a full member.
func partition(a, b verbs.PKey) bool {
	const number = 1<<15 - 1
	return a&number == b&number && a&number != 0 && (a.IsFull() || b.IsFull())
}

// pkey returns the partition key that a QP uses.
func (b *behaviour) pkey(q *qp) verbs.PKey {
	p, _ := b.port(q.attr.Port)
	return p.pkey(int(q.attr.PKeyIndex))
}

// address checks the destination of packets.
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

// reaches reports whether packets to an address arrive at a port of this device.
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
