package restrack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mdlayher/netlink"

	"rdma_exporter/internal/state"
)

// header is how replies about a port begin.
func header() []byte {
	return slices.Concat(attribute32(attrDeviceIndex, 3), text(attrDeviceName, "siw0"), attribute32(attrPort, 1))
}

func counterTable(rows ...[]byte) []byte {
	return append(header(), nest(0x8000|attrCounters, rows...)...)
}

func counterRow(name string, value uint64) []byte {
	return nest(0x8000|attrCounter, text(attrCounterName, name), attribute64(attrCounterValue, value))
}

// An exchange is a request for a port or the host, and its result.
type exchange struct {
	// answer is for that request, and device for one for the device.
	answer, device func(netlink.Message) [][]byte
	want           string
	is             []error
	says           string
}

// exchanged returns a Conn whose request for a port or the host, with this data, is answered by
// answer, and a request for the device by device.
func exchanged(t *testing.T, command netlink.HeaderType, data []byte, answer, device func(netlink.Message) [][]byte) *Conn {
	t.Helper()
	conn, _ := fake(t, func(m netlink.Message) [][]byte {
		if m.Header.Type == client<<10|commandDevice {
			return device(m)
		}
		if m.Header.Type != client<<10|command || m.Header.Flags != netlink.Request || string(m.Data) != string(data) {
			t.Errorf("sent %+v", m)
		}
		return answer(m)
	})
	return conn
}

func try[T any](t *testing.T, command netlink.HeaderType, data []byte, exchanges map[string]exchange, call func(*Conn) (T, error)) {
	t.Helper()
	for name, e := range exchanges {
		got, err := call(exchanged(t, command, data, e.answer, e.device))
		if text := strings.Trim(fmt.Sprint(got), "[]"); text != e.want {
			t.Errorf("%s: got %q, want %q", name, text, e.want)
		}
		if (err != nil) != (e.is != nil) || e.says != "" && err.Error() != e.says {
			t.Errorf("%s: error %v, want %q", name, err, e.says)
		}
		for _, target := range append(e.is, ErrNotSupported) {
			if errors.Is(err, target) != slices.Contains(e.is, target) {
				t.Errorf("%s: %v, want %v", name, err, e.is)
			}
		}
	}
}

func TestStatistic(t *testing.T) {
	there := replies(attribute32(attrDeviceIndex, 3))
	try(t, 17, slices.Concat(attribute32(1, 3), attribute32(3, 1)), map[string]exchange{
		"counters": {
			answer: replies(counterTable(counterRow("out_of_buffer", 7), nest(attrCounter, text(attrCounterName, "no value")),
				nest(attrCounter, attribute64(attrCounterValue, 3)), nest(4000, []byte{1}), counterRow("last", 1<<64-1))),
			want: "{hw_counters out_of_buffer 7} {hw_counters last 18446744073709551615}",
		},
		"no counters": {answer: replies(counterTable())},
		"no command, no counters, no port, or refused": {
			answer: fails(syscall.EINVAL), device: there,
			is:   []error{syscall.EINVAL, ErrNotSupported},
			says: "STAT_GET of device 3: not supported by this kernel: invalid argument",
		},
		"not supported":    {answer: fails(syscall.EOPNOTSUPP), is: []error{syscall.EOPNOTSUPP, ErrNotSupported}},
		"no such device":   {answer: fails(syscall.EINVAL), device: fails(syscall.EINVAL), is: []error{syscall.ENODEV, syscall.EINVAL}},
		"the driver's EIO": {answer: fails(syscall.EIO), is: []error{syscall.EIO}, says: "STAT_GET of device 3: input/output error"},
		"truncated": {
			answer: replies(nest(attrCounters, counterRow("a", 1), nest(attrCounter, nest(attrCounterValue, []byte{1, 2, 3, 4})))),
			is:     []error{ErrMalformed},
			says:   "STAT_GET of device 3: malformed message: netlink: attribute 83 is not a uint64; length: 4",
		},
		"an end at once":       {answer: datagrams(done), is: []error{ErrMalformed}},
		"more than a datagram": {answer: replies(make([]byte, receiveBuffer)), is: []error{ErrMalformed}},
	}, func(conn *Conn) ([]state.Counter, error) { return conn.Statistic(t.Context(), 3, 1) })
}

// TestStatisticEnds verifies that a kernel that does not answer is left when the context ends.
func TestStatisticEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, sockets := fake(t, func(netlink.Message) [][]byte { return nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		got, err := conn.Statistic(ctx, 3, 1)
		if got != nil || !errors.Is(err, context.DeadlineExceeded) || !(*sockets)[0].closed {
			t.Errorf("%v, %v, socket closed: %t", got, err, (*sockets)[0].closed)
		}
	})
}

