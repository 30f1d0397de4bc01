package restrack

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// A socket sends requests to the kernel and receives datagrams from it.
type socket interface {
	// send completes the header of m, sends it, and returns it.
	send(m netlink.Message) (netlink.Message, error)
	// receive waits for a datagram and returns its length, which is more than
	// len(b) if b is too small for it.
	receive(b []byte) (int, error)
	// interrupt makes receive return now and henceforth. It may be called while
	// receive waits.
	interrupt()
	close() error
}

// A kernelSocket is a socket of mdlayher/netlink, but read by ourselves: its
// ReceiveIter copies each datagram to new memory, which is 32 KiB of garbage
// for some 300 objects; it reads a dump to its end, and lets the driver be
// queried for each object, after the reader has given up; and it does not look
// at who has sent a datagram.
type kernelSocket struct {
	conn *netlink.Conn
	raw  syscall.RawConn
}

// dial opens a netlink socket in the network namespace of the calling thread.
func dial() (socket, error) {
	conn, err := netlink.Dial(unix.NETLINK_RDMA, nil)
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &kernelSocket{conn: conn, raw: raw}, nil
}

func (s *kernelSocket) send(m netlink.Message) (netlink.Message, error) { return s.conn.Send(m) }

func (s *kernelSocket) receive(b []byte) (n int, err error) {
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

func (s *kernelSocket) interrupt() {
	// It fails only if the socket is closed, and then receive fails, too.
	_ = s.conn.SetReadDeadline(time.Unix(1, 0))
}

func (s *kernelSocket) close() error { return s.conn.Close() }
