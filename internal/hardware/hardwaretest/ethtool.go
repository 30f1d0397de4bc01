package hardwaretest

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/ethtool"
)

// Ethtool returns a reader that is answered as the kernel and the drivers of a tree's network
// devices would. A tree has these files, which are read at each request:
//
//	ethtool/NETDEV/netlink/NAME: a number, by the name that package ethtool gives it, such as
//		tx_pause_frames or pfc_requests_prio3
//	ethtool/NETDEV/netlink/pfc_en: the priorities for which PFC is on, a mask such as 0x08
//	ethtool/NETDEV/driver/NAME: what ethtool -S shows, by the driver's name
//
// A request for what has no file fails with EOPNOTSUPP.
func Ethtool(t testing.TB, root string) ethtool.Reader {
	k := kernel{t, filepath.Join(root, "ethtool")}
	return ethtool.Reader{
		Dial:  func(int) (ethtool.Conn, error) { return k, nil },
		Ioctl: k.ioctl,
	}
}

// kernel answers from the files of a directory.
type kernel struct {
	t   testing.TB
	dir string
}

// numbers returns the numbers in the files of a network device, and their names in order.
func (k kernel) numbers(netdev, kind string) (map[string]uint64, []string) {
	dir := filepath.Join(k.dir, netdev, kind)
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		k.t.Error(err)
	}
	all, names := map[string]uint64{}, []string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err == nil {
			all[entry.Name()], err = strconv.ParseUint(strings.TrimSpace(string(content)), 0, 64)
		}
		if err != nil {
			k.t.Error(err)
		}
		names = append(names, entry.Name())
	}
	return all, names
}

// ioctl answers GSSET_INFO, GSTRINGS and GSTATS.
func (k kernel) ioctl(netdev string, request []byte) error {
	all, names := k.numbers(netdev, "driver")
	if len(names) == 0 {
		return syscall.EOPNOTSUPP
	}
	order := binary.NativeEndian
	switch command := order.Uint32(request); command {
	case 0x37:
		order.PutUint32(request[16:], uint32(len(names)))
	case 0x1b:
		order.PutUint32(request[8:], uint32(len(names)))
		for i, name := range names {
			copy(request[12+32*i:][:32], name)
		}
	case 0x1d:
		order.PutUint32(request[4:], uint32(len(names)))
		for i, name := range names {
			order.PutUint64(request[8+8*i:], all[name])
		}
	default:
		k.t.Errorf("an unknown request of SIOCETHTOOL: %#x", command)
	}
	return nil
}

// SetReadDeadline implements ethtool.Conn.
func (kernel) SetReadDeadline(time.Time) error { return nil }

// Close implements ethtool.Conn.
func (kernel) Close() error { return nil }

const family = 21

// Execute implements ethtool.Conn.
func (k kernel) Execute(m netlink.Message) ([]netlink.Message, error) {
	e := netlink.NewAttributeEncoder()
	var begin []byte
	if m.Header.Type == unix.GENL_ID_CTRL {
		begin = []byte{unix.CTRL_CMD_NEWFAMILY, 2, 0, 0}
		e.Uint16(unix.CTRL_ATTR_FAMILY_ID, family)
	} else {
		netdev := netdevOf(m.Data[4:])
		all, _ := k.numbers(netdev, "netlink")
		begin = k.answer(m.Data, all, e)
		if begin == nil {
			return nil, syscall.EOPNOTSUPP
		}
	}
	data, err := e.Encode()
	return []netlink.Message{{Header: m.Header, Data: append(begin, data...)}}, err
}

// netdevOf returns the network device of a request: the first text among its attributes.
func netdevOf(attributes []byte) string {
	all, err := netlink.UnmarshalAttributes(attributes)
	if err != nil || len(all) == 0 {
		return ""
	}
	if all[0].Type&^unix.NLA_F_NESTED != all[0].Type {
		if all, err = netlink.UnmarshalAttributes(all[0].Data); err != nil || len(all) == 0 {
			return ""
		}
	}
	return unix.ByteSliceToString(all[0].Data)
}

// answer encodes the reply to a request, and returns its first bytes. Nil means no reply.
func (kernel) answer(request []byte, all map[string]uint64, e *netlink.AttributeEncoder) (begin []byte) {
	// add encodes the numbers that there are as the attributes of these kinds, and reports whether there are any.
	add := func(e *netlink.AttributeEncoder, names map[uint16]string) (found bool) {
		for kind, name := range names {
			value, ok := all[name]
			switch found = found || ok; {
			case !ok:
			case name == "link_down_events":
				e.Uint32(kind, uint32(value))
			case request[0] == linkState:
				e.Uint8(kind, uint8(value))
			default:
				e.Uint64(kind, value)
			}
		}
		return found
	}
	within := func(e *netlink.AttributeEncoder, kind uint16, names map[uint16]string) (found bool) {
		e.Nested(kind, func(e *netlink.AttributeEncoder) error {
			found = add(e, names)
			return nil
		})
		return found
	}
	found, reply := false, request[0]+1
	switch request[0] {
	case linkState:
		found, reply = add(e, map[uint16]string{5: "link_down_reason", 6: "link_down_detail", 7: "link_down_events"}), linkState
	case 21:
		found = within(e, 5, map[uint16]string{2: "tx_pause_frames", 3: "rx_pause_frames", 4: "tx_pause_storm_events"})
	case 29:
		found = within(e, 5, map[uint16]string{2: "fec_corrected_blocks", 3: "fec_uncorrectable_blocks", 4: "fec_corrected_bits"})
	case 32:
		e.Nested(4, func(e *netlink.AttributeEncoder) error {
			e.Uint32(2, 0)
			found = within(e, 4, map[uint16]string{0: "symbol_errors_during_carrier"})
			return nil
		})
	case unix.AF_UNSPEC:
		enabled, ok := all["pfc_en"]
		if !ok || request[1] != 21 {
			return nil
		}
		pfc := []byte{8, byte(enabled), 0, 0, 0, 0, 0, 0}
		for _, name := range []string{"pfc_requests_prio", "pfc_indications_prio"} {
			for i := range 8 {
				pfc = binary.NativeEndian.AppendUint64(pfc, all[name+strconv.Itoa(i)])
			}
		}
		e.Nested(13, func(e *netlink.AttributeEncoder) error {
			e.Bytes(2, pfc)
			return nil
		})
		return []byte{0, 21, 0, 0}
	}
	if !found {
		return nil
	}
	return []byte{reply, 1, 0, 0}
}

const linkState = 6 // ETHTOOL_MSG_LINKSTATE_GET, and its reply
