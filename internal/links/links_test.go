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

	"rdma_exporter/internal/state"
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

// message makes one.
func message(kind uint16, data []byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(data)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, make([]byte, 10)...) // flags, sequence and sender
	b = append(b, data...)
	return append(b, make([]byte, -len(b)&3)...)
}

// attribute makes one.
func attribute(kind uint16, data []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(data)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, data...)
	return append(b, make([]byte, -len(b)&3)...)
}

func number(kind uint16, value uint32) []byte {
	return attribute(kind, binary.NativeEndian.AppendUint32(nil, value))
}

// info is the payload of a message of a link.
func info(family byte, index int32, flags uint32, attributes ...[]byte) []byte {
	b := []byte{family, 0, 1, 0}
	b = binary.NativeEndian.AppendUint32(b, uint32(index))
	b = binary.NativeEndian.AppendUint32(b, flags)
	b = binary.NativeEndian.AppendUint32(b, 0)
	return slices.Concat(b, slices.Concat(attributes...))
}

func named(name string) []byte { return attribute(unix.IFLA_IFNAME, append([]byte(name), 0)) }

const running = unix.IFF_UP | unix.IFF_LOWER_UP | unix.IFF_RUNNING

// link is the payload of a message of a link with counts.
func link(index int32, name string, flags, ups, downs uint32) []byte {
	return info(unix.AF_UNSPEC, index, flags, named(name), number(unix.IFLA_CARRIER_UP_COUNT, ups), number(unix.IFLA_CARRIER_DOWN_COUNT, downs))
}

// told is what all listeners are told.
func told(kind uint16, data []byte) step { return raw(message(kind, data)) }

func raw(b []byte) step { return step{datagram: b} }

func fails(err error) step { return step{err: err} }

