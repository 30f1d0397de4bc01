package ethtool

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/state"
)

// The numbers of <linux/ethtool_netlink.h>, <linux/genetlink.h> and <linux/dcbnl.h> that
// golang.org/x/sys/unix does not have. They are the kernel's interface and never change.
const (
	commandLink       = 6 // LINKSTATE_GET, and its reply
	commandPause      = 21
	commandPauseReply = 22
	commandFEC        = 29
	commandFECReply   = 30
	commandStats      = 32
	commandStatsReply = 33

	attrRequestHeader = 1 // of LINKSTATE_GET, PAUSE_GET and FEC_GET
	attrHeaderName    = 2
	attrHeaderFlags   = 3
	flagStats         = 1 << 2

	attrLinkExtState    = 5
	attrLinkExtSubstate = 6
	attrLinkDownCount   = 7

	attrPauseStats = 5
	attrPauseTx    = 2
	attrPauseRx    = 3
	attrPauseStorm = 4 // tx_pause_storm_events, in Linux from 7.0

	attrFECStats         = 5
	attrFECCorrected     = 2
	attrFECUncorrectable = 3
	attrFECCorrectedBits = 4
	attrFECBin           = 5 // from here on in Linux from 6.18; repeated
	attrBinLow           = 2
	attrBinHigh          = 3
	attrBinValue         = 4

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
	pfcEnabled     = 1                             // offsetof(struct ieee_pfc, pfc_en)
	pfcRequests    = 8                             // offsetof(struct ieee_pfc, requests)
	pfcIndications = pfcRequests + 8*priorities    // offsetof(struct ieee_pfc, indications)
	pfcSize        = pfcIndications + 8*priorities // sizeof(struct ieee_pfc)
)

// notSet is ETHTOOL_STAT_NOT_SET: the driver does not count that.
const notSet = math.MaxUint64

// A question asks for counters of a network device.
type question struct {
	name   string
	family int
	// request and reply are how the messages begin: their command, and a version or family.
	request [2]byte
	reply   []byte
	ask     func(e *netlink.AttributeEncoder, netdev string)
	// read calls add with the counters in an attribute of the reply.
	read func(ad *netlink.AttributeDecoder, add func(name string, value uint64))
}

func questions() []question {
	return []question{
		{"LINKSTATE_GET", unix.NETLINK_GENERIC, [2]byte{commandLink, genericVersion}, []byte{commandLink}, askWithStats, readLink},
		{"PAUSE_GET", unix.NETLINK_GENERIC, [2]byte{commandPause, genericVersion}, []byte{commandPauseReply}, askWithStats, readPause},
		{"FEC_GET", unix.NETLINK_GENERIC, [2]byte{commandFEC, genericVersion}, []byte{commandFECReply}, askWithStats, readFEC},
		{"STATS_GET", unix.NETLINK_GENERIC, [2]byte{commandStats, genericVersion}, []byte{commandStatsReply}, askPHY, readPHY},
		{
			"DCB_CMD_IEEE_GET", unix.NETLINK_ROUTE,
			[2]byte{unix.AF_UNSPEC, commandIEEEGet},
			[]byte{unix.AF_UNSPEC, commandIEEEGet},
			func(e *netlink.AttributeEncoder, netdev string) { e.String(attrDCBName, netdev) }, readPFC,
		},
	}
}

// header adds the part of a request that names the device and what is wanted.
func header(e *netlink.AttributeEncoder, kind uint16, netdev string, flags uint32) {
	e.Nested(kind, func(e *netlink.AttributeEncoder) error {
		e.String(attrHeaderName, netdev)
		e.Uint32(attrHeaderFlags, flags)
		return nil
	})
}

func askWithStats(e *netlink.AttributeEncoder, netdev string) {
	header(e, attrRequestHeader, netdev, flagStats)
}

// askPHY asks for the group eth-phy alone, as a set of one bit.
func askPHY(e *netlink.AttributeEncoder, netdev string) {
	header(e, attrStatsHeader, netdev, 0)
	e.Nested(attrStatsGroups, func(e *netlink.AttributeEncoder) error {
		e.Uint32(attrBitsetSize, 1)
		e.Uint32(attrBitsetValue, 1<<groupPHY)
		e.Uint32(attrBitsetMask, 1<<groupPHY)
		return nil
	})
}

