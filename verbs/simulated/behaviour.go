package simulated

import (
	"cmp"
	"encoding/hex"
	"math"
	"math/bits"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"rdma_exporter/verbs"
)

// behaviour decides how one device behaves. Objects keep the state. It is immutable.
type behaviour struct {
	profile   DeviceProfile
	attr      verbs.DeviceAttr
	transport verbs.Transport
	ports     []verbs.PortAttr
	gids      []verbs.GIDEntry
	types     []verbs.QPType
}

// newBehaviour requires a valid profile.
func newBehaviour(p DeviceProfile) behaviour {
	b := behaviour{
		profile: p,
		attr: verbs.DeviceAttr{
			Firmware: p.Firmware, VendorID: p.VendorID, VendorPartID: p.VendorPartID, HWVersion: p.HWVersion,
			Ports: len(p.Ports), Limits: p.Limits,
		},
		transport: value(p.Transport, verbs.TransportIB, verbs.TransportUnspecified),
	}
	_, _ = hex.Decode(b.attr.NodeGUID[:], []byte(strings.ReplaceAll(p.NodeGUID, ":", "")))
	for _, t := range p.QPTypes {
		b.types = append(b.types, value(t, verbs.RC, verbs.SRD))
	}
	for _, port := range p.Ports {
		b.ports = append(b.ports, verbs.PortAttr{
			State:     value(port.State, verbs.PortNop, verbs.PortActiveDefer),
			LinkLayer: value(port.LinkLayer, verbs.LinkUnspecified, verbs.LinkEthernet),
			LID:       port.LID, ActiveMTU: port.ActiveMTU, PKeys: max(1, port.PKeys, len(port.PKeyTable)), GRHRequired: port.GRHRequired,
		})
		for _, g := range port.GIDs {
			b.gids = append(b.gids, verbs.GIDEntry{
				Port: port.Number, Index: g.Index, GID: netip.MustParseAddr(g.GID).As16(),
				Type: value(g.Type, verbs.GIDTypeIB, verbs.GIDTypeRoCEv2),
			})
		}
	}
	return b
}

func (b *behaviour) breaks(contract string) bool { return slices.Contains(b.profile.Violate, contract) }

func (b *behaviour) port(number int) (verbs.PortAttr, bool) {
	if number < 1 || number > len(b.ports) {
		return verbs.PortAttr{}, false
	}
	return b.ports[number-1], true
}

// pkey returns an entry of the partition key table of a port. Zero means unused.
func (b *behaviour) pkey(port, index int) verbs.PKey {
	if _, ok := b.port(port); !ok {
		return 0
	}
	switch table := b.profile.Ports[port-1].PKeyTable; {
	case index < len(table):
		return verbs.PKey(table[index])
	case index == 0:
		return 0xffff
	}
	return 0
}

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

func (b *behaviour) cost(k kind, entries int) verbs.Memory {
	m := b.profile.Memory
	c := [kinds]Cost{kindChannel: m.CompChannel, kindCQ: m.CQ, kindSRQ: m.SRQ, kindQP: m.QP}[k]
	n := uint64(max(0, entries))
	return verbs.Memory{Virtual: c.Virtual + n*c.VirtualPerEntry, Locked: c.Locked + n*c.LockedPerEntry}
}

func (b *behaviour) admits(k kind, live int) *failure {
	l := b.attr.Limits
	limit := [kinds]struct {
		name string
		n    int
	}{
		kindPD: {"max_pd", l.MaxPD}, kindMR: {"max_mr", l.MaxMR}, kindAH: {"max_ah", l.MaxAH},
		kindCQ: {"max_cq", l.MaxCQ}, kindSRQ: {"max_srq", l.MaxSRQ}, kindQP: {"max_qp", l.MaxQP},
	}[k]
	switch {
	case limit.name == "":
		return nil
	case limit.n == 0:
		return fail(syscall.EOPNOTSUPP, "%s is 0", limit.name)
	case live >= limit.n:
		return fail(syscall.ENOMEM, "there are %d already, and %s is %d", live, limit.name, limit.n)
	}
	return nil
}

