package ethtool

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/state"
)

const fakeFamily = 21

// A reply is what a fake socket answers a request with: data, or an error, or nothing.
type reply struct {
	data  []byte
	err   error
	hangs bool
	more  int // messages after the first
}

// A host answers by the name of the question; "family" is that for the family's number.
type host struct {
	replies map[string]reply
	dial    map[int]error
	sent    []netlink.Message
	open    int
}

func (h *host) reader() Reader {
	return Reader{Dial: func(family int) (Conn, error) {
		if err := h.dial[family]; err != nil {
			return nil, err
		}
		h.open++
		return &fakeConn{host: h, family: family, interrupted: make(chan struct{})}, nil
	}}
}

type fakeConn struct {
	host        *host
	family      int
	interrupted chan struct{}
}

func (c *fakeConn) SetReadDeadline(time.Time) error {
	close(c.interrupted)
	return nil
}

func (c *fakeConn) Close() error {
	c.host.open--
	return nil
}

func (c *fakeConn) Execute(m netlink.Message) ([]netlink.Message, error) {
	c.host.sent = append(c.host.sent, m)
	name := "DCB_CMD_IEEE_GET"
	switch {
	case c.family == unix.NETLINK_GENERIC && m.Header.Type == unix.GENL_ID_CTRL:
		name = "family"
	case c.family == unix.NETLINK_GENERIC:
		name = map[byte]string{6: "LINKSTATE_GET", 21: "PAUSE_GET", 29: "FEC_GET", 32: "STATS_GET"}[m.Data[0]]
	}
	r, ok := c.host.replies[name]
	if !ok {
		r.err = syscall.EOPNOTSUPP
		if name == "family" {
			r = reply{data: familyReply(fakeFamily)}
		}
	}
	if r.hangs {
		<-c.interrupted
		return nil, os.ErrDeadlineExceeded
	}
	if r.err != nil {
		// As Execute tells an errno of the kernel.
		return nil, &netlink.OpError{Op: "receive", Err: r.err}
	}
	return slices.Repeat([]netlink.Message{{Header: m.Header, Data: r.data}}, 1+r.more), nil
}

func attribute(kind uint16, data ...byte) []byte {
	b, err := netlink.MarshalAttributes([]netlink.Attribute{{Type: kind, Data: data}})
	if err != nil {
		panic(err)
	}
	return b
}

func number(kind uint16, value uint32) []byte {
	return attribute(kind, binary.NativeEndian.AppendUint32(nil, value)...)
}

func text(kind uint16, value string) []byte { return attribute(kind, append([]byte(value), 0)...) }

func nested(kind uint16, parts ...[]byte) []byte {
	return attribute(unix.NLA_F_NESTED|kind, slices.Concat(parts...)...)
}

func of(kind uint16) []byte { return nested(kind, text(2, "eth0"), number(3, 0)) }

func join(header []byte, attributes ...[]byte) []byte {
	return slices.Concat(header, slices.Concat(attributes...))
}

func wide(kind uint16, values ...uint64) []byte {
	var b []byte
	for _, value := range values {
		b = binary.NativeEndian.AppendUint64(b, value)
	}
	return attribute(kind, b...)
}

func familyReply(family uint16) []byte {
	id := binary.NativeEndian.AppendUint16(nil, family)
	return join([]byte{1, 2, 0, 0}, text(2, "ethtool"), attribute(1, id...), number(3, 1))
}

func pauseReply(statistics ...[]byte) []byte {
	return join([]byte{22, 1, 0, 0}, of(1), attribute(2, 1), attribute(3, 0), attribute(4, 0), nested(5, statistics...))
}

func linkReply(attributes ...[]byte) []byte {
	return join([]byte{6, 1, 0, 0}, of(1), attribute(2, 0), slices.Concat(attributes...))
}

func fecReply(statistics ...[]byte) []byte {
	return join([]byte{30, 1, 0, 0}, of(1), attribute(3, 1), number(4, 51), nested(5, statistics...))
}

