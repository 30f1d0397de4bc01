// Package path is common to both ends of a path between two nodes: the packets, the requests
// over HTTP, the queue pairs, and who asks whom.
package path

import "encoding/binary"

const (
	// PacketSize is the length of a small packet in bytes. Large ones are padded.
	PacketSize = 64
	// grh is the room for a global route header in front of each received datagram.
	grh = 40
)

// The types of packet.
const (
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

const begin = "RPAT\x01"

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
