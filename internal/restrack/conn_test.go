package restrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
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

// A fakeSocket answers each request with the datagrams of answer, and then has nothing more to
// receive.
type fakeSocket struct {
	answer      func(netlink.Message) [][]byte
	sent        []netlink.Message
	queue       [][]byte
	interrupted chan struct{}
	closed      bool
}

func (s *fakeSocket) Send(m netlink.Message) (netlink.Message, error) {
	m.Header.Sequence, m.Header.PID = uint32(1000+len(s.sent)), 4242
	s.sent = append(s.sent, m)
	s.queue = append(s.queue, s.answer(m)...)
	return m, nil
}

func (s *fakeSocket) Receive(b []byte) (int, error) {
	if len(s.queue) == 0 {
		<-s.interrupted
		return 0, os.ErrDeadlineExceeded
	}
	datagram := s.queue[0]
	s.queue = s.queue[1:]
	copy(b, datagram)
	return len(datagram), nil
}

func (s *fakeSocket) Interrupt() { close(s.interrupted) }

func (s *fakeSocket) Close() error {
	s.closed = true
	return nil
}

func fake(t testing.TB, answer func(netlink.Message) [][]byte) (*Conn, *[]*fakeSocket) {
	t.Helper()
	var sockets []*fakeSocket
	conn, err := newConn(func() (socket, error) {
		s := &fakeSocket{answer: answer, interrupted: make(chan struct{})}
		sockets = append(sockets, s)
		return s, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return conn, &sockets
}

// A datagram answers a request.
type datagram func(netlink.Message) []byte

func datagrams(all ...datagram) func(netlink.Message) [][]byte {
	return func(m netlink.Message) [][]byte {
		var made [][]byte
		for _, d := range all {
			made = append(made, d(m))
		}
		return made
	}
}

func build(kind netlink.HeaderType, flags netlink.HeaderFlags, data []byte) datagram {
	return func(m netlink.Message) []byte {
		b := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(data)))
		b = binary.NativeEndian.AppendUint16(b, uint16(kind))
		b = binary.NativeEndian.AppendUint16(b, uint16(flags))
		b = binary.NativeEndian.AppendUint32(b, m.Header.Sequence)
		b = append(binary.NativeEndian.AppendUint32(b, m.Header.PID), data...)
		return append(b, make([]byte, -len(b)&3)...)
	}
}

func reply(data []byte) datagram {
	return func(m netlink.Message) []byte { return build(m.Header.Type, netlink.Multi, data)(m) }
}

func result32(kind netlink.HeaderType, value int32) datagram {
	return build(kind, netlink.Multi, binary.NativeEndian.AppendUint32(nil, uint32(value)))
}

func errno(e syscall.Errno) datagram { return result32(netlink.Error, -int32(e)) }

func done(m netlink.Message) []byte { return result32(netlink.Done, 0)(m) }

// fails answers a request with an errno, and replies answers it with one message.
func fails(e syscall.Errno) func(netlink.Message) [][]byte { return datagrams(errno(e)) }

func replies(data []byte) func(netlink.Message) [][]byte { return datagrams(reply(data)) }

// together makes one datagram of several messages.
func together(all ...datagram) datagram {
	return func(m netlink.Message) []byte { return slices.Concat(datagrams(all...)(m)...) }
}

// to makes a message that answers another request.
func to(change func(*netlink.Header), d datagram) datagram {
	return func(m netlink.Message) []byte {
		change(&m.Header)
		return d(m)
	}
}

func nest(kind uint16, parts ...[]byte) []byte {
	b, err := netlink.MarshalAttributes([]netlink.Attribute{{Type: kind, Data: slices.Concat(parts...)}})
	if err != nil {
		panic(err)
	}
	return b
}

func attribute32(kind uint16, value uint32) []byte { return nest(kind, number(kind, value).Data) }

func attribute64(kind uint16, value uint64) []byte {
	return nest(kind, binary.NativeEndian.AppendUint64(nil, value))
}

func text(kind uint16, value string) []byte { return nest(kind, append([]byte(value), 0)) }

