package links

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/state"
)

// ErrMalformed is matched by the errors of messages that cannot be what they should be.
var ErrMalformed = errors.New("malformed message")

// Decode decodes a message of rtnetlink. It is not ok for a message that is of no network
// device or only concerns a bridge's port. An error matches [ErrMalformed].
func Decode(m syscall.NetlinkMessage) (event state.LinkEvent, ok bool, err error) {
	if m.Header.Type != unix.RTM_NEWLINK && m.Header.Type != unix.RTM_DELLINK {
		return state.LinkEvent{}, false, nil
	}
	if len(m.Data) < unix.SizeofIfInfomsg {
		return state.LinkEvent{}, false, fmt.Errorf("%w: a link of %d bytes", ErrMalformed, len(m.Data))
	}
	// A bridge tells the same listeners of its ports, by the same types of messages: one
	// that leaves the bridge is not gone (br_ifinfo_notify of net/bridge/br_netlink.c).
	if m.Data[0] != unix.AF_UNSPEC {
		return state.LinkEvent{}, false, nil
	}
	index := int32(binary.NativeEndian.Uint32(m.Data[4:]))
	if index <= 0 {
		return state.LinkEvent{}, false, fmt.Errorf("%w: a link of number %d", ErrMalformed, index)
	}
	event = state.LinkEvent{
		Ifindex: int(index),
		Removed: m.Header.Type == unix.RTM_DELLINK,
		Up:      up(binary.NativeEndian.Uint32(m.Data[8:])),
	}
	var ups, downs bool
	for b := m.Data[unix.SizeofIfInfomsg:]; len(b) > 0; {
		if len(b) < unix.SizeofRtAttr {
			return state.LinkEvent{}, false, fmt.Errorf("%w: %d bytes are no attribute", ErrMalformed, len(b))
		}
		length := int(binary.NativeEndian.Uint16(b))
		kind := binary.NativeEndian.Uint16(b[2:]) & attributeTypeMask
		if length < unix.SizeofRtAttr || length > len(b) {
			return state.LinkEvent{}, false, fmt.Errorf("%w: attribute %d: its length is %d, but there are %d bytes",
				ErrMalformed, kind, length, len(b))
		}
		data := b[unix.SizeofRtAttr:length]
		b = b[min((length+3)&^3, len(b)):]
		switch kind {
		case unix.IFLA_IFNAME:
			name, _, _ := bytes.Cut(data, []byte{0})
			event.Name = string(name)
		case unix.IFLA_CARRIER_UP_COUNT:
			event.CarrierUps, ups, err = count(kind, data)
		case unix.IFLA_CARRIER_DOWN_COUNT:
			event.CarrierDowns, downs, err = count(kind, data)
		}
		if err != nil {
			return state.LinkEvent{}, false, err
		}
	}
	if event.Name == "" || len(event.Name) >= unix.IFNAMSIZ {
		return state.LinkEvent{}, false, fmt.Errorf("%w: link %d has a name of %d bytes", ErrMalformed, index, len(event.Name))
	}
	event.HasCounts = ups && downs
	if event.Removed || !event.HasCounts {
		event.CarrierUps, event.CarrierDowns = 0, 0
	}
	if event.Removed {
		event.Up, event.HasCounts = false, false
	}
	return event, true, nil
}

// attributeTypeMask leaves of an attribute's type what is not a flag: NLA_TYPE_MASK.
const attributeTypeMask = 0x3fff

// up reports whether a device with these flags has a carrier and is running.
func up(flags uint32) bool { return flags&unix.IFF_UP != 0 && flags&unix.IFF_LOWER_UP != 0 }

func count(kind uint16, data []byte) (value uint64, ok bool, err error) {
	if len(data) != 4 {
		return 0, false, fmt.Errorf("%w: attribute %d: %d bytes, not 4", ErrMalformed, kind, len(data))
	}
	return uint64(binary.NativeEndian.Uint32(data)), true, nil
}
