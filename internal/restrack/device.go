package restrack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/state"
)

// Device is an RDMA device. Values that the kernel did not report are zero.
type Device struct {
	Index uint32 // stays with the device; not used again soon after it is removed
	Name  string // as in /sys/class/infiniband; a device can be renamed
}

// Devices lists the RDMA devices (RDMA_NLDEV_CMD_GET). The list is empty if there are none.
func (c *Conn) Devices(ctx context.Context) (devices []Device, err error) {
	err = c.query(ctx, request{command: commandDevice, dump: true, host: true}, func(data []byte) error {
		device, err := decodeDevice(data)
		devices = append(devices, device)
		return err
	})
	if err != nil && !errors.Is(err, ErrInterrupted) {
		return nil, err
	}
	return devices, err
}

func decodeDevice(data []byte) (device Device, err error) {
	err = attributes(data, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case attrDeviceIndex:
			device.Index = ad.Uint32()
		case attrDeviceName:
			device.Name = ad.String()
		}
	})
	return device, err
}

// Count is one row of a device's summary.
type Count struct {
	Name    string // as the kernel gives it: pd, cq, qp, …; newer kernels may have more
	Objects uint64 // how many there are
}

// Summary counts the objects of each type on a device (RDMA_NLDEV_CMD_RES_GET), including the
// kernel's and those of drivers' own types. Where namespaces are involved, kernels differ in
// which objects they count. There can be more than [Conn.Dump] shows.
func (c *Conn) Summary(ctx context.Context, index uint32) (counts []Count, err error) {
	err = c.query(ctx, request{command: commandSummary, index: index, more: details()}, func(data []byte) (err error) {
		counts, err = decodeSummary(data)
		return err
	})
	return counts, err
}

