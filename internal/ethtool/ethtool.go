// Package ethtool reads counters of a network device that no file has: those that ethtool(8)
// shows over netlink with -I, those that dcb(8) shows, and those that ethtool -S shows. It needs
// no privilege and changes nothing. The counters over netlink are:
//
//	tx_pause_frames, rx_pause_frames
//		pause frames sent and received (PAUSE_GET; IEEE 802.3 30.3.4.2 and 30.3.4.3)
//	tx_pause_storm_events
//		times that they were sent for so long that the adapter stopped that (PAUSE_GET)
//	link_down_events
//		times that the link went down at the physical layer (LINKSTATE_GET)
//	link_down_reason, link_down_detail
//		no counters, but why the link is down, in numbers of <linux/ethtool.h>
//	fec_corrected_bits
//		bits that forward error correction repaired, of all lanes (FEC_GET)
//	fec_corrected_blocks, fec_uncorrectable_blocks
//		blocks that forward error correction repaired, or could not, of all lanes
//		(FEC_GET; 30.5.1.1.17 and 30.5.1.1.18)
//	fec_blocks_with_0_to_0_symbol_errors, …
//		blocks by the number of wrong symbols in them, in bins of the driver's choice (FEC_GET)
//	symbol_errors_during_carrier
//		events in which a symbol was not valid while there was a carrier (STATS_GET,
//		eth-phy; 30.3.2.1.5)
//	pfc_requests_prio0 … pfc_requests_prio7
//		frames of priority flow control sent, by the priority that they pause
//		(DCB_CMD_IEEE_GET; IEEE 802.1Qaz)
//	pfc_indications_prio0 … pfc_indications_prio7
//		such frames received
//
// Those of ethtool -S have the driver's names.
//
// Counters that the driver does not report are absent. A driver that does not count the frames
// of priority flow control reports 0 for all, so a priority is absent while it has neither.
// Priority 0 is absent, too, while it has no flow control.
package ethtool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/state"
)

// ErrMalformed is matched by the errors of replies that could not be decoded.
var ErrMalformed = errors.New("malformed reply")

// A Reader asks the kernel. Its zero value is ready to use, and it is safe for concurrent use.
type Reader struct {
	// Dial opens a netlink socket of a family, and Ioctl sends a request of SIOCETHTOOL, which the
	// reply replaces. Nil means those of the kernel. Tests have others.
	Dial  func(family int) (Conn, error)
	Ioctl func(netdev string, request []byte) error
}

// A Conn is a netlink socket.
type Conn interface {
	Execute(m netlink.Message) ([]netlink.Message, error)
	SetReadDeadline(t time.Time) error
	Close() error
}

// Counters returns the counters of a network device in the network namespace of the calling
// thread. There are none if there is no such device, or if its driver reports none. Counters
// that are returned with an error are valid. The error names the requests that failed. It
// matches the errno of the kernel or the driver, or [ErrMalformed].
//
// wanted selects the counters of ethtool -S by name. Nil means that the driver is not asked for
// them, since many have thousands. They come first: mlx5e reports PFC frames over netlink from a
// cache that only ethtool -S refreshes (mlx5e_dcbnl_ieee_getpfc).
//
// The context ends a wait for replies. The driver does its work within the system call that
// asks for it, so a call stays in a driver that hangs there.
func (r Reader) Counters(ctx context.Context, netdev string, wanted func(name string) bool) ([]state.Counter, error) {
	if netdev == "" || len(netdev) >= unix.IFNAMSIZ {
		return nil, fmt.Errorf("counters of the network device %q: %w", netdev, syscall.EINVAL)
	}
	if r.Dial == nil {
		r.Dial = func(family int) (Conn, error) { return netlink.Dial(family, nil) }
	}
	if r.Ioctl == nil {
		r.Ioctl = ioctl
	}
	counters, err := r.statistics(ctx, netdev, wanted)
	generic, err2 := r.ask(ctx, unix.NETLINK_GENERIC, netdev)
	route, err3 := r.ask(ctx, unix.NETLINK_ROUTE, netdev)
	return slices.Concat(counters, generic, route), errors.Join(err, err2, err3)
}

// ask asks all questions of a family of netlink.
func (r Reader) ask(ctx context.Context, family int, netdev string) (counters []state.Counter, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	conn, err := r.Dial(family)
	if err != nil {
		return nil, fmt.Errorf("counters of %s: %w", netdev, err)
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = conn.SetReadDeadline(time.Unix(1, 0)) // It fails only if the socket is closed.
		close(interrupted)
	})
	defer func() {
		if !stop() {
			<-interrupted
		}
		_ = conn.Close() // nothing was written
	}()
	kind := uint16(unix.RTM_GETDCB)
	if family == unix.NETLINK_GENERIC {
		if kind, err = resolve(conn); err != nil {
			return nil, failure(ctx, "CTRL_CMD_GETFAMILY", netdev, err)
		}
	}
	var failures []error
	for _, q := range questions() {
		if q.family != family || kind == 0 || ctx.Err() != nil {
			continue
		}
		reply, err := execute(conn, kind, q.request, func(e *netlink.AttributeEncoder) { q.ask(e, netdev) })
		if err == nil {
			var found []state.Counter
			found, err = q.decode(reply)
			counters = append(counters, found...)
		}
		failures = append(failures, failure(ctx, q.name, netdev, err))
	}
	return counters, errors.Join(failures...)
}

// failure returns why a question failed. That there is no answer is not an error.
func failure(ctx context.Context, name, netdev string, err error) error {
	if err == nil || errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENODEV) {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		err = ended
	}
	return fmt.Errorf("%s of %s: %w", name, netdev, err)
}

// resolve asks for the number of ethtool's family. It is 0 for a kernel before Linux 5.6, which
// does not have it.
func resolve(conn Conn) (uint16, error) {
	reply, err := execute(conn, unix.GENL_ID_CTRL, [2]byte{unix.CTRL_CMD_GETFAMILY, genericVersion}, func(e *netlink.AttributeEncoder) {
		e.String(unix.CTRL_ATTR_FAMILY_NAME, "ethtool")
	})
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return decodeFamily(reply)
}

// execute sends a request and returns the reply to it.
func execute(conn Conn, kind uint16, header [2]byte, ask func(*netlink.AttributeEncoder)) (reply netlink.Message, err error) {
	e := netlink.NewAttributeEncoder()
	ask(e)
	data, err := e.Encode()
	if err != nil {
		return reply, err
	}
	replies, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(kind), Flags: netlink.Request},
		Data:   append([]byte{header[0], header[1], 0, 0}, data...),
	})
	if err != nil {
		return reply, err
	}
	if len(replies) != 1 {
		return reply, fmt.Errorf("%w: %d messages instead of one", ErrMalformed, len(replies))
	}
	return replies[0], nil
}