// pds is the payload of a table of PDs with these numbers.
func pds(numbers ...uint32) []byte {
	var rows [][]byte
	for _, number := range numbers {
		rows = append(rows, nest(attrPD, attribute32(attrPDN, number), attribute32(attrPID, 77)))
	}
	return slices.Concat(attribute32(attrDeviceIndex, 3), text(attrDeviceName, "mlx5_0"), nest(attrPDs, rows...))
}

func pd(numbers ...uint32) datagram { return reply(pds(numbers...)) }

func dumpPDs(ctx context.Context, conn *Conn) (numbers []uint32, err error) {
	err = conn.Dump(ctx, 3, PD, func(o *Object) error {
		numbers = append(numbers, o.ID)
		return nil
	})
	return numbers, err
}

func TestRecordingsAgreeWithRDMA(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.name, func(t *testing.T) {
			// The replies are given as they came, with the numbers of the request.
			var section string
			var left [][]byte // of the section
			conn, _ := fake(t, func(m netlink.Message) [][]byte {
				if len(left) == 0 {
					left = r.datagrams(t, section)
				}
				// One section may have the replies to several requests.
				end := 1 + slices.IndexFunc(left, func(datagram []byte) bool {
					first, _, err := nextMessage(datagram)
					return err != nil || first.Header.Type>>10 != client || first.Header.Flags&netlink.Multi == 0
				})
				answer := left[:end]
				left = left[end:]
				for _, datagram := range answer {
					for b := datagram; len(b) > 0; {
						binary.NativeEndian.PutUint32(b[8:], m.Header.Sequence)
						binary.NativeEndian.PutUint32(b[12:], m.Header.PID)
						_, b, _ = nextMessage(b)
					}
				}
				return answer
			})
			ctx := t.Context()
			section = sectionName(commandDevice, 0)
			devices, err := conn.Devices(ctx)
			if want := []Device{{0, "rxe0"}, {1, "rxe1"}}; err != nil || !slices.Equal(devices, want) {
				t.Fatalf("devices: %+v, %v, want %+v", devices, err, want)
			}
			for _, device := range devices {
				section = sectionName(commandSummary, device.Index)
				counts, err := conn.Summary(ctx, device.Index)
				if err != nil {
					t.Error(err)
				}
				compareSummary(t, counts, r.sections["rdma resource"], device.Index)
				for _, kind := range Types() {
					what := fmt.Sprintf("%s of %s", kind, device.Name)
					section = sectionName(kind.table().command, device.Index)
					var got []Object
					err := conn.Dump(ctx, device.Index, kind, func(o *Object) error {
						got = append(got, *o)
						return nil
					})
					if err != nil || len(got) == 0 && device.Index == 0 {
						t.Errorf("%s: %d objects, %v", what, len(got), err)
					}
					compare(t, what, got, rows(t, kind, r.sections["rdma resource show "+kind.String()], device.Index))
					if len(got) == 0 || kind.table().perPort {
						continue
					}
					section = sectionName(kind.table().command, device.Index, got[0].ID)
					one, err := conn.Get(ctx, device.Index, kind, got[0].ID)
					if err != nil || one != got[0] {
						t.Errorf("%s: got\n%+v, the dump has\n%+v: %v", what, one, got[0], err)
					}
				}
			}
		})
	}
}