func (b *behaviour) refusesDestroy(o *object) *failure {
	switch {
	case o.kind == kindCQ && b.breaks("cq_destroy_busy"),
		o.kind == kindChannel && b.breaks("channel_destroy_busy"),
		o.kind == kindSRQ && b.breaks("srq_destroy_busy"):
		return nil // only objects of the contract use it
	}
	for k, n := range o.users {
		if n > 0 {
			return fail(syscall.EBUSY, "the %s is in use (%s: %d)", o.kind, kind(k), n)
		}
	}
	return nil
}

func above(what string, requested int64, limit int) *failure {
	if requested <= int64(limit) {
		return nil
	}
	return fail(syscall.EINVAL, "%s %d is above %d", what, requested, limit)
}

// cq decides over the creation of a CQ. It returns the entries that creation reports, and
// how many there are.
func (b *behaviour) cq(entries, vector int, fields verbs.WCFields) (reported, room int, f *failure) {
	can, contract := verbs.WCStandard, "cq_at_least_requested"
	if b.profile.Extended.TimestampMask != 0 {
		can |= verbs.WCTimestamp
	}
	if fields != 0 {
		contract = "cq_ex_at_least_requested"
	}
	if fields&^can != 0 {
		return 0, 0, fail(syscall.EOPNOTSUPP, "fields %#x of completions are not available", uint64(fields&^can))
	}
	last := b.profile.CompletionVectors - 1
	switch {
	case (vector < 0 || vector > last) && !b.breaks("cq_comp_vector_rejected"):
		return 0, 0, fail(syscall.EINVAL, "comp_vector %d is not from 0 to %d", vector, last)
	case vector == last && b.breaks("cq_comp_vector_accepted"):
		return 0, 0, fail(syscall.EINVAL, "comp_vector %d is broken", vector)
	}
	return b.entries(entries, 0, contract)
}

// entries rounds the entries of a CQ that holds some completions.
func (b *behaviour) entries(entries, waiting int, contract string) (reported, room int, f *failure) {
	if entries < 1 {
		return 0, 0, fail(syscall.EINVAL, "cqe %d is below 1", entries)
	}
	if f := above("cqe", int64(entries), b.attr.Limits.MaxCQE); f != nil {
		return 0, 0, f
	}
	room = int(b.round(uint32(entries), b.attr.Limits.MaxCQE))
	switch {
	case b.breaks(contract):
		return entries - 1, max(room, waiting), nil
	case entries < waiting:
		return entries, waiting, nil
	}
	return room, room, nil
}

// srq decides over the creation of an SRQ and returns its sizes. Creation ignores the limit
// of the request.
func (b *behaviour) srq(requested verbs.SRQAttr) (s sizes[verbs.SRQAttr], f *failure) {
	l := b.attr.Limits
	if l.MaxSRQ > 0 { // else there are no SRQs, which admits reports
		if requested.MaxWR == 0 {
			return s, fail(syscall.EINVAL, "max_wr is 0")
		}
		f = cmp.Or(above("max_wr", int64(requested.MaxWR), l.MaxSRQWR), above("max_sge", int64(requested.MaxSGE), l.MaxSRQSGE))
		if f != nil {
			return s, f
		}
	}
	if b.breaks("srq_limit_ignored") && requested.Limit > requested.MaxWR {
		return s, fail(syscall.EINVAL, "srq_limit %d is above max_wr %d", requested.Limit, requested.MaxWR)
	}
	s = sizes[verbs.SRQAttr]{real: verbs.SRQAttr{MaxWR: b.round(requested.MaxWR, l.MaxSRQWR), MaxSGE: requested.MaxSGE}}
	s.created, s.queried = s.real, s.real
	b.misreport(&s.created.MaxWR, &s.queried.MaxWR, requested.MaxWR, "srq")
	return s, nil
}

