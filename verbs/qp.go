package verbs

import "strings"

// QPType is the transport service of a queue pair.
type QPType int

// The types of a QP. The zero value is none.
const (
	RC QPType = iota + 1
	UC
	UD
	RawPacket
	// SRD, scalable reliable datagrams, is a type of efa's own: sends are addressed as
	// those of UD, and acknowledged.
	SRD
)

// QPTypes returns the types that any device may have, in order. Those of one driver
// alone are not among them: [Device].QPTypes tells.
func QPTypes() []QPType { return []QPType{RC, UC, UD, RawPacket} }

// String returns the type as rdma(8) writes it; SRD, which it calls DRIVER, has its
// own name.
func (t QPType) String() string {
	return name(int(t), "none", "RC", "UC", "UD", "RAW_PACKET", "SRD")
}

// IsDatagram reports whether each send names its destination, by an address handle.
func (t QPType) IsDatagram() bool { return t == UD || t == SRD }

// Label returns the type as a metric's label has it: rc, uc, ud, raw_packet, srd.
func (t QPType) Label() string { return strings.ToLower(t.String()) }

// QPState is the state of a queue pair.
type QPState int

// The states of a QP, as enum ibv_qp_state numbers them.
const (
	Reset QPState = iota
	Init
	RTR
	RTS
	SQD
	SQE
	Err
)

// String returns the state as rdma(8) writes it.
func (s QPState) String() string {
	return name(int(s), "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR")
}

// QPAttr are the attributes of a QP that Modify can change (struct ibv_qp_attr).
type QPAttr struct {
	State           QPState
	Access          Access
	PKeyIndex       uint16
	Port            int
	QKey            uint32
	PathMTU         int // bytes
	DestQPN         uint32
	RQPSN           uint32
	SQPSN           uint32
	MaxDestRdAtomic uint8
	MaxRdAtomic     uint8
	MinRNRTimer     uint8
	Timeout         uint8
	RetryCount      uint8
	RNRRetry        uint8
	AH              AHAttr
}

// QPAttrMask names the fields of a QPAttr that count.
type QPAttrMask uint32

// The fields, as enum ibv_qp_attr_mask numbers them.
const (
	MaskState           QPAttrMask = 1 << 0
	MaskAccess          QPAttrMask = 1 << 3
	MaskPKeyIndex       QPAttrMask = 1 << 4
	MaskPort            QPAttrMask = 1 << 5
	MaskQKey            QPAttrMask = 1 << 6
	MaskAV              QPAttrMask = 1 << 7
	MaskPathMTU         QPAttrMask = 1 << 8
	MaskTimeout         QPAttrMask = 1 << 9
	MaskRetryCount      QPAttrMask = 1 << 10
	MaskRNRRetry        QPAttrMask = 1 << 11
	MaskRQPSN           QPAttrMask = 1 << 12
	MaskMaxRdAtomic     QPAttrMask = 1 << 13
	MaskMinRNRTimer     QPAttrMask = 1 << 15
	MaskSQPSN           QPAttrMask = 1 << 16
	MaskMaxDestRdAtomic QPAttrMask = 1 << 17
	MaskDestQPN         QPAttrMask = 1 << 20
)

// Peer says whom a connected QP (RC, UC) talks to.
type Peer struct {
	AH      AHAttr
	QPN     uint32
	PathMTU int // bytes
}

// UDQKey is the queue key that ToInit gives a QP of datagrams: unprivileged (its top bit
// is clear) and otherwise without meaning.
const UDQKey = 0x11111111

// ToInit returns the modification RESET→INIT for a QP of the given type.
func ToInit(t QPType, port int, access Access) (QPAttr, QPAttrMask) {
	attr := QPAttr{State: Init, Port: port, Access: access, QKey: UDQKey}
	switch t {
	case RC, UC:
		return attr, MaskState | MaskPKeyIndex | MaskPort | MaskAccess
	case UD, SRD:
		return attr, MaskState | MaskPKeyIndex | MaskPort | MaskQKey
	default:
		return attr, MaskState | MaskPort
	}
}

// ToRTR returns the modification INIT→RTR. The peer matters to RC and UC only.
func ToRTR(t QPType, peer Peer) (QPAttr, QPAttrMask) {
	attr := QPAttr{
		State: RTR, AH: peer.AH, DestQPN: peer.QPN, PathMTU: peer.PathMTU,
		MaxDestRdAtomic: 1, MinRNRTimer: 12,
	}
	switch t {
	case RC:
		return attr, MaskState | MaskAV | MaskPathMTU | MaskDestQPN | MaskRQPSN | MaskMaxDestRdAtomic | MaskMinRNRTimer
	case UC:
		return attr, MaskState | MaskAV | MaskPathMTU | MaskDestQPN | MaskRQPSN
	default:
		return attr, MaskState
	}
}

// ToRTS returns the modification RTR→RTS. The timeouts and retries of RC are
// bounded: a lost peer is reported within seconds. A retry count of 7 would be a
// number by the specification, but Soft-RoCE takes it for infinite.
func ToRTS(t QPType) (QPAttr, QPAttrMask) {
	attr := QPAttr{State: RTS, Timeout: 14, RetryCount: 6, RNRRetry: 6, MaxRdAtomic: 1}
	switch t {
	case RC:
		return attr, MaskState | MaskTimeout | MaskRetryCount | MaskRNRRetry | MaskSQPSN | MaskMaxRdAtomic
	case UC, UD, SRD:
		return attr, MaskState | MaskSQPSN
	default:
		return attr, MaskState
	}
}

// ToError returns the modification to ERR, allowed from every state but RESET.
func ToError() (QPAttr, QPAttrMask) { return QPAttr{State: Err}, MaskState }

// ToReset returns the modification to RESET, allowed from every state.
func ToReset() (QPAttr, QPAttrMask) { return QPAttr{State: Reset}, MaskState }