// decode returns the counters in a reply.
func (q question) decode(m netlink.Message) (counters []state.Counter, err error) {
	err = attributes(m, q.reply, func(ad *netlink.AttributeDecoder) {
		q.read(ad, func(name string, value uint64) {
			known := slices.ContainsFunc(counters, func(c state.Counter) bool { return c.Name == name })
			if value != notSet && !known {
				counters = append(counters, state.Counter{Group: state.GroupEthtool, Name: name, Value: value})
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return counters, nil
}

// attributes calls visit with each attribute of a message after its header, which begins with
// these bytes.
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

// within visits the attributes within one of a kind.
func within(ad *netlink.AttributeDecoder, kind uint16, visit func(*netlink.AttributeDecoder)) {
	if ad.Type() != kind {
		return
	}
	ad.Nested(func(inner *netlink.AttributeDecoder) error {
		for inner.Next() {
			visit(inner)
		}
		return nil // Nested returns the error of inner.
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

// readLink reads why a link is down as if those were counters, too: the numbers are of enum
// ethtool_link_ext_state and of the enum for each of its values.
func readLink(ad *netlink.AttributeDecoder, add func(string, uint64)) {
	switch ad.Type() {
	case attrLinkExtState:
		add(state.LinkDownReason, uint64(ad.Uint8()))
	case attrLinkExtSubstate:
		add(state.LinkDownDetail, uint64(ad.Uint8()))
	case attrLinkDownCount:
		add("link_down_events", uint64(ad.Uint32()))
	}
}

func readPause(ad *netlink.AttributeDecoder, add func(string, uint64)) {
	within(ad, attrPauseStats, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case attrPauseTx:
			add("tx_pause_frames", ad.Uint64())
		case attrPauseRx:
			add("rx_pause_frames", ad.Uint64())
		case attrPauseStorm:
			add("tx_pause_storm_events", ad.Uint64())
		}
	})
}

// readFEC reads the first of each list of numbers, which is the sum of the lanes that follow
// (fec_stats_recalc of net/ethtool/fec.c). The list is empty if the driver does not count it.
func readFEC(ad *netlink.AttributeDecoder, add func(string, uint64)) {
	within(ad, attrFECStats, func(ad *netlink.AttributeDecoder) {
		name := ""
		switch ad.Type() {
		case attrFECCorrected:
			name = "fec_corrected_blocks"
		case attrFECUncorrectable:
			name = "fec_uncorrectable_blocks"
		case attrFECCorrectedBits:
			name = "fec_corrected_bits"
		case attrFECBin:
			readFECBin(ad, add)
			return
		default:
			return
		}
		ad.Do(func(b []byte) error {
			if len(b)%8 != 0 {
				return fmt.Errorf("%d bytes are no list of counters", len(b))
			}
			if len(b) > 0 {
				add(name, binary.NativeEndian.Uint64(b))
			}
			return nil
		})
	})
}

// readFECBin reads a bin of the histogram of blocks by the number of symbols that were wrong in them.
// The kernel puts the value last, with 4 bytes if it fits (nla_put_uint).
func readFECBin(ad *netlink.AttributeDecoder, add func(string, uint64)) {
	var low, high uint32
	within(ad, attrFECBin, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case attrBinLow:
			low = ad.Uint32()
		case attrBinHigh:
			high = ad.Uint32()
		case attrBinValue:
			var value uint64
			if len(ad.Bytes()) == 4 {
				value = uint64(ad.Uint32())
			} else {
				value = ad.Uint64()
			}
			add(fmt.Sprintf("fec_blocks_with_%d_to_%d_symbol_errors", low, high), value)
		}
	})
}

// readPHY relies on the kernel's order: a group begins with its number (stats_put_stats of
// net/ethtool/stats.c).
func readPHY(ad *netlink.AttributeDecoder, add func(string, uint64)) {
	group := uint32(math.MaxUint32)
	within(ad, attrStatsGroup, func(ad *netlink.AttributeDecoder) {
		if ad.Type() == attrGroupID {
			group = ad.Uint32()
		}
		within(ad, attrGroupStat, func(ad *netlink.AttributeDecoder) {
			if group == groupPHY && ad.Type() == statSymbolError {
				add("symbol_errors_during_carrier", ad.Uint64())
			}
		})
	})
}

// readPFC leaves priority 0 out while PFC is off for it: with global pause, mlx5e reports pause frames
// there (mlx5e_dcbnl_ieee_getpfc and mlx5e_grp_per_prio_pfc_fill_stats). Frames of another priority
// for which PFC is off are of a peer that is set up otherwise.
func readPFC(ad *netlink.AttributeDecoder, add func(string, uint64)) {
	within(ad, attrIEEE, func(ad *netlink.AttributeDecoder) {
		if ad.Type() != attrIEEEPFC {
			return
		}
		ad.Do(func(b []byte) error {
			if len(b) < pfcSize {
				return fmt.Errorf("%d bytes, fewer than the %d of a struct ieee_pfc", len(b), pfcSize)
			}
			for i := range priorities {
				requests := binary.NativeEndian.Uint64(b[pfcRequests+8*i:])
				indications := binary.NativeEndian.Uint64(b[pfcIndications+8*i:])
				if (requests != 0 || indications != 0) && (i > 0 || b[pfcEnabled]&1 != 0) {
					add(fmt.Sprintf("pfc_requests_prio%d", i), requests)
					add(fmt.Sprintf("pfc_indications_prio%d", i), indications)
				}
			}
			return nil
		})
	})
}
