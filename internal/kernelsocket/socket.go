// Package kernelsocket receives netlink datagrams from the kernel only.
package kernelsocket

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// A Socket is a socket of mdlayher/netlink with another receiver. That of netlink.Conn completes a
// dump even if the reader gave up, so the kernel queries the driver for each object, and does not
// check the sender. The caller of Dial must close the socket.
type Socket struct {
	conn *netlink.Conn
	raw  syscall.RawConn
}

// Dial opens a socket of a family (NETLINK_RDMA and so on) that listens to multicast groups,
// a bit each, in the network namespace of the calling thread.
func Dial(family int, groups uint32) (*Socket, error) {
	conn, err := netlink.Dial(family, &netlink.Config{Groups: groups})
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &Socket{conn: conn, raw: raw}, nil
}

// Send completes the header of m, sends it, and returns it.
func (s *Socket) Send(m netlink.Message) (netlink.Message, error) { return s.conn.Send(m) }

// Receive waits for a datagram and returns its length, which is more than len(b) if b is
// too small for it. Errors match the errno, or os.ErrDeadlineExceeded after Interrupt.
func (s *Socket) Receive(b []byte) (n int, err error) {
	for {
		var from unix.Sockaddr
		waited := s.raw.Read(func(fd uintptr) bool {
			for {
				// MSG_TRUNC asks for the length that the datagram really has.
				n, from, err = unix.Recvfrom(int(fd), b, unix.MSG_TRUNC)
				if err != unix.EINTR {
					return err != unix.EAGAIN
				}
			}
		})
		if waited != nil {
			return 0, waited
		}
		if err != nil {
			return 0, fmt.Errorf("recvfrom: %w", err)
		}
		// Only the kernel has the address 0; a process can send to us, too.
		if sender, ok := from.(*unix.SockaddrNetlink); ok && sender.Pid == 0 {
			return n, nil
		}
	}
}

// Interrupt makes Receive return now and henceforth. It may be called while Receive waits.
func (s *Socket) Interrupt() {
	// It fails only if the socket is closed, and then Receive fails, too.
	_ = s.conn.SetReadDeadline(time.Unix(1, 0))
}

// PID returns the address of the socket, to which a process could send.
func (s *Socket) PID() uint32 { return s.conn.PID() }

// Close closes the socket.
func (s *Socket) Close() error { return s.conn.Close() }