// watched watches a socket with these steps until all were given, and returns the events
// and the error that Watch ended with of itself, or nil.
func watched(t *testing.T, steps ...step) (events []state.LinkEvent, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &fakeSocket{steps: steps, interrupted: make(chan struct{})}
		ended := make(chan error, 1)
		go func() {
			ended <- watch(ctx, func() (socket, error) { return s, nil }, func(e state.LinkEvent) { events = append(events, e) })
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

func TestWatch(t *testing.T) {
	lo := state.LinkEvent{Ifindex: 1, Name: "lo", Up: true, HasCounts: true}
	lost := state.LinkEvent{Lost: true}
	eth := func(ups, downs uint64) state.LinkEvent {
		return state.LinkEvent{Ifindex: 2, Name: "eth0", Up: ups > downs, CarrierUps: ups, CarrierDowns: downs, HasCounts: true}
	}
	loLink, ethLink := link(1, "lo", running, 0, 0), link(2, "eth0", running, 5, 4)
	for name, test := range map[string]struct {
		steps []step
		want  []state.LinkEvent
		says  string // and it ends; an error of what is malformed
	}{
		"nothing": {},
		"changes": {
			steps: []step{told(unix.RTM_NEWLINK, ethLink), told(unix.RTM_NEWLINK, link(2, "eth0", unix.IFF_UP, 5, 5))},
			want:  []state.LinkEvent{eth(5, 4), eth(5, 5)},
		},
		"what is no link": {
			steps: []step{told(unix.RTM_NEWADDR, nil), told(unix.NLMSG_NOOP, nil), told(unix.NLMSG_ERROR, []byte{255}), told(unix.NLMSG_DONE, nil), told(unix.RTM_NEWLINK, loLink)},
			want:  []state.LinkEvent{lo},
		},
		"lost, and again": {
			steps: []step{told(unix.RTM_NEWLINK, loLink), fails(fmt.Errorf("recvfrom: %w", syscall.ENOBUFS)), told(unix.RTM_NEWLINK, ethLink), fails(syscall.ENOBUFS), fails(syscall.ENOBUFS), told(unix.RTM_NEWLINK, link(2, "eth0", running, 9, 8))},
			want:  []state.LinkEvent{lo, lost, eth(5, 4), lost, lost, eth(9, 8)},
		},
		"several in a datagram": {
			steps: []step{raw(slices.Concat(message(unix.RTM_NEWLINK, loLink), message(unix.RTM_NEWLINK, ethLink)))},
			want:  []state.LinkEvent{lo, eth(5, 4)},
		},
		"longer than the buffer": {steps: []step{raw(make([]byte, receiveBuffer+1))}, says: "32769 bytes, more than 32768"},
		"a length that is none":  {steps: []step{raw(message(unix.RTM_NEWLINK, loLink)[:40])}, says: "40 bytes are no messages: invalid argument"},
		"a link that is none":    {steps: []step{told(unix.RTM_NEWLINK, ethLink), told(unix.RTM_NEWLINK, []byte{0})}, want: []state.LinkEvent{eth(5, 4)}, says: "a link of 1 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			events, err := watched(t, test.steps...)
			if !slices.Equal(events, test.want) {
				t.Errorf("events\n%+v, want\n%+v", events, test.want)
			}
			if (err != nil) != (test.says != "") || err != nil && (!errors.Is(err, ErrMalformed) || err.Error() != "watching links: malformed message: "+test.says) {
				t.Errorf("error %v, want %q", err, test.says)
			}
		})
	}
}

// Each errno of the socket but ENOBUFS, which is no end, ends Watch with that errno, and
// each of opening it.
func TestErrnos(t *testing.T) {
	for errno := syscall.Errno(1); errno < 134; errno++ {
		err := watch(t.Context(), func() (socket, error) { return nil, errno }, func(e state.LinkEvent) { t.Error(e) })
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

// A context that has ended ends Watch, whatever else goes on.
func TestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := watch(ctx, func() (socket, error) { return nil, errors.New("a socket") }, func(e state.LinkEvent) { t.Error(e) })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// Events without end, or losses.
	for _, more := range []step{told(unix.RTM_NEWLINK, link(1, "lo", running, 0, 0)), fails(syscall.ENOBUFS)} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			s := &fakeSocket{steps: []step{more}, interrupted: make(chan struct{})}
			err := watch(ctx, func() (socket, error) { return s, nil }, func(state.LinkEvent) {
				time.Sleep(time.Second)
				s.steps = []step{more}
			})
			if !errors.Is(err, context.DeadlineExceeded) || !s.closed {
				t.Error(err)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	full := link(7, "eth0", running, 3, 2)
	for name, test := range map[string]struct {
		kind uint16
		data []byte
		want state.LinkEvent
		ok   bool
		says string
	}{
		"up":             {unix.RTM_NEWLINK, full, state.LinkEvent{Ifindex: 7, Name: "eth0", Up: true, CarrierUps: 3, CarrierDowns: 2, HasCounts: true}, true, ""},
		"no carrier":     {unix.RTM_NEWLINK, link(7, "eth0", unix.IFF_UP|unix.IFF_RUNNING, 3, 3), state.LinkEvent{Ifindex: 7, Name: "eth0", CarrierUps: 3, CarrierDowns: 3, HasCounts: true}, true, ""},
		"not set up":     {unix.RTM_NEWLINK, link(7, "eth0", unix.IFF_LOWER_UP, 3, 2), state.LinkEvent{Ifindex: 7, Name: "eth0", CarrierUps: 3, CarrierDowns: 2, HasCounts: true}, true, ""},
		"dormant":        {unix.RTM_NEWLINK, link(7, "eth0", unix.IFF_UP|unix.IFF_LOWER_UP|unix.IFF_DORMANT, 3, 2), state.LinkEvent{Ifindex: 7, Name: "eth0", Up: true, CarrierUps: 3, CarrierDowns: 2, HasCounts: true}, true, ""},
		"largest counts": {unix.RTM_NEWLINK, link(1<<31-1, "fifteen_letters", 0, 1<<32-1, 1<<32-1), state.LinkEvent{Ifindex: 1<<31 - 1, Name: "fifteen_letters", CarrierUps: 1<<32 - 1, CarrierDowns: 1<<32 - 1, HasCounts: true}, true, ""},
		"gone":           {unix.RTM_DELLINK, full, state.LinkEvent{Ifindex: 7, Name: "eth0", Removed: true}, true, ""},
		"one count":      {unix.RTM_NEWLINK, info(0, 7, running, named("eth0"), number(unix.IFLA_CARRIER_DOWN_COUNT, 9)), state.LinkEvent{Ifindex: 7, Name: "eth0", Up: true}, true, ""},
		"unknown":        {unix.RTM_NEWLINK, info(0, 7, 0, attribute(4000, []byte{1}), named("eth0"), attribute(0x8000|26, []byte{9, 9, 9})), state.LinkEvent{Ifindex: 7, Name: "eth0"}, true, ""},
		"a bridge's":     {unix.RTM_DELLINK, info(unix.AF_BRIDGE, 7, 0, named("eth0")), state.LinkEvent{}, false, ""},
		"an address":     {unix.RTM_NEWADDR, full, state.LinkEvent{}, false, ""},
		"an end":         {unix.NLMSG_DONE, nil, state.LinkEvent{}, false, ""},
		"cut off":        {unix.RTM_NEWLINK, full[:15], state.LinkEvent{}, false, "a link of 15 bytes"},
		"number 0":       {unix.RTM_NEWLINK, link(0, "eth0", 0, 0, 0), state.LinkEvent{}, false, "a link of number 0"},
		"number -1":      {unix.RTM_NEWLINK, link(-1, "eth0", 0, 0, 0), state.LinkEvent{}, false, "a link of number -1"},
		"no name":        {unix.RTM_NEWLINK, info(0, 7, 0), state.LinkEvent{}, false, "link 7 has a name of 0 bytes"},
		"empty name":     {unix.RTM_NEWLINK, info(0, 7, 0, named("")), state.LinkEvent{}, false, "link 7 has a name of 0 bytes"},
		"long name":      {unix.RTM_NEWLINK, info(0, 7, 0, named("sixteen__letters")), state.LinkEvent{}, false, "link 7 has a name of 16 bytes"},
		"half a header":  {unix.RTM_NEWLINK, info(0, 7, 0, []byte{1, 2}), state.LinkEvent{}, false, "2 bytes are no attribute"},
		"short length":   {unix.RTM_NEWLINK, info(0, 7, 0, []byte{3, 0, 3, 0}), state.LinkEvent{}, false, "attribute 3: its length is 3, but there are 4 bytes"},
		"long length":    {unix.RTM_NEWLINK, info(0, 7, 0, []byte{9, 0, 3, 0}), state.LinkEvent{}, false, "attribute 3: its length is 9, but there are 4 bytes"},
		"wide count":     {unix.RTM_NEWLINK, info(0, 7, 0, attribute(unix.IFLA_CARRIER_UP_COUNT, make([]byte, 8))), state.LinkEvent{}, false, "attribute 47: 8 bytes, not 4"},
		"narrow count":   {unix.RTM_NEWLINK, info(0, 7, 0, attribute(unix.IFLA_CARRIER_DOWN_COUNT, nil)), state.LinkEvent{}, false, "attribute 48: 0 bytes, not 4"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok, err := Decode(syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: test.kind}, Data: test.data})
			if got != test.want || ok != test.ok || (err != nil) != (test.says != "") {
				t.Errorf("%+v, %v, %v, want %+v, %v, %q", got, ok, err, test.want, test.ok, test.says)
			}
			if err != nil && (!errors.Is(err, ErrMalformed) || err.Error() != "malformed message: "+test.says) {
				t.Errorf("%v, want %q", err, test.says)
			}
		})
	}
}

