package links

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// A step is what a fake socket gives next: a datagram or an error.
type step struct {
	datagram []byte
	err      error
}

// A fakeSocket gives its steps, and then waits to be interrupted.
type fakeSocket struct {
	steps       []step
	interrupted chan struct{}
	closed      bool
}

func (s *fakeSocket) Receive(b []byte) (int, error) {
	if len(s.steps) == 0 {
		<-s.interrupted
		return 0, os.ErrDeadlineExceeded
	}
	next := s.steps[0]
	s.steps = s.steps[1:]
	if next.err != nil {
		return 0, next.err
	}
	copy(b, next.datagram)
	return len(next.datagram), nil
}

func (s *fakeSocket) Interrupt() { close(s.interrupted) }

func (s *fakeSocket) Close() error {
	s.closed = true
	return nil
}

func message(kind uint16, data []byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(data)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, make([]byte, 10)...) // flags, sequence and sender
	b = append(b, data...)
	return append(b, make([]byte, -len(b)&3)...)
}

// link returns the payload of a message about a network device.
func link(family byte, index int32) []byte {
	b := binary.NativeEndian.AppendUint32([]byte{family, 0, 1, 0}, uint32(index))
	return append(b, make([]byte, 8)...) // flags and changes
}

func told(kind uint16, data []byte) step { return raw(message(kind, data)) }

func raw(b []byte) step { return step{datagram: b} }

func fails(err error) step { return step{err: err} }

// watched watches a socket with these steps until all were given. It returns the events, and
// the error with which Watch ended by itself, or nil.
func watched(t *testing.T, steps ...step) (events []int, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &fakeSocket{steps: steps, interrupted: make(chan struct{})}
		ended := make(chan error, 1)
		go func() {
			ended <- watch(ctx, func() (socket, error) { return s, nil }, func(e int) { events = append(events, e) })
		}()
		synctest.Wait()
		select {
		case err = <-ended:
		default:
			cancel()
			if end := <-ended; !errors.Is(end, context.Canceled) || end.Error() != "watching links: context canceled" {
				t.Errorf("it ended with %v", end)
			}
		}
		if !s.closed {
			t.Error("the socket is left open")
		}
	})
	return events, err
}

// TestWatch verifies that each change of a network device is reported, and each loss of
// events, and that a message that makes no sense ends the watch.
func TestWatch(t *testing.T) {
	lo, eth := link(unix.AF_UNSPEC, 1), link(unix.AF_UNSPEC, 2)
	newLink := func(data []byte) step { return told(unix.RTM_NEWLINK, data) }
	for name, test := range map[string]struct {
		steps []step
		want  []int
		says  string // It ends with an ErrMalformed that says so.
	}{
		"nothing":       {},
		"changes":       {steps: []step{newLink(eth), newLink(eth), told(unix.RTM_DELLINK, eth)}, want: []int{2, 2, 2}},
		"largest index": {steps: []step{newLink(link(0, 1<<31-1))}, want: []int{1<<31 - 1}},
		"no link": {
			steps: []step{
				told(unix.RTM_NEWADDR, eth), told(unix.NLMSG_NOOP, nil), told(unix.NLMSG_ERROR, []byte{255}),
				told(unix.NLMSG_DONE, nil), told(unix.RTM_DELLINK, link(unix.AF_BRIDGE, 2)), newLink(lo),
			},
			want: []int{1},
		},
		"lost": {
			steps: []step{newLink(lo), fails(fmt.Errorf("recvfrom: %w", syscall.ENOBUFS)), newLink(eth), fails(syscall.ENOBUFS), newLink(eth)},
			want:  []int{1, 0, 2, 0, 2},
		},
		"several in a datagram": {
			steps: []step{raw(slices.Concat(message(unix.RTM_NEWLINK, lo), message(unix.RTM_NEWLINK, eth)))},
			want:  []int{1, 2},
		},
		"longer than the buffer": {steps: []step{raw(make([]byte, receiveBuffer+1))}, says: "32769 bytes, more than 32768"},
		"cut off":                {steps: []step{raw(message(unix.RTM_NEWLINK, lo)[:20])}, says: "20 bytes are no messages: invalid argument"},
		"a short link":           {steps: []step{newLink(eth), newLink(eth[:15])}, want: []int{2}, says: "a link of 15 bytes"},
		"index 0":                {steps: []step{newLink(link(0, 0))}, says: "a link of number 0"},
		"index -1":               {steps: []step{newLink(link(0, -1))}, says: "a link of number -1"},
	} {
		t.Run(name, func(t *testing.T) {
			events, err := watched(t, test.steps...)
			if !slices.Equal(events, test.want) {
				t.Errorf("events %v, want %v", events, test.want)
			}
			if (err != nil) != (test.says != "") || err != nil && (!errors.Is(err, ErrMalformed) || err.Error() != "watching links: malformed message: "+test.says) {
				t.Errorf("error %v, want %q", err, test.says)
			}
		})
	}
}

// TestErrnos verifies that each errno of opening or reading the socket ends Watch, except
// ENOBUFS of reading it.
func TestErrnos(t *testing.T) {
	for errno := syscall.Errno(1); errno < 134; errno++ {
		err := watch(t.Context(), func() (socket, error) { return nil, errno }, func(e int) { t.Error(e) })
		if !errors.Is(err, errno) || !strings.HasPrefix(err.Error(), "watching links: opening a socket of NETLINK_ROUTE: ") {
			t.Errorf("dial: %v", err)
		}
		if errno == syscall.ENOBUFS {
			continue
		}
		events, err := watched(t, fails(fmt.Errorf("recvfrom: %w", errno)))
		if len(events) != 0 || !errors.Is(err, errno) || !strings.HasPrefix(err.Error(), "watching links: recvfrom: ") {
			t.Errorf("receive: %v, %v", events, err)
		}
	}
}

func TestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := watch(ctx, func() (socket, error) { return nil, errors.New("a socket") }, func(e int) { t.Error(e) })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// Events without end, or losses.
	for _, more := range []step{told(unix.RTM_NEWLINK, link(unix.AF_UNSPEC, 1)), fails(syscall.ENOBUFS)} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			s := &fakeSocket{steps: []step{more}, interrupted: make(chan struct{})}
			err := watch(ctx, func() (socket, error) { return s, nil }, func(int) {
				time.Sleep(time.Second)
				s.steps = []step{more}
			})
			if !errors.Is(err, context.DeadlineExceeded) || !s.closed {
				t.Error(err)
			}
		})
	}
}

func FuzzWatch(f *testing.F) {
	f.Add(message(unix.RTM_NEWLINK, link(unix.AF_UNSPEC, 7)))
	f.Add(message(unix.RTM_DELLINK, link(unix.AF_BRIDGE, 7)))
	f.Add(message(unix.NLMSG_DONE, make([]byte, 4)))
	f.Fuzz(func(t *testing.T, data []byte) {
		end := errors.New("the end")
		s := &fakeSocket{steps: []step{raw(data), fails(end)}, interrupted: make(chan struct{})}
		err := watch(t.Context(), func() (socket, error) { return s, nil }, func(ifindex int) {
			if ifindex <= 0 {
				t.Errorf("index %d", ifindex)
			}
		})
		if !errors.Is(err, end) && !errors.Is(err, ErrMalformed) {
			t.Error(err)
		}
	})
}