func TestRequests(t *testing.T) {
	device, detailed := attribute32(1, 5), nest(97, []byte{1})
	type want struct {
		command    netlink.HeaderType
		flags      netlink.HeaderFlags
		attributes []byte
	}
	type call func(context.Context, *Conn) error
	tests := map[string]struct {
		call call
		want want
	}{
		"devices": {func(ctx context.Context, c *Conn) error { _, err := c.Devices(ctx); return err }, want{1, 0x301, nil}},
		"summary": {
			func(ctx context.Context, c *Conn) error { _, err := c.Summary(ctx, 5); return err },
			want{9, 1, slices.Concat(device, detailed)},
		},
		"get pd": {
			func(ctx context.Context, c *Conn) error { _, err := c.Get(ctx, 5, PD, 9); return err },
			want{14, 1, slices.Concat(device, attribute32(60, 9))},
		},
	}
	for i, command := range []netlink.HeaderType{14, 12, 10, 11, 13, 22, 23} {
		kind, test := Types()[i], tests["dump"]
		test.call = func(ctx context.Context, c *Conn) error {
			return c.Dump(ctx, 5, kind, func(*Object) error { return nil })
		}
		test.want = want{command, 0x301, slices.Concat(device, detailed)}
		tests["dump "+kind.String()] = test
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conn, sockets := fake(t, func(m netlink.Message) [][]byte {
				if m.Header.Flags == netlink.Request {
					return [][]byte{reply(nil)(m)}
				}
				return [][]byte{done(m)}
			})
			if err := test.call(t.Context(), conn); err != nil {
				t.Fatal(err)
			}
			sent := (*sockets)[0].sent
			if len(sent) != 1 || len(*sockets) != 1 {
				t.Fatalf("%d requests on %d sockets", len(sent), len(*sockets))
			}
			m := sent[0]
			if m.Header.Type != 5<<10|test.want.command || m.Header.Flags != test.want.flags || string(m.Data) != string(test.want.attributes) {
				t.Errorf("sent %+v, want %+v", m, test.want)
			}
		})
	}
}

// TestDriversOwnTypes verifies that the queue pairs of a driver's own types are in table and
// summary once, whether or not the kernel leaves them out by default.
func TestDriversOwnTypes(t *testing.T) {
	qp := func(number uint32, typ uint8, more ...[]byte) []byte {
		return nest(attrQP, attribute32(attrLQPN, number), nest(attrType, []byte{typ}), slices.Concat(more...))
	}
	common := [][]byte{qp(1, 1), qp(7, 4)}
	own := [][]byte{qp(8, 0xff), qp(9, 0, text(attrSubtype, "REG_UMR"))} // 0: 0x1000, cut to a byte
	for name, leavesOut := range map[string]bool{"newer kernel": true, "older kernel": false} {
		t.Run(name, func(t *testing.T) {
			conn, _ := fake(t, func(m netlink.Message) [][]byte {
				rows := common
				for _, part := range split(m.Data) {
					if kind, value := kindOf(part), part[4]; !leavesOut || kind == 97 && value == 1 {
						rows = slices.Concat(common, own)
					}
				}
				if m.Header.Type == 5<<10|commandQP {
					return [][]byte{reply(nest(attrQPs, rows...))(m), done(m)}
				}
				count := attribute64(attrSummaryCurrent, uint64(len(rows)))
				return replies(nest(attrSummary, nest(attrSummaryEntry, text(attrSummaryName, "qp"), count)))(m)
			})
			counts, err := conn.Summary(t.Context(), 3)
			if want := []Count{{"qp", 4}}; err != nil || !slices.Equal(counts, want) {
				t.Errorf("summary %v, %v, want %v", counts, err, want)
			}
			var got []string
			err = conn.Dump(t.Context(), 3, QP, func(o *Object) error {
				got = append(got, fmt.Sprint(o.ID, " ", o.QPType))
				return nil
			})
			if want := []string{"1 gsi", "7 ud", "8 driver", "9 driver"}; err != nil || !slices.Equal(got, want) {
				t.Errorf("table %q, %v, want %q", got, err, want)
			}
		})
	}
}

// known answers a request for the device, and everything else by answer.
func known(answer func(netlink.Message) [][]byte) func(netlink.Message) [][]byte {
	return func(m netlink.Message) [][]byte {
		if m.Header.Type == client<<10|commandDevice && m.Header.Flags == netlink.Request {
			return [][]byte{reply(nil)(m)}
		}
		return answer(m)
	}
}

