package restrack

import (
	"errors"
	"slices"
	"syscall"
	"testing"

	"github.com/mdlayher/netlink"
)

func TestNetdev(t *testing.T) {
	payload := func(parts ...[]byte) []byte {
		return slices.Concat(append([][]byte{attribute32(attrDeviceIndex, 3), text(attrDeviceName, "siw0"), attribute32(attrPort, 1)}, parts...)...)
	}
	of := func(parts ...[]byte) func(netlink.Message) [][]byte { return replies(payload(parts...)) }
	// as replies as the kernel does, which says that it replies to another command.
	as := func(command uint16, parts ...[]byte) func(netlink.Message) [][]byte {
		return func(m netlink.Message) [][]byte { return [][]byte{build(m, client<<10|command, 0, payload(parts...))} }
	}
	for name, test := range map[string]struct {
		port   func(netlink.Message) [][]byte
		device func(netlink.Message) [][]byte
		want   string
		is     error
		says   string
	}{
		"one":                {port: as(commandDevice, attribute32(50, 8), text(attrNetdevName, "veth4")), want: "veth4"},
		"one, rightly typed": {port: of(attribute32(50, 8), text(attrNetdevName, "veth4")), want: "veth4"},
		"another command's":  {port: as(commandChardev), is: ErrMalformed, says: "PORT_GET: malformed message 1: its type is 0x140f, not 0x1405"},
		"none":               {port: of()},
		"no such port":       {port: fails(syscall.EINVAL), device: of(), is: syscall.EINVAL, says: "PORT_GET of device 3: not supported by this kernel: invalid argument"},
		"no such device":     {port: fails(syscall.EINVAL), device: fails(syscall.EINVAL), is: syscall.ENODEV},
		"the driver's errno": {port: fails(syscall.EIO), is: syscall.EIO, says: "PORT_GET of device 3: input/output error"},
		"cut":                {port: replies([]byte{8, 0, 51}), is: ErrMalformed, says: "PORT_GET: malformed message 1: 3 bytes are no attribute"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, _ := fake(t, func(m netlink.Message) [][]byte {
				if uint16(m.Header.Type)&0x3ff == commandDevice {
					return test.device(m)
				}
				if want := slices.Concat(attribute32(1, 3), attribute32(3, 1)); m.Header.Type != client<<10|commandPort || m.Header.Flags != requestFlagRequest || string(m.Data) != string(want) {
					t.Errorf("sent %+v", m)
				}
				return test.port(m)
			})
			got, err := conn.Netdev(t.Context(), 3, 1)
			if got != test.want || !errors.Is(err, test.is) || test.says != "" && err.Error() != test.says {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	conn, _ := fake(t, fails(syscall.ENOSYS))
	if _, err := conn.Netdev(t.Context(), 3, 0); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("port 0: %v", err)
	}
}

func FuzzDecodeNetdev(f *testing.F) {
	f.Add(slices.Concat(attribute32(attrDeviceIndex, 3), attribute32(50, 8), text(attrNetdevName, "veth4")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if name, err := netdev(data); err != nil && name != "" {
			t.Errorf("%q, %v", name, err)
		}
	})
}
