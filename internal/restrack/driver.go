package restrack

import (
	"context"
	"os"
	"path/filepath"
	"slices"
)

// Driver returns the name of the driver of a device, as rdma-core and enum
// rdma_driver_id call it, in lower case: mlx5, bnxt_re, rxe, …; empty if the kernel
// does not tell. It asks over netlink (RDMA_NLDEV_CMD_GET_CHARDEV, from Linux 5.3 on),
// which the drivers hns and mthca do not let tell, and otherwise goes by the driver of
// the bus in sysfs. The name of the device says nothing: anybody may change it.
func Driver(ctx context.Context, device string) string {
	return driver(ctx, device, "/sys", Dial)
}

// Driver is the function Driver for a device of which the number is known, too.
func (c *Conn) Driver(ctx context.Context, device string, index uint32) string {
	return driverBy(device, "/sys", func() string {
		name, _ := c.driver(ctx, index) // which is empty if there is an error
		return name
	})
}

func driver(ctx context.Context, device, sysfs string, dial func() (*Conn, error)) string {
	return driverBy(device, sysfs, func() string { return askDriver(ctx, device, dial) })
}

// driverBy returns the driver that ask tells, or the one that sysfs does.
func driverBy(device, sysfs string, ask func() string) string {
	// Of devices without it, to ask would have the kernel load ib_uverbs.
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
	return busDriver(filepath.Base(link))
}

// askDriver asks the kernel for the driver of a device; empty if it does not tell.
func askDriver(ctx context.Context, device string, dial func() (*Conn, error)) string {
	conn, err := dial()
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }() // nothing was written
	devices, err := conn.Devices(ctx)
	if err != nil {
		return ""
	}
	i := slices.IndexFunc(devices, func(d Device) bool { return d.Name == device })
	if i < 0 {
		return ""
	}
	name, err := conn.driver(ctx, devices[i].Index)
	if err != nil {
		return ""
	}
	return name
}

// driver returns the name of the driver of a device, empty if the kernel does not tell.
func (c *Conn) driver(ctx context.Context, index uint32) (name string, err error) {
	r := request{
		command:    commandChardev,
		attributes: appendText(appendUint32(nil, attrDeviceIndex, index), attrChardevType, "uverbs"),
	}
	err = c.exchange(ctx, r, func(data []byte) (err error) {
		name, err = decodeDriver(data)
		return err
	})
	return name, err
}

// decodeDriver decodes the payload of the reply to GET_CHARDEV.
func decodeDriver(data []byte) (name string, err error) {
	for a, err := range attributes(data) {
		if err != nil {
			return "", err
		}
		if a.kind != attrDriverID {
			continue
		}
		number, err := a.uint32()
		if err != nil {
			return "", err
		}
		name = driverName(number)
	}
	return name, nil
}

// busDriver returns the driver of the RDMA device whose parent is bound to a driver of
// its bus.
func busDriver(name string) string {
	switch name {
	case "mlx5_core":
		return "mlx5"
	case "mlx4_core":
		return "mlx4"
	case "ib_mthca":
		return "mthca"
	case "bnxt_en":
		return "bnxt_re"
	case "be2net":
		return "ocrdma"
	case "ice", "i40e", "idpf":
		return "irdma"
	case "qede":
		return "qedr"
	case "hns3":
		return "hns"
	case "cxgb4", "vmw_pvrdma", "efa", "erdma", "mana", "ionic", "hfi1":
		return name
	}
	return ""
}