func (b *behaviour) qpType(t verbs.QPType, withSRQ bool) *failure {
	// The kernel asks for the permission before it asks the driver.
	if t == verbs.RawPacket && b.profile.RawPacketNeedsPermission {
		return fail(syscall.EPERM, "a simulated device never permits raw packets")
	}
	if !slices.Contains(b.types, t) {
		return fail(syscall.EOPNOTSUPP, "the device has no %s queue pairs", t)
	}
	if withSRQ && t != verbs.RC && t != verbs.UD && !b.breaks("qp_srq_type_restricted") {
		return fail(syscall.EINVAL, "a %s queue pair cannot have an SRQ", t)
	}
	return nil
}

// qpCap decides over the sizes of a QP. With an SRQ there is no receive queue.
func (b *behaviour) qpCap(c verbs.QPCap, withSRQ bool) (s sizes[verbs.QPCap], f *failure) {
	l, inline := b.attr.Limits, b.profile.MaxInlineData
	if withSRQ && !b.breaks("qp_recv_caps_ignored_with_srq") {
		c.MaxRecvWR, c.MaxRecvSGE = 0, 0
	}
	f = cmp.Or(
		above("max_send_wr", int64(c.MaxSendWR), l.MaxQPWR), above("max_recv_wr", int64(c.MaxRecvWR), l.MaxQPWR),
		above("max_send_sge", int64(c.MaxSendSGE), l.MaxSGE), above("max_recv_sge", int64(c.MaxRecvSGE), l.MaxSGE),
		above("max_inline_data", int64(c.MaxInlineData), inline),
	)
	if f != nil {
		return s, f
	}
	if withSRQ {
		c.MaxRecvWR, c.MaxRecvSGE = 0, 0
	}
	s.real = c
	s.real.MaxSendWR, s.real.MaxRecvWR = b.round(c.MaxSendWR, l.MaxQPWR), b.round(c.MaxRecvWR, l.MaxQPWR)
	switch b.profile.Rounding {
	case "rxe": // send elements and inline data fill the larger of both
		const sgeSize = 16 // struct ibv_sge
		space := max(int(c.MaxSendSGE)*sgeSize, int(c.MaxInlineData))
		s.real.MaxSendSGE = max(c.MaxSendSGE, uint32(min(space/sgeSize, l.MaxSGE)))
		s.real.MaxInlineData = max(c.MaxInlineData, uint32(min(space, inline)))
	case "ib": // the queues of QPs are not less one
		powerOfTwo := func(n uint32, limit int) uint32 { return min(1<<bits.Len32(n-1), max(n, uint32(limit))) }
		s.real.MaxSendWR, s.real.MaxRecvWR = powerOfTwo(c.MaxSendWR, l.MaxQPWR), powerOfTwo(c.MaxRecvWR, l.MaxQPWR)
		s.real.MaxInlineData = min((c.MaxInlineData+15)/16*16, uint32(inline))
	}
	s.created, s.queried = s.real, s.real
	b.misreport(&s.created.MaxSendWR, &s.queried.MaxSendWR, c.MaxSendWR, "qp")
	b.misreport(&s.created.MaxRecvWR, &s.queried.MaxRecvWR, c.MaxRecvWR, "qp")
	return s, nil
}

// sizes are what creation and queries report about an object's sizes, and what they are.
type sizes[T any] struct{ created, queried, real T }

// round rounds a requested size of a queue up to the limit at most. Zero stays zero.
func (b *behaviour) round(requested uint32, limit int) uint32 {
	if b.profile.Rounding == "exact" {
		return requested
	}
	return min(1<<bits.Len32(requested)-1, max(requested, uint32(limit)))
}