func FuzzWatch(f *testing.F) {
	f.Add(uint16(unix.RTM_NEWLINK), message(unix.RTM_NEWLINK, link(7, "eth0", running, 3, 2)))
	f.Add(uint16(unix.RTM_DELLINK), message(unix.RTM_DELLINK, link(7, "eth0", running, 3, 2)))
	f.Add(uint16(unix.RTM_NEWLINK), message(unix.NLMSG_DONE, make([]byte, 4)))
	f.Add(uint16(unix.RTM_NEWLINK), info(unix.AF_BRIDGE, 7, 0, named("eth0")))
	f.Fuzz(func(t *testing.T, kind uint16, data []byte) {
		check := func(e state.LinkEvent) {
			if e.Ifindex <= 0 || e.Name == "" || len(e.Name) > 15 || e.Lost || e.Removed && (e.Up || e.HasCounts) ||
				!e.HasCounts && (e.CarrierUps != 0 || e.CarrierDowns != 0) {
				t.Errorf("%+v", e)
			}
		}
		e, ok, err := Decode(syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: kind}, Data: data})
		switch {
		case err != nil && (!errors.Is(err, ErrMalformed) || ok), !ok && e != (state.LinkEvent{}):
			t.Errorf("%+v, %v, %v", e, ok, err)
		case ok:
			check(e)
		}
		end := errors.New("the end")
		s := &fakeSocket{steps: []step{raw(data), fails(end)}, interrupted: make(chan struct{})}
		err = watch(t.Context(), func() (socket, error) { return s, nil }, check)
		if !errors.Is(err, end) && !errors.Is(err, ErrMalformed) {
			t.Error(err)
		}
	})
}