// decodeSummary leaves out rows without a name.
func decodeSummary(data []byte) (counts []Count, err error) {
	err = entries(data, attrSummary, attrSummaryEntry, func(row *netlink.AttributeDecoder) error {
		var count Count
		for row.Next() {
			switch row.Type() {
			case attrSummaryName:
				count.Name = row.String()
			case attrSummaryCurrent:
				count.Objects = row.Uint64()
			}
		}
		if count.Name != "" {
			counts = append(counts, count)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}

// ofPort returns a request for a port of a device.
func ofPort(command uint16, index uint32, port int) (request, error) {
	r := request{command: command, index: index, more: []netlink.Attribute{number(attrPort, uint32(port))}}
	if port < 1 || port > maxPorts {
		return r, fmt.Errorf("%s: port %d: %w", r, port, syscall.EINVAL)
	}
	return r, nil
}

// Statistic reads the counters that the driver keeps of a port (RDMA_NLDEV_CMD_STAT_GET, from
// Linux 5.2 on), which are those of hw_counters in sysfs, in the driver's order. It enables
// nothing. The kernel asks the driver for all of them at once, and answers in one message, which
// bounds their number.
//
// The error matches EINVAL and [ErrNotSupported] if the kernel does not know the command, if the
// driver keeps no such counters, if there is no such port, and if the driver refuses with that
// errno; sysfs can tell more then. It matches ENODEV if there is no such device.
func (c *Conn) Statistic(ctx context.Context, index uint32, port int) (counters []state.Counter, err error) {
	r, err := ofPort(commandStatistic, index, port)
	if err != nil {
		return nil, err
	}
	err = c.query(ctx, r, func(data []byte) (err error) {
		counters, err = decodeStatistic(data)
		return err
	})
	return counters, err
}

// decodeStatistic leaves out counters without a name or value.
func decodeStatistic(data []byte) (counters []state.Counter, err error) {
	err = entries(data, attrCounters, attrCounter, func(row *netlink.AttributeDecoder) error {
		counter := state.Counter{Group: state.GroupHardware}
		hasValue := false
		for row.Next() {
			switch row.Type() {
			case attrCounterName:
				counter.Name = row.String()
			case attrCounterValue:
				counter.Value, hasValue = row.Uint64(), true
			}
		}
		if hasValue && counter.Name != "" {
			counters = append(counters, counter)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return counters, nil
}

// Netdev returns the name of a port's network device (RDMA_NLDEV_CMD_PORT_GET), as rdma link
// shows it. It is empty if the port has none, or one in a network namespace that is not the
// caller's. The kernel asks the driver about the port.
//
// The error matches EINVAL if there is no such port, and ENODEV if there is no such device.
func (c *Conn) Netdev(ctx context.Context, index uint32, port int) (name string, err error) {
	r, err := ofPort(commandPort, index, port)
	if err != nil {
		return "", err
	}
	err = c.query(ctx, r, func(data []byte) (err error) {
		name, err = decodeNetdev(data)
		return err
	})
	return name, err
}

func decodeNetdev(data []byte) (name string, err error) {
	err = attributes(data, func(ad *netlink.AttributeDecoder) {
		if ad.Type() == attrNetdevName {
			name = ad.String()
		}
	})
	if err != nil {
		return "", err
	}
	return name, nil
}

// NetnsMode returns how the RDMA subsystem treats network namespaces (RDMA_NLDEV_CMD_SYS_GET,
// from Linux 5.2 on; rdma-system(8)): shared, where each shows all devices, or exclusive, where
// each has its own. The error of an older kernel matches [ErrNotSupported].
func (c *Conn) NetnsMode(ctx context.Context) (mode string, err error) {
	err = c.query(ctx, request{command: commandSystem, host: true}, func(data []byte) (err error) {
		mode, err = decodeNetnsMode(data)
		return err
	})
	return mode, err
}

func decodeNetnsMode(data []byte) (mode string, err error) {
	err = attributes(data, func(ad *netlink.AttributeDecoder) {
		if ad.Type() == attrNetnsMode {
			mode = word(ad.Uint8(), "exclusive", "shared")
		}
	})
	if err != nil {
		return "", err
	}
	if mode == "" {
		return "", errors.New("no attribute SYS_ATTR_NETNS_MODE")
	}
	return mode, nil
}

// Driver returns the name of a device's driver in the words of rdma-core and enum
// rdma_driver_id, in lower case: mlx5, bnxt_re, rxe, …; empty if the kernel does not report it.
// It asks over netlink (RDMA_NLDEV_CMD_GET_CHARDEV, from Linux 5.3 on), which the drivers hns and
// mthca do not support, and otherwise uses the driver of the bus in sysfs. The name of the device
// proves nothing, because it can be changed.
func Driver(ctx context.Context, device string) string { return driver(ctx, device, "/sys", Dial) }

func driver(ctx context.Context, device, sysfs string, dial func() (*Conn, error)) string {
	return findDriver(device, sysfs, func() (name string) {
		conn, err := dial()
		if err != nil {
			return ""
		}
		defer func() { _ = conn.Close() }() // nothing was written
		devices, _ := conn.Devices(ctx)     // empty if there is an error
		for _, d := range devices {
			if d.Name == device {
				name, _ = conn.driver(ctx, d.Index)
			}
		}
		return name
	})
}

// Driver is the function Driver for a device whose number is known.
func (c *Conn) Driver(ctx context.Context, device string, index uint32) string {
	return findDriver(device, "/sys", func() string {
		name, _ := c.driver(ctx, index) // empty if there is an error
		return name
	})
}

// findDriver returns the driver that ask returns, or the one in sysfs.
func findDriver(device, sysfs string, ask func() string) string {
	// If no device has a uverbs node, asking would make the kernel load ib_uverbs.
	nodes, err := filepath.Glob(filepath.Join(sysfs, "class/infiniband_verbs/uverbs*"))
	if err == nil && len(nodes) > 0 {
		if name := ask(); name != "" {
			return name
		}
	}
	link, err := os.Readlink(filepath.Join(sysfs, "class/infiniband", device, "device/driver"))
	if err != nil {
		return ""
	}
	return map[string]string{
		"mlx5_core": "mlx5", "mlx4_core": "mlx4", "ib_mthca": "mthca", "bnxt_en": "bnxt_re", "be2net": "ocrdma",
		"ice": "irdma", "i40e": "irdma", "idpf": "irdma", "qede": "qedr", "hns3": "hns", "cxgb4": "cxgb4",
		"vmw_pvrdma": "vmw_pvrdma", "efa": "efa", "erdma": "erdma", "mana": "mana", "ionic": "ionic", "hfi1": "hfi1",
	}[filepath.Base(link)]
}

// driver returns the name of a device's driver. It is empty if the kernel does not report it.
func (c *Conn) driver(ctx context.Context, index uint32) (name string, err error) {
	r := request{command: commandChardev, index: index, more: []netlink.Attribute{{Type: attrChardevType, Data: []byte("uverbs\x00")}}}
	err = c.query(ctx, r, func(data []byte) error {
		return attributes(data, func(ad *netlink.AttributeDecoder) {
			if ad.Type() == attrDriverID {
				name = driverName(ad.Uint32())
			}
		})
	})
	if err != nil {
		return "", err
	}
	return name, nil
}

// driverName names an enum rdma_driver_id. It is empty if the number has no name.
func driverName(number uint32) string {
	names := [...]string{
		1: "mlx5", "mlx4", "cxgb3", "cxgb4", "mthca", "bnxt_re", "ocrdma", "nes", "irdma", "vmw_pvrdma", "qedr", "hns",
		"usnic", "rxe", "hfi1", "qib", "efa", "siw", "erdma", "mana", "ionic",
	}
	if uint64(number) < uint64(len(names)) {
		return names[number]
	}
	return ""
}

// ListsAllObjects reports whether the running kernel shows all objects of a device to everyone,
// as it does since Linux 5.5. A kernel whose release cannot be read counts as older.
func ListsAllObjects() bool {
	var name unix.Utsname
	return unix.Uname(&name) == nil && listsAllObjects(unix.ByteSliceToString(name.Release[:]))
}

func listsAllObjects(release string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return n == 2 && (major > 5 || major == 5 && minor >= 5)
}
