package kernelsocket

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// ErrMalformed is matched by the errors of messages that could not be decoded.
var ErrMalformed = errors.New("malformed message")

// A Listener receives multicast messages. It is a [Socket], or stands in for one.
type Listener interface {
	Receive(b []byte) (int, error)
	Interrupt()
	Close() error
}

// listenBuffer has room for any event, which has a few KB.
const listenBuffer = 32 << 10

// Listen calls handle with each message that the kernel sends to a socket, and lost when the
// kernel dropped messages: while these run, it keeps messages up to the size of the socket's
// buffer. Listen closes the socket.
//
// It returns the error of ctx when that is done, an error of handle, the errno of reading the
// socket, or an error that matches [ErrMalformed].
func Listen(ctx context.Context, s Listener, handle func(syscall.NetlinkMessage) error, lost func()) error {
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
	buffer := make([]byte, listenBuffer)
	for {
		n, err := s.Receive(buffer)
		// A kernel that always has the next event ready makes no read wait.
		if ended := ctx.Err(); ended != nil {
			return ended
		}
		switch {
		case errors.Is(err, syscall.ENOBUFS):
			lost()
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
			if err := handle(m); err != nil {
				return err
			}
		}
	}
}
