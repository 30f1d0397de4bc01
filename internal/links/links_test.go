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

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// A step is what a fake socket gives next: a datagram, made with the number of the latest
// request, or an error.
type step struct {
	datagram func(sequence uint32) []byte
	err      error
}

// A fakeSocket gives its steps, and then waits to be interrupted.
type fakeSocket struct {
	steps       []step
	sent        []netlink.Message
	sendFails   error
	sticks      chan struct{} // if not nil, send waits for it
	interrupted chan struct{}
	closed      bool
}

const fakeSequence = 1000 // of the first request

func (s *fakeSocket) send(m netlink.Message) (netlink.Message, error) {
	if s.sticks != nil {
		<-s.sticks
	}
	if s.sendFails != nil {
		return m, s.sendFails
	}
	m.Header.Sequence = uint32(fakeSequence + len(s.sent))
	s.sent = append(s.sent, m)
	return m, nil
}

func (s *fakeSocket) receive(b []byte) (int, error) {
	if len(s.steps) == 0 {
		<-s.interrupted
		return 0, os.ErrDeadlineExceeded
	}
	next := s.steps[0]
	s.steps = s.steps[1:]
	if next.err != nil {
		return 0, next.err
	}
	datagram := next.datagram(uint32(fakeSequence + len(s.sent) - 1))
	copy(b, datagram)
	return len(datagram), nil
}

func (s *fakeSocket) interrupt() { close(s.interrupted) }

func (s *fakeSocket) close() error {
	s.closed = true
	return nil
}

// message makes one.
func message(kind, flags uint16, sequence uint32, data []byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(data)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint32(b, sequence)
	b = binary.NativeEndian.AppendUint32(b, 0)
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

// listed is a part of a list.
func listed(links ...[]byte) step { return listedWith(0, links...) }

func listedWith(flags uint16, links ...[]byte) step {
	return step{datagram: func(sequence uint32) (b []byte) {
		for _, l := range links {
			b = append(b, message(unix.RTM_NEWLINK, unix.NLM_F_MULTI|flags, sequence, l)...)
		}
		return b
	}}
}

// done ends a list.
func done(errno syscall.Errno) step {
	return step{datagram: func(sequence uint32) []byte {
		return message(unix.NLMSG_DONE, unix.NLM_F_MULTI, sequence, binary.NativeEndian.AppendUint32(nil, uint32(-int32(errno))))
	}}
}

func refused(errno syscall.Errno) step {
	return step{datagram: func(sequence uint32) []byte {
		return message(unix.NLMSG_ERROR, 0, sequence, binary.NativeEndian.AppendUint32(nil, uint32(-int32(errno))))
	}}
}

// told is what all listeners are told.
func told(kind uint16, data []byte) step {
	return step{datagram: func(uint32) []byte { return message(kind, 0, 0, data) }}
}

func raw(b []byte) step { return step{datagram: func(uint32) []byte { return b }} }

func fails(err error) step { return step{err: err} }

// watched watches sockets with these steps until all were given, and returns the events,
// the error that Watch ended with of itself, or nil, and the sockets.
func watched(t *testing.T, sockets ...[]step) (events []Event, made []*fakeSocket, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			ended <- watch(ctx, func() (socket, error) {
				if len(made) == len(sockets) {
					return nil, syscall.EMFILE
				}
				s := &fakeSocket{steps: sockets[len(made)], interrupted: make(chan struct{})}
				made = append(made, s)
				return s, nil
			}, func(e Event) { events = append(events, e) })
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
		for _, s := range made {
			if !s.closed {
				t.Error("a socket is left open")
			}
		}
	})
	return events, made, err
}

