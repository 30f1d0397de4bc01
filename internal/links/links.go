// Package links watches the network devices of a network namespace over rtnetlink: whether
// their links are up, and how often their carriers came and went. It needs no privilege,
// changes nothing, and asks the kernel for nothing.
package links

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/kernelsocket"
	"rdma_exporter/internal/state"
)

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

// Watch calls handle with each event of a network device in the namespace of the calling
// thread. While handle runs, the kernel keeps events up to the size of the socket's buffer.
//
// Watch returns the error of ctx when that is done. It returns earlier only if the kernel
// refuses the socket or sends what cannot be decoded ([ErrMalformed]). The caller may call
// again after a while.
//
// It never asks which devices there are. The kernel makes a list of them (RTM_GETLINK) under
// the lock that it also holds while it calls their drivers (rtnl_lock). If a driver hangs, a
// process that asks for a list hangs with it and cannot be killed. Listening takes no such
// lock.
func Watch(ctx context.Context, handle func(state.LinkEvent)) error { return watch(ctx, dial, handle) }

func watch(ctx context.Context, dial func() (socket, error), handle func(state.LinkEvent)) error {
	err := listen(ctx, dial, handle)
	if ended := ctx.Err(); ended != nil {
		err = ended
	}
	return fmt.Errorf("watching links: %w", err)
}

// listen returns only with an error.
func listen(ctx context.Context, dial func() (socket, error), handle func(state.LinkEvent)) error {
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
			handle(state.LinkEvent{Lost: true})
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
			event, ok, err := Decode(m)
			if err != nil {
				return err
			}
			if ok {
				handle(event)
			}
		}
	}
}
