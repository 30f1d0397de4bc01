package restrack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"syscall"
)

// Types and flags of netlink messages: <linux/netlink.h>.
const (
	messageNoop        = 1
	messageError       = 2
	messageDone        = 3
	messageOverrun     = 4
	flagDumpIntr       = 0x10
	messageHeader      = 16
	attributeHeader    = 4
	attributeTypeMask  = 0x3fff // without NLA_F_NESTED and NLA_F_NET_BYTEORDER
	netlinkAlign       = 4
	errnoMax           = 4095 // MAX_ERRNO: what is not above is an errno
	requestFlagRequest = 0x1
	requestFlagDump    = 0x300
)

// A message is one netlink message; data is part of the buffer it was read from.
type message struct {
	kind, flags   uint16
	sequence, pid uint32
	data          []byte
}

// nextMessage splits the first message off b, which must not be empty.
func nextMessage(b []byte) (m message, rest []byte, err error) {
	if len(b) < messageHeader {
		return message{}, nil, fmt.Errorf("%d bytes are no message", len(b))
	}
	length := binary.NativeEndian.Uint32(b)
	if length < messageHeader || uint64(length) > uint64(len(b)) {
		return message{}, nil, fmt.Errorf("its length is %d, but there are %d bytes", length, len(b))
	}
	m = message{
		kind:     binary.NativeEndian.Uint16(b[4:]),
		flags:    binary.NativeEndian.Uint16(b[6:]),
		sequence: binary.NativeEndian.Uint32(b[8:]),
		pid:      binary.NativeEndian.Uint32(b[12:]),
		data:     b[messageHeader:length],
	}
	return m, b[min(align(int(length)), len(b)):], nil
}

// result returns the errno that a message of the types messageError and
// messageDone begins with; 0 is success.
func result(data []byte) (syscall.Errno, error) {
	if len(data) < 4 {
		return 0, fmt.Errorf("its result has %d bytes, not 4", len(data))
	}
	value := int32(binary.NativeEndian.Uint32(data))
	if value > 0 || value < -errnoMax {
		return 0, fmt.Errorf("its result is %d", value)
	}
	return syscall.Errno(-value), nil
}

// An attribute is a netlink attribute; data is part of the message's.
type attribute struct {
	kind uint16
	data []byte
}

// nextAttribute splits the first attribute off b, which must not be empty.
func nextAttribute(b []byte) (a attribute, rest []byte, err error) {
	if len(b) < attributeHeader {
		return attribute{}, nil, fmt.Errorf("%d bytes are no attribute", len(b))
	}
	length := int(binary.NativeEndian.Uint16(b))
	a.kind = binary.NativeEndian.Uint16(b[2:]) & attributeTypeMask
	if length < attributeHeader || length > len(b) {
		return attribute{}, nil, fmt.Errorf("attribute %s: its length is %d, but there are %d bytes",
			attributeName(a.kind), length, len(b))
	}
	a.data = b[attributeHeader:length]
	return a, b[min(align(length), len(b)):], nil
}

// attributes goes through those that b consists of. What is none ends it, with an error.
func attributes(b []byte) iter.Seq2[attribute, error] {
	return func(yield func(attribute, error) bool) {
		for len(b) > 0 {
			a, rest, err := nextAttribute(b)
			if b = rest; !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// entries calls visit with each attribute of the kind entry in those of the kind list.
func entries(data []byte, list, entry uint16, visit func(data []byte) error) error {
	for of, err := range attributes(data) {
		if err != nil {
			return err
		}
		if of.kind != list {
			continue
		}
		for a, err := range attributes(of.data) {
			if err != nil {
				return of.in(err)
			}
			if a.kind != entry {
				continue
			}
			if err := visit(a.data); err != nil {
				return a.in(err)
			}
		}
	}
	return nil
}

// uint8 returns the value of an attribute of that type, and so do the others.
func (a attribute) uint8() (uint8, error) {
	if len(a.data) != 1 {
		return 0, a.sized(1)
	}
	return a.data[0], nil
}

func (a attribute) uint32() (uint32, error) {
	if len(a.data) != 4 {
		return 0, a.sized(4)
	}
	return binary.NativeEndian.Uint32(a.data), nil
}

func (a attribute) uint64() (uint64, error) {
	if len(a.data) != 8 {
		return 0, a.sized(8)
	}
	return binary.NativeEndian.Uint64(a.data), nil
}

// text returns the bytes of a string up to the first NUL.
func (a attribute) text() []byte {
	for i, c := range a.data {
		if c == 0 {
			return a.data[:i]
		}
	}
	return a.data
}

func (a attribute) sized(want int) error {
	return fmt.Errorf("attribute %s: %d bytes, not %d", attributeName(a.kind), len(a.data), want)
}

// in says which attribute an error within a nested one is from.
func (a attribute) in(err error) error {
	return fmt.Errorf("attribute %s: %w", attributeName(a.kind), err)
}

func align(length int) int { return (length + netlinkAlign - 1) &^ (netlinkAlign - 1) }

// appendUint32 appends an attribute to a request.
func appendUint32(b []byte, kind uint16, value uint32) []byte {
	b = binary.NativeEndian.AppendUint16(b, attributeHeader+4)
	b = binary.NativeEndian.AppendUint16(b, kind)
	return binary.NativeEndian.AppendUint32(b, value)
}

// appendUint8 appends an attribute to a request.
func appendUint8(b []byte, kind uint16, value uint8) []byte {
	b = binary.NativeEndian.AppendUint16(b, attributeHeader+1)
	b = binary.NativeEndian.AppendUint16(b, kind)
	return append(b, value, 0, 0, 0) // aligned
}

// appendText appends an attribute that is a string to a request.
func appendText(b []byte, kind uint16, value string) []byte {
	length := attributeHeader + len(value) + 1
	b = binary.NativeEndian.AppendUint16(b, uint16(length))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, 1+align(length)-length)...)
}

// A visitError marks what a visitor returned, which is no fault of the message.
type visitError struct{ err error }

func (e *visitError) Error() string { return e.err.Error() }

func (e *visitError) Unwrap() error { return e.err }

// blame makes err a MessageError, or returns it as it was if a visitor
// returned it.
func blame(command uint16, number int, err error) error {
	if err == nil {
		return nil
	}
	var visit *visitError
	if errors.As(err, &visit) {
		return visit.err
	}
	return &MessageError{Command: commandName(command), Message: number, Err: err}
}
