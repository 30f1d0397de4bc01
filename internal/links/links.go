// Package links watches the network devices of a network namespace over rtnetlink: whether
// their links are up, and how often their carriers came and went. It needs no privilege,
// changes nothing, and asks the kernel for nothing.
package links

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// Event is what the kernel tells of a network device.
type Event struct {
	// Ifindex and Name are those of the device.
	Ifindex int
	Name    string
	// Gone tells that the device is no longer in the namespace, and nothing more of it.
	Gone bool
	// Up is whether an RDMA port on the device is active, as far as that goes by the
	// device: it is running and has a carrier. So say ib_get_curr_port_state of
	// include/rdma/ib_verbs.h, by which the kernel goes since Linux 6.14, and drivers
	// before (mlx5_query_port_roce, rxe_set_port_state): netif_running and
	// netif_carrier_ok, of which IFF_LOWER_UP has both (dev_get_flags of
	// net/core/dev.c). With RoCE on a bond mlx5 goes by the bond.
	Up bool
	// CarrierUps and CarrierDowns are how often the carrier came and went since the device
	// was made. The kernel counts at once and tells later, of several changes at a time
	// (net/core/link_watch.c): who counts changes needs these. HasCounts tells whether
	// the event has them, as all have since Linux 4.16 but those of wireless devices.
	CarrierUps   uint64
	CarrierDowns uint64
	HasCounts    bool
	// Lost tells that the kernel had to drop events, and nothing of any device. It may drop
	// more until those that it kept were taken.
	Lost bool
}

// receiveBuffer has room for any event, which is a few KB: it tells nothing of virtual
// functions.
const receiveBuffer = 32 << 10

// Watch calls handle with an event whenever the kernel tells of a network device in the
// namespace of the calling thread, which it may do though nothing here has changed. handle
// is called by Watch itself, and while it runs the kernel keeps events up to the size of
// the socket's buffer.
//
// Watch ends when ctx is done and returns its error, which matches context.Canceled or
// context.DeadlineExceeded. It returns earlier only if the kernel refuses the socket or
// tells what cannot be decoded ([ErrMalformed]); the caller may call again after a while.
//
// It does not tell which devices there are. The kernel makes a list of them (RTM_GETLINK)
// under the lock that it also holds while it calls their drivers (rtnl_lock). If one hangs,
// whoever asks for a list hangs with it, cannot be killed, and so cannot be restarted. To
// listen takes no such lock.
func Watch(ctx context.Context, handle func(Event)) error { return watch(ctx, dial, handle) }

func watch(ctx context.Context, dial func() (socket, error), handle func(Event)) error {
	err := follow(ctx, dial, handle)
	if ended := ctx.Err(); ended != nil {
		err = ended
	}
	return fmt.Errorf("watching links: %w", err)
}

// follow listens until the context ends. It returns an error always.
func follow(ctx context.Context, dial func() (socket, error), handle func(Event)) error {
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
			handle(Event{Lost: true})
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
