package restrack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/mdlayher/netlink"
)

// receiveBuffer is the size of the largest datagram that the kernel makes of a
// dump: it goes by the largest buffer that the reader has offered, up to this
// (netlink_recvmsg, af_netlink.c). In each step of a dump the kernel walks the
// table from its start, so fewer and larger steps save it a lot of work.
const receiveBuffer = 32 << 10

// maxEmpty is how many messages without a row a dump may have in succession
// before it is broken off. The kernel begins a row anew in the next message if
// it did not fit; if it fits into none, that would go on for ever.
const maxEmpty = 16

// maxPorts bounds how many ports an object is looked for on. Devices have one
// or two, a switch some dozens.
const maxPorts = 255

// Conn reads the kernel's tables through one netlink socket. It is not safe for
// concurrent use.
//
// Errors say what was asked of which device, and match the errno (errors.Is):
//
//   - ENODEV: there is no such device, or not any more;
//   - [ErrNotSupported]: the kernel has no such table, which those without
//     contexts, SRQs or any do not;
//   - ENOENT, and so [io/fs.ErrNotExist]: there is no such object;
//   - EMSGSIZE: an object's row fits into no message. The kernel lists the QPs
//     of an SRQ in its row, so one with thousands of them can be like that;
//   - [ErrMalformed]: a reply could not be decoded;
//   - context.Canceled or context.DeadlineExceeded: the context has ended;
//   - any other that the kernel or, through it, the device's driver answers.
//
// After an error the Conn can be used again. If there can be replies left that
// were not read, the socket is closed and the next call opens a new one, in the
// network namespace of the thread that it runs on.
//
// A context ends a wait for replies, and is looked at before each datagram. The
// kernel does its work within the system calls that ask for it, and a driver
// that hangs there cannot be left.
type Conn struct {
	dial    func() (socket, error)
	socket  socket // nil: to be opened
	closed  bool
	buffer  []byte
	decoder decoder
}

// Dial opens a netlink socket in the network namespace of the calling thread:
// where the RDMA subsystem keeps devices to namespaces (rdma-system(8)), only
// those of that one are seen. Without an RDMA subsystem in the kernel the error
// matches EPROTONOSUPPORT.
func Dial() (*Conn, error) { return newConn(dial) }