func TestReplies(t *testing.T) {
	earlier := func(h *netlink.Header) { h.Sequence-- }
	elsewhere := func(h *netlink.Header) { h.PID++ }
	interrupted := build(5<<10|commandPD, netlink.Multi|netlink.DumpInterrupted, pds(1))
	tests := map[string]struct {
		answer  func(netlink.Message) [][]byte
		numbers []uint32
		is      []error // what the error matches; none: success
		says    string
		redials bool // whether the socket must not be used again
	}{
		"none":                       {answer: datagrams(done)},
		"one datagram":               {answer: datagrams(together(pd(1), done)), numbers: []uint32{1}},
		"several":                    {answer: datagrams(together(pd(1, 2), pd(3)), pd(4), done), numbers: []uint32{1, 2, 3, 4}},
		"noop":                       {answer: datagrams(build(netlink.Noop, 0, nil), pd(1), done), numbers: []uint32{1}},
		"of an earlier request":      {answer: datagrams(to(earlier, pd(66)), to(earlier, errno(1)), to(earlier, done), pd(1), done), numbers: []uint32{1}},
		"to another socket":          {answer: datagrams(to(elsewhere, pd(66)), to(elsewhere, done), pd(1), done), numbers: []uint32{1}},
		"interrupted":                {answer: datagrams(interrupted, pd(2), done), numbers: []uint32{1, 2}, is: []error{ErrInterrupted}},
		"interrupted at the end":     {answer: datagrams(pd(1), build(netlink.Done, netlink.DumpInterrupted, make([]byte, 4))), numbers: []uint32{1}, is: []error{ErrInterrupted}},
		"an earlier one interrupted": {answer: datagrams(to(earlier, interrupted), done)},
		"errno": {
			answer: fails(syscall.EPERM), is: []error{syscall.EPERM, fs.ErrPermission},
			says: "RES_PD_GET of device 3: operation not permitted",
		},
		"errno at the end": {
			answer: datagrams(pd(1), result32(netlink.Done, -int32(syscall.ENOMEM))), numbers: []uint32{1}, is: []error{syscall.ENOMEM},
		},
		"not supported":               {answer: fails(syscall.EOPNOTSUPP), is: []error{syscall.EOPNOTSUPP, ErrNotSupported}},
		"no such device":              {answer: datagrams(result32(netlink.Done, -int32(syscall.EINVAL))), is: []error{syscall.ENODEV}},
		"the driver's EINVAL at once": {answer: known(fails(syscall.EINVAL)), is: []error{syscall.EINVAL}},
		"the driver's EINVAL": {
			answer: known(datagrams(pd(1), errno(syscall.EINVAL))), numbers: []uint32{1}, is: []error{syscall.EINVAL},
			says: "RES_PD_GET of device 3: invalid argument",
		},
		"another command's": {
			answer: datagrams(build(5<<10|9, netlink.Multi, nil)), is: []error{ErrMalformed}, redials: true,
			says: "RES_PD_GET of device 3: malformed message: its type is 0x1409, not 0x140e",
		},
		"overrun":              {answer: datagrams(build(netlink.Overrun, 0, nil)), is: []error{ErrMalformed}, redials: true},
		"an unknown errno":     {answer: datagrams(result32(netlink.Error, 1)), is: []error{ErrMalformed}, redials: true},
		"a truncated result":   {answer: datagrams(build(netlink.Done, netlink.Multi, []byte{0, 0})), is: []error{ErrMalformed}, redials: true},
		"a datagram too large": {answer: func(netlink.Message) [][]byte { return [][]byte{make([]byte, receiveBuffer+1)} }, is: []error{ErrMalformed}, redials: true},
		"the third malformed": {
			answer:  datagrams(together(pd(1), pd(2)), reply(nest(attrPDs, nest(attrPD, nest(attrPDN, []byte{1, 2}))))),
			numbers: []uint32{1, 2}, is: []error{ErrMalformed}, redials: true,
			says: "RES_PD_GET of device 3: malformed message: netlink: attribute 60 is not a uint32; length: 2",
		},
		"a row that never fits": {
			answer:  datagrams(append([]datagram{pd(1)}, slices.Repeat([]datagram{pd()}, 100)...)...),
			numbers: []uint32{1}, is: []error{syscall.EMSGSIZE}, redials: true,
		},
		"many rows that fit later": {
			answer:  datagrams(append(slices.Repeat([]datagram{pd(), pd(1)}, 2*maxEmpty), done)...),
			numbers: slices.Repeat([]uint32{1}, 2*maxEmpty),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conn, sockets := fake(t, test.answer)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			numbers, err := dumpPDs(ctx, conn)
			if !slices.Equal(numbers, test.numbers) {
				t.Errorf("visited %v, want %v", numbers, test.numbers)
			}
			if (err != nil) != (len(test.is) > 0) || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("error: %v, want %q", err, test.says)
			}
			for _, target := range test.is {
				if !errors.Is(err, target) {
					t.Errorf("%v is not %v", err, target)
				}
			}
			for _, target := range []error{ErrInterrupted, ErrMalformed, ErrNotSupported, syscall.ENODEV} {
				if errors.Is(err, target) && !slices.Contains(test.is, target) {
					t.Errorf("%v is %v, too", err, target)
				}
			}
			if (*sockets)[0].closed != test.redials {
				t.Errorf("socket closed: %t", (*sockets)[0].closed)
			}
			// The Conn can be used again.
			answer := datagrams(pd(8), done)
			(*sockets)[0].answer = answer
			conn.dial = func() (socket, error) { return &fakeSocket{answer: answer}, nil }
			if numbers, err := dumpPDs(t.Context(), conn); err != nil || !slices.Equal(numbers, []uint32{8}) {
				t.Errorf("the next dump: %v, %v", numbers, err)
			}
		})
	}
}

