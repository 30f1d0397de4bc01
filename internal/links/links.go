// Package links watches the network devices of a network namespace over rtnetlink: which
// there are, whether their links are up, and how often their carriers came and went. It
// needs no privilege and changes nothing.
package links

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"syscall"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
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
	// Lost tells that the kernel had to drop events, and nothing of any device. What has
	// changed meanwhile follows: an event of each device that there is, and of each that
	// has gone.
	Lost bool
}

// receiveBuffer is the size of the largest datagram that the kernel makes of a dump, as
// in restrack. An event is much smaller: it tells nothing of virtual functions.
const receiveBuffer = 32 << 10

// skipStatistics is RTEXT_FILTER_SKIP_STATS.
const skipStatistics = 1 << 3

// maxInterrupted is how often in succession a list is asked for again because devices came
// or went meanwhile. Their events come all the same; only a device that neither came nor
// went may be missing in such a list.
const maxInterrupted = 3

// Watch calls handle with an event of each network device in the namespace of the calling
// thread, and then with one whenever the kernel tells of a device, which it may do though
// nothing here has changed. Nothing is lost between the two: the list is asked for on the
// socket that listens already. handle is called by Watch itself, and while it runs the
// kernel keeps events up to the size of the socket's buffer.
//
// Watch ends when ctx is done and returns its error, which matches context.Canceled or
// context.DeadlineExceeded. It returns earlier only if the kernel refuses the socket or
// the list, or answers what cannot be decoded ([ErrMalformed]); the caller may call again
// after a while.
//
// The kernel holds up whoever asks for the list as long as a driver of any network device
// does not return, since both need the same lock (rtnl_lock). Watch leaves the kernel
// behind if it does not return within two seconds of the context's end, and calls handle
// no more.
func Watch(ctx context.Context, handle func(Event)) error { return watch(ctx, dial, handle) }

// grace is how long the end of the context waits for the kernel.
const grace = 2 * time.Second

func watch(ctx context.Context, dial func() (socket, error), handle func(Event)) error {
	var left bool
	turn := make(chan struct{}, 1) // to call handle, or to leave
	ended := make(chan error, 1)
	go func() {
		ended <- follow(ctx, dial, func(e Event) {
			turn <- struct{}{}
			defer func() { <-turn }()
			if !left {
				handle(e)
			}
		})
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(grace):
		turn <- struct{}{}
		left = true
		<-turn
		return fmt.Errorf("watching links: the kernel does not return: %w", ctx.Err())
	}
}

// follow watches until the context ends, and the kernel has returned.
func follow(ctx context.Context, dial func() (socket, error), handle func(Event)) error {
	w := watcher{handle: handle, known: map[int]string{}}
	for {
		err := w.run(ctx, dial)
		if ended := ctx.Err(); ended != nil {
			err = ended
		}
		if !errors.Is(err, errLost) {
			return fmt.Errorf("watching links: %w", err)
		}
		// What the old socket still has is older than the list. On a new one there is
		// room for the list, and no reply to the request for another one.
		handle(Event{Lost: true})
	}
}

// errLost is matched by the error of a socket for which the kernel had to drop events.
var errLost = errors.New("events were lost")

// A watcher is a call of Watch.
type watcher struct {
	handle func(Event)
	// known are the names of the devices that there are, by their numbers.
	known map[int]string
	// socket is the one that listens now.
	socket socket
	// listed are the devices that were told of since the list was asked for; nil if it is
	// complete.
	listed map[int]bool
	// sequence is that of the request for the list, changed tells that devices came or
	// went while it was made, and interrupted how often in succession that was so.
	sequence    uint32
	changed     bool
	interrupted int
}

// run listens on one socket. It returns an error always.
func (w *watcher) run(ctx context.Context, dial func() (socket, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s, err := dial()
	if err != nil {
		return fmt.Errorf("opening a socket of NETLINK_ROUTE: %w", err)
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		s.interrupt()
		close(interrupted)
	})
	defer func() {
		if !stop() {
			<-interrupted // The socket must not be closed meanwhile.
		}
		_ = s.close() // nothing was written
	}()
	w.socket, w.interrupted = s, 0
	if err := w.list(); err != nil {
		return err
	}
	buffer := make([]byte, receiveBuffer)
	for {
		// A kernel that always has the next event ready makes no read wait.
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := s.receive(buffer)
		switch {
		case errors.Is(err, syscall.ENOBUFS):
			return fmt.Errorf("%w: %w", errLost, err)
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
			if err := w.message(m); err != nil {
				return err
			}
		}
	}
}

// list asks for all devices.
func (w *watcher) list() error {
	// A struct ifinfomsg, for any family, and an attribute.
	data := make([]byte, unix.SizeofIfInfomsg, unix.SizeofIfInfomsg+8)
	data = binary.NativeEndian.AppendUint16(data, 8)
	data = binary.NativeEndian.AppendUint16(data, unix.IFLA_EXT_MASK)
	data = binary.NativeEndian.AppendUint32(data, skipStatistics)
	sent, err := w.socket.send(netlink.Message{
		Header: netlink.Header{Type: unix.RTM_GETLINK, Flags: netlink.Request | netlink.Dump},
		Data:   data,
	})
	if err != nil {
		return fmt.Errorf("RTM_GETLINK: %w", err)
	}
	w.sequence, w.listed, w.changed = sent.Header.Sequence, map[int]bool{}, false
	return nil
}

// message handles one message. Those of the list and those that were sent to all listeners
// come in the order in which things went.
func (w *watcher) message(m syscall.NetlinkMessage) error {
	answers := w.listed != nil && m.Header.Seq == w.sequence
	w.changed = w.changed || answers && m.Header.Flags&unix.NLM_F_DUMP_INTR != 0
	switch m.Header.Type {
	case unix.NLMSG_ERROR, unix.NLMSG_DONE:
		if !answers {
			return nil
		}
		errno, err := result(m.Data)
		if err == nil && errno != 0 {
			err = errno
		}
		if err != nil {
			return fmt.Errorf("RTM_GETLINK: %w", err)
		}
		return w.end()
	case unix.NLMSG_OVERRUN:
		return fmt.Errorf("%w: NLMSG_OVERRUN", ErrMalformed)
	}
	event, ok, err := Decode(m)
	if err != nil || !ok {
		return err
	}
	switch {
	case !event.Gone:
		w.known[event.Ifindex] = event.Name
		if w.listed != nil {
			w.listed[event.Ifindex] = true
		}
	case w.known[event.Ifindex] == "":
		return nil
	default:
		delete(w.known, event.Ifindex)
	}
	w.handle(event)
	return nil
}

// end is called when a list is complete.
func (w *watcher) end() error {
	if w.interrupted++; !w.changed {
		w.interrupted = 0
	}
	if w.changed && w.interrupted <= maxInterrupted {
		return w.list()
	}
	listed := w.listed
	w.listed = nil
	if w.changed {
		return nil // What is missing may be there.
	}
	maps.DeleteFunc(w.known, func(index int, name string) bool {
		if !listed[index] {
			w.handle(Event{Ifindex: index, Name: name, Gone: true})
		}
		return !listed[index]
	})
	return nil
}
