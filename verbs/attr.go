package verbs

import (
	"fmt"
	"net/netip"
)

// DeviceAttr are the attributes of a device (struct ibv_device_attr).
type DeviceAttr struct {
	Firmware     string
	NodeGUID     GUID
	VendorID     uint32
	VendorPartID uint32
	HWVersion    uint32
	Ports        int
	Limits       Limits
}

// ExtendedAttr are further attributes of a device (struct ibv_device_attr_ex). The zero value
// of each says that the device has no such thing, or does not tell. Their keys in YAML are the
// names there.
type ExtendedAttr struct {
	// TimestampMask is the largest timestamp of a completion, after which they start again at 0.
	TimestampMask uint64 `yaml:"completion_timestamp_mask"`
	// CoreClock is how fast the clock of the timestamps runs, in kHz.
	CoreClock uint64 `yaml:"hca_core_clock"`
	// MaxDMSize is how much memory of its own the device can give, in bytes.
	MaxDMSize uint64 `yaml:"max_dm_size"`
	// RawPacketCaps are what raw packet QPs can do.
	RawPacketCaps uint32 `yaml:"raw_packet_caps"`
}

// Limits are the largest sizes and counts that a device reports. Their keys in YAML, for
// profiles of simulated devices, are the names in struct ibv_device_attr.
type Limits struct {
	MaxQP           int    `yaml:"max_qp" in:"1-2147483647"`
	MaxQPWR         int    `yaml:"max_qp_wr" in:"1-2147483647"`
	MaxSGE          int    `yaml:"max_sge" in:"1-2147483647"`
	MaxCQ           int    `yaml:"max_cq" in:"1-2147483647"`
	MaxCQE          int    `yaml:"max_cqe" in:"1-2147483647"`
	MaxSRQ          int    `yaml:"max_srq"`
	MaxSRQWR        int    `yaml:"max_srq_wr"`
	MaxSRQSGE       int    `yaml:"max_srq_sge"`
	MaxMR           int    `yaml:"max_mr" in:"1-2147483647"`
	MaxMRSize       uint64 `yaml:"max_mr_size"`
	MaxPD           int    `yaml:"max_pd" in:"1-2147483647"`
	MaxMW           int    `yaml:"max_mw"`
	MaxAH           int    `yaml:"max_ah"`
	MaxMcastGroup   int    `yaml:"max_mcast_grp"`
	MaxMcastQP      int    `yaml:"max_mcast_qp_attach"`
	MaxQPRdAtom     int    `yaml:"max_qp_rd_atom"`
	MaxQPInitRdAtom int    `yaml:"max_qp_init_rd_atom"`
	MaxPKeys        int    `yaml:"max_pkeys"`
}

// GUID is a 64-bit globally unique identifier, most significant byte first.
type GUID [8]byte

// String formats a GUID as sysfs does: 5254:00ff:fe12:3456.
func (g GUID) String() string {
	return fmt.Sprintf("%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7])
}

// GID is a 128-bit port identifier, in network byte order.
type GID [16]byte

// String formats a GID as an IPv6 address.
func (g GID) String() string { return netip.AddrFrom16(g).String() }

// GIDEntry is one used entry of a port's GID table (struct ibv_gid_entry).
type GIDEntry struct {
	Port  int
	Index int
	GID   GID
	Type  GIDType
}

// GIDType is the kind of network that a GID belongs to.
type GIDType int

// The types of a GID, as enum ibv_gid_type numbers them.
const (
	GIDTypeIB GIDType = iota
	GIDTypeRoCEv1
	GIDTypeRoCEv2
)

// String returns the name that sysfs gives the type.
func (t GIDType) String() string {
	return name(int(t), "IB", "RoCE v1", "RoCE v2")
}

// PKey is a partition key: what partition a port is in, and how.
type PKey uint16

// IsFull reports whether the port is a full member of a partition. One that is a
// limited member reaches full members only, and so not itself.
func (k PKey) IsFull() bool {
	const full = 1 << 15
	return k&full != 0 && k != full
}

// String formats a key as sysfs does: 0xffff.
func (k PKey) String() string { return fmt.Sprintf("0x%04x", uint16(k)) }

// PortAttr are the attributes of a port (struct ibv_port_attr).
type PortAttr struct {
	State     PortState
	LinkLayer LinkLayer
	LID       uint16
	ActiveMTU int // bytes
	PKeys     int // the length of the partition key table
	// GRHRequired is true if each packet of the port needs a global route header
	// (IBV_QPF_GRH_REQUIRED).
	GRHRequired bool
}

// PortState is the logical state of a port.
type PortState int

// The states of a port, as enum ibv_port_state numbers them.
const (
	PortNop PortState = iota
	PortDown
	PortInit
	PortArmed
	PortActive
	PortActiveDefer
)

// String returns the name that sysfs gives the state, in lower case.
func (s PortState) String() string {
	return name(int(s), "nop", "down", "init", "armed", "active", "active_defer")
}

// LinkLayer is what carries a port's packets.
type LinkLayer int

// The link layers, as verbs.h numbers them.
const (
	LinkUnspecified LinkLayer = iota
	LinkInfiniBand
	LinkEthernet
)

// String returns the name that sysfs gives the link layer.
func (l LinkLayer) String() string {
	return name(int(l), "unspecified", "InfiniBand", "Ethernet")
}

// Transport is what a device speaks.
type Transport int

// The transports. Unlike in enum ibv_transport_type, the zero value is the
// unknown one.
const (
	TransportUnknown Transport = iota
	TransportIB
	TransportIWARP
	TransportUSNIC
	TransportUSNICUDP
	TransportUnspecified
)

// String returns the name that ibv_devinfo gives the transport.
func (t Transport) String() string {
	return name(int(t), "unknown", "InfiniBand", "iWARP", "usNIC", "usNIC UDP", "unspecified")
}

// Access are the permissions of a memory region or QP (enum ibv_access_flags).
type Access uint32

// The permissions, as enum ibv_access_flags numbers them.
const (
	// AccessLocalWrite lets the device write what is received or read.
	AccessLocalWrite Access = 1 << 0
	// AccessRemoteWrite and AccessRemoteRead are those of a connected peer.
	AccessRemoteWrite Access = 1 << 1
	AccessRemoteRead  Access = 1 << 2
	// AccessRelaxedOrdering lets the bus reorder writes. A device that cannot ignores it.
	AccessRelaxedOrdering Access = 1 << 20
)

// AHAttr says which address handle to create (struct ibv_ah_attr), and, in a
// QPAttr, where the peer of a connected QP is.
type AHAttr struct {
	Port int
	// DLID is the destination on InfiniBand.
	DLID uint16
	// Global adds a global route header, which RoCE always needs.
	Global bool
	// FlowLabel is 20 bits of that header. Some drivers derive the UDP source port from it.
	FlowLabel uint32
	DGID      GID
	SGIDIndex int
	HopLimit  uint8
}

func name(i int, names ...string) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("unknown_%d", i)
	}
	return names[i]
}