// misreport makes the reports about the work requests of an SRQ or a QP those of the device.
// The creation by Soft-RoCE reports what was requested.
func (b *behaviour) misreport(created, queried *uint32, requested uint32, object string) {
	if requested == 0 {
		return
	}
	same := b.profile.Rounding != "rxe"
	if !same {
		*created = requested
	}
	if b.breaks(object + "_at_least_requested") {
		*created = requested - 1
		if same {
			*queried = *created
		}
	}
	if b.breaks(object+"_reports_actual") && same {
		*queried = max(requested, *created) + 1
	}
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

// notifies decides whether a new completion raises an event. It returns the arming
// afterwards.
func (b *behaviour) notifies(a arming, solicited bool, status verbs.WCStatus) (bool, arming) {
	switch {
	case b.concerns(a.now, solicited, status):
		return true, arming{spent: a.now, ever: true}
	case b.breaks("notify_one_shot") && b.concerns(a.spent, solicited, status),
		b.breaks("notify_requires_arming") && !a.ever:
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
		return failed || solicited || !b.breaks("notify_any")
	case failed:
		return !b.breaks("notify_solicited_delivers_errors")
	case solicited:
		return !b.breaks("notify_solicited_delivers_solicited")
	default:
		return b.breaks("notify_solicited_skips_unsolicited")
	}
}

// event returns an event of a CQ, and the channel that receives it, which may be nil. The
// channels are sorted by age, the oldest first.
func (b *behaviour) event(c *cq, channels []*channel) (*channel, pendingEvent) {
	to, e := c.channel, pendingEvent{from: c, says: verbs.CQEvent{CQ: c, Context: c.context}}
	if to != nil && b.breaks("channel_steering") {
		to = cmp.Or(newestOther(channels, to, func(o *channel) bool { return o.users[kindCQ] > 0 }), to)
	}
	if b.breaks("notify_identifies_cq") {
		e.says.Context = ^c.context
	}
	return to, e
}

// partition reports whether two QPs use keys of one partition, and at least one of them is a
// full member.
func (b *behaviour) partition(q, peer *qp) bool {
	const number = 1<<15 - 1
	one, other := b.pkey(q.attr.Port, int(q.attr.PKeyIndex)), b.pkey(peer.attr.Port, int(peer.attr.PKeyIndex))
	return one&number == other&number && one&number != 0 && (one.IsFull() || other.IsFull())
}

func (b *behaviour) address(a verbs.AHAttr) *failure {
	p, ok := b.port(a.Port)
	at := func(g verbs.GIDEntry) bool { return g.Port == a.Port && g.Index == a.SGIDIndex }
	switch {
	case !ok:
		return fail(syscall.EINVAL, "there is no port %d", a.Port)
	case a.SGIDIndex < 0 || a.SGIDIndex > math.MaxUint8:
		return fail(syscall.EINVAL, "the GID index %d does not fit a byte", a.SGIDIndex)
	case b.transport == verbs.TransportIWARP: // TCP carries it; the address is not used
	case !a.Global && (p.LinkLayer == verbs.LinkEthernet || p.GRHRequired):
		return fail(syscall.EINVAL, "port %d needs a global address", a.Port)
	case a.Global && !slices.ContainsFunc(b.gids, at):
		return fail(syscall.EINVAL, "port %d has no GID with index %d", a.Port, a.SGIDIndex)
	}
	return nil
}

func (b *behaviour) reaches(a verbs.AHAttr) bool {
	from, ok := b.port(a.Port)
	if !ok || from.State != verbs.PortActive || b.transport == verbs.TransportIWARP {
		return from.State == verbs.PortActive
	}
	for i, p := range b.ports {
		named := func(g verbs.GIDEntry) bool { return g.Port == i+1 && g.GID == a.DGID }
		byLID := p.LinkLayer == verbs.LinkInfiniBand && a.DLID != 0
		if p.State == verbs.PortActive && p.LinkLayer == from.LinkLayer &&
			(byLID && a.DLID == p.LID || !byLID && a.Global && slices.ContainsFunc(b.gids, named)) {
			return true
		}
	}
	return false
}
