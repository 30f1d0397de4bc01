package restrack

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mdlayher/netlink"
)

// host makes a sysfs with one device, the driver of whose bus has a name, if any.
func host(t *testing.T, device, bus string, nodes ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, node := range nodes {
		if err := os.MkdirAll(filepath.Join(root, "class/infiniband_verbs", node), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(root, "class/infiniband", device, "device")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if bus != "" {
		if err := os.Symlink("../../../bus/pci/drivers/"+bus, filepath.Join(folder, "driver")); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestDriver: the kernel's number decides where there is one; where there is none, the
// driver of the bus.
func TestDriver(t *testing.T) {
	number := func(n uint32) func(netlink.Message) [][]byte {
		return func(m netlink.Message) [][]byte {
			return [][]byte{reply(m, 0, append(attribute32(attrDriverID, n), text(70, "uverbs0")...))}
		}
	}
	refuse := func(m netlink.Message) [][]byte {
		return [][]byte{answered(m, messageError, -int32(syscall.EINVAL))}
	}
	silent := func(m netlink.Message) [][]byte { return [][]byte{reply(m, 0, text(70, "uverbs0"))} }
	malformed := func(m netlink.Message) [][]byte { return [][]byte{reply(m, 0, text(attrDriverID, "rxe"))} }
	for _, tt := range []struct {
		name   string
		bus    string
		nodes  []string
		answer func(netlink.Message) [][]byte
		device string
		want   string
		asks   bool
	}{
		{"told by the kernel", "", []string{"uverbs0"}, number(14), "any0", "rxe", true},
		{"the kernel before the bus", "ice", []string{"uverbs0"}, number(1), "any0", "mlx5", true},
		{"a number that is new", "mana", []string{"uverbs0"}, number(4711), "any0", "mana", true},
		{"none in particular", "", []string{"uverbs0"}, number(0), "any0", "", true},
		{"a driver that does not let the kernel tell", "hns3", []string{"uverbs0"}, silent, "any0", "hns", true},
		{"a kernel that does not know the command", "bnxt_en", []string{"uverbs0"}, refuse, "any0", "bnxt_re", true},
		{"a malformed reply", "mlx4_core", []string{"uverbs0"}, malformed, "any0", "mlx4", true},
		{"nobody tells", "", []string{"uverbs0"}, silent, "any0", "", true},
		{"a bus driver of which nothing is known", "e1000", []string{"uverbs0"}, silent, "any0", "", true},
		{"another device", "qede", []string{"uverbs0"}, number(14), "other0", "qedr", false},
		{"no uverbs", "efa", nil, number(14), "any0", "efa", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := false
			dial := func() (*Conn, error) {
				conn, _ := fake(t, func(m netlink.Message) [][]byte {
					if m.Header.Type == client<<10|commandDevice {
						return [][]byte{reply(m, 0, append(attribute32(attrDeviceIndex, 7), text(attrDeviceName, "any0")...)), done(m)}
					}
					asked = true
					if want := append(attribute32(attrDeviceIndex, 7), text(attrChardevType, "uverbs")...); string(m.Data) != string(want) {
						t.Errorf("asked with %x, want %x", m.Data, want)
					}
					return tt.answer(m)
				})
				return conn, nil
			}
			if got := driver(t.Context(), tt.device, host(t, tt.device, tt.bus, tt.nodes...), dial); got != tt.want {
				t.Errorf("driver %q, want %q", got, tt.want)
			}
			if asked != tt.asks {
				t.Errorf("the kernel was asked: %t", asked)
			}
		})
	}
	t.Run("no netlink", func(t *testing.T) {
		dial := func() (*Conn, error) { return nil, syscall.EPROTONOSUPPORT }
		if got := driver(t.Context(), "any0", host(t, "any0", "cxgb4", "uverbs0"), dial); got != "cxgb4" {
			t.Errorf("driver %q", got)
		}
	})
}

// TestDriverNames holds the words against the kernel's numbers: each once, and none for
// what is not one.
func TestDriverNames(t *testing.T) {
	names := strings.Fields("mlx5 mlx4 cxgb3 cxgb4 mthca bnxt_re ocrdma nes irdma vmw_pvrdma qedr hns usnic rxe hfi1 qib efa siw erdma mana ionic")
	for i, want := range names {
		if got := driverName(uint32(i + 1)); got != want {
			t.Errorf("%d is %q, want %q", i+1, got, want)
		}
	}
	for _, number := range []uint32{0, uint32(len(names)) + 1, binary.NativeEndian.Uint32([]byte{1, 1, 1, 1})} {
		if got := driverName(number); got != "" {
			t.Errorf("%d is %q", number, got)
		}
	}
}