func TestWatch(t *testing.T) {
	lo := Event{Ifindex: 1, Name: "lo", Up: true, HasCounts: true}
	lost := Event{Lost: true}
	eth := func(ups, downs uint64) Event {
		return Event{Ifindex: 2, Name: "eth0", Up: ups > downs, CarrierUps: ups, CarrierDowns: downs, HasCounts: true}
	}
	loLink, ethLink := link(1, "lo", running, 0, 0), link(2, "eth0", running, 5, 4)
	long := make([]byte, receiveBuffer+1)
	for name, test := range map[string]struct {
		sockets [][]step
		want    []Event
		is      []error
		says    string
		lists   int // how often it is asked for, on the last socket
	}{
		"a list and a change": {
			sockets: [][]step{{listed(loLink, ethLink), done(0), told(unix.RTM_NEWLINK, link(2, "eth0", unix.IFF_UP, 5, 5))}},
			want:    []Event{lo, eth(5, 4), eth(5, 5)},
			lists:   1,
		},
		"a change within the list": {
			sockets: [][]step{{listed(loLink), told(unix.RTM_NEWLINK, link(2, "eth0", unix.IFF_UP, 5, 5)), listed(link(2, "eth0", running, 6, 5)), done(0)}},
			want:    []Event{lo, eth(5, 5), eth(6, 5)},
			lists:   1,
		},
		"gone, and another": {
			sockets: [][]step{{listed(loLink, ethLink), done(0), told(unix.RTM_DELLINK, ethLink), told(unix.RTM_NEWLINK, link(3, "eth0", 0, 0, 1))}},
			want:    []Event{lo, eth(5, 4), {Ifindex: 2, Name: "eth0", Gone: true}, {Ifindex: 3, Name: "eth0", CarrierDowns: 1, HasCounts: true}},
			lists:   1,
		},
		"gone that never was": {
			sockets: [][]step{{told(unix.RTM_DELLINK, ethLink), listed(loLink), done(0)}},
			want:    []Event{lo},
			lists:   1,
		},
		"renamed": {
			sockets: [][]step{{listed(ethLink), done(0), told(unix.RTM_NEWLINK, link(2, "fast0", running, 5, 4)), told(unix.RTM_DELLINK, link(2, "fast0", 0, 5, 5))}},
			want: []Event{
				eth(5, 4),
				{Ifindex: 2, Name: "fast0", Up: true, CarrierUps: 5, CarrierDowns: 4, HasCounts: true},
				{Ifindex: 2, Name: "fast0", Gone: true},
			},
			lists: 1,
		},
		"left a bridge": {
			sockets: [][]step{{listed(ethLink), done(0), told(unix.RTM_DELLINK, info(unix.AF_BRIDGE, 2, 0, named("eth0")))}},
			want:    []Event{eth(5, 4)},
			lists:   1,
		},
		"without counts": {
			sockets: [][]step{{done(0), told(unix.RTM_NEWLINK, info(unix.AF_UNSPEC, 4, running, named("wlan0"), number(unix.IFLA_CARRIER_UP_COUNT, 3)))}},
			want:    []Event{{Ifindex: 4, Name: "wlan0", Up: true}},
			lists:   1,
		},
		"what is no link": {
			sockets: [][]step{{listed(loLink), told(unix.RTM_NEWADDR, nil), told(unix.NLMSG_NOOP, nil), done(0)}},
			want:    []Event{lo},
			lists:   1,
		},
		"lost after the list": {
			sockets: [][]step{
				{listed(loLink, ethLink), done(0), fails(fmt.Errorf("recvfrom: %w", syscall.ENOBUFS))},
				{listed(loLink, link(3, "eth1", running, 2, 1)), done(0)},
			},
			want: []Event{
				lo, eth(5, 4), lost, lo,
				{Ifindex: 3, Name: "eth1", Up: true, CarrierUps: 2, CarrierDowns: 1, HasCounts: true},
				{Ifindex: 2, Name: "eth0", Gone: true},
			},
			lists: 1,
		},
		"lost within the list, and again": {
			sockets: [][]step{{listed(loLink), fails(syscall.ENOBUFS)}, {fails(syscall.ENOBUFS)}, {listed(loLink, ethLink), done(0)}},
			want:    []Event{lo, lost, lost, lo, eth(5, 4)},
			lists:   1,
		},
		"a list that changed": {
			sockets: [][]step{{listed(loLink, ethLink), done(0), fails(syscall.ENOBUFS)}, {listedWith(unix.NLM_F_DUMP_INTR, loLink), done(0), listed(loLink, link(2, "eth0", running, 6, 5)), done(0)}},
			want:    []Event{lo, eth(5, 4), lost, lo, lo, eth(6, 5)},
			lists:   2,
		},
		// What may be missing by chance is not taken for gone.
		"a list that always changes": {
			sockets: [][]step{{listed(ethLink), done(0), fails(syscall.ENOBUFS)}, slices.Repeat([]step{listedWith(unix.NLM_F_DUMP_INTR, loLink), done(0)}, 4)},
			want:    []Event{eth(5, 4), lost, lo, lo, lo, lo},
			lists:   4,
		},
		"another's answers": {
			sockets: [][]step{{
				step{datagram: func(sequence uint32) []byte { return message(unix.NLMSG_DONE, 0, sequence-1, make([]byte, 4)) }},
				step{datagram: func(sequence uint32) []byte {
					return message(unix.NLMSG_ERROR, 0, sequence+1, []byte{0xff, 0xff, 0xff, 0xff})
				}},
				listed(loLink), done(0), done(syscall.EIO), refused(syscall.EIO),
			}},
			want:  []Event{lo},
			lists: 1,
		},
		"several in a datagram": {
			sockets: [][]step{{raw(slices.Concat(message(unix.RTM_NEWLINK, 0, 0, loLink), message(unix.RTM_NEWLINK, 0, 0, ethLink)))}},
			want:    []Event{lo, eth(5, 4)},
			lists:   1,
		},
		"a list of nothing":         {sockets: [][]step{{done(0)}}, lists: 1},
		"no list":                   {sockets: [][]step{{refused(syscall.EPERM)}}, is: []error{syscall.EPERM}, says: "watching links: RTM_GETLINK: operation not permitted", lists: 1},
		"a list that breaks off":    {sockets: [][]step{{listed(loLink), done(syscall.ENOMEM)}}, want: []Event{lo}, is: []error{syscall.ENOMEM}, lists: 1},
		"no result":                 {sockets: [][]step{{step{datagram: func(n uint32) []byte { return message(unix.NLMSG_DONE, 0, n, []byte{1}) }}}}, is: []error{ErrMalformed}, says: "watching links: RTM_GETLINK: malformed message: its result has 1 bytes, not 4", lists: 1},
		"a result that is none":     {sockets: [][]step{{step{datagram: func(n uint32) []byte { return message(unix.NLMSG_DONE, 0, n, []byte{1, 0, 0, 0}) }}}}, is: []error{ErrMalformed}, lists: 1},
		"overrun":                   {sockets: [][]step{{told(unix.NLMSG_OVERRUN, nil)}}, is: []error{ErrMalformed}, says: "watching links: malformed message: NLMSG_OVERRUN", lists: 1},
		"longer than the buffer":    {sockets: [][]step{{raw(long)}}, is: []error{ErrMalformed}, says: "watching links: malformed message: 32769 bytes, more than 32768", lists: 1},
		"a length that is none":     {sockets: [][]step{{raw(message(unix.RTM_NEWLINK, 0, 0, loLink)[:40])}}, is: []error{ErrMalformed}, says: "watching links: malformed message: 40 bytes are no messages: invalid argument", lists: 1},
		"a link that is none":       {sockets: [][]step{{told(unix.RTM_NEWLINK, []byte{0})}}, is: []error{ErrMalformed}, says: "watching links: malformed message: a link of 1 bytes", lists: 1},
		"no socket after the first": {sockets: [][]step{{fails(syscall.ENOBUFS)}}, want: []Event{lost}, is: []error{syscall.EMFILE}, says: "watching links: opening a socket of NETLINK_ROUTE: too many open files", lists: 1},
	} {
		t.Run(name, func(t *testing.T) {
			events, made, err := watched(t, test.sockets...)
			if !slices.Equal(events, test.want) {
				t.Errorf("events\n%+v, want\n%+v", events, test.want)
			}
			if (err != nil) != (test.is != nil) || test.says != "" && err.Error() != test.says {
				t.Errorf("error %v, want %q", err, test.says)
			}
			for _, target := range test.is {
				if !errors.Is(err, target) {
					t.Errorf("%v is not %v", err, target)
				}
			}
			last := made[len(made)-1]
			if len(last.sent) != test.lists {
				t.Errorf("%d lists, want %d", len(last.sent), test.lists)
			}
			for _, m := range last.sent {
				want := slices.Concat(make([]byte, 16), number(unix.IFLA_EXT_MASK, 8))
				if m.Header.Type != unix.RTM_GETLINK || m.Header.Flags != 0x301 || string(m.Data) != string(want) {
					t.Errorf("sent %+v", m)
				}
			}
		})
	}
}

