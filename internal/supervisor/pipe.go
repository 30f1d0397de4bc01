package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// lookEvery is how often it is looked for what a child that lives has written.
const lookEvery = 50 * time.Millisecond

// lookSoon is how soon it is looked again if the child wrote so much that it may wait
// for room.
const lookSoon = time.Millisecond

// leastPipe is the capacity of a pipe, in bytes, of a user who has many.
const leastPipe = 4096

// mostPipe is the most, in bytes, that a process without privileges can make of it,
// unless the host was told to allow more.
const mostPipe = 1 << 20

// outputPipe is the reading end of a child's standard output. A child writes
// hundreds of short lines, each as soon as it is true, and nobody needs them before
// it has ended or is to be killed: so nothing wakes this process when one is written,
// as it would at each write if the runtime waited for the pipe. It is looked at again
// and again, and once more when the child has ended: all that it wrote is there then,
// and what it left behind may hold the pipe open for ever.
type outputPipe struct {
	// ended is closed when the child has ended; only the reader uses it.
	ended <-chan struct{}
	// closed is closed with the pipe.
	closed chan struct{}
	// last says that ended is closed, so that what is there now is all; only the reader
	// uses it.
	last bool
	// full is how much, found at one look, means that the child may wait for room, and
	// found is how much was there; only the reader uses them.
	full, found int

	mu sync.Mutex
	fd int // -1 once closed
}

// newOutputPipe returns a pipe of whose reader ended is, and its end for the child,
// which the caller closes.
func newOutputPipe(ended <-chan struct{}) (*outputPipe, *os.File, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("a pipe for the child: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		_ = unix.Close(fds[0])
		_ = unix.Close(fds[1])
		return nil, nil, fmt.Errorf("a pipe for the child: %w", err)
	}
	full := leastPipe / 2
	if n, err := unix.FcntlInt(uintptr(fds[0]), unix.F_GETPIPE_SZ, 0); err == nil {
		full = n / 2
	}
	return &outputPipe{ended: ended, closed: make(chan struct{}), full: full, fd: fds[0]}, os.NewFile(uintptr(fds[1]), "the child's standard output"), nil
}

// Read implements io.Reader. It waits until there is something, until the child has ended
// or nobody can write any more, which is io.EOF, or until the pipe is closed. Only one
// goroutine may call it at a time.
func (p *outputPipe) Read(b []byte) (int, error) {
	var timer *time.Timer
	for {
		n, err := p.read(b)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EAGAIN):
			p.found += n
			return n, err
		case p.last:
			return 0, io.EOF
		}
		wait := p.pause()
		if timer == nil {
			timer = time.NewTimer(wait)
			defer timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-timer.C:
		case <-p.ended:
			p.last = true
		case <-p.closed:
		}
	}
}

// pause returns how long to wait until the next look, after one that found nothing more.
func (p *outputPipe) pause() time.Duration {
	full := p.found >= p.full
	p.found = 0
	if full {
		return lookSoon
	}
	return lookEvery
}

// read takes what is there now.
func (p *outputPipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd < 0 {
		return 0, os.ErrClosed
	}
	n, err := unix.Read(p.fd, b)
	switch {
	case err != nil:
		return 0, err
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// Close implements io.Closer. A read that waits returns with os.ErrClosed.
func (p *outputPipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd < 0 {
		return os.ErrClosed
	}
	err := unix.Close(p.fd)
	p.fd = -1
	close(p.closed)
	return err
}

// errorPipe is the reading end of a child's standard error: nothing is written to most.
type errorPipe struct{ *os.File }

// newErrorPipe returns a pipe, and its end for the child, which the caller closes.
func newErrorPipe() (*errorPipe, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("a pipe for the child: %w", err)
	}
	return &errorPipe{r}, w, nil
}

// end tells that the child has ended, and does not wait for anything.
func (p *errorPipe) end() {
	// A read that waits returns. Every pipe can have a deadline.
	_ = p.SetReadDeadline(time.Unix(0, 0))
}

// copyTo copies until nobody can write any more, or the child has ended and all that was
// written until then is copied, however late that is: what the child left behind may
// hold the pipe open for ever, and write to it.
func (p *errorPipe) copyTo(t *tail) {
	if _, err := t.ReadFrom(p.File); !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	conn, err := p.SyscallConn()
	if err != nil {
		return
	}
	// A read of the file would wait again. An error means that there is nothing more.
	_ = conn.Control(func(fd uintptr) {
		b := make([]byte, 1<<10)
		for left := mostPipe; left > 0; {
			n, err := unix.Read(int(fd), b) // the file does not block
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case err != nil || n == 0:
				return
			}
			_, _ = t.Write(b[:n]) // which takes everything
			left -= n
		}
	})
}

// inputPipe returns a pipe from which b can be read, and then nothing more; nil if b
// does not fit into one. The caller closes it.
func inputPipe(b []byte) *os.File {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil
	}
	defer func() { _ = unix.Close(fds[1]) }()
	if err := unix.SetNonblock(fds[1], true); err == nil {
		if n, err := unix.Write(fds[1], b); err == nil && n == len(b) {
			return os.NewFile(uintptr(fds[0]), "the child's standard input")
		}
	}
	_ = unix.Close(fds[0])
	return nil
}