func statsReply(groups ...[]byte) []byte {
	return join([]byte{33, 1, 0, 0}, of(2), number(5, 0), slices.Concat(groups...))
}

func phy(statistics ...[]byte) []byte { return group(0, statistics...) }

func group(id uint32, statistics ...[]byte) []byte {
	return nested(4, number(2, id), number(3, 17), slices.Concat(statistics...))
}

// pfc is a struct ieee_pfc. PFC is on for the priorities 0 and 3.
func pfc(requests, indications [8]uint64) []byte {
	b := []byte{8, 0x09, 0, 0, 0xff, 0xff, 0, 0}
	for _, value := range append(requests[:], indications[:]...) {
		b = binary.NativeEndian.AppendUint64(b, value)
	}
	return b
}

func pfcReply(b []byte) []byte {
	return join([]byte{0, 21, 0, 0}, text(1, "eth0"),
		nested(13, attribute(1, make([]byte, 59)...), attribute(2, b...), nested(3)), attribute(14, 0x0c))
}

// said lists counters as "NAME VALUE ".
func said(all []state.Counter) (list string) {
	for _, c := range all {
		list += fmt.Sprint(c.Name, " ", c.Value, " ")
	}
	return list
}

const (
	pauses  = "tx_pause_frames 11 rx_pause_frames 12 "
	blocks  = "fec_corrected_blocks 30 fec_uncorrectable_blocks 5 "
	symbols = "symbol_errors_during_carrier 99 "
	classes = "pfc_requests_prio3 7 pfc_indications_prio3 8 "
)

func TestCounters(t *testing.T) {
	malformed := func(question, detail string) string { return question + " of eth0: malformed reply: " + detail }
	for name, test := range map[string]struct {
		replies    map[string]reply // in place of the recorded ones
		dial       map[int]error
		want, says string
	}{
		"everything": {want: pauses + blocks + symbols + classes},
		"no family":  {replies: map[string]reply{"family": {err: syscall.ENOENT}}, want: classes},
		"no FEC":     {replies: map[string]reply{"FEC_GET": {err: syscall.EOPNOTSUPP}}, want: pauses + symbols + classes},
		"two fail": {
			replies: map[string]reply{"PAUSE_GET": {err: syscall.EBUSY}, "DCB_CMD_IEEE_GET": {err: syscall.EPERM}},
			want:    blocks + symbols,
			says: "PAUSE_GET of eth0: netlink receive: device or resource busy\n" +
				"DCB_CMD_IEEE_GET of eth0: netlink receive: operation not permitted",
		},
		"no generic netlink": {
			dial: map[int]error{unix.NETLINK_GENERIC: syscall.EACCES}, want: classes,
			says: "counters of eth0: permission denied",
		},
		"no rtnetlink": {
			dial: map[int]error{unix.NETLINK_ROUTE: syscall.EMFILE}, want: pauses + blocks + symbols,
			says: "counters of eth0: too many open files",
		},
		"no number of the family": {
			replies: map[string]reply{"family": {data: []byte{1, 2, 0, 0}}}, want: classes,
			says: malformed("CTRL_CMD_GETFAMILY", "the family 0"),
		},
		"another's reply": {
			replies: map[string]reply{"PAUSE_GET": {data: fecReply()}}, want: blocks + symbols + classes,
			says: malformed("PAUSE_GET", "it begins with 1e010000, not 16"),
		},
		"two messages": {
			replies: map[string]reply{"PAUSE_GET": {data: pauseReply(), more: 1}}, want: blocks + symbols + classes,
			says: malformed("PAUSE_GET", "2 messages instead of one"),
		},
	} {
		h := &host{dial: test.dial, replies: recorded(t)}
		maps.Copy(h.replies, test.replies)
		got, err := h.reader().Counters(t.Context(), "eth0", nil)
		if said(got) != test.want || fmt.Sprint(err) != cmp.Or(test.says, "<nil>") || h.open != 0 {
			t.Errorf("%s: got %s, %v, want %s, %s; %d sockets are open", name, said(got), err, test.want, test.says, h.open)
		}
	}
}

