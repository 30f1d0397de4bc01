// Package links listens to rtnetlink for changes of the network devices of a network
// namespace. It needs no privilege, changes nothing, and asks the kernel for nothing.
package links

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/kernelsocket"
)

// ErrMalformed is matched by the errors of messages that cannot be what they should be.
var ErrMalformed = errors.New("malformed message")

// A socket receives what the kernel tells all listeners, as [kernelsocket.Socket] does. It
// can ask for nothing.
type socket interface {
	Receive(b []byte) (int, error)
	Interrupt()
	Close() error
}

// dial opens a socket in the network namespace of the calling thread.
func dial() (socket, error) {
	return kernelsocket.Dial(unix.NETLINK_ROUTE, 1<<(unix.RTNLGRP_LINK-1))
}

// receiveBuffer has room for any event, which has a few KB: it lists no virtual functions.
const receiveBuffer = 32 << 10

// Watch calls handle with the interface index of each network device in the namespace of the
// calling thread that has changed or is gone. The index is zero if the kernel dropped events:
// while handle runs, it keeps them up to the size of the socket's buffer.
//
// Watch returns the error of ctx when that is done. It returns earlier only if the kernel
// refuses the socket or sends what cannot be decoded ([ErrMalformed]). The caller may call
// again after a while.
//
// It never asks which devices there are. The kernel makes a list of them (RTM_GETLINK) under
// the lock that it also holds while it calls their drivers (rtnl_lock). If a driver hangs, a
// process that asks for a list hangs with it and cannot be killed. Listening takes no such
// lock.
func Watch(ctx context.Context, handle func(ifindex int)) error { return watch(ctx, dial, handle) }

func watch(ctx context.Context, dial func() (socket, error), handle func(ifindex int)) error {
	err := listen(ctx, dial, handle)
	if ended := ctx.Err(); ended != nil {
		err = ended
	}
	return fmt.Errorf("watching links: %w", err)
}

// listen returns only with an error.
func listen(ctx context.Context, dial func() (socket, error), handle func(ifindex int)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s, err := dial()
	if err != nil {
		return fmt.Errorf("opening a socket of NETLINK_ROUTE: %w", err)
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		s.Interrupt()
		close(interrupted)
	})
	defer func() {
		if !stop() {
			<-interrupted // The socket must not be closed meanwhile.
		}
		_ = s.Close() // nothing was written
	}()
	buffer := make([]byte, receiveBuffer)
	for {
		// A kernel that always has the next event ready makes no read wait.
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := s.Receive(buffer)
		switch {
		case errors.Is(err, syscall.ENOBUFS):
			handle(0)
			continue
		case err != nil:
			return err
		case n > len(buffer):
			return fmt.Errorf("%w: %d bytes, more than %d", ErrMalformed, n, len(buffer))
		}
		messages, err := syscall.ParseNetlinkMessage(buffer[:n])
		if err != nil {
			return fmt.Errorf("%w: %d bytes are no messages: %w", ErrMalformed, n, err)
		}
		for _, m := range messages {
			ifindex, err := changed(m)
			if err != nil {
				return err
			}
			if ifindex != 0 {
				handle(ifindex)
			}
		}
	}
}

// changed returns the index of the network device that a message is about. Zero means none.
func changed(m syscall.NetlinkMessage) (ifindex int, err error) {
	if m.Header.Type != unix.RTM_NEWLINK && m.Header.Type != unix.RTM_DELLINK {
		return 0, nil
	}
	if len(m.Data) < unix.SizeofIfInfomsg {
		return 0, fmt.Errorf("%w: a link of %d bytes", ErrMalformed, len(m.Data))
	}
	// A bridge sends the same types of messages about its ports (br_ifinfo_notify of
	// net/bridge/br_netlink.c).
	if m.Data[0] != unix.AF_UNSPEC {
		return 0, nil
	}
	index := int32(binary.NativeEndian.Uint32(m.Data[4:]))
	if index <= 0 {
		return 0, fmt.Errorf("%w: a link of number %d", ErrMalformed, index)
	}
	return int(index), nil
}