func TestNetdev(t *testing.T) {
	found := append(header(), slices.Concat(attribute32(50, 8), text(attrNetdevName, "veth4"))...)
	try(t, 5, slices.Concat(attribute32(1, 3), attribute32(3, 1)), map[string]exchange{
		// The kernel replies as if to another command.
		"one":                {answer: datagrams(build(client<<10|commandDevice, 0, found)), want: "veth4"},
		"one, rightly typed": {answer: replies(found), want: "veth4"},
		"another command's":  {answer: datagrams(build(client<<10|commandChardev, 0, found)), is: []error{ErrMalformed}},
		"none":               {answer: replies(header())},
		"no such port": {
			answer: fails(syscall.EINVAL), device: replies(header()), is: []error{syscall.EINVAL, ErrNotSupported},
			says: "PORT_GET of device 3: not supported by this kernel: invalid argument",
		},
		"no such device":     {answer: fails(syscall.EINVAL), device: fails(syscall.EINVAL), is: []error{syscall.ENODEV}},
		"the driver's errno": {answer: fails(syscall.EIO), is: []error{syscall.EIO}},
		"truncated":          {answer: replies([]byte{8, 0, 51}), is: []error{ErrMalformed}},
	}, func(conn *Conn) (string, error) { return conn.Netdev(t.Context(), 3, 1) })
}

func TestNetnsMode(t *testing.T) {
	mode := func(value ...byte) func(netlink.Message) [][]byte {
		return replies(slices.Concat(nest(4000, []byte{7}), nest(attrNetnsMode, value), nest(99, []byte{0})))
	}
	try(t, 6, nil, map[string]exchange{
		"shared":    {answer: mode(1), want: "shared"},
		"exclusive": {answer: mode(0), want: "exclusive"},
		"a third":   {answer: mode(2), want: "unknown_2"},
		"older kernel": {
			answer: fails(syscall.EINVAL), is: []error{syscall.EINVAL, ErrNotSupported},
			says: "SYS_GET: not supported by this kernel: invalid argument",
		},
		"not supported": {answer: fails(syscall.EOPNOTSUPP), is: []error{syscall.EOPNOTSUPP, ErrNotSupported}},
		"not permitted": {answer: fails(syscall.EPERM), is: []error{syscall.EPERM}, says: "SYS_GET: operation not permitted"},
		"without attribute": {
			answer: replies(nil), is: []error{ErrMalformed},
			says: "SYS_GET: malformed message: no attribute SYS_ATTR_NETNS_MODE",
		},
		"wrong size": {answer: mode(1, 0, 0, 0), is: []error{ErrMalformed}},
	}, func(conn *Conn) (string, error) { return conn.NetnsMode(t.Context()) })
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
				counters, err := decodeStatistic(r.payloads(t, sectionName(commandStatistic, uint32(i)))[0])
				if want := len(link) - 2; err != nil || len(counters) != want || want < 10 { // ifname, port
					t.Fatalf("%v, %v, rdma(8) has %d", counters, err, want)
				}
				for _, counter := range counters {
					if value, ok := link[counter.Name].(float64); !ok || uint64(value) != counter.Value {
						t.Errorf("%v: rdma(8) has %v", counter, link[counter.Name])
					}
				}
			}
			system := string(r.sections["rdma system show"])
			if mode, err := decodeNetnsMode(r.payloads(t, sectionName(commandSystem, 0))[0]); err != nil || !strings.HasPrefix(system, "netns "+mode+" ") {
				t.Errorf("%q, %v, rdma(8) has %q", mode, err, system)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	data := slices.Concat(attribute32(attrDeviceIndex, 7), text(attrDeviceName, "mlx5_0"), attribute32(attrPort, 2), nest(4000))
	if got, err := decodeDevice(data); err != nil || got != (Device{7, "mlx5_0"}) {
		t.Errorf("%+v, %v", got, err)
	}
	entry := func(name string, count uint64) []byte {
		return nest(attrSummaryEntry, text(attrSummaryName, name), attribute64(attrSummaryCurrent, count), nest(4000))
	}
	data = nest(attrSummary, entry("qp", 3), entry("dmah", 1<<40), nest(4000, text(attrSummaryName, "no")), nest(attrSummaryEntry))
	want := []Count{{"qp", 3}, {"dmah", 1 << 40}}
	if got, err := decodeSummary(data); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for name, data := range map[string][]byte{
		"an index of 3 bytes": nest(attrDeviceIndex, make([]byte, 3)),
		"a count of 4 bytes":  nest(attrSummary, entry("qp", 3), nest(attrSummaryEntry, nest(attrSummaryCurrent, make([]byte, 4)))),
	} {
		_, err := decodeDevice(data)
		if counts, err2 := decodeSummary(data); err == nil && err2 == nil || counts != nil {
			t.Errorf("%s: %v, %v, %v", name, err, counts, err2)
		}
	}
}