func TestDecode(t *testing.T) {
	const malformed = "malformed reply"
	no := [8]uint64{}
	for name, cases := range map[string][]struct {
		data []byte
		want string // the counters, or what the error says
	}{
		"PAUSE_GET": {
			{join([]byte{22, 1, 0, 0}, of(1), attribute(2, 1)), ""}, // no statistics
			{pauseReply(), ""},
			{pauseReply(wide(2, 1<<64-1), wide(3, 3)), "rx_pause_frames 3 "}, // one is not set
			{pauseReply(wide(2, 1<<64-2)), "tx_pause_frames 18446744073709551614 "},
			{pauseReply(attribute(1), wide(2, 4), attribute(99, 1, 2, 3), wide(5, 1)), "tx_pause_frames 4 "},
			{pauseReply(wide(4, 2)), "tx_pause_storm_events 2 "},
			{pauseReply(number(2, 1), wide(3, 2)), malformed},
		},
		"FEC_GET": {
			{fecReply(), ""},
			{fecReply(wide(2), wide(3)), ""},
			{fecReply(wide(2, 5), wide(3)), "fec_corrected_blocks 5 "}, // of no lane
			{fecReply(wide(4, 7, 3, 4)), "fec_corrected_bits 7 "},
			{
				fecReply(nested(5, number(2, 0), number(3, 0), wide(4, 1<<40)), nested(5, number(2, 1), number(3, 4), number(4, 9), wide(5, 4, 5))),
				"fec_blocks_with_0_to_0_symbol_errors 1099511627776 fec_blocks_with_1_to_4_symbol_errors 9 ",
			},
			{fecReply(nested(5, number(2, 1), number(3, 4))), ""}, // not counted
			{fecReply(nested(5, number(2, 1), attribute(4, 1))), malformed},
			{fecReply(wide(2, 1), attribute(3, 1, 2, 3, 4)), malformed + ": 4 bytes are no list of counters"},
		},
		"STATS_GET": {
			{statsReply(phy()), ""},
			{
				statsReply(group(1, nested(4, wide(0, 7))), phy(nested(4, wide(0, 8)), nested(4, wide(1, 9))), group(3)),
				"symbol_errors_during_carrier 8 ",
			},
			{statsReply(group(1, nested(4, wide(0, 7)))), ""},
			{statsReply(nested(4, nested(4, wide(0, 7)))), ""}, // a group without a name
			{[]byte{33, 1}, malformed + ": it begins with 2101, not 21"},
			{nil, malformed},
			{statsReply(phy(attribute(4, 1, 2, 3))), malformed},
		},
		"DCB_CMD_IEEE_GET": {
			{pfcReply(pfc(no, no)), ""},
			{pfcReply(pfc([8]uint64{7: 1 << 63}, no)), "pfc_requests_prio7 9223372036854775808 pfc_indications_prio7 0 "},
			{pfcReply(pfc([8]uint64{1<<64 - 1}, [8]uint64{3})), "pfc_indications_prio0 3 "},                  // one is not set
			{pfcReply(append(pfc(no, [8]uint64{3}), 9, 9)), "pfc_requests_prio0 0 pfc_indications_prio0 3 "}, // longer
			{pfcReply(slices.Replace(pfc([8]uint64{2: 1}, [8]uint64{5, 6}), 1, 2, 0)), "pfc_requests_prio1 0 pfc_indications_prio1 6 " +
				"pfc_requests_prio2 1 pfc_indications_prio2 0 "}, // Priority 0 has pause frames, since PFC is off.
			{join([]byte{0, 21, 0, 0}, text(1, "eth0"), nested(13)), ""},
			{[]byte{0, 22, 0, 0}, malformed},
			{pfcReply(make([]byte, 135)), malformed + ": 135 bytes, fewer than the 136 of a struct ieee_pfc"},
		},
		"LINKSTATE_GET": {
			{linkReply(), ""},
			{linkReply(number(7, 3)), "link_down_events 3 "},
			{linkReply(attribute(5, 4), number(7, 1<<32-1)), "link_down_reason 4 link_down_events 4294967295 "},
			{linkReply(attribute(5, 0), attribute(6, 1)), "link_down_reason 0 link_down_detail 1 "},
			{linkReply(attribute(5, 0, 1)), malformed},
			{linkReply(wide(7, 1)), malformed},
			{pauseReply(), malformed},
		},
	} {
		i := slices.IndexFunc(questions(), func(q question) bool { return q.name == name })
		for _, c := range cases {
			got, err := questions()[i].decode(netlink.Message{Data: c.data})
			refused := strings.HasPrefix(c.want, malformed)
			if refused != errors.Is(err, ErrMalformed) || refused && !strings.HasPrefix(err.Error(), c.want) ||
				!refused && (err != nil || said(got) != c.want) {
				t.Errorf("%s, %x: got %v, %v, want %q", name, c.data, got, err, c.want)
			}
		}
	}
}

