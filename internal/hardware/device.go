// Package hardware reads what the kernel reports about an RDMA device without opening it: the
// counters of its driver, its ports and their addresses, its place in the host, and the
// interrupts that serve its completion vectors. It reads sysfs and procfs. Values that only
// netlink has come through interfaces. It writes nothing.
//
// Some of these files make the driver ask the firmware, which can take long, or hang. A read that
// hangs cannot be stopped, only named: see [Options].Reading. Callers must run Read in a process,
// or at least a goroutine, that can be abandoned.
package hardware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/state"
)

// Statistics reads counters over netlink, as rdma statistic shows them.
type Statistics interface {
	// Statistics returns the counters of a port by the driver's names, including optional ones
	// that are enabled. If it fails, sysfs is read.
	Statistics(ctx context.Context, device string, port int) ([]state.Counter, error)
}

// Netdevs finds network devices of ports over netlink, as rdma link shows them.
type Netdevs interface {
	// Netdev returns the name of a port's network device in the caller's network namespace. It
	// is empty if the port has none there.
	Netdev(ctx context.Context, device string, port int) (string, error)
}

// Ethtool reads counters of a network device, as ethtool shows them.
type Ethtool interface {
	// Counters returns the counters of a network device in the caller's network namespace.
	// wanted selects those of ethtool -S by name. Nil means none. Counters that are returned
	// with an error are valid.
	Counters(ctx context.Context, netdev string, wanted func(name string) bool) ([]state.Counter, error)
}

// Parts are the parts of a device that can be left out.
type Parts struct {
	// Counters are those of device and ports.
	Counters bool `json:"counters,omitempty"`
	// Adapter is its identity and place, with the temperatures of its modules.
	Adapter bool `json:"adapter,omitempty"`
	// GIDs are the addresses of its ports.
	GIDs bool `json:"gids,omitempty"`
	// InterruptCounts are how often the interrupts of completion vectors occurred, and where
	// they may run, which takes half of the files.
	InterruptCounts bool `json:"interrupt_counts,omitempty"`
}

// Group is a group of counters of a port, or of the device, whose Port is 0.
type Group struct {
	Port  int
	Group state.CounterGroup
}

// Options selects what is read, and from where.
type Options struct {
	// Sysfs and Procfs are the mount points of these file systems. Empty means /sys and /proc.
	Sysfs, Procfs string
	// Device is the name of the device, in /sys/class/infiniband.
	Device string
	// Driver is the name of its driver in rdma-core, such as mlx5 or rxe, if known. For an
	// emulated device, the driver of the bus in sysfs is that of the network device.
	Driver string
	// Without are the parts that are not read.
	Without Parts
	// Skip are groups of counters that are not read, because the kernel refused them recently.
	Skip []Group
	// Statistics and Ethtool return counters, and Netdevs network devices that sysfs does not
	// show. Each may be nil.
	Statistics Statistics
	Ethtool    Ethtool
	Netdevs    Netdevs
	// GPUs are shared by the readings of a host. Nil means that none are read.
	GPUs *GPUs
	// Reading, if not nil, holds the file or request that is being read. It holds nil between
	// two of them.
	Reading *atomic.Pointer[string]
}

// Read reads a device. Values that cannot be read are absent. Refused groups of counters are in
// state.HardwarePort.Refused. Failure is set if the device is missing, or has been removed by the
// end, or if ctx ended before everything was read. Late is set, too, if that was its deadline.
func Read(ctx context.Context, o Options) state.Hardware {
	h := state.Hardware{Device: o.Device, Identity: state.Adapter{NUMANode: -1}}
	if o.Device == "" || o.Device != filepath.Base(o.Device) || strings.HasPrefix(o.Device, ".") {
		h.Failure = fmt.Sprintf("%q is no name of a device", o.Device)
		return h
	}
	if o.Sysfs == "" {
		o.Sysfs = "/sys"
	}
	if o.Procfs == "" {
		o.Procfs = "/proc"
	}
	d := device{
		reader:  reader{ctx: ctx, reading: o.Reading},
		Options: o,
		dir:     filepath.Join(o.Sysfs, "class/infiniband", o.Device),
	}
	ports, err := d.portNumbers()
	if err == nil {
		ports = slices.DeleteFunc(ports, func(n int) bool { return n < 1 || n > math.MaxUint16 })
		if len(ports) > maxPorts {
			ports = append(ports[:maxPorts-1], ports[len(ports)-1])
		}
		d.read(&h, ports)
		_, err = d.list(filepath.Join(d.dir, "ports"), 1)
	}
	switch {
	// A context that ends once everything was read does no harm.
	case d.stopped != "":
		h.Failure = fmt.Sprintf("stopped before %s was read: %v", d.stopped, context.Cause(ctx))
		if h.Late = errors.Is(ctx.Err(), context.DeadlineExceeded); h.Late {
			h.Failure = fmt.Sprintf("the time was up before %s was read", d.stopped)
		}
	case err != nil:
		h.Failure = fmt.Sprintf("the device cannot be read: %v", err)
	}
	return h
}