// Each errno of the socket but ENOBUFS, which is no end, ends Watch with that errno.
func TestErrnos(t *testing.T) {
	for errno := syscall.Errno(1); errno < 134; errno++ {
		if errno == syscall.ENOBUFS {
			continue
		}
		events, _, err := watched(t, []step{fails(fmt.Errorf("recvfrom: %w", errno))})
		if len(events) != 0 || !errors.Is(err, errno) || !strings.HasPrefix(err.Error(), "watching links: recvfrom: ") {
			t.Errorf("receive: %v, %v", events, err)
		}
		if _, _, err := watched(t, []step{refused(errno)}); !errors.Is(err, errno) {
			t.Errorf("list: %v", err)
		}
	}
	// To be refused a list for lack of memory is not to lose events.
	for _, errno := range []syscall.Errno{syscall.ENOBUFS, syscall.EPERM} {
		if events, _, err := watched(t, []step{refused(errno)}); len(events) != 0 || !errors.Is(err, errno) {
			t.Errorf("%v, %v", events, err)
		}
		s := &fakeSocket{sendFails: errno, interrupted: make(chan struct{})}
		err := watch(t.Context(), func() (socket, error) { return s, nil }, func(e Event) { t.Error(e) })
		if !errors.Is(err, errno) || !s.closed {
			t.Errorf("send: %v", err)
		}
		err = watch(t.Context(), func() (socket, error) { return nil, errno }, func(e Event) { t.Error(e) })
		if !errors.Is(err, errno) {
			t.Errorf("dial: %v", err)
		}
	}
}

