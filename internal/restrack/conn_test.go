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
)

// A fakeSocket answers each request with the datagrams of answer, and then has
// nothing more to receive.
type fakeSocket struct {
	answer      func(netlink.Message) [][]byte
	sent        []netlink.Message
	queue       [][]byte
	interrupted chan struct{}
	closed      bool
}

const (
	fakePID      = 4242
	fakeSequence = 1000 // of the first request
)

func (s *fakeSocket) Send(m netlink.Message) (netlink.Message, error) {
	m.Header.Sequence, m.Header.PID = uint32(fakeSequence+len(s.sent)), fakePID
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

// fake returns a Conn that is answered by a function, and the sockets that it
// opens in its life.
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

// build makes a message that answers m.
func build(m netlink.Message, kind, flags uint16, data []byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(messageHeader+len(data)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint32(b, m.Header.Sequence)
	b = binary.NativeEndian.AppendUint32(b, m.Header.PID)
	b = append(b, data...)
	return append(b, make([]byte, align(len(b))-len(b))...)
}

// reply makes the reply that m asks for.
func reply(m netlink.Message, flags uint16, data []byte) []byte {
	return build(m, uint16(m.Header.Type), flags, data)
}

// answered makes a message that ends the replies with a result.
func answered(m netlink.Message, kind uint16, value int32) []byte {
	return build(m, kind, 2, binary.NativeEndian.AppendUint32(nil, uint32(value)))
}

func done(m netlink.Message) []byte { return answered(m, messageDone, 0) }

// nest makes an attribute.
func nest(kind uint16, parts ...[]byte) []byte {
	data := slices.Concat(parts...)
	b := binary.NativeEndian.AppendUint16(nil, uint16(attributeHeader+len(data)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, data...)
	return append(b, make([]byte, align(len(b))-len(b))...)
}

func attribute32(kind uint16, value uint32) []byte { return appendUint32(nil, kind, value) }

func text(kind uint16, value string) []byte { return nest(kind, append([]byte(value), 0)) }

// pds is the payload of a table of PDs with these numbers.
func pds(numbers ...uint32) []byte {
	var rows [][]byte
	for _, number := range numbers {
		rows = append(rows, nest(attrPD, attribute32(attrPDN, number), attribute32(attrPID, 77)))
	}
	return slices.Concat(attribute32(attrDeviceIndex, 3), text(attrDeviceName, "mlx5_0"), nest(attrPDs, rows...))
}

// dumpPDs returns the numbers that a dump visits.
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
			var left [][]byte // of the section's
			conn, _ := fake(t, func(m netlink.Message) [][]byte {
				if len(left) == 0 {
					left = r.datagrams(t, section)
				}
				// One section may have the replies to several requests.
				end := 1 + slices.IndexFunc(left, func(datagram []byte) bool {
					first, _, err := nextMessage(datagram)
					return err != nil || first.kind>>10 != client || first.flags&2 == 0
				})
				datagrams := left[:end]
				left = left[end:]
				for _, datagram := range datagrams {
					for b := datagram; len(b) > 0; {
						length := int(binary.NativeEndian.Uint32(b))
						binary.NativeEndian.PutUint32(b[8:], m.Header.Sequence)
						binary.NativeEndian.PutUint32(b[12:], m.Header.PID)
						b = b[min(align(length), len(b)):]
					}
				}
				return datagrams
			})
			ctx := t.Context()
			section = sectionName(commandDevice, 0)
			devices, err := conn.Devices(ctx)
			if err != nil {
				t.Fatal(err)
			}
			want := []Device{
				{0, "rxe0"},
				{1, "rxe1"},
			}
			if !slices.Equal(devices, want) {
				t.Errorf("devices: %+v, want %+v", devices, want)
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
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
					compare(t, what, got, rows(t, kind, r.sections["rdma resource show "+kind.String()], device.Index))
					if len(got) == 0 {
						if device.Index == 0 {
							t.Errorf("%s: none is recorded", what)
						}
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
	type want struct {
		command, flags uint16
		attributes     []byte
	}
	tests := map[string]struct {
		call func(context.Context, *Conn) error
		want want
	}{
		"devices": {
			func(ctx context.Context, c *Conn) error { _, err := c.Devices(ctx); return err },
			want{1, 0x301, nil},
		},
		"summary": {
			func(ctx context.Context, c *Conn) error { _, err := c.Summary(ctx, 5); return err },
			want{9, 1, slices.Concat(attribute32(1, 5), nest(97, []byte{1}))},
		},
		"get pd": {
			func(ctx context.Context, c *Conn) error { _, err := c.Get(ctx, 5, PD, 9); return err },
			want{14, 1, slices.Concat(attribute32(1, 5), attribute32(60, 9))},
		},
		"get qp": {
			func(ctx context.Context, c *Conn) error { _, err := c.Get(ctx, 5, QP, 9); return err },
			want{10, 1, slices.Concat(attribute32(1, 5), attribute32(3, 1), attribute32(21, 9))},
		},
	}
	for i, command := range []uint16{14, 12, 10, 11, 13, 22, 23} {
		kind := Types()[i]
		tests["dump "+kind.String()] = struct {
			call func(context.Context, *Conn) error
			want want
		}{
			func(ctx context.Context, c *Conn) error {
				return c.Dump(ctx, 5, kind, func(*Object) error { return nil })
			},
			want{command, 0x301, slices.Concat(attribute32(1, 5), nest(97, []byte{1}))},
		}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conn, sockets := fake(t, func(m netlink.Message) [][]byte {
				if m.Header.Flags == 1 {
					return [][]byte{reply(m, 0, nil)}
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
			if m := sent[0]; uint16(m.Header.Type) != 5<<10|test.want.command ||
				uint16(m.Header.Flags) != test.want.flags || string(m.Data) != string(test.want.attributes) {
				t.Errorf("sent %+v, want %+v", m, test.want)
			}
		})
	}
}

// TestDriversOwnTypes: the queue pairs of types that are a driver's own are in table and
// summary, once, whether the kernel leaves them out unless it is asked for them or not.
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
				for b := m.Data; len(b) > 0; {
					a, rest, err := nextAttribute(b)
					if err != nil {
						t.Fatal(err)
					}
					if b = rest; !leavesOut || a.kind == 97 && a.data[0] == 1 {
						rows = slices.Concat(common, own)
					}
				}
				if m.Header.Type == 5<<10|commandQP {
					return [][]byte{reply(m, 2, nest(attrQPs, rows...)), done(m)}
				}
				count := binary.NativeEndian.AppendUint64(nil, uint64(len(rows)))
				return [][]byte{reply(m, 0, nest(attrSummary, nest(attrSummaryEntry, text(attrSummaryName, "qp"), nest(attrSummaryCurrent, count))))}
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

func TestReplies(t *testing.T) {
	foreign := func(m netlink.Message) netlink.Message {
		m.Header.Sequence--
		return m
	}
	tests := map[string]struct {
		answer  func(netlink.Message) [][]byte
		numbers []uint32
		is      []error // what the error matches; none: success
		says    string
		redials bool // whether the socket must not be used again
	}{
		"none":         {answer: func(m netlink.Message) [][]byte { return [][]byte{done(m)} }},
		"one datagram": {answer: func(m netlink.Message) [][]byte { return [][]byte{slices.Concat(reply(m, 2, pds(1)), done(m))} }, numbers: []uint32{1}},
		"several": {
			answer: func(m netlink.Message) [][]byte {
				return [][]byte{slices.Concat(reply(m, 2, pds(1, 2)), reply(m, 2, pds(3))), reply(m, 2, pds(4)), done(m)}
			},
			numbers: []uint32{1, 2, 3, 4},
		},
		"noop": {
			answer: func(m netlink.Message) [][]byte {
				return [][]byte{build(m, messageNoop, 0, nil), reply(m, 2, pds(1)), done(m)}
			},
			numbers: []uint32{1},
		},
		"of an earlier request": {
			answer: func(m netlink.Message) [][]byte {
				old := foreign(m)
				return [][]byte{reply(old, 2, pds(66)), answered(old, messageError, -1), done(old), reply(m, 2, pds(1)), done(m)}
			},
			numbers: []uint32{1},
		},
		"to another socket": {
			answer: func(m netlink.Message) [][]byte {
				other := m
				other.Header.PID++
				return [][]byte{reply(other, 2, pds(66)), done(other), reply(m, 2, pds(1)), done(m)}
			},
			numbers: []uint32{1},
		},
		"interrupted": {
			answer: func(m netlink.Message) [][]byte {
				return [][]byte{reply(m, 2|0x10, pds(1)), reply(m, 2, pds(2)), done(m)}
			},
			numbers: []uint32{1, 2},
			is:      []error{ErrInterrupted},
		},
		"interrupted at the end": {
			answer: func(m netlink.Message) [][]byte {
				return [][]byte{reply(m, 2, pds(1)), build(m, messageDone, 2|0x10, make([]byte, 4))}
			},
			numbers: []uint32{1},
			is:      []error{ErrInterrupted},
		},
		"an earlier one interrupted": {
			answer: func(m netlink.Message) [][]byte {
				return [][]byte{reply(foreign(m), 2|0x10, nil), done(m)}
			},
		},
		"errno": {
			answer: func(m netlink.Message) [][]byte {
				return [][]byte{answered(m, messageError, -int32(syscall.EPERM))}
			},
			is:   []error{syscall.EPERM, fs.ErrPermission},
			says: "RES_PD_GET of device 3: operation not permitted",
		},
		"errno at the end": {
			answer: func(m netlink.Message) [][]byte {
				return [][]byte{reply(m, 2, pds(1)), answered(m, messageDone, -int32(syscall.ENOMEM))}
			},
			numbers: []uint32{1},
			is:      []error{syscall.ENOMEM},
		},
		"not supported": {
			answer: func(m netlink.Message) [][]byte {
				return [][]byte{answered(m, messageError, -int32(syscall.EOPNOTSUPP))}
			},
			is: []error{syscall.EOPNOTSUPP, ErrNotSupported},
		},
		"the driver's EINVAL at once": {
			answer: unknown,
			is:     []error{syscall.EINVAL},
		},
		"no such device": {
			answer: func(m netlink.Message) [][]byte {
				return [][]byte{answered(m, messageDone, -int32(syscall.EINVAL))}
			},
			is: []error{syscall.ENODEV},
		},
		"the driver's EINVAL": {
			answer: func(m netlink.Message) [][]byte {
				if m.Header.Type == 5<<10|commandDevice {
					return [][]byte{reply(m, 0, nil)}
				}
				return [][]byte{reply(m, 2, pds(1)), answered(m, messageDone, -int32(syscall.EINVAL))}
			},
			numbers: []uint32{1},
			is:      []error{syscall.EINVAL},
			says:    "RES_PD_GET of device 3: invalid argument",
		},
		"another command's": {
			answer:  func(m netlink.Message) [][]byte { return [][]byte{build(m, 5<<10|9, 2, nil)} },
			is:      []error{ErrMalformed},
			says:    "RES_PD_GET: malformed message 1: its type is 0x1409, not 0x140e",
			redials: true,
		},
		"overrun": {
			answer:  func(m netlink.Message) [][]byte { return [][]byte{build(m, messageOverrun, 0, nil)} },
			is:      []error{ErrMalformed},
			redials: true,
		},
		"an errno that is none": {
			answer:  func(m netlink.Message) [][]byte { return [][]byte{answered(m, messageError, 1)} },
			is:      []error{ErrMalformed},
			redials: true,
		},
		"a result that is cut off": {
			answer:  func(m netlink.Message) [][]byte { return [][]byte{build(m, messageDone, 2, []byte{0, 0})} },
			is:      []error{ErrMalformed},
			redials: true,
		},
		"a datagram too large": {
			answer:  func(netlink.Message) [][]byte { return [][]byte{make([]byte, receiveBuffer+1)} },
			is:      []error{ErrMalformed},
			redials: true,
		},
		"the third malformed": {
			answer: func(m netlink.Message) [][]byte {
				bad := nest(attrPDs, nest(attrPD, nest(attrPDN, []byte{1, 2})))
				return [][]byte{slices.Concat(reply(m, 2, pds(1)), reply(m, 2, pds(2))), reply(m, 2, bad)}
			},
			numbers: []uint32{1, 2},
			is:      []error{ErrMalformed},
			says:    "RES_PD_GET: malformed message 3: attribute RES_PD_ENTRY: attribute RES_PDN: 2 bytes, not 4",
			redials: true,
		},
		"a row that never fits": {
			answer: func(m netlink.Message) [][]byte {
				return slices.Concat([][]byte{reply(m, 2, pds(1))}, slices.Repeat([][]byte{reply(m, 2, pds())}, 100))
			},
			numbers: []uint32{1},
			is:      []error{syscall.EMSGSIZE},
			redials: true,
		},
		"many rows that fit later": {
			answer: func(m netlink.Message) [][]byte {
				both := [][]byte{reply(m, 2, pds()), reply(m, 2, pds(1))}
				return append(slices.Repeat(both, 2*maxEmpty), done(m))
			},
			numbers: slices.Repeat([]uint32{1}, 2*maxEmpty),
		},
		"a row that fits later": {
			answer: func(m netlink.Message) [][]byte {
				return [][]byte{reply(m, 2, pds(1)), reply(m, 2, pds()), reply(m, 2, pds()), reply(m, 2, pds(2)), done(m)}
			},
			numbers: []uint32{1, 2},
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
			if (err != nil) != (len(test.is) > 0) {
				t.Errorf("error: %v", err)
			}
			for _, target := range test.is {
				if !errors.Is(err, target) {
					t.Errorf("%v is not %v", err, target)
				}
			}
			if err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q does not say %q", err, test.says)
			}
			for _, target := range []error{ErrInterrupted, ErrMalformed, ErrNotSupported, syscall.ENODEV} {
				if errors.Is(err, target) && !slices.Contains(test.is, target) {
					t.Errorf("%v is %v, too", err, target)
				}
			}
			if (*sockets)[0].closed != test.redials {
				t.Errorf("socket closed: %t", (*sockets)[0].closed)
			}
			// The Conn is good for more.
			for _, s := range *sockets {
				s.answer = func(m netlink.Message) [][]byte { return [][]byte{reply(m, 2, pds(8)), done(m)} }
			}
			if test.redials {
				conn.dial = func() (socket, error) {
					return &fakeSocket{answer: func(m netlink.Message) [][]byte {
						return [][]byte{reply(m, 2, pds(8)), done(m)}
					}, interrupted: make(chan struct{})}, nil
				}
			}
			if numbers, err := dumpPDs(t.Context(), conn); err != nil || !slices.Equal(numbers, []uint32{8}) {
				t.Errorf("the next dump: %v, %v", numbers, err)
			}
		})
	}
}

// A datagram that is cut off at any byte, or says of a message that it has
// another length, is refused, and what is whole before that is visited.
func TestTruncatedDatagrams(t *testing.T) {
	whole := func(m netlink.Message) []byte {
		return slices.Concat(reply(m, 2, pds(1)), reply(m, 2, pds(2)), done(m))
	}
	one := len(reply(netlink.Message{}, 2, pds(1)))
	size := len(whole(netlink.Message{}))
	for i := 1; i < size; i++ {
		conn, sockets := fake(t, func(m netlink.Message) [][]byte { return [][]byte{whole(m)[:i], done(m)} })
		numbers, err := dumpPDs(t.Context(), conn)
		want := []uint32{1, 2}[:min(i/one, 2)]
		if !slices.Equal(numbers, want) {
			t.Errorf("%d of %d bytes: visited %v, want %v", i, size, numbers, want)
		}
		if i == one || i == 2*one {
			if err != nil {
				t.Errorf("%d of %d bytes: %v", i, size, err)
			}
			continue
		}
		var e *MessageError
		if !errors.As(err, &e) || e.Message != len(want)+1 || !(*sockets)[0].closed {
			t.Errorf("%d of %d bytes: %v", i, size, err)
		}
	}
	for _, length := range []uint32{0, 1, 15, uint32(one) + 1, 1 << 31, 1<<32 - 1} {
		conn, _ := fake(t, func(m netlink.Message) [][]byte {
			bad := reply(m, 2, pds(1))
			binary.NativeEndian.PutUint32(bad, length)
			return [][]byte{bad, done(m)}
		})
		if numbers, err := dumpPDs(t.Context(), conn); !errors.Is(err, ErrMalformed) || len(numbers) != 0 {
			t.Errorf("length %d: visited %v, %v", length, numbers, err)
		}
	}
}

func TestNoReply(t *testing.T) {
	conn, _ := fake(t, func(m netlink.Message) [][]byte { return [][]byte{answered(m, messageError, 0)} })
	if _, err := conn.Summary(t.Context(), 3); !errors.Is(err, ErrMalformed) {
		t.Errorf("an acknowledgement without a reply: %v", err)
	}
}

func TestContext(t *testing.T) {
	// However busy the host is, the time is not up before all replies are handled.
	synctest.Test(t, contexts)
}

func contexts(t *testing.T) {
	conn, sockets := fake(t, func(m netlink.Message) [][]byte { return [][]byte{reply(m, 2, pds(1))} })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if numbers, err := dumpPDs(ctx, conn); !errors.Is(err, context.Canceled) || len(numbers) != 1 {
		t.Errorf("cancelled while waiting: %v, %v", numbers, err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if numbers, err := dumpPDs(ctx, conn); !errors.Is(err, context.DeadlineExceeded) || len(numbers) != 1 {
		t.Errorf("at the deadline: %v, %v", numbers, err)
	}
	if numbers, err := dumpPDs(ctx, conn); !errors.Is(err, context.DeadlineExceeded) || len(numbers) != 0 {
		t.Errorf("after the deadline: %v, %v", numbers, err)
	}
	if len(*sockets) != 2 || !(*sockets)[0].closed || !(*sockets)[1].closed {
		t.Errorf("%d sockets", len(*sockets))
	}

	// A context that ends while the last reply is handled spoils nothing.
	conn, sockets = fake(t, func(m netlink.Message) [][]byte {
		return [][]byte{slices.Concat(reply(m, 2, pds(1)), done(m))}
	})
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
	conn, sockets := fake(t, func(m netlink.Message) [][]byte {
		return [][]byte{reply(m, 2, pds(1, 2)), reply(m, 2, pds(3)), done(m)}
	})
	enough := errors.New("enough")
	visits := 0
	err := conn.Dump(t.Context(), 3, PD, func(*Object) error { visits++; return enough })
	if !errors.Is(err, enough) || visits != 1 {
		t.Errorf("after %d visits: %v", visits, err)
	}
	if numbers, err := dumpPDs(t.Context(), conn); err != nil || !slices.Equal(numbers, []uint32{1, 2, 3}) {
		t.Errorf("the next dump: %v, %v", numbers, err)
	}
	if len(*sockets) != 2 || !(*sockets)[0].closed {
		t.Errorf("%d sockets", len(*sockets))
	}
}

func TestGetTriesPorts(t *testing.T) {
	answer := func(found func(port, id uint32) syscall.Errno) func(m netlink.Message) [][]byte {
		return func(m netlink.Message) [][]byte {
			if m.Header.Flags&0x300 != 0 {
				row := func(id uint32) []byte { return nest(attrQP, attribute32(attrLQPN, id)) }
				return [][]byte{reply(m, 2, nest(attrQPs, row(17), row(18))), done(m)}
			}
			if m.Header.Type == 5<<10|commandDevice {
				return [][]byte{reply(m, 0, nil)}
			}
			port, id := binary.NativeEndian.Uint32(m.Data[12:]), binary.NativeEndian.Uint32(m.Data[20:])
			if errno := found(port, id); errno != 0 {
				return [][]byte{answered(m, messageError, -int32(errno))}
			}
			return [][]byte{reply(m, 0, attribute32(attrLQPN, id&0xffffff))}
		}
	}
	onPort := func(want, wanted uint32) func(port, id uint32) syscall.Errno {
		return func(port, id uint32) syscall.Errno {
			switch {
			case port > 2:
				return syscall.EINVAL
			case id != wanted:
				return syscall.ENOENT
			case port != want:
				return syscall.EAGAIN
			}
			return 0
		}
	}
	for name, test := range map[string]struct {
		found func(port, id uint32) syscall.Errno
		id    uint32
		is    error
	}{
		"first":            {onPort(1, 17), 17, nil},
		"second":           {onPort(2, 17), 17, nil},
		"on none":          {onPort(0, 18), 18, nil},
		"on none, gone":    {onPort(0, 19), 19, syscall.ENOENT},
		"absent":           {onPort(1, 17), 20, syscall.ENOENT},
		"special":          {onPort(1, 1<<24|1), 1, nil},
		"special, second":  {onPort(2, 2<<24|1), 1, nil},
		"special, older":   {onPort(1, 1), 1, nil},
		"special, absent":  {onPort(1, 17), 1, syscall.ENOENT},
		"on endless ports": {func(uint32, uint32) syscall.Errno { return syscall.EAGAIN }, 18, nil},
		"error":            {func(uint32, uint32) syscall.Errno { return syscall.EIO }, 17, syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			conn, _ := fake(t, answer(test.found))
			got, err := conn.Get(t.Context(), 3, QP, test.id)
			if !errors.Is(err, test.is) {
				t.Errorf("error %v, want %v", err, test.is)
			}
			if err == nil && got != (Object{Type: QP, ID: test.id, HasID: true}) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestClose(t *testing.T) {
	conn, sockets := fake(t, func(m netlink.Message) [][]byte { return [][]byte{done(m)} })
	for range 2 {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if !(*sockets)[0].closed {
		t.Error("the socket is open")
	}
	if _, err := conn.Devices(t.Context()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestNoType(t *testing.T) {
	conn, sockets := fake(t, func(netlink.Message) [][]byte { return nil })
	for _, kind := range []Type{0, SRQ + 1} {
		_, err := conn.Get(t.Context(), 3, kind, 1)
		for _, err := range []error{err, conn.Dump(t.Context(), 3, kind, nil)} {
			if !errors.Is(err, syscall.EINVAL) {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
	if len((*sockets)[0].sent) != 0 {
		t.Error("the kernel was asked")
	}
}

func TestDialFails(t *testing.T) {
	_, err := newConn(func() (socket, error) { return nil, syscall.EPROTONOSUPPORT })
	if !errors.Is(err, syscall.EPROTONOSUPPORT) {
		t.Error(err)
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
			// Else the fuzzer would have to guess the request's numbers.
			if i := int(at); i+messageHeader <= len(datagram) {
				binary.NativeEndian.PutUint32(datagram[i+8:], m.Header.Sequence)
				binary.NativeEndian.PutUint32(datagram[i+12:], m.Header.PID)
			}
			return [][]byte{datagram, done(m)}
		})
		if m, _, err := nextMessage(append(datagram, make([]byte, messageHeader)...)); err == nil {
			for _, kind := range Types() {
				if 5<<10|kind.table().command == m.kind {
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

// unknown is a kernel that has the device and does not know the command.
func unknown(m netlink.Message) [][]byte {
	if m.Header.Type == 5<<10|commandDevice {
		return [][]byte{reply(m, 0, nil)}
	}
	return [][]byte{answered(m, messageError, -int32(syscall.EINVAL))}
}

// TestOldKernels makes sure that only tables that an old kernel can lack are said not
// to be supported.
func TestOldKernels(t *testing.T) {
	conn, _ := fake(t, unknown)
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