// recorded returns the replies of Linux 6.1 (amd64) for a network device with 11 and 12 pause frames,
// 10 and 20 corrected blocks of two lanes, 5 uncorrectable ones in all, 99 symbol errors, and, as
// dcb -s pfc show printed then, requests 3:7 and indications 0:2 and 3:8, with PFC off for priority 0.
func recorded(t testing.TB) map[string]reply {
	t.Helper()
	text, err := os.ReadFile("testdata/linux-6.1.txt")
	if err != nil {
		t.Fatal(err)
	}
	replies := map[string]reply{}
	for line := range strings.Lines(string(text)) {
		var r reply
		name, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		if r.data, err = hex.DecodeString(digits); err != nil {
			t.Fatal(err)
		}
		replies[name] = r
	}
	return replies
}

// TestTruncated verifies that a reply that is cut off anywhere is refused, or has fewer counters.
func TestTruncated(t *testing.T) {
	replies, all := recorded(t), pauses+blocks+symbols+classes
	for _, q := range questions() {
		full := replies[q.name].data
		for n := range full {
			cut, err := q.decode(netlink.Message{Data: full[:n]})
			if err != nil && (cut != nil || !errors.Is(err, ErrMalformed)) || err == nil && len(cut) > 4 {
				t.Errorf("%s, %d of %d bytes: %v, %v", q.name, n, len(full), cut, err)
			}
			for _, c := range cut {
				if !strings.Contains(all, said([]state.Counter{c})) {
					t.Errorf("%s, %d of %d bytes: %v", q.name, n, len(full), c)
				}
			}
		}
	}
}

// TestErrnos verifies that each errno is an error, except those for an absent counter or device.
func TestErrnos(t *testing.T) {
	for _, q := range append(questions(), question{name: "family"}) {
		for errno := syscall.Errno(1); errno < 134; errno++ {
			h := &host{replies: map[string]reply{q.name: {err: errno}}}
			got, err := h.reader().Counters(t.Context(), "eth0", nil)
			silent := errno == syscall.EOPNOTSUPP || errno == syscall.ENODEV || q.name == "family" && errno == syscall.ENOENT
			if len(got) != 0 || silent != (err == nil) || !silent && !errors.Is(err, errno) {
				t.Errorf("%s answers %v: %v, %v", q.name, errno, got, err)
			}
		}
	}
}

