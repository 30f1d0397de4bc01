package ethtool

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/state"
)

// The numbers of <linux/ethtool_netlink.h>, <linux/genetlink.h> and <linux/dcbnl.h> that
// golang.org/x/sys/unix does not have. They are the kernel's interface and never change.
const (
	commandPause      = 21
	commandPauseReply = 22
	commandFEC        = 29
	commandFECReply   = 30
	commandStats      = 32
	commandStatsReply = 33

	attrRequestHeader = 1 // of PAUSE_GET and FEC_GET
	attrHeaderName    = 2
	attrHeaderFlags   = 3
	flagStats         = 1 << 2

	attrPauseStats = 5
	attrPauseTx    = 2
	attrPauseRx    = 3

	attrFECStats         = 5
	attrFECCorrected     = 2
	attrFECUncorrectable = 3

	attrStatsHeader = 2
	attrStatsGroups = 3
	attrStatsGroup  = 4
	attrGroupID     = 2
	attrGroupStat   = 4
	attrBitsetSize  = 2
	attrBitsetValue = 4
	attrBitsetMask  = 5
	groupPHY        = 0
	statSymbolError = 0

	commandIEEEGet = 21
	attrDCBName    = 1
	attrIEEE       = 13
	attrIEEEPFC    = 2

	genericVersion = 1
	headerSize     = 4 // of struct genlmsghdr, and of struct dcbmsg
	priorities     = 8
	pfcRequests    = 8                             // offsetof(struct ieee_pfc, requests)
	pfcIndications = pfcRequests + 8*priorities    // offsetof(struct ieee_pfc, indications)
	pfcSize        = pfcIndications + 8*priorities // sizeof(struct ieee_pfc)
)

// notSet is ETHTOOL_STAT_NOT_SET: the driver does not count that.
const notSet = math.MaxUint64

// attribute makes one.
func attribute(kind uint16, data ...byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofNlAttr+len(data)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, data...)
	return append(b, make([]byte, -len(b)&3)...)
}

func number(kind uint16, value uint32) []byte {
	return attribute(kind, binary.NativeEndian.AppendUint32(nil, value)...)
}

func text(kind uint16, value string) []byte { return attribute(kind, append([]byte(value), 0)...) }

func nested(kind uint16, parts ...[]byte) []byte {
	var data []byte
	for _, part := range parts {
		data = append(data, part...)
	}
	return attribute(unix.NLA_F_NESTED|kind, data...)
}

// generic makes a request of generic netlink.
func generic(family uint16, command byte, attributes ...[]byte) netlink.Message {
	data := []byte{command, genericVersion, 0, 0}
	for _, a := range attributes {
		data = append(data, a...)
	}
	return netlink.Message{Header: netlink.Header{Type: netlink.HeaderType(family), Flags: netlink.Request}, Data: data}
}

func familyRequest() netlink.Message {
	return generic(unix.GENL_ID_CTRL, unix.CTRL_CMD_GETFAMILY, text(unix.CTRL_ATTR_FAMILY_NAME, "ethtool"))
}

func pauseRequest(family uint16, netdev string) netlink.Message {
	return generic(family, commandPause, header(attrRequestHeader, netdev, flagStats))
}

func fecRequest(family uint16, netdev string) netlink.Message {
	return generic(family, commandFEC, header(attrRequestHeader, netdev, flagStats))
}

// statsRequest asks for the group eth-phy alone, as a set of one bit.
func statsRequest(family uint16, netdev string) netlink.Message {
	bits := number(attrBitsetValue, 1<<groupPHY)
	return generic(family, commandStats, header(attrStatsHeader, netdev, 0),
		nested(attrStatsGroups, number(attrBitsetSize, 1), bits, number(attrBitsetMask, 1<<groupPHY)))
}

// header is the part of a request that says of which device, and what more is wanted.
func header(kind uint16, netdev string, flags uint32) []byte {
	return nested(kind, text(attrHeaderName, netdev), number(attrHeaderFlags, flags))
}

func pfcRequest(_ uint16, netdev string) netlink.Message {
	data := append([]byte{unix.AF_UNSPEC, commandIEEEGet, 0, 0}, text(attrDCBName, netdev)...)
	return netlink.Message{Header: netlink.Header{Type: unix.RTM_GETDCB, Flags: netlink.Request}, Data: data}
}