// TestTruncatedDatagrams verifies that a datagram that is cut off at any byte, or has a message
// with a wrong length, is refused. The messages before that are visited.
func TestTruncatedDatagrams(t *testing.T) {
	whole := together(pd(1), pd(2), done)
	one, size := len(pd(1)(netlink.Message{})), len(whole(netlink.Message{}))
	for i := 1; i < size; i++ {
		conn, sockets := fake(t, datagrams(func(m netlink.Message) []byte { return whole(m)[:i] }, done))
		numbers, err := dumpPDs(t.Context(), conn)
		if want := []uint32{1, 2}[:min(i/one, 2)]; !slices.Equal(numbers, want) {
			t.Errorf("%d of %d bytes: visited %v, want %v", i, size, numbers, want)
		}
		if complete := i%one == 0 && i <= 2*one; complete != (err == nil) || !complete && (!errors.Is(err, ErrMalformed) || !(*sockets)[0].closed) {
			t.Errorf("%d of %d bytes: %v", i, size, err)
		}
	}
	for _, length := range []uint32{0, 1, 15, uint32(one) + 1, 1 << 31, 1<<32 - 1} {
		conn, _ := fake(t, datagrams(func(m netlink.Message) []byte {
			bad := pd(1)(m)
			binary.NativeEndian.PutUint32(bad, length)
			return bad
		}, done))
		if numbers, err := dumpPDs(t.Context(), conn); !errors.Is(err, ErrMalformed) || len(numbers) != 0 {
			t.Errorf("length %d: visited %v, %v", length, numbers, err)
		}
	}
}

func TestNoReply(t *testing.T) {
	conn, _ := fake(t, fails(0))
	if _, err := conn.Summary(t.Context(), 3); !errors.Is(err, ErrMalformed) {
		t.Errorf("an acknowledgement without a reply: %v", err)
	}
}

func TestContext(t *testing.T) { synctest.Test(t, contexts) }

