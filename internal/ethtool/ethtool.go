// Package ethtool reads counters of a network device that no file has: those that
// ethtool(8) shows by netlink with -I, and those that dcb(8) shows. It needs no privilege
// and changes nothing. Which it reads is fixed:
//
//	tx_pause_frames, rx_pause_frames
//		pause frames sent and received (PAUSE_GET; IEEE 802.3 30.3.4.2 and 30.3.4.3)
//	fec_corrected_blocks, fec_uncorrectable_blocks
//		blocks that forward error correction mended, or could not, of all lanes
//		(FEC_GET; 30.5.1.1.17 and 30.5.1.1.18)
//	symbol_errors_during_carrier
//		events in which a symbol was not valid while there was a carrier (STATS_GET,
//		eth-phy; 30.3.2.1.5)
//	pfc_requests_prio0 … pfc_requests_prio7
//		frames of priority flow control sent, by the priority that they pause
//		(DCB_CMD_IEEE_GET; IEEE 802.1Qaz)
//	pfc_indications_prio0 … pfc_indications_prio7
//		such frames received
//
// What the driver does not tell is absent. A driver that does not count the frames of
// priority flow control tells 0 of all, so a priority is absent as long as it has neither.
package ethtool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/state"
)

// ErrMalformed is matched by the errors of replies that cannot be what they should be.
var ErrMalformed = errors.New("malformed reply")

// A Reader asks the kernel. Its zero value is ready to use, and it may be used by several
// goroutines.
type Reader struct {
	dial func(family int) (conn, error) // nil: of the kernel
}

// A conn is a netlink socket.
type conn interface {
	Execute(m netlink.Message) ([]netlink.Message, error)
	SetReadDeadline(t time.Time) error
	Close() error
}

func dial(family int) (conn, error) { return netlink.Dial(family, nil) }

// A question is asked of a network device, and decode finds counters in the answer.
type question struct {
	name    string
	family  int
	request func(family uint16, netdev string) netlink.Message
	decode  func(reply netlink.Message) ([]state.Counter, error)
}

func questions() []question {
	return []question{
		{"PAUSE_GET", unix.NETLINK_GENERIC, pauseRequest, decodePause},
		{"FEC_GET", unix.NETLINK_GENERIC, fecRequest, decodeFEC},
		{"STATS_GET", unix.NETLINK_GENERIC, statsRequest, decodeStats},
		{"DCB_CMD_IEEE_GET", unix.NETLINK_ROUTE, pfcRequest, decodePFC},
	}
}

// Counters returns those of a network device in the network namespace of the calling
// thread. There are none if there is no such device, or none that its driver tells. What
// is returned beside an error is true: it says what else could not be read. The errno of
// the kernel or the driver is matched, and [ErrMalformed] by a reply that could not be
// decoded.
//
// The context ends a wait for replies. The driver does its work within the system call that
// asks for it, and one that hangs there cannot be left.
func (r Reader) Counters(ctx context.Context, netdev string) ([]state.Counter, error) {
	if netdev == "" || len(netdev) >= unix.IFNAMSIZ {
		return nil, fmt.Errorf("counters of the network device %q: %w", netdev, syscall.EINVAL)
	}
	if r.dial == nil {
		r.dial = dial
	}
	var counters []state.Counter
	var failures []error
	sockets := map[int]*asker{}
	defer func() {
		for _, a := range sockets {
			a.close()
		}
	}()
	for _, q := range questions() {
		a := sockets[q.family]
		if a == nil {
			a = newAsker(ctx, r.dial, q.family)
			sockets[q.family] = a
		}
		found, err := a.ask(ctx, q, netdev)
		counters = append(counters, found...)
		if ended := ctx.Err(); ended != nil {
			return counters, errors.Join(append(failures, fmt.Errorf("%s of %s: %w", q.name, netdev, ended))...)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s of %s: %w", q.name, netdev, err))
		}
	}
	return counters, errors.Join(failures...)
}

// An asker asks by one socket.
type asker struct {
	conn conn
	err  error // why there is no socket, or no such family
	stop func() bool
	// interrupted is closed once the end of the context has reached the socket.
	interrupted chan struct{}
	family      uint16
}

// newAsker opens a socket. What goes wrong is told to whoever asks by it.
func newAsker(ctx context.Context, dial func(int) (conn, error), family int) *asker {
	conn, err := dial(family)
	if err != nil {
		return &asker{err: err}
	}
	a := &asker{conn: conn, interrupted: make(chan struct{})}
	a.stop = context.AfterFunc(ctx, func() {
		// It fails only if the socket is closed.
		_ = conn.SetReadDeadline(time.Unix(1, 0))
		close(a.interrupted)
	})
	if family == unix.NETLINK_GENERIC && ctx.Err() == nil {
		a.family, a.err = a.resolve()
	}
	return a
}

// resolve asks for the number of ethtool's family, which a kernel before Linux 5.6 does not
// have.
func (a *asker) resolve() (uint16, error) {
	reply, err := a.execute(familyRequest())
	if errors.Is(err, os.ErrNotExist) {
		return 0, syscall.EOPNOTSUPP
	}
	if err != nil {
		return 0, err
	}
	return decodeFamily(reply)
}

// ask asks one question. To get no answer because there is none is no error.
func (a *asker) ask(ctx context.Context, q question, netdev string) ([]state.Counter, error) {
	err := a.err
	if err == nil {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var reply netlink.Message
		if reply, err = a.execute(q.request(a.family, netdev)); err == nil {
			return q.decode(reply)
		}
	}
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENODEV) {
		return nil, nil
	}
	return nil, err
}

// execute sends a request and returns the reply to it.
func (a *asker) execute(m netlink.Message) (netlink.Message, error) {
	replies, err := a.conn.Execute(m)
	if err != nil {
		return netlink.Message{}, err
	}
	if len(replies) != 1 {
		return netlink.Message{}, fmt.Errorf("%w: %d messages in place of one", ErrMalformed, len(replies))
	}
	return replies[0], nil
}

func (a *asker) close() {
	if a.conn == nil {
		return
	}
	if !a.stop() {
		<-a.interrupted
	}
	_ = a.conn.Close() // nothing was written
}
