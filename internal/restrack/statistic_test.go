package restrack

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mdlayher/netlink"
)

func attribute64(kind uint16, value uint64) []byte {
	return nest(kind, binary.NativeEndian.AppendUint64(nil, value))
}

// counterTable is the payload of a table of counters.
func counterTable(rows ...[]byte) []byte {
	return slices.Concat(attribute32(attrDeviceIndex, 3), text(attrDeviceName, "mlx5_0"), attribute32(attrPort, 1),
		nest(0x8000|attrCounters, rows...))
}

func counterRow(name string, value uint64) []byte {
	return nest(0x8000|attrCounter, text(attrCounterName, name), attribute64(attrCounterValue, value))
}

// fails answers a request with an errno, as the kernel does when its doit fails.
func fails(errno syscall.Errno) func(netlink.Message) [][]byte {
	return func(m netlink.Message) [][]byte {
		return [][]byte{answered(m, messageError, -int32(errno))}
	}
}

// replies answers a request with one message.
func replies(data []byte) func(netlink.Message) [][]byte {
	return func(m netlink.Message) [][]byte { return [][]byte{reply(m, 0, data)} }
}

func TestStatistic(t *testing.T) {
	values := replies(counterTable(counterRow("out_of_buffer", 7), counterRow("rx_cnp", 1<<63), counterRow("last", 1<<64-1)))
	listed := []Counter{{"out_of_buffer", 7}, {"rx_cnp", 1 << 63}, {"last", 1<<64 - 1}}
	there := replies(attribute32(attrDeviceIndex, 3))
	for name, test := range map[string]struct {
		statistic, device func(netlink.Message) [][]byte
		want              []Counter
		is                []error
		not               error
		says              string
	}{
		"counters":    {statistic: values, want: listed},
		"no counters": {statistic: replies(counterTable())},
		"no command, no counters, no port, or refused": {
			statistic: fails(syscall.EINVAL), device: there,
			is: []error{syscall.EINVAL, ErrNotSupported}, says: "STAT_GET of device 3: not supported by this kernel: invalid argument",
		},
		"not supported":  {statistic: fails(syscall.EOPNOTSUPP), is: []error{syscall.EOPNOTSUPP, ErrNotSupported}},
		"no such device": {statistic: fails(syscall.EINVAL), device: fails(syscall.EINVAL), is: []error{syscall.ENODEV, syscall.EINVAL}},
		"the driver's EIO": {
			statistic: fails(syscall.EIO), is: []error{syscall.EIO}, not: ErrNotSupported, says: "STAT_GET of device 3: input/output error",
		},
		"too many for a message": {statistic: fails(syscall.EMSGSIZE), is: []error{syscall.EMSGSIZE}, not: ErrNotSupported},
		"cut": {
			statistic: replies(nest(attrCounters, nest(attrCounter, nest(attrCounterValue, []byte{1, 2, 3, 4})))),
			is:        []error{ErrMalformed},
			says:      "STAT_GET: malformed message 1: attribute STAT_HWCOUNTER_ENTRY: attribute STAT_HWCOUNTER_ENTRY_VALUE: 4 bytes, not 8",
		},
		"an end at once": {
			statistic: func(m netlink.Message) [][]byte { return [][]byte{done(m)} },
			is:        []error{ErrMalformed}, says: "STAT_GET: malformed message 1: an end, but no reply",
		},
		"another command's": {
			statistic: func(m netlink.Message) [][]byte { return [][]byte{build(m, 5<<10|9, 0, nil)} },
			is:        []error{ErrMalformed}, says: "STAT_GET: malformed message 1: its type is 0x1409, not 0x1411",
		},
		"more than a datagram": {
			statistic: replies(make([]byte, receiveBuffer)),
			is:        []error{ErrMalformed}, says: "STAT_GET: malformed message 1: 32784 bytes, more than 32768",
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn, _ := fake(t, func(m netlink.Message) [][]byte {
				if m.Header.Flags != requestFlagRequest {
					t.Errorf("flags %#x", m.Header.Flags)
				}
				command := uint16(m.Header.Type) & 0x3ff
				if command != commandDevice {
					if want := slices.Concat(attribute32(1, 3), attribute32(3, 1)); string(m.Data) != string(want) {
						t.Errorf("%s: sent %x, want %x", commandName(command), m.Data, want)
					}
				}
				answer := map[uint16]func(netlink.Message) [][]byte{
					commandStatistic: test.statistic, commandDevice: test.device,
				}[command]
				if answer == nil {
					t.Errorf("asked for %s", commandName(command))
					answer = fails(syscall.ENOSYS)
				}
				return answer(m)
			})
			got, err := conn.Statistic(t.Context(), 3, 1)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if (err != nil) != (test.is != nil) || test.says != "" && err.Error() != test.says {
				t.Errorf("error %v, want %q", err, test.says)
			}
			for _, target := range test.is {
				if !errors.Is(err, target) {
					t.Errorf("%v is not %v", err, target)
				}
			}
			if test.not != nil && errors.Is(err, test.not) {
				t.Errorf("%v is %v", err, test.not)
			}
		})
	}
}

// What is no port is not asked for.
func TestStatisticPorts(t *testing.T) {
	conn, sockets := fake(t, fails(syscall.ENOSYS))
	for _, port := range []int{-1, 0, 256, 1 << 40} {
		if got, err := conn.Statistic(t.Context(), 3, port); got != nil || !errors.Is(err, syscall.EINVAL) {
			t.Errorf("port %d: %v, %v", port, got, err)
		}
	}
	if sent := (*sockets)[0].sent; len(sent) != 0 {
		t.Errorf("sent %v", sent)
	}
}