// The kernel shows a device shortly before its ports, and removes the ports first.
const (
	portsPause = 20 * time.Millisecond
	portsTries = 50
)

// portNumbers returns the numbers of the ports, once there are any.
func (d *device) portNumbers() ([]int, error) {
	path := filepath.Join(d.dir, "ports")
	for try := 1; ; try++ {
		ports, err := d.numbers(path)
		if !errors.Is(err, fs.ErrNotExist) || try == portsTries {
			return ports, err
		}
		if _, gone := d.list(d.dir, 1); gone != nil {
			return ports, err
		}
		select {
		case <-d.ctx.Done():
		case <-time.After(portsPause):
		}
	}
}

// maxPorts limits the ports of a device that are read. Adapters have at most four. An eswitch has
// hundreds, of virtual functions, and the uplink last (mlx5_esw_vports_init), which is read too.
const maxPorts = 32

// device is a device while it is read.
type device struct {
	reader
	Options
	// dir is its directory in sysfs.
	dir string
	// function is the directory of its PCI function, without symbolic links. It is empty if the
	// device has none. subfunction is true if it shares the function with other devices.
	function    string
	subfunction bool
	// ports is the number of its ports.
	ports int
	// table is the name of the table of its counters.
	table string
}

func (d *device) read(h *state.Hardware, ports []int) {
	d.ports = len(ports)
	d.findFunction()
	h.Driver = d.driver()
	if h.Table = counters.TableOf(d.Driver); h.Table == "" {
		h.Table = counters.TableOf(h.Driver)
	}
	d.table = h.Table
	if !d.Without.Adapter {
		h.Identity = d.adapter()
		d.readGPUs(h)
	}
	for _, number := range ports {
		h.Ports = append(h.Ports, d.port(number))
	}
	if !d.Without.Counters {
		h.Counters, h.Refused = d.group(Group{Group: state.GroupHardware}, filepath.Join(d.dir, string(state.GroupHardware)))
	}
	// With mlx5 only an eswitch has counters of the device (mlx5_ib_counters_init).
	for i := range h.Ports {
		p := &h.Ports[i]
		p.Uplink = h.Table == "mlx5" && h.Counters != nil && p.Ifindex > 0 && d.isUplink(p.Netdev)
	}
	h.Interrupts = d.interrupts()
}

// isUplink reports whether the name of a network device's physical port is p and a number.
func (d *device) isUplink(netdev string) bool {
	number, ok := strings.CutPrefix(d.text(filepath.Join(d.Sysfs, "class/net", netdev, "phys_port_name")), "p")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// software reports whether the kernel emulates the device on a network device.
func (d *device) software() bool {
	return d.Driver == "rxe" || d.Driver == "siw"
}

// SoftwareDriver returns rxe if a device is one of Soft-RoCE. It needs no netlink.
func SoftwareDriver(sysfs, device string) string {
	// Only Soft-RoCE has this file, which names its network device.
	if _, err := os.Stat(filepath.Join(sysfs, "class/infiniband", device, "parent")); err != nil {
		return ""
	}
	return "rxe"
}

func (d *device) driver() string {
	if d.function != "" {
		if link := d.link(filepath.Join(d.function, "driver")); isWord(link) {
			return link
		}
	}
	return d.Driver
}

// findFunction finds the PCI function that the device is, or is a part of.
func (d *device) findFunction() {
	d.Driver = cmp.Or(d.Driver, SoftwareDriver(d.Sysfs, d.Device))
	if d.software() {
		return
	}
	target, err := d.resolve(filepath.Join(d.dir, "device"))
	if err != nil {
		return
	}
	if isPCI(filepath.Base(target)) {
		d.function = target
		return
	}
	// A subfunction is a device of the auxiliary bus below its function.
	if above := filepath.Dir(target); strings.Contains(filepath.Base(target), ".sf.") && isPCI(filepath.Base(above)) {
		d.function, d.subfunction = above, true
	}
}
