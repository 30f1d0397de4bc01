// Package path is common to both ends of a path between two nodes: the packets, the requests
// over HTTP, the queue pairs, and who asks whom.
package path

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// What packets have in common.
const (
	// PacketSize is the length of a small packet in bytes. Large ones are padded.
	PacketSize = 64
	begin      = "RPAT\x01"
	// grh is the room for a global route header in front of each received datagram.
	grh = 40
	// TypeRequest and TypeReply are the types of packet.
	TypeRequest = 1
	TypeReply   = 2
)

// Packet is the beginning of each datagram, in network byte order.
type Packet struct {
	// Begin is the same in all packets of a version.
	Begin         [5]byte
	Type, Flow, _ uint8
	// Session is the id of the session, which only its two ends know.
	Session uint64
	// Sequence counts the packets of a session from 0.
	Sequence uint32
	// Sent is when the request was sent, in nanoseconds on the clock of the prober.
	Sent uint64
}

// Put writes the packet to b, which has PacketSize bytes or more.
func (p Packet) Put(b []byte) {
	copy(p.Begin[:], begin)
	_, _ = binary.Encode(b, binary.BigEndian, p) // There is room.
}

// Parse reads a packet, and reports whether b is one.
func Parse(b []byte) (p Packet, ok bool) {
	_, err := binary.Decode(b, binary.BigEndian, &p)
	ok = err == nil && len(b) >= PacketSize && string(p.Begin[:]) == begin
	return p, ok && (p.Type == TypeRequest || p.Type == TypeReply)
}

// The paths of the API.
const (
	DevicesPath  = "/api/v1/path/devices"
	SessionsPath = "/api/v1/path/sessions"
)

// Limits of sessions and of requests.
const (
	// MaxFlows limits the queue pairs of a session.
	MaxFlows = 8
	// MaxPackets limits the packets of a session, and those of all sessions of a client in a lease.
	MaxPackets = 36
	// MaxLife limits how long a session lasts.
	MaxLife = 10 * time.Second
	// Lease limits how long a responder lasts.
	Lease = time.Minute
	// Reserve is the end of a session in which a prober sends nothing more.
	Reserve = 2 * time.Second
	// MaxBody limits a request and an answer, in bytes.
	MaxBody = 1 << 20

	maxAddresses = 256
	// The first queue pairs of a port are those of its management.
	minQPN, maxQPN = 2, 1<<24 - 2 // the last is for multicast
	minMTU, maxMTU = 256, 4096
	maxLID         = 0xbfff // those above are of multicast groups
)

// Device is a device of a peer that answers.
type Device struct {
	Name  string       `json:"name"`
	Rail  string       `json:"rail,omitempty"`
	ToR   string       `json:"tor,omitempty"`
	Ports []state.Port `json:"ports,omitempty"`
	GIDs  []state.GID  `json:"gids,omitempty"`
	// Reached is true if it lately answered another client than the one that asks.
	Reached bool `json:"reached"`
}

// Address is an address of a port: on InfiniBand a LID, or a GID with its type as verbs names it.
type Address struct {
	GID  string `json:"gid,omitempty"`
	Type string `json:"type,omitempty"`
	LID  uint16 `json:"lid,omitempty"`
}

// AddressOf returns the address by which a route leads to its port.
func AddressOf(r session.Route) Address {
	if !r.AH.Global {
		return Address{LID: r.AH.DLID}
	}
	return Address{GID: r.AH.DGID.String(), Type: r.Type.String()}
}

// suits reports whether an address is that of one port, on the same kind of network as another.
func (a Address) suits(b Address) bool {
	ipA, errA := netip.ParseAddr(a.GID)
	ipB, errB := netip.ParseAddr(b.GID)
	if errA != nil || errB != nil {
		return a.LID != 0 && a.LID <= maxLID && b.LID != 0
	}
	if one := ipA.Unmap(); !one.IsGlobalUnicast() && !one.IsLinkLocalUnicast() {
		return false // multicast or broadcast
	}
	return a.Type == b.Type && ipA.Is4In6() == ipB.Is4In6() && ipA.IsLinkLocalUnicast() == ipB.IsLinkLocalUnicast()
}

// Match returns the address of the first route that suits one of the addresses of another port, and how
// to reach that one. Both ends of a session find the same ones.
func Match(routes []session.Route, others []Address) (own Address, to verbs.AHAttr, err error) {
	for _, a := range others {
		for _, r := range routes {
			if own = AddressOf(r); a.suits(own) {
				to, to.DLID = r.AH, a.LID
				if ip, err := netip.ParseAddr(a.GID); err == nil {
					to.DGID = ip.As16()
				}
				return own, to, nil
			}
		}
	}
	return own, to, Refuse(http.StatusConflict, "no GID or LID of the port is on the same kind of network as one of the peer")
}