// TestRequests verifies that requests only read, in the form of the kernel's documentation.
func TestRequests(t *testing.T) {
	h := &host{}
	if _, err := h.reader().Counters(t.Context(), "eth0", nil); err != nil {
		t.Fatal(err)
	}
	name := text(2, "eth0")
	for i, want := range []struct {
		kind netlink.HeaderType
		data []byte
	}{
		{16, join([]byte{3, 1, 0, 0}, text(2, "ethtool"))},
		{fakeFamily, join([]byte{6, 1, 0, 0}, nested(1, name, number(3, 4)))},
		{fakeFamily, join([]byte{21, 1, 0, 0}, nested(1, name, number(3, 4)))},
		{fakeFamily, join([]byte{29, 1, 0, 0}, nested(1, name, number(3, 4)))},
		{
			fakeFamily,
			join([]byte{32, 1, 0, 0}, nested(2, name, number(3, 0)), nested(3, number(2, 1), number(4, 1), number(5, 1))),
		},
		{78, join([]byte{0, 21, 0, 0}, text(1, "eth0"))},
	} {
		m := h.sent[i]
		if m.Header.Type != want.kind || m.Header.Flags != netlink.Request || string(m.Data) != string(want.data) {
			t.Errorf("%d: sent %+v, want %+v", i, m, want)
		}
	}
	if len(h.sent) != 6 {
		t.Errorf("sent %d", len(h.sent))
	}
	for _, bad := range []string{"", "sixteen__letters"} {
		got, err := h.reader().Counters(t.Context(), bad, nil)
		if got != nil || !errors.Is(err, syscall.EINVAL) || len(h.sent) != 6 {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

// TestEnds verifies that a kernel that does not answer is left when the context ends, with what was
// read.
func TestEnds(t *testing.T) {
	for _, q := range append(questions(), question{name: "family"}) {
		synctest.Test(t, func(t *testing.T) {
			h := &host{replies: map[string]reply{"PAUSE_GET": {data: pauseReply(wide(2, 1))}, q.name: {hangs: true}}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			got, err := h.reader().Counters(ctx, "eth0", nil)
			want := 1
			if q.name == "LINKSTATE_GET" || q.name == "PAUSE_GET" || q.name == "family" {
				want = 0
			}
			if len(got) != want || !errors.Is(err, context.DeadlineExceeded) || h.open != 0 {
				t.Errorf("%s: %v, %v, %d open", q.name, got, err, h.open)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h := &host{}
	if got, err := h.reader().Counters(ctx, "eth0", nil); got != nil || !errors.Is(err, context.Canceled) || len(h.sent) != 0 {
		t.Errorf("%v, %v, %v", got, err, h.sent)
	}
}

// TestKernel asks the kernel that runs. What it has of lo is nothing, but it understands
// each question.
func TestKernel(t *testing.T) {
	for _, netdev := range []string{"lo", "no_such_device"} {
		if got, err := (Reader{}).Counters(t.Context(), netdev, func(string) bool { return true }); len(got) != 0 || err != nil {
			t.Errorf("%s: %v, %v", netdev, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(uint8(0), pauseReply(wide(2, 11), wide(3, notSet)))
	f.Add(uint8(len(questions())), familyReply(fakeFamily))
	replies := recorded(f)
	replies["LINKSTATE_GET"] = reply{data: linkReply(attribute(5, 0), attribute(6, 1), number(7, 3))}
	for i, q := range questions() {
		f.Add(uint8(i), replies[q.name].data)
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		all := questions()
		if int(which) >= len(all) {
			family, err := decodeFamily(netlink.Message{Data: data})
			if (err == nil) != (family >= 16) || err != nil && !errors.Is(err, ErrMalformed) {
				t.Errorf("%d, %v", family, err)
			}
			return
		}
		q := all[which]
		got, err := q.decode(netlink.Message{Data: data})
		if err != nil && (got != nil || !errors.Is(err, ErrMalformed)) {
			t.Errorf("%s: %v, %v", q.name, got, err)
		}
		names := map[string]bool{}
		for _, c := range got {
			if names[c.Name] || c.Group != state.GroupEthtool || c.Value == notSet {
				t.Errorf("%s: %v", q.name, got)
			}
			names[c.Name] = true
		}
	})
}
