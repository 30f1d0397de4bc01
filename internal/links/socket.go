package links

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// A socket receives what the kernel tells all listeners.
type socket interface {
	// receive waits for a datagram and returns its length, which is more than len(b) if
	// b is too small for it.
	receive(b []byte) (int, error)
	// interrupt makes receive return now and henceforth. It may be called while receive
	// waits.
	interrupt()
	close() error
}

// A kernelSocket is a socket of mdlayher/netlink, but read by ourselves: its Receive does
// not tell who sent a message.
type kernelSocket struct {
	conn *netlink.Conn
	raw  syscall.RawConn
}

// dial opens a socket that listens for changes of links, in the network namespace of the
// calling thread.
func dial() (socket, error) {
	conn, err := netlink.Dial(unix.NETLINK_ROUTE, &netlink.Config{Groups: 1 << (unix.RTNLGRP_LINK - 1)})
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &kernelSocket{conn: conn, raw: raw}, nil
}

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