// A kernel that does not answer is left when the context ends.
func TestStatisticEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, sockets := fake(t, func(netlink.Message) [][]byte { return nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if got, err := conn.Statistic(ctx, 3, 1); got != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, %v", got, err)
		}
		if !(*sockets)[0].closed {
			t.Error("the socket is used again")
		}
	})
}

func TestNetnsMode(t *testing.T) {
	mode := func(value ...byte) func(netlink.Message) [][]byte { return replies(nest(attrNetnsMode, value)) }
	for name, test := range map[string]struct {
		answer func(netlink.Message) [][]byte
		want   string
		is     []error
		says   string
	}{
		"shared":            {answer: mode(1), want: "shared"},
		"exclusive":         {answer: mode(0), want: "exclusive"},
		"a third":           {answer: mode(2), want: "unknown_2"},
		"among others":      {answer: replies(slices.Concat(nest(4000, []byte{7}), nest(attrNetnsMode, []byte{1}), nest(99, []byte{0}))), want: "shared"},
		"older kernel":      {answer: fails(syscall.EINVAL), is: []error{syscall.EINVAL, ErrNotSupported}, says: "SYS_GET: not supported by this kernel: invalid argument"},
		"not supported":     {answer: fails(syscall.EOPNOTSUPP), is: []error{syscall.EOPNOTSUPP, ErrNotSupported}},
		"not permitted":     {answer: fails(syscall.EPERM), is: []error{syscall.EPERM}, says: "SYS_GET: operation not permitted"},
		"without attribute": {answer: replies(nil), is: []error{ErrMalformed}, says: "SYS_GET: malformed message 1: no attribute SYS_ATTR_NETNS_MODE"},
		"wrong size":        {answer: mode(1, 0, 0, 0), is: []error{ErrMalformed}, says: "SYS_GET: malformed message 1: attribute SYS_ATTR_NETNS_MODE: 4 bytes, not 1"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, sockets := fake(t, test.answer)
			got, err := conn.NetnsMode(t.Context())
			if got != test.want || (err != nil) != (test.is != nil) || test.says != "" && err.Error() != test.says {
				t.Errorf("%q, %v, want %q, %q", got, err, test.want, test.says)
			}
			for _, target := range test.is {
				if !errors.Is(err, target) {
					t.Errorf("%v is not %v", err, target)
				}
			}
			sent := (*sockets)[0].sent
			if len(sent) != 1 || sent[0].Header.Type != 5<<10|6 || sent[0].Header.Flags != 1 || len(sent[0].Data) != 0 {
				t.Errorf("sent %+v", sent)
			}
		})
	}
}

// TestRecordedStatistic compares the recorded replies with what rdma(8) printed then.
func TestRecordedStatistic(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.name, func(t *testing.T) {
			var links []map[string]any
			if err := json.Unmarshal(r.sections["rdma statistic show"], &links); err != nil || len(links) != 2 {
				t.Fatalf("%v: %v", links, err)
			}
			for i, link := range links {
				payloads := r.payloads(t, sectionName(commandStatistic, uint32(i)))
				if len(payloads) != 1 {
					t.Fatalf("%d replies", len(payloads))
				}
				counters, err := statistic(payloads[0])
				if err != nil || len(counters) < 10 {
					t.Fatalf("%v, %v", counters, err)
				}
				for _, counter := range counters {
					if value, ok := link[counter.Name].(float64); !ok || uint64(value) != counter.Value {
						t.Errorf("%v: rdma(8) has %v", counter, link[counter.Name])
					}
				}
				if want := len(link) - 2; len(counters) != want { // ifname, port
					t.Errorf("%d counters, rdma(8) has %d", len(counters), want)
				}
			}
			payloads := r.payloads(t, sectionName(commandSystem, 0))
			if len(payloads) != 1 {
				t.Fatalf("%d replies", len(payloads))
			}
			system := string(r.sections["rdma system show"])
			if mode, err := netnsMode(payloads[0]); err != nil || !strings.HasPrefix(system, "netns "+mode+" ") {
				t.Errorf("%q, %v, rdma(8) has %q", mode, err, system)
			}
		})
	}
}

func TestDecodeStatistic(t *testing.T) {
	data := counterTable(counterRow("a", 1), nest(attrCounter, text(attrCounterName, "no value")),
		nest(attrCounter, attribute64(attrCounterValue, 3)), nest(4000, []byte{1}), counterRow("b", 2))
	want := []Counter{{"a", 1}, {"b", 2}}
	got, err := statistic(data)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func FuzzDecodeStatistic(f *testing.F) {
	f.Add(counterTable(counterRow("out_of_buffer", 7), counterRow("rx_cnp", 1<<64-1)))
	f.Add(nest(attrNetnsMode, []byte{1}))
	for _, r := range recordings(f) {
		for _, command := range []uint16{commandStatistic, commandSystem} {
			for _, payload := range r.payloads(f, sectionName(command, 0)) {
				f.Add(payload)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		counters, _ := statistic(data)
		if len(counters) > len(data)/attributeHeader {
			t.Errorf("%v", counters)
		}
		for _, counter := range counters {
			if counter.Name == "" {
				t.Error(fmt.Sprint(counter))
			}
		}
		if mode, err := netnsMode(data); (err != nil) != (mode == "") {
			t.Errorf("%q, %v", mode, err)
		}
	})
}
