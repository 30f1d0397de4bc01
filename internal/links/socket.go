package links

import (
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/kernelsocket"
)

// A socket receives what the kernel tells all listeners, as [kernelsocket.Socket] does. It
// can ask for nothing.
type socket interface {
	Receive(b []byte) (int, error)
	Interrupt()
	Close() error
}

// dial opens a socket that listens for changes of links, in the network namespace of the
// calling thread.
func dial() (socket, error) {
	return kernelsocket.Dial(unix.NETLINK_ROUTE, 1<<(unix.RTNLGRP_LINK-1))
}