// TestDriver verifies that the kernel's number decides. Without one, the driver of the bus does.
func TestDriver(t *testing.T) {
	number := func(n uint32) func(netlink.Message) [][]byte {
		return replies(append(attribute32(attrDriverID, n), text(70, "uverbs0")...))
	}
	silent, malformed := replies(text(70, "uverbs0")), replies(text(attrDriverID, "rxe"))
	for _, tt := range []struct {
		name, bus string
		noNode    bool
		answer    func(netlink.Message) [][]byte // nil: no netlink
		device    string
		want      string
	}{
		{name: "reported by the kernel", answer: number(14), want: "rxe"},
		{name: "the kernel before the bus", bus: "ice", answer: number(1), want: "mlx5"},
		{name: "a number that is new", bus: "mana", answer: number(4711), want: "mana"},
		{name: "none in particular", answer: number(0)},
		{name: "a driver that does not support it", bus: "hns3", answer: silent, want: "hns"},
		{name: "a kernel that does not know the command", bus: "bnxt_en", answer: fails(syscall.EINVAL), want: "bnxt_re"},
		{name: "a malformed reply", bus: "mlx4_core", answer: malformed, want: "mlx4"},
		{name: "no source", answer: silent},
		{name: "an unknown bus driver", bus: "e1000", answer: silent},
		{name: "another device", bus: "qede", answer: number(14), device: "other0", want: "qedr"},
		{name: "no uverbs", bus: "efa", noNode: true, answer: number(14), want: "efa"},
		{name: "no netlink", bus: "cxgb4", want: "cxgb4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			device := "any0"
			if tt.device != "" {
				device = tt.device
			}
			sysfs := t.TempDir()
			folder := filepath.Join(sysfs, "class/infiniband", device, "device")
			err := errors.Join(os.MkdirAll(folder, 0o755), os.Symlink("../../../bus/pci/drivers/"+tt.bus, filepath.Join(folder, "driver")))
			if !tt.noNode {
				err = errors.Join(err, os.MkdirAll(filepath.Join(sysfs, "class/infiniband_verbs/uverbs0"), 0o755))
			}
			if err != nil {
				t.Fatal(err)
			}
			got := driver(t.Context(), device, sysfs, func() (*Conn, error) {
				if tt.answer == nil {
					return nil, syscall.EPROTONOSUPPORT
				}
				if tt.noNode {
					t.Error("the kernel was asked")
				}
				listed := datagrams(reply(append(attribute32(attrDeviceIndex, 7), text(attrDeviceName, "any0")...)), done)
				asked := append(attribute32(attrDeviceIndex, 7), text(attrChardevType, "uverbs")...)
				return exchanged(t, commandChardev, asked, tt.answer, listed), nil
			})
			if got != tt.want {
				t.Errorf("driver %q, want %q", got, tt.want)
			}
		})
	}
}

// TestDriverNames compares the words with the kernel's numbers.
func TestDriverNames(t *testing.T) {
	names := strings.Fields("mlx5 mlx4 cxgb3 cxgb4 mthca bnxt_re ocrdma nes irdma vmw_pvrdma qedr hns usnic rxe hfi1 qib efa siw erdma mana ionic")
	for i, want := range append(names, "", "") {
		if got := driverName(uint32(i + 1)); got != want {
			t.Errorf("%d is %q, want %q", i+1, got, want)
		}
	}
	if driverName(0)+driverName(1<<24) != "" {
		t.Error("0 or 1<<24 has a name")
	}
}

func TestListsAllObjects(t *testing.T) {
	for release, want := range map[string]bool{
		"6.1.0-28-amd64": true, "5.5.0": true, "5.15": true, "10.0": true, "5.5-rc1": true,
		"5.4.0-200-generic": false, "4.18.0-553.el8_10.x86_64": false, "5": false, "": false, "linux": false, "-6.1": false,
	} {
		if got := listsAllObjects(release); got != want {
			t.Errorf("%q: %t, want %t", release, got, want)
		}
	}
	if !ListsAllObjects() {
		t.Error("the kernel of this test is older than 5.5, or has no known release")
	}
}

// FuzzDecodeDevice tries all decoders of replies about devices and ports.
func FuzzDecodeDevice(f *testing.F) {
	f.Add(append(header(), slices.Concat(attribute32(50, 8), text(attrNetdevName, "veth4"), nest(attrNetnsMode, []byte{1}))...))
	f.Add(counterTable(counterRow("out_of_buffer", 7), counterRow("rx_cnp", 1<<64-1)))
	for _, r := range recordings(f) {
		for _, command := range []uint16{commandDevice, commandSummary, commandStatistic, commandSystem} {
			for _, payload := range r.payloads(f, sectionName(command, 0)) {
				f.Add(payload)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = decodeDevice(data)
		if counts, err := decodeSummary(data); err != nil && counts != nil || len(counts) > len(data)/4 {
			t.Errorf("%v, %v", counts, err)
		}
		if counters, err := decodeStatistic(data); err != nil && counters != nil || slices.ContainsFunc(counters, func(c state.Counter) bool { return c.Name == "" }) {
			t.Errorf("%v, %v", counters, err)
		}
		if name, err := decodeNetdev(data); err != nil && name != "" {
			t.Errorf("%q, %v", name, err)
		}
		if mode, err := decodeNetnsMode(data); (err != nil) != (mode == "") {
			t.Errorf("%q, %v", mode, err)
		}
	})
}