// Session is the request for a session: packets that the peer will answer.
type Session struct {
	Device string `json:"device"`
	// Addresses are those of the prober's port, the best first.
	Addresses []Address `json:"addresses"`
	// QPNs are the prober's queue pairs, one for each flow, or one for all.
	QPNs []uint32 `json:"qpns"`
	QKey uint32   `json:"qkey"`
	// Packets is the number of packets, and Life how long the session is to last, in seconds.
	Packets int `json:"packets"`
	Life    int `json:"life_seconds"`
	// MTU is that of the prober's port, in bytes.
	MTU int `json:"mtu_bytes"`
	// RC is the prober's queue pair for a message on a reliable connection. Zero means none.
	RC uint32 `json:"rc_qpn,omitempty"`
}

// Validate returns an error that says what is wrong with the request.
func (s *Session) Validate() error {
	switch {
	case s.Device == "":
		return errors.New("device is missing")
	case len(s.Addresses) == 0 || len(s.Addresses) > maxAddresses:
		return fmt.Errorf("%d addresses: use 1 to %d", len(s.Addresses), maxAddresses)
	case len(s.QPNs) == 0 || len(s.QPNs) > MaxFlows || slices.Min(s.QPNs) < minQPN || slices.Max(s.QPNs) > maxQPN || s.RC > maxQPN:
		return fmt.Errorf("qpns: use 1 to %d numbers from %d, of up to 24 bits", MaxFlows, minQPN)
	case s.QKey > math.MaxInt32:
		return errors.New("qkey: its top bit must be clear")
	case s.MTU < minMTU || s.MTU > maxMTU || s.MTU&(s.MTU-1) != 0:
		return fmt.Errorf("mtu_bytes is %d: use a power of two from %d to %d", s.MTU, minMTU, maxMTU)
	case s.Packets < 1 || s.Packets > MaxPackets:
		return fmt.Errorf("%d packets: use 1 to %d", s.Packets, MaxPackets)
	case s.Life < 1 || s.Life > int(MaxLife.Seconds()):
		return fmt.Errorf("life_seconds is %d: use 1 to %d", s.Life, int(MaxLife.Seconds()))
	}
	return nil
}

// Opened is the answer to a request for a session.
type Opened struct {
	// ID begins with the session of the packets, in hexadecimal digits.
	ID string `json:"id"`
	// Address is where to send. It suits one of the prober's.
	Address Address `json:"address"`
	QPN     uint32  `json:"qpn"`
	QKey    uint32  `json:"qkey"`
	// MTU is the lower one of the two ports, in bytes.
	MTU int `json:"mtu_bytes"`
	// Expires is when the session ends, by the clock of the peer.
	Expires time.Time `json:"expires"`
	RC      uint32    `json:"rc_qpn,omitempty"`
}

// SessionOf returns the session of an ID. Zero belongs to none.
func SessionOf(id string) (session uint64) {
	_, _ = fmt.Sscanf(id, "%x", &session)
	return session
}

// Report is what the peer received in a session.
type Report struct {
	// Packets are by sequence number. Null means that the packet did not come.
	Packets []*Received `json:"packets"`
	// Late is true if packets came when the session was over. Late ones are not among Packets.
	Late bool `json:"late"`
	// PortActive is true if the port of the peer is active now.
	PortActive bool `json:"port_active"`
}

// Received is a packet that came. Turnaround is the time until the answer was sent, by one clock.
type Received struct {
	Flow       uint8         `json:"flow"`
	Answered   bool          `json:"answered"`
	Turnaround time.Duration `json:"turnaround_ns"`
	// At is when it came, by the clock of the responder.
	At uint64 `json:"-"`
}

// Error is the answer to a request that failed. Verb and Errno are empty if no verb did.
type Error struct {
	// Status is that of HTTP.
	Status  int    `json:"status"`
	Message string `json:"error"`
	Verb    string `json:"verb,omitempty"`
	Errno   string `json:"errno,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Refuse returns an answer.
func Refuse(status int, format string, args ...any) error {
	return &Error{Status: status, Message: fmt.Sprintf(format, args...)}
}

// ErrorOf returns the answer that err is, or else one with the verb and errno that it has.
func ErrorOf(err error) (e *Error) {
	if errors.As(err, &e) {
		return e
	}
	e = &Error{Status: http.StatusServiceUnavailable, Message: err.Error()}
	switch o := session.ObstacleOf(err); {
	case o == nil, o.Reason == state.SkipNotPermitted:
	case o.Reason == state.SkipNotSupported:
		e.Status = http.StatusNotImplemented // There are no UD queue pairs.
	default:
		e.Status = http.StatusConflict // The port is down, or has no address.
	}
	if failed := (*verbs.Error)(nil); errors.As(err, &failed) {
		e.Verb, e.Errno = string(failed.Verb), verbs.ErrnoName(failed.Errno)
	}
	return e
}
