// Package hardware reads what the kernel tells of an RDMA device without anybody opening
// it: the counters of its driver, its ports and their addresses, where it is in the host,
// and the interrupts that serve its completion vectors. It reads sysfs and procfs, and
// asks whoever it is given for what only netlink has. It writes nothing.
//
// Some of these files make the driver ask the firmware, which can take long, or for ever.
// A read that hangs cannot be stopped, only named: see [Options].Reading. So whoever
// calls Read does so in a process, or at least a goroutine, that can be left behind.
package hardware

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/state"
)

// Statistics are counters that the kernel tells over netlink, as rdma statistic shows
// them.
type Statistics interface {
	// Statistics returns the counters of a port by the driver's names, the optional ones
	// that are switched on among them. An error means that the port has none there; sysfs
	// is read then.
	Statistics(ctx context.Context, device string, port int) ([]state.Counter, error)
}

// Netdevs are the network devices of ports that the kernel tells over netlink, as rdma link
// shows them.
type Netdevs interface {
	// Netdev returns the name of that of a port in the caller's network namespace; empty if
	// there is none.
	Netdev(ctx context.Context, device string, port int) (string, error)
}

// Ethtool are counters of a network device, as ethtool shows them.
type Ethtool interface {
	// Counters returns those of a network device in the caller's network namespace. What
	// it returns beside an error counts.
	Counters(ctx context.Context, netdev string) ([]state.Counter, error)
}

// Parts are the parts of a device that can be left out.
type Parts struct {
	// Counters are those of device and ports, Adapter is which adapter it is and where,
	// with the temperatures of its modules, and GIDs are the addresses of its ports.
	Counters, Adapter, GIDs bool
	// Interrupts are those that serve completion vectors, with the processors on which
	// they run. InterruptCounts are how often they came and where they may run, which
	// takes half of the files.
	Interrupts, InterruptCounts bool
}

// Group is a group of counters of a port, or of the device, whose Port is 0.
type Group struct {
	Port  int
	Group state.CounterGroup
}

// Options say what is read, and where.
type Options struct {
	// Sysfs and Procfs are where these file systems are; /sys and /proc if empty.
	Sysfs, Procfs string
	// Device is the name of the device, in /sys/class/infiniband.
	Device string
	// Driver is the name of its driver as rdma-core has it, such as mlx5 or rxe, if it is
	// known. The driver of the bus, which sysfs has, is that of the network device in the
	// case of software.
	Driver string
	// Without are the parts that are not read.
	Without Parts
	// Skip are groups of counters that are not read, because the kernel refused them not
	// long ago.
	Skip []Group
	// Statistics and Ethtool are asked for counters, and Netdevs for what sysfs does not
	// tell, if they are not nil.
	Statistics Statistics
	Ethtool    Ethtool
	Netdevs    Netdevs
	// Reading, if it is not nil, has the file that is being read, or what is being asked
	// for; nil between two of them.
	Reading *atomic.Pointer[string]
}

// Read reads a device. What cannot be read is missing in what it returns; of a group of
// counters that is refused, state.HardwarePort.Refused tells. Failure is set if the device
// is not there, or is gone by the end, or if ctx ended before everything was read; Late, too,
// if that was its deadline.
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
	defer d.close()
	ports, err := d.portNumbers()
	if err == nil {
		ports = slices.DeleteFunc(ports, func(n int) bool { return n < 1 || n > math.MaxUint16 })
		d.read(&h, ports[:min(len(ports), maxPorts)])
		_, err = d.list(filepath.Join(d.dir, "ports"), 1)
	}
	switch {
	// What ends once all was read takes nothing from it.
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

// The kernel shows a device before its ports, and takes the ports away first. That is over
// soon.
const (
	portsPause = 20 * time.Millisecond
	portsTries = 50
)

// portNumbers returns the numbers of the ports, once there are any.
func (d *device) portNumbers() ([]int, error) {
	path := filepath.Join(d.dir, "ports")
	for try := 1; ; try++ {
		ports, err := d.numbers(path)
		if !errors.Is(err, fs.ErrNotExist) || try == portsTries || !d.exists() {
			return ports, err
		}
		select {
		case <-d.ctx.Done():
		case <-time.After(portsPause):
		}
	}
}

// exists tells whether the device is there.
func (d *device) exists() bool {
	_, err := d.list(d.dir, 1)
	return err == nil
}

// maxPorts is how many ports of a device are read. Adapters have four at most; what has
// hundreds is an eswitch, whose further ports are those of virtual functions.
const maxPorts = 32

// device is a device while it is read.
type device struct {
	reader
	Options
	// dir is its directory in sysfs.
	dir string
	// function is the directory of its PCI function, with no symbolic links in it; empty
	// if it has none. subfunction tells that it shares this with other devices.
	function    string
	subfunction bool
	// ports is how many ports it has.
	ports int
}

// read reads all of a device.
func (d *device) read(h *state.Hardware, ports []int) {
	d.ports = len(ports)
	d.findFunction()
	h.Driver = d.driver()
	if h.Table = counters.TableOf(d.Driver); h.Table == "" {
		h.Table = counters.TableOf(h.Driver)
	}
	if !d.Without.Adapter {
		h.Identity = d.adapter()
	}
	for _, number := range ports {
		h.Ports = append(h.Ports, d.port(number))
	}
	if !d.Without.Counters {
		h.Counters, h.Refused = d.group(Group{Group: state.GroupHardware}, filepath.Join(d.dir, string(state.GroupHardware)))
	}
	if !d.Without.Interrupts {
		h.Interrupts = d.interrupts()
	}
}

// software tells whether the device is one that the kernel makes up on a network device.
func (d *device) software() bool {
	return d.Driver == "rxe" || d.Driver == "siw"
}

// driver returns the name of the driver.
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
	// Only Soft-RoCE has this file, which names its network device.
	if _, err := d.text(filepath.Join(d.dir, "parent")); err == nil && d.Driver == "" {
		d.Driver = "rxe"
	}
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
