package restrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/kernelsocket"
)

var (
	// ErrInterrupted is matched by the error of a dump during which the table changed, as the
	// kernel reports with NLM_F_DUMP_INTR. Objects may have been missed, or visited twice. The
	// dump was read completely.
	ErrInterrupted = errors.New("the table changed while it was read")

	// ErrMalformed is matched by the errors of messages that could not be decoded.
	ErrMalformed = errors.New("malformed message")

	// ErrNotSupported is matched by the errors of requests that the kernel is too old for. The
	// kernel's errno is matched, too: EOPNOTSUPP, or EINVAL for a device that exists. See
	// [Conn.Statistic] for other causes of EINVAL.
	ErrNotSupported = errors.New("not supported by this kernel")
)

// receiveBuffer is the size of the largest datagram that the kernel makes of a dump: the size of
// the largest buffer that the reader has offered, up to this (netlink_recvmsg, af_netlink.c). In
// each step of a dump the kernel walks the table from its start, so large steps save it work.
const receiveBuffer = 32 << 10

// maxPorts bounds the number of a port. Devices have one or two, a switch some dozens.
const maxPorts = 255

// Conn reads the kernel's tables through one netlink socket. It is not safe for concurrent use.
//
// Errors name the command and the device, and match the errno (errors.Is):
//
//   - ENODEV: there is no such device;
//   - [ErrNotSupported]: the kernel has no such table, as kernels without contexts or SRQs;
//   - ENOENT, and so [io/fs.ErrNotExist]: there is no such object;
//   - EMSGSIZE: the row of an object fits into no message. The kernel lists the QPs of an SRQ in
//     its row, so an SRQ with thousands of QPs is such an object;
//   - [ErrMalformed]: a reply could not be decoded;
//   - context.Canceled or context.DeadlineExceeded: the context has ended;
//   - any other errno of the kernel or the device's driver.
//
// A Conn can be used again after an error. If replies may be left unread, the socket is closed
// and the next call opens another, in the network namespace of the thread that it runs on.
//
// A context ends a wait for replies, and is checked after each datagram. The kernel does its
// work within the system calls that ask for it, so a call stays in a driver that hangs there.
type Conn struct {
	dial   func() (socket, error)
	socket socket // nil: to be opened
	closed bool
	buffer []byte
}

// A socket is a [kernelsocket.Socket], or stands in for one.
type socket interface {
	Send(m netlink.Message) (netlink.Message, error)
	Receive(b []byte) (int, error)
	Interrupt()
	Close() error
}

func dial() (socket, error) { return kernelsocket.Dial(unix.NETLINK_RDMA, 0) }

// Dial opens a netlink socket in the network namespace of the calling thread. Where the RDMA
// subsystem assigns devices to namespaces (rdma-system(8)), only the devices of that namespace
// are seen. Without an RDMA subsystem in the kernel the error matches EPROTONOSUPPORT.
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

// Close closes the socket. It may be called again. Later calls of other methods fail with
// [os.ErrClosed].
func (c *Conn) Close() error {
	c.closed = true
	return c.drop()
}

// drop closes the socket, with everything that was not read from it.
func (c *Conn) drop() error {
	if c.socket == nil {
		return nil
	}
	err := c.socket.Close()
	c.socket = nil
	return err
}

// A request asks the kernel for a table or an object of a device.
type request struct {
	command uint16
	index   uint32
	dump    bool
	// host is true if the request is not about one device. It has no index then.
	host bool
	more []netlink.Attribute
}

func (r request) String() string {
	if r.host {
		return commandName(r.command)
	}
	return fmt.Sprintf("%s of device %d", commandName(r.command), r.index)
}

func number(kind uint16, value uint32) netlink.Attribute {
	return netlink.Attribute{Type: kind, Data: binary.NativeEndian.AppendUint32(nil, value)}
}

func (r request) message() (m netlink.Message, err error) {
	m.Header = netlink.Header{Type: client<<10 | netlink.HeaderType(r.command), Flags: netlink.Request}
	if r.dump {
		m.Header.Flags |= netlink.Dump
	}
	var attributes []netlink.Attribute
	if !r.host {
		attributes = append(attributes, number(attrDeviceIndex, r.index))
	}
	m.Data, err = netlink.MarshalAttributes(append(attributes, r.more...))
	return m, err
}

// An answerError is an errno that the kernel answered a request with, after some replies.
type answerError struct {
	syscall.Errno
	replies int
}

func (e answerError) Unwrap() error { return e.Errno }

// query sends a request and calls handle with the payload of each reply. Errors of handle match
// ErrMalformed.
func (c *Conn) query(ctx context.Context, r request, handle func(data []byte) error) error {
	err := c.exchange(ctx, r, handle)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", r, c.explain(ctx, r, err))
}

// explain returns why the kernel refused a request. It answers EINVAL both if there is no such
// device and if it does not know the command, so explain asks whether the device exists.
func (c *Conn) explain(ctx context.Context, r request, err error) error {
	var answer answerError
	switch {
	case !errors.As(err, &answer):
		return err
	case answer.Errno == syscall.EOPNOTSUPP, answer.Errno == syscall.EINVAL && r.host:
		return fmt.Errorf("%w: %w", ErrNotSupported, answer.Errno)
	case answer.Errno != syscall.EINVAL:
		return answer.Errno
	}
	err = c.exchange(ctx, request{command: commandDevice, index: r.index}, func([]byte) error { return nil })
	switch {
	// Every kernel with tables has the first ones. For these it is the driver's answer, as about
	// a QP that is being destroyed.
	case err == nil && answer.replies == 0 && (r.command < commandQP || r.command > commandPD):
		return fmt.Errorf("%w: %w", ErrNotSupported, answer.Errno)
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENODEV):
		return fmt.Errorf("%w (%w)", syscall.ENODEV, answer.Errno)
	}
	return answer.Errno
}