func contexts(t *testing.T) {
	conn, sockets := fake(t, datagrams(pd(1)))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if numbers, err := dumpPDs(ctx, conn); !errors.Is(err, context.Canceled) || len(numbers) != 1 {
		t.Errorf("cancelled while waiting: %v, %v", numbers, err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for i, call := range []string{"at the deadline", "after the deadline"} {
		if numbers, err := dumpPDs(ctx, conn); !errors.Is(err, context.DeadlineExceeded) || len(numbers) != 1-i {
			t.Errorf("%s: %v, %v", call, numbers, err)
		}
	}
	if len(*sockets) != 2 || !(*sockets)[0].closed || !(*sockets)[1].closed {
		t.Errorf("%d sockets", len(*sockets))
	}

	// A context that ends while the last reply is handled does no harm.
	conn, sockets = fake(t, datagrams(together(pd(1), done)))
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		err := conn.Dump(ctx, 3, PD, func(*Object) error { cancel(); return nil })
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if len(*sockets) != 3 {
		t.Errorf("%d sockets", len(*sockets))
	}
}

func TestVisitorsError(t *testing.T) {
	conn, sockets := fake(t, datagrams(pd(1, 2), pd(3), done))
	enough := errors.New("enough")
	visits := 0
	err := conn.Dump(t.Context(), 3, PD, func(*Object) error { visits++; return enough })
	if err != enough || visits != 1 { //nolint:errorlint // It is returned as it is.
		t.Errorf("after %d visits: %v", visits, err)
	}
	if numbers, err := dumpPDs(t.Context(), conn); err != nil || !slices.Equal(numbers, []uint32{1, 2, 3}) {
		t.Errorf("the next dump: %v, %v", numbers, err)
	}
	if len(*sockets) != 2 || !(*sockets)[0].closed {
		t.Errorf("%d sockets", len(*sockets))
	}
}

func TestClose(t *testing.T) {
	conn, sockets := fake(t, datagrams(done))
	for range 2 {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := conn.Devices(t.Context()); !errors.Is(err, os.ErrClosed) || !(*sockets)[0].closed {
		t.Errorf("after Close: %v", err)
	}
	_, err := newConn(func() (socket, error) { return nil, syscall.EPROTONOSUPPORT })
	if !errors.Is(err, syscall.EPROTONOSUPPORT) {
		t.Error(err)
	}
}

// TestInvalid verifies that the kernel is not asked for unknown types and ports.
func TestInvalid(t *testing.T) {
	conn, sockets := fake(t, fails(syscall.ENOSYS))
	var errs []error
	for _, kind := range []Type{0, SRQ + 1} {
		errs = append(errs, conn.Dump(t.Context(), 3, kind, nil))
	}
	for _, kind := range []Type{0, SRQ + 1, QP, CMID} {
		_, err := conn.Get(t.Context(), 3, kind, 1)
		errs = append(errs, err)
	}
	for _, port := range []int{-1, 0, 256, 1 << 40} {
		_, err := conn.Statistic(t.Context(), 3, port)
		_, err2 := conn.Netdev(t.Context(), 3, port)
		errs = append(errs, err, err2)
	}
	for i, err := range errs {
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if sent := (*sockets)[0].sent; len(sent) != 0 {
		t.Errorf("sent %v", sent)
	}
}

// TestOldKernels verifies that only tables that an old kernel can lack are reported as not
// supported.
func TestOldKernels(t *testing.T) {
	conn, _ := fake(t, known(fails(syscall.EINVAL)))
	for _, typ := range Types() {
		err := conn.Dump(t.Context(), 3, typ, func(*Object) error { return nil })
		if lacks := typ == CTX || typ == SRQ; errors.Is(err, ErrNotSupported) != lacks || !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %v", typ, err)
		}
	}
	if _, err := conn.Summary(t.Context(), 3); !errors.Is(err, ErrNotSupported) {
		t.Errorf("the summary: %v", err)
	}
}

func FuzzConn(f *testing.F) {
	for _, r := range recordings(f) {
		for section := range r.sections {
			if strings.Contains(section, "GET") {
				for _, datagram := range r.datagrams(f, section) {
					f.Add(uint16(0), datagram)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, at uint16, datagram []byte) {
		conn, _ := fake(t, func(m netlink.Message) [][]byte {
			// Otherwise the fuzzer would have to guess the request's numbers.
			if i := int(at); i+unix.NLMSG_HDRLEN <= len(datagram) {
				binary.NativeEndian.PutUint32(datagram[i+8:], m.Header.Sequence)
				binary.NativeEndian.PutUint32(datagram[i+12:], m.Header.PID)
			}
			return [][]byte{datagram, done(m)}
		})
		if m, _, err := nextMessage(append(datagram, make([]byte, unix.NLMSG_HDRLEN)...)); err == nil {
			for _, kind := range Types() {
				if client<<10|kind.table().command == uint16(m.Header.Type) {
					_ = conn.Dump(t.Context(), 0, kind, func(*Object) error { return nil })
					_, _ = conn.Get(t.Context(), 0, kind, 0)
				}
			}
		}
		_, _ = conn.Devices(t.Context())
		_, _ = conn.Summary(t.Context(), 0)
		_, _ = conn.driver(t.Context(), 0)
	})
}