// A context that has ended ends Watch, whatever else goes on.
func TestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := watch(ctx, func() (socket, error) { return nil, errors.New("a socket") }, func(e Event) { t.Error(e) })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		// Events without end.
		s := &fakeSocket{interrupted: make(chan struct{})}
		more := told(unix.RTM_NEWLINK, link(1, "lo", running, 0, 0))
		s.steps = []step{more}
		err := watch(ctx, func() (socket, error) { return s, nil }, func(Event) {
			time.Sleep(time.Second)
			s.steps = []step{more}
		})
		if !errors.Is(err, context.DeadlineExceeded) || !s.closed {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		lost := 0
		err := watch(ctx, func() (socket, error) {
			return &fakeSocket{steps: []step{fails(syscall.ENOBUFS)}, interrupted: make(chan struct{})}, nil
		}, func(Event) {
			time.Sleep(time.Second)
			lost++
		})
		if !errors.Is(err, context.DeadlineExceeded) || lost < 3599 {
			t.Errorf("%d, %v", lost, err)
		}
	})
}

// A kernel that does not return from a system call is left behind, and is not heard when
// it returns after all.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s := &fakeSocket{steps: []step{listed(link(1, "lo", running, 0, 0))}, interrupted: make(chan struct{}), sticks: make(chan struct{})}
		err := watch(ctx, func() (socket, error) { return s, nil }, func(e Event) { t.Error(e) })
		if !errors.Is(err, context.DeadlineExceeded) || err.Error() != "watching links: the kernel does not return: context deadline exceeded" {
			t.Error(err)
		}
		close(s.sticks)
		synctest.Wait()
		if !s.closed {
			t.Error("the socket is left open")
		}
	})
	// To wait for handle is not to wait for the kernel.
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		one := link(1, "lo", running, 0, 0)
		s := &fakeSocket{steps: []step{listed(one, one)}, interrupted: make(chan struct{})}
		calls := 0
		err := watch(ctx, func() (socket, error) { return s, nil }, func(Event) {
			time.Sleep(2 * time.Hour)
			calls++
		})
		if !errors.Is(err, context.DeadlineExceeded) || calls == 0 {
			t.Errorf("%d calls, %v", calls, err)
		}
		before := calls
		synctest.Wait()
		if calls != before {
			t.Error("handle is called after the end")
		}
	})
}

