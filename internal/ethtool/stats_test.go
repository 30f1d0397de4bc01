package ethtool_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/hardware/hardwaretest"
	"rdma_exporter/internal/state"
)

// A driver answers SIOCETHTOOL. change, if any, runs before each request, by its command.
type driver struct {
	names  []string
	values []uint64
	change map[uint32]func(d *driver, request []byte) error
}

const (
	sizes  = 0x37
	names  = 0x1b
	values = 0x1d
)

func (d *driver) ioctl(_ string, request []byte) error {
	order := binary.NativeEndian
	command := order.Uint32(request)
	if change := d.change[command]; change != nil {
		if err := change(d, request); err != nil {
			return err
		}
	}
	switch many := uint32(len(d.names)); command {
	case sizes:
		order.PutUint32(request[16:], many)
	case names:
		order.PutUint32(request[8:], many)
		for i, name := range d.names {
			copy(request[12+32*i:][:32], name)
		}
	case values:
		order.PutUint32(request[4:], many)
		for i, value := range d.values {
			order.PutUint64(request[8+8*i:], value)
		}
	}
	return nil
}

func TestStatistics(t *testing.T) {
	fails := func(errno syscall.Errno) func(*driver, []byte) error {
		return func(*driver, []byte) error { return errno }
	}
	grows := func(d *driver, _ []byte) error {
		d.names, d.values = append(d.names, "rx_prio5_pause"), append(d.values, 5)
		return nil
	}
	for name, test := range map[string]struct {
		at         uint32
		change     func(*driver, []byte) error
		want, says string
	}{
		"answers":                {want: "rx_prio3_pause=7 rx_prio4_pause=8 tx_pause_storm_warning_events=9"},
		"has none":               {at: sizes, change: func(d *driver, _ []byte) error { d.names = nil; return nil }},
		"has too many":           {at: sizes, change: func(d *driver, _ []byte) error { d.names = make([]string, 1<<16+1); return nil }},
		"has no such request":    {at: sizes, change: fails(syscall.EOPNOTSUPP)},
		"does not tell how many": {at: sizes, change: fails(syscall.EPERM), says: "ETHTOOL_GSSET_INFO of eth0: operation not permitted"},
		"does not tell names":    {at: names, change: fails(syscall.EIO), says: "ETHTOOL_GSTRINGS of eth0: input/output error"},
		"does not tell values":   {at: values, change: fails(syscall.EIO), says: "ETHTOOL_GSTATS of eth0: input/output error"},
		"grows before the names": {
			at: names, change: grows,
			says: "ETHTOOL_GSTRINGS of eth0: 5 entries instead of 4: resource temporarily unavailable",
		},
		"grows before the values": {
			at: values, change: grows, says: "ETHTOOL_GSTATS of eth0: 5 entries instead of 4: resource temporarily unavailable",
		},
		"tells nothing once it has changed": { // Linux from 6.19
			at: values, change: func(d *driver, _ []byte) error { d.names, d.values = nil, nil; return nil },
			says: "ETHTOOL_GSTATS of eth0: 0 entries instead of 4: resource temporarily unavailable",
		},
		"swaps two priorities": {
			at: sizes, change: func(d *driver, _ []byte) error { d.names[0], d.names[1] = d.names[1], d.names[0]; return nil },
			want: "rx_prio4_pause=7 rx_prio3_pause=8 tx_pause_storm_warning_events=9",
		},
		"has a name twice": {
			at: names, change: func(d *driver, _ []byte) error { d.names[1] = d.names[0]; return nil },
			want: "rx_prio3_pause=7 tx_pause_storm_warning_events=9",
		},
	} {
		d := &driver{
			// As an older mlx5e has it, the last name of those with a meaning ends with a blank.
			names:  []string{"rx_prio3_pause", "rx_prio4_pause", "tx_pause_storm_warning_events ", "rx0_packets"},
			values: []uint64{7, 8, 9, 10},
			change: map[uint32]func(*driver, []byte) error{test.at: test.change},
		}
		r := hardwaretest.Ethtool(t, t.TempDir())
		r.Ioctl = d.ioctl
		got, err := r.Counters(t.Context(), "eth0", func(name string) bool { return name != "rx0_packets" })
		if list := listed(got); list != test.want || fmt.Sprint(err) != cmp.Or(test.says, "<nil>") {
			t.Errorf("%s: got %s, %v, want %s, %s", name, list, err, test.want, test.says)
		}
	}
}

func listed(all []state.Counter) string {
	var words []string
	for _, c := range all {
		words = append(words, fmt.Sprintf("%s=%d", c.Name, c.Value))
	}
	return strings.Join(words, " ")
}