// exchange is query, without an explanation of the error.
func (c *Conn) exchange(ctx context.Context, r request, handle func([]byte) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.open(); err != nil {
		return err
	}
	s, interrupted := c.socket, make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		s.Interrupt()
		close(interrupted)
	})
	complete, err := c.converse(ctx, r, handle)
	if !stop() {
		<-interrupted // The socket must not be closed before.
		complete = false
	}
	if !complete {
		// The rest must not be taken for replies to the next request, nor must the kernel go on
		// asking the driver for it.
		if closing := c.drop(); err == nil {
			err = closing
		}
	}
	return err
}

// converse is exchange on an open socket. complete is true if all replies were read.
func (c *Conn) converse(ctx context.Context, r request, handle func([]byte) error) (complete bool, err error) {
	m, err := r.message()
	if err != nil {
		return true, err
	}
	sent, err := c.socket.Send(m)
	if err != nil {
		return false, err
	}
	replies, changed := 0, false
	for {
		n, err := c.socket.Receive(c.buffer)
		// A kernel that always has the next datagram ready never makes Receive wait.
		if ended := ctx.Err(); ended != nil {
			return false, ended
		}
		if err != nil {
			return false, err
		}
		if n > len(c.buffer) {
			return false, fmt.Errorf("%w: %d bytes, more than %d", ErrMalformed, n, len(c.buffer))
		}
		for rest := c.buffer[:n]; len(rest) > 0; {
			var m netlink.Message
			m, rest, err = nextMessage(rest)
			if err != nil {
				return false, err
			}
			if m.Header.Sequence != sent.Header.Sequence || m.Header.PID != sent.Header.PID {
				continue // It answers another request.
			}
			changed = changed || m.Header.Flags&netlink.DumpInterrupted != 0
			switch m.Header.Type {
			case netlink.Noop:
				continue
			case netlink.Overrun:
				return false, fmt.Errorf("%w: replies were lost (NLMSG_OVERRUN)", ErrMalformed)
			case netlink.Error, netlink.Done:
				errno, err := result(m.Data)
				switch {
				case err != nil:
					return false, err
				case errno != 0:
					return true, answerError{errno, replies}
				case !r.dump && replies == 0:
					return true, fmt.Errorf("%w: an end, but no reply", ErrMalformed)
				case changed:
					return true, ErrInterrupted
				}
				return true, nil
			}
			// To PORT_GET for one port the kernel replies as if to GET (nldev_port_get_doit).
			ofDevice := r.command == commandPort && m.Header.Type == client<<10|commandDevice
			if m.Header.Type != sent.Header.Type && !ofDevice {
				return false, fmt.Errorf("%w: its type is %#x, not %#x", ErrMalformed, uint16(m.Header.Type), uint16(sent.Header.Type))
			}
			replies++
			if err := handle(m.Data); err != nil {
				return false, fmt.Errorf("%w: %w", ErrMalformed, err)
			}
			if !r.dump {
				return true, nil
			}
		}
	}
}

// nextMessage splits the first message off b, which must not be empty.
func nextMessage(b []byte) (m netlink.Message, rest []byte, err error) {
	if len(b) < unix.NLMSG_HDRLEN {
		return m, nil, fmt.Errorf("%w: %d bytes", ErrMalformed, len(b))
	}
	length := binary.NativeEndian.Uint32(b)
	if length < unix.NLMSG_HDRLEN || uint64(length) > uint64(len(b)) {
		return m, nil, fmt.Errorf("%w: its length is %d, but there are %d bytes", ErrMalformed, length, len(b))
	}
	m.Header = netlink.Header{
		Length:   length,
		Type:     netlink.HeaderType(binary.NativeEndian.Uint16(b[4:])),
		Flags:    netlink.HeaderFlags(binary.NativeEndian.Uint16(b[6:])),
		Sequence: binary.NativeEndian.Uint32(b[8:]),
		PID:      binary.NativeEndian.Uint32(b[12:]),
	}
	m.Data = b[unix.NLMSG_HDRLEN:length]
	aligned := (int(length) + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1)
	return m, b[min(aligned, len(b)):], nil
}

// maxErrno is the kernel's MAX_ERRNO.
const maxErrno = 4095

// result returns the errno that a message of the types Error and Done begins with.
func result(data []byte) (syscall.Errno, error) {
	if len(data) < 4 {
		return 0, fmt.Errorf("%w: its result has %d bytes, not 4", ErrMalformed, len(data))
	}
	value := int32(binary.NativeEndian.Uint32(data))
	if value > 0 || value < -maxErrno {
		return 0, fmt.Errorf("%w: its result is %d", ErrMalformed, value)
	}
	return syscall.Errno(-value), nil
}

// attributes calls visit with each attribute of a message.
func attributes(data []byte, visit func(*netlink.AttributeDecoder)) error {
	ad, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return err
	}
	for ad.Next() {
		visit(ad)
	}
	return ad.Err()
}

// entries calls visit with each entry of the lists in a message.
func entries(data []byte, list, entry uint16, visit func(*netlink.AttributeDecoder) error) error {
	return attributes(data, func(ad *netlink.AttributeDecoder) {
		if ad.Type() != list {
			return
		}
		ad.Nested(func(ad *netlink.AttributeDecoder) error {
			for ad.Next() {
				if ad.Type() == entry {
					ad.Nested(visit)
				}
			}
			return nil // Nested returns the error of ad.
		})
	})
}