func newConn(dial func() (socket, error)) (*Conn, error) {
	c := &Conn{dial: dial, buffer: make([]byte, receiveBuffer)}
	if err := c.open(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Conn) open() error {
	if c.closed {
		return os.ErrClosed
	}
	if c.socket != nil {
		return nil
	}
	s, err := c.dial()
	if err != nil {
		return fmt.Errorf("opening a socket of NETLINK_RDMA: %w", err)
	}
	c.socket = s
	return nil
}

// Close closes the socket. It may be called again. Calls after it fail with
// [os.ErrClosed].
func (c *Conn) Close() error {
	c.closed = true
	return c.drop()
}

// drop closes the socket, with all that was not read from it.
func (c *Conn) drop() error {
	if c.socket == nil {
		return nil
	}
	err := c.socket.Close()
	c.socket = nil
	return err
}

// Devices lists the RDMA devices (RDMA_NLDEV_CMD_GET). The list is empty if
// there are none.
func (c *Conn) Devices(ctx context.Context) ([]Device, error) {
	var devices []Device
	err := c.exchange(ctx, request{command: commandDevice, dump: true}, func(data []byte) error {
		device, err := decodeDevice(data)
		if err == nil {
			devices = append(devices, device)
		}
		return err
	})
	if err != nil && !errors.Is(err, ErrInterrupted) {
		return nil, err
	}
	return devices, err
}

// Summary counts the objects of each type that the device with this
// [Device.Index] has (RDMA_NLDEV_CMD_RES_GET), those of the kernel and of drivers'
// own types included.
// Which objects count differs from kernel to kernel where namespaces are
// involved: it can be more than [Conn.Dump] shows.
func (c *Conn) Summary(ctx context.Context, index uint32) ([]Count, error) {
	var counts []Count
	r := request{command: commandSummary, attributes: all(index)}
	err := c.exchange(ctx, r, func(data []byte) (err error) {
		counts, err = summary(data)
		return err
	})
	return counts, c.explain(ctx, index, r, err)
}

// all asks for all objects of a device, as rdma(8) does with -dd. Where it is not asked
// for details, the kernel leaves out queue pairs of the types that are a driver's own,
// such as efa's SRD, in tables and summary alike (RESTRACK_DD in restrack.c, of newer
// kernels, and of 6.1 as Debian 12 has it). Kernels that do not know the attribute
// ignore it, and leave out none.
func all(index uint32) []byte {
	return appendUint8(appendUint32(nil, attrDeviceIndex, index), attrDriverDetails, 1)
}

// Dump calls visit for each object of a type that a device has
// (RDMA_NLDEV_CMD_RES_…_GET), as messages arrive, so that memory does not grow
// with their number. The object is reused for the next call; its strings stay
// valid. If visit returns an error, Dump ends and returns it. visit must not
// use the Conn.
//
// The kernel asks the device's driver for each QP (ib_query_qp), and may for
// other types. If the kernel flagged the dump as inconsistent, Dump goes on to
// its end and returns an error that matches [ErrInterrupted]. What else a dump
// does not promise is told in the comment of the package.
func (c *Conn) Dump(ctx context.Context, index uint32, t Type, visit func(*Object) error) error {
	r := request{command: t.table().command, dump: true, attributes: all(index)}
	if r.command == 0 {
		return fmt.Errorf("%s is no type: %w", t, syscall.EINVAL)
	}
	empty := 0
	err := c.exchange(ctx, r, func(data []byte) error {
		visited, err := c.decoder.objects(t, data, visit)
		if err != nil {
			return err
		}
		if empty++; visited > 0 {
			empty = 0
		}
		if empty >= maxEmpty {
			return &visitError{fmt.Errorf("%s of device %d: a row fits into no message: %w",
				commandName(r.command), index, syscall.EMSGSIZE)}
		}
		return nil
	})
	return c.explain(ctx, index, r, err)
}

// Get returns one object, by the number that is its [Object.ID]. If there is
// none the error matches ENOENT.
//
// Of the special QPs, which share a number, it returns the one of the first
// port that has one. The kernel files QPs and CM_IDs under ports; one that has
// none yet is searched for in the whole table.
func (c *Conn) Get(ctx context.Context, index uint32, t Type, id uint32) (Object, error) {
	table := t.table()
	if table.command == 0 {
		return Object{}, fmt.Errorf("%s is no type: %w", t, syscall.EINVAL)
	}
	r := request{command: table.command, attributes: appendUint32(nil, attrDeviceIndex, index)}
	if !table.perPort {
		r.attributes = appendUint32(r.attributes, table.id, id)
		object, err := c.get(ctx, t, r)
		return object, c.explain(ctx, index, r, err)
	}
	device := r.attributes
	for port := uint32(1); port <= maxPorts; port++ {
		attributes := appendUint32(device[:len(device):len(device)], attrPort, port)
		r.attributes = appendUint32(attributes, table.id, id)
		object, err := c.get(ctx, t, r)
		if t == QP && id <= 1 && errors.Is(err, syscall.ENOENT) {
			// Newer kernels file those under their port, too (rdma_restrack_add).
			r.attributes = appendUint32(attributes, table.id, port<<24|id)
			object, err = c.get(ctx, t, r)
			if errors.Is(err, syscall.ENOENT) {
				continue
			}
		}
		switch {
		case errors.Is(err, syscall.EAGAIN):
			continue // It is there, but not on this port.
		case errors.Is(err, syscall.EINVAL) && port > 1:
			return c.search(ctx, index, t, id) // There is no such port.
		}
		return object, c.explain(ctx, index, r, err)
	}
	return c.search(ctx, index, t, id)
}

func (c *Conn) get(ctx context.Context, t Type, r request) (Object, error) {
	err := c.exchange(ctx, r, func(data []byte) error { return c.decoder.decode(t, data) })
	if err != nil {
		return Object{}, err
	}
	return c.decoder.object, nil
}

// search finds an object in its table.
func (c *Conn) search(ctx context.Context, index uint32, t Type, id uint32) (Object, error) {
	var found Object
	err := c.Dump(ctx, index, t, func(o *Object) error {
		if o.HasID && o.ID == id && !found.HasID {
			found = *o
		}
		return nil
	})
	switch {
	case found.HasID:
		return found, nil
	case err == nil:
		err = fmt.Errorf("%s of device %d: %w", commandName(t.table().command), index, syscall.ENOENT)
	}
	return Object{}, err
}

// explain says of which device a request was that failed. The kernel answers
// EINVAL both if there is no such device and if it does not know the command;
// whether the device is there tells which.
func (c *Conn) explain(ctx context.Context, index uint32, r request, err error) error {
	var answer answerError
	if !errors.As(err, &answer) {
		return err
	}
	name := commandName(r.command)
	switch answer.errno {
	case syscall.EOPNOTSUPP:
		return fmt.Errorf("%s of device %d: %w: %w", name, index, ErrNotSupported, answer.errno)
	case syscall.EINVAL:
		device := request{command: commandDevice, attributes: appendUint32(nil, attrDeviceIndex, index)}
		err := c.exchange(ctx, device, func([]byte) error { return nil })
		switch {
		// Every kernel with tables has the first ones; of those this is the driver's
		// answer, as about a QP that is being destroyed.
		case err == nil && answer.replies == 0 && (r.command < commandQP || r.command > commandPD):
			return fmt.Errorf("%s of device %d: %w: %w", name, index, ErrNotSupported, answer.errno)
		case errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENODEV):
			return fmt.Errorf("%s of device %d: %w (%w)", name, index, syscall.ENODEV, answer.errno)
		}
	}
	return fmt.Errorf("%s of device %d: %w", name, index, answer.errno)
}

