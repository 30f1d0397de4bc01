// Package path is common to both ends of a path between two nodes: the packets, the requests
// over HTTP, the queue pairs, and who asks whom.
package path

import "encoding/binary"

const (
	// PacketSize is the length of a small packet in bytes. Large ones are padded.
	PacketSize = 64
	// grh is the room for a global route header in front of each received datagram.
	grh = 40

	magic   = 0x52504154
	version = 1
)

// The types of packet.
const (
	TypeRequest = 1
	TypeReply   = 2
)

// Packet is the beginning of each datagram, in network byte order.
type Packet struct {
	Type, Flow uint8
	// Session is the id of the session, which only its two ends know.
	Session uint64
	// Sequence counts the packets of a session from 0.
	Sequence uint32
	// Sent is when the request was sent, in nanoseconds on the clock of the prober.
	Sent uint64
}

// Put writes the packet to b, which has PacketSize bytes or more.
func (p Packet) Put(b []byte) {
	binary.BigEndian.PutUint32(b, magic)
	b[4], b[5], b[6], b[7] = version, p.Type, p.Flow, 0
	binary.BigEndian.PutUint64(b[8:], p.Session)
	binary.BigEndian.PutUint32(b[16:], p.Sequence)
	binary.BigEndian.PutUint64(b[20:], p.Sent)
}

// Parse reads a packet, and reports whether b is one.
func Parse(b []byte) (p Packet, ok bool) {
	if len(b) < PacketSize || binary.BigEndian.Uint32(b) != magic || b[4] != version {
		return p, false
	}
	p = Packet{
		Type: b[5], Flow: b[6], Session: binary.BigEndian.Uint64(b[8:]),
		Sequence: binary.BigEndian.Uint32(b[16:]), Sent: binary.BigEndian.Uint64(b[20:]),
	}
	return p, p.Type == TypeRequest || p.Type == TypeReply
}