func TestDecode(t *testing.T) {
	full := link(7, "eth0", running, 3, 2)
	for name, test := range map[string]struct {
		kind uint16
		data []byte
		want Event
		ok   bool
		says string
	}{
		"up":             {unix.RTM_NEWLINK, full, Event{Ifindex: 7, Name: "eth0", Up: true, CarrierUps: 3, CarrierDowns: 2, HasCounts: true}, true, ""},
		"no carrier":     {unix.RTM_NEWLINK, link(7, "eth0", unix.IFF_UP|unix.IFF_RUNNING, 3, 3), Event{Ifindex: 7, Name: "eth0", CarrierUps: 3, CarrierDowns: 3, HasCounts: true}, true, ""},
		"not set up":     {unix.RTM_NEWLINK, link(7, "eth0", unix.IFF_LOWER_UP, 3, 2), Event{Ifindex: 7, Name: "eth0", CarrierUps: 3, CarrierDowns: 2, HasCounts: true}, true, ""},
		"dormant":        {unix.RTM_NEWLINK, link(7, "eth0", unix.IFF_UP|unix.IFF_LOWER_UP|unix.IFF_DORMANT, 3, 2), Event{Ifindex: 7, Name: "eth0", Up: true, CarrierUps: 3, CarrierDowns: 2, HasCounts: true}, true, ""},
		"largest counts": {unix.RTM_NEWLINK, link(1<<31-1, "fifteen_letters", 0, 1<<32-1, 1<<32-1), Event{Ifindex: 1<<31 - 1, Name: "fifteen_letters", CarrierUps: 1<<32 - 1, CarrierDowns: 1<<32 - 1, HasCounts: true}, true, ""},
		"gone":           {unix.RTM_DELLINK, full, Event{Ifindex: 7, Name: "eth0", Gone: true}, true, ""},
		"one count":      {unix.RTM_NEWLINK, info(0, 7, running, named("eth0"), number(unix.IFLA_CARRIER_DOWN_COUNT, 9)), Event{Ifindex: 7, Name: "eth0", Up: true}, true, ""},
		"unknown":        {unix.RTM_NEWLINK, info(0, 7, 0, attribute(4000, []byte{1}), named("eth0"), attribute(0x8000|26, []byte{9, 9, 9})), Event{Ifindex: 7, Name: "eth0"}, true, ""},
		"a bridge's":     {unix.RTM_DELLINK, info(unix.AF_BRIDGE, 7, 0, named("eth0")), Event{}, false, ""},
		"an address":     {unix.RTM_NEWADDR, full, Event{}, false, ""},
		"an end":         {unix.NLMSG_DONE, nil, Event{}, false, ""},
		"cut off":        {unix.RTM_NEWLINK, full[:15], Event{}, false, "a link of 15 bytes"},
		"number 0":       {unix.RTM_NEWLINK, link(0, "eth0", 0, 0, 0), Event{}, false, "a link of number 0"},
		"number -1":      {unix.RTM_NEWLINK, link(-1, "eth0", 0, 0, 0), Event{}, false, "a link of number -1"},
		"no name":        {unix.RTM_NEWLINK, info(0, 7, 0), Event{}, false, "link 7 has a name of 0 bytes"},
		"empty name":     {unix.RTM_NEWLINK, info(0, 7, 0, named("")), Event{}, false, "link 7 has a name of 0 bytes"},
		"long name":      {unix.RTM_NEWLINK, info(0, 7, 0, named("sixteen__letters")), Event{}, false, "link 7 has a name of 16 bytes"},
		"half a header":  {unix.RTM_NEWLINK, info(0, 7, 0, []byte{1, 2}), Event{}, false, "2 bytes are no attribute"},
		"short length":   {unix.RTM_NEWLINK, info(0, 7, 0, []byte{3, 0, 3, 0}), Event{}, false, "attribute 3: its length is 3, but there are 4 bytes"},
		"long length":    {unix.RTM_NEWLINK, info(0, 7, 0, []byte{9, 0, 3, 0}), Event{}, false, "attribute 3: its length is 9, but there are 4 bytes"},
		"wide count":     {unix.RTM_NEWLINK, info(0, 7, 0, attribute(unix.IFLA_CARRIER_UP_COUNT, make([]byte, 8))), Event{}, false, "attribute 47: 8 bytes, not 4"},
		"narrow count":   {unix.RTM_NEWLINK, info(0, 7, 0, attribute(unix.IFLA_CARRIER_DOWN_COUNT, nil)), Event{}, false, "attribute 48: 0 bytes, not 4"},
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
	f.Add(uint16(unix.RTM_NEWLINK), message(unix.RTM_NEWLINK, 0, 0, link(7, "eth0", running, 3, 2)))
	f.Add(uint16(unix.RTM_DELLINK), message(unix.RTM_DELLINK, 0, 0, link(7, "eth0", running, 3, 2)))
	f.Add(uint16(unix.RTM_NEWLINK), message(unix.NLMSG_DONE, 2, fakeSequence, make([]byte, 4)))
	f.Add(uint16(unix.RTM_NEWLINK), info(unix.AF_BRIDGE, 7, 0, named("eth0")))
	f.Fuzz(func(t *testing.T, kind uint16, data []byte) {
		check := func(e Event) {
			if e.Ifindex <= 0 || e.Name == "" || len(e.Name) > 15 || e.Lost || e.Gone && (e.Up || e.HasCounts) ||
				!e.HasCounts && (e.CarrierUps != 0 || e.CarrierDowns != 0) {
				t.Errorf("%+v", e)
			}
		}
		e, ok, err := Decode(syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: kind}, Data: data})
		switch {
		case err != nil && (!errors.Is(err, ErrMalformed) || ok), !ok && e != (Event{}):
			t.Errorf("%+v, %v, %v", e, ok, err)
		case ok:
			check(e)
		}
		end := errors.New("the end")
		s := &fakeSocket{steps: []step{raw(data), fails(end)}, interrupted: make(chan struct{})}
		err = watch(t.Context(), func() (socket, error) { return s, nil }, check)
		var errno syscall.Errno
		if !errors.Is(err, end) && !errors.Is(err, ErrMalformed) && !errors.As(err, &errno) {
			t.Error(err)
		}
	})
}