// A request is what is asked of the kernel.
type request struct {
	command    uint16
	dump       bool
	attributes []byte
}

// An answerError is an errno that the kernel answered a request with, after so
// many replies.
type answerError struct {
	errno   syscall.Errno
	replies int
}

func (e answerError) Error() string { return e.errno.Error() }

func (e answerError) Unwrap() error { return e.errno }

// exchange sends a request and calls handle with the payload of each reply. Its
// errors are answerErrors, those of the context and of the socket,
// MessageErrors (which errors of handle become, unless they are visitErrors),
// and ErrInterrupted.
func (c *Conn) exchange(ctx context.Context, r request, handle func([]byte) error) error {
	name := commandName(r.command)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := c.open(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s, interrupted := c.socket, make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		s.Interrupt()
		close(interrupted)
	})
	whole, err := c.converse(ctx, r, handle)
	if !stop() {
		// The socket is of no further use, but must not be closed meanwhile.
		<-interrupted
		whole = false
	}
	if !whole {
		// What follows, if anything, must not be taken for the replies to the
		// next request, nor must the kernel go on to ask the driver for it.
		if closing := c.drop(); err == nil && closing != nil {
			return fmt.Errorf("%s: %w", name, closing)
		}
	}
	return err
}

// converse is exchange on an open socket. It tells whether all replies were
// read.
func (c *Conn) converse(ctx context.Context, r request, handle func([]byte) error) (whole bool, err error) {
	name := commandName(r.command)
	m := netlink.Message{
		Header: netlink.Header{Type: client<<10 | netlink.HeaderType(r.command), Flags: requestFlagRequest},
		Data:   r.attributes,
	}
	if r.dump {
		m.Header.Flags |= requestFlagDump
	}
	sent, err := c.socket.Send(m)
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	replies, changed := 0, false
	for {
		// A kernel that always has the next datagram ready makes no read wait.
		if err := ctx.Err(); err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		n, err := c.socket.Receive(c.buffer)
		if ended := ctx.Err(); err != nil && ended != nil {
			return false, fmt.Errorf("%s: %w", name, ended)
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		if n > len(c.buffer) {
			return false, blame(r.command, replies+1, fmt.Errorf("%d bytes, more than %d", n, len(c.buffer)))
		}
		for datagram := c.buffer[:n]; len(datagram) > 0; {
			var reply message
			reply, datagram, err = nextMessage(datagram)
			if err != nil {
				return false, blame(r.command, replies+1, err)
			}
			if reply.sequence != sent.Header.Sequence || reply.pid != sent.Header.PID {
				continue // It answers something else.
			}
			changed = changed || reply.flags&flagDumpIntr != 0
			switch reply.kind {
			case messageNoop:
				continue
			case messageError, messageDone:
				errno, err := result(reply.data)
				switch {
				case err != nil:
					return false, blame(r.command, replies+1, err)
				case errno != 0:
					return true, answerError{errno, replies}
				case !r.dump && replies == 0:
					return true, blame(r.command, 1, errors.New("an end, but no reply"))
				case changed:
					return true, fmt.Errorf("%s: %w", name, ErrInterrupted)
				}
				return true, nil
			case messageOverrun:
				return false, blame(r.command, replies+1, errors.New("replies were lost (NLMSG_OVERRUN)"))
			}
			replies++
			// To PORT_GET for one port the kernel replies as if to GET (nldev_port_get_doit).
			ofDevice := r.command == commandPort && reply.kind == client<<10|commandDevice
			if want := client<<10 | r.command; reply.kind != want && !ofDevice {
				return false, blame(r.command, replies, fmt.Errorf("its type is %#x, not %#x", reply.kind, want))
			}
			if err := handle(reply.data); err != nil {
				return false, blame(r.command, replies, err)
			}
			if !r.dump {
				return true, nil
			}
		}
	}
}