// TestStatisticsEnd verifies that nothing is asked of a driver once the context has ended, or if
// nothing is wanted.
func TestStatisticsEnd(t *testing.T) {
	all := func(string) bool { return true }
	for name, test := range map[string]struct {
		until  uint32 // the request during which the context ends
		wanted func(string) bool
		want   int
	}{
		"sizes": {sizes, all, 1}, "names": {names, all, 2}, "not wanted": {0, nil, 0},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		d := &driver{names: []string{"a"}, values: []uint64{1}}
		r := hardwaretest.Ethtool(t, t.TempDir())
		r.Ioctl = func(netdev string, request []byte) error {
			if asked++; binary.NativeEndian.Uint32(request) == test.until {
				cancel()
			}
			return d.ioctl(netdev, request)
		}
		got, err := r.Counters(ctx, "eth0", test.wanted)
		if asked != test.want || got != nil || (test.want > 0) != errors.Is(err, context.Canceled) {
			t.Errorf("%s: %d requests, %v, %v", name, asked, got, err)
		}
		cancel()
	}
}

// TestOverrun verifies that a kernel that writes more than there is room for fails instead. Here
// getrandom(2) is that kernel.
func TestOverrun(t *testing.T) {
	for _, many := range []int{1, 127, 128, 500, 4000} {
		d := &driver{names: make([]string, many), values: make([]uint64, many)}
		overrun := func(_ *driver, request []byte) error {
			size := len(request) + 3*4096
			n, _, errno := unix.Syscall(unix.SYS_GETRANDOM, uintptr(unsafe.Pointer(unsafe.SliceData(request))), uintptr(size), 0)
			if errno == 0 && n > uintptr(len(request)) {
				t.Errorf("%d statistics: %d bytes were written over a request of %d", many, n, len(request))
			}
			return syscall.EFAULT
		}
		for _, command := range []uint32{names, values} {
			d.change = map[uint32]func(*driver, []byte) error{command: overrun}
			r := hardwaretest.Ethtool(t, t.TempDir())
			r.Ioctl = d.ioctl
			got, err := r.Counters(t.Context(), "eth0", func(string) bool { return true })
			if got != nil || !errors.Is(err, syscall.EFAULT) {
				t.Errorf("%d statistics: %v, %v", many, got, err)
			}
		}
	}
}

// TestStatisticsFirst verifies that the driver is asked for its statistics before dcb's, which mlx5e
// takes from a cache that they refresh.
func TestStatisticsFirst(t *testing.T) {
	root := t.TempDir()
	hardwaretest.Lay(t, root, "@ ethtool/eth0\ndriver/rx_prio3_pause: 9\nnetlink/pfc_en: 0x08\n")
	r := hardwaretest.Ethtool(t, root)
	answer := r.Ioctl
	r.Ioctl = func(netdev string, request []byte) error {
		if binary.NativeEndian.Uint32(request) == values {
			hardwaretest.Lay(t, root, "@ ethtool/eth0\nnetlink/pfc_indications_prio3: 9\n")
		}
		return answer(netdev, request)
	}
	for _, test := range []struct {
		wanted func(string) bool
		want   string
	}{
		{nil, ""},
		{func(string) bool { return true }, "rx_prio3_pause=9 pfc_requests_prio3=0 pfc_indications_prio3=9"},
	} {
		got, err := r.Counters(t.Context(), "eth0", test.wanted)
		if listed(got) != test.want || err != nil {
			t.Errorf("got %s, %v, want %s", listed(got), err, test.want)
		}
	}
}

// FuzzStatistics puts any content into the replies of a driver.
func FuzzStatistics(f *testing.F) {
	f.Add([]byte("rx_prio3_pause\x00"), []byte{1, 2, 3, 4, 5, 6, 7, 8}, uint8(2))
	f.Add([]byte(strings.Repeat("x", 64)), []byte{}, uint8(1))
	f.Add([]byte{0xff, ' ', ' ', 0, '"'}, []byte{9}, uint8(200))
	f.Fuzz(func(t *testing.T, texts, numbers []byte, many uint8) {
		d := &driver{names: make([]string, many), change: map[uint32]func(*driver, []byte) error{
			names:  func(_ *driver, request []byte) error { copy(request[12:], texts); return nil },
			values: func(_ *driver, request []byte) error { copy(request[8:], numbers); return nil },
		}}
		r := hardwaretest.Ethtool(t, t.TempDir())
		r.Ioctl = d.ioctl
		got, err := r.Counters(t.Context(), "eth0", func(name string) bool { return len(name) > 1 })
		if err != nil || len(got) > int(many) {
			t.Errorf("%v, %v", got, err)
		}
		seen := map[string]bool{}
		for _, c := range got {
			if seen[c.Name] || len(c.Name) > 32 || len(c.Name) < 2 || strings.HasSuffix(c.Name, " ") || c.Group != state.GroupEthtool {
				t.Errorf("%q of %v", c.Name, got)
			}
			seen[c.Name] = true
		}
	})
}