// attributes calls visit with each attribute of a message behind its header, which begins
// with these bytes.
func attributes(m netlink.Message, begin []byte, visit func(*netlink.AttributeDecoder)) error {
	if len(m.Data) < headerSize || string(m.Data[:len(begin)]) != string(begin) {
		return fmt.Errorf("%w: it begins with %x, not %x", ErrMalformed, m.Data[:min(headerSize, len(m.Data))], begin)
	}
	ad, err := netlink.NewAttributeDecoder(m.Data[headerSize:])
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	for ad.Next() {
		visit(ad)
	}
	if err := ad.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// each visits the attributes within one.
func each(ad *netlink.AttributeDecoder, visit func(*netlink.AttributeDecoder)) {
	ad.Nested(func(inner *netlink.AttributeDecoder) error {
		for inner.Next() {
			visit(inner)
		}
		return nil // its error is the decoder's
	})
}

func decodeFamily(m netlink.Message) (number uint16, err error) {
	err = attributes(m, []byte{unix.CTRL_CMD_NEWFAMILY}, func(ad *netlink.AttributeDecoder) {
		if ad.Type() == unix.CTRL_ATTR_FAMILY_ID {
			number = ad.Uint16()
		}
	})
	if err != nil {
		return 0, err
	}
	if number < unix.NLMSG_MIN_TYPE {
		return 0, fmt.Errorf("%w: the family %d", ErrMalformed, number)
	}
	return number, nil
}

// counter appends a counter that the driver has.
func counter(counters []state.Counter, name string, value uint64) []state.Counter {
	if value == notSet {
		return counters
	}
	return append(counters, state.Counter{Group: state.GroupEthtool, Name: name, Value: value})
}

func decodePause(m netlink.Message) (counters []state.Counter, err error) {
	tx, rx := uint64(notSet), uint64(notSet)
	err = attributes(m, []byte{commandPauseReply}, func(ad *netlink.AttributeDecoder) {
		if ad.Type() != attrPauseStats {
			return
		}
		each(ad, func(ad *netlink.AttributeDecoder) {
			switch ad.Type() {
			case attrPauseTx:
				tx = ad.Uint64()
			case attrPauseRx:
				rx = ad.Uint64()
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return counter(counter(nil, "tx_pause_frames", tx), "rx_pause_frames", rx), nil
}

// decodeFEC takes the first of each list of numbers, which is the sum of the lanes that
// follow (fec_stats_recalc of net/ethtool/fec.c). The list is empty if the driver does not
// count that.
func decodeFEC(m netlink.Message) (counters []state.Counter, err error) {
	corrected, uncorrectable := uint64(notSet), uint64(notSet)
	err = attributes(m, []byte{commandFECReply}, func(ad *netlink.AttributeDecoder) {
		if ad.Type() != attrFECStats {
			return
		}
		first := func(value *uint64) func([]byte) error {
			return func(b []byte) error {
				if len(b)%8 != 0 {
					return fmt.Errorf("%d bytes are no list of counters", len(b))
				}
				if len(b) > 0 {
					*value = binary.NativeEndian.Uint64(b)
				}
				return nil
			}
		}
		each(ad, func(ad *netlink.AttributeDecoder) {
			switch ad.Type() {
			case attrFECCorrected:
				ad.Do(first(&corrected))
			case attrFECUncorrectable:
				ad.Do(first(&uncorrectable))
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return counter(counter(nil, "fec_corrected_blocks", corrected), "fec_uncorrectable_blocks", uncorrectable), nil
}

func decodeStats(m netlink.Message) (counters []state.Counter, err error) {
	value := uint64(notSet)
	err = attributes(m, []byte{commandStatsReply}, func(ad *netlink.AttributeDecoder) {
		if ad.Type() != attrStatsGroup {
			return
		}
		group, found := uint32(math.MaxUint32), uint64(notSet)
		each(ad, func(ad *netlink.AttributeDecoder) {
			switch ad.Type() {
			case attrGroupID:
				group = ad.Uint32()
			case attrGroupStat:
				each(ad, func(ad *netlink.AttributeDecoder) {
					if ad.Type() == statSymbolError {
						found = ad.Uint64()
					}
				})
			}
		})
		if group == groupPHY {
			value = found
		}
	})
	if err != nil {
		return nil, err
	}
	return counter(nil, "symbol_errors_during_carrier", value), nil
}

func decodePFC(m netlink.Message) (counters []state.Counter, err error) {
	err = attributes(m, []byte{unix.AF_UNSPEC, commandIEEEGet}, func(ad *netlink.AttributeDecoder) {
		if ad.Type() != attrIEEE {
			return
		}
		each(ad, func(ad *netlink.AttributeDecoder) {
			if ad.Type() != attrIEEEPFC {
				return
			}
			ad.Do(func(b []byte) error {
				if len(b) < pfcSize {
					return fmt.Errorf("%d bytes, fewer than the %d of a struct ieee_pfc", len(b), pfcSize)
				}
				counters = nil
				for i := range priorities {
					requests := binary.NativeEndian.Uint64(b[pfcRequests+8*i:])
					indications := binary.NativeEndian.Uint64(b[pfcIndications+8*i:])
					if requests == 0 && indications == 0 {
						continue
					}
					counters = counter(counters, fmt.Sprintf("pfc_requests_prio%d", i), requests)
					counters = counter(counters, fmt.Sprintf("pfc_indications_prio%d", i), indications)
				}
				return nil
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return counters, nil
}
