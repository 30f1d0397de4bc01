package restrack

import (
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/kernelsocket"
)

// A socket sends requests to the kernel and receives datagrams from it, as
// [kernelsocket.Socket] does.
type socket interface {
	Send(m netlink.Message) (netlink.Message, error)
	Receive(b []byte) (int, error)
	Interrupt()
	Close() error
}

// dial opens a netlink socket in the network namespace of the calling thread.
func dial() (socket, error) { return kernelsocket.Dial(unix.NETLINK_RDMA, 0) }
