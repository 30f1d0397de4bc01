package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/bandwidth"
	"rdma_exporter/internal/hardware"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/path"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/supervisor"
	"rdma_exporter/internal/wire"
)

func (o *options) addBandwidth(app *kingpin.Application) {
	c := app.Command(commandBandwidth, "Measure how fast each device reaches the memory of each NUMA node, by hand, on idle devices.").
		HelpLong("Writes to and reads from the memory of each NUMA node, from each port to itself, and compares the result with the links and with other devices. The exit status is 0 if all is well, 1 with findings or if something is missing, and 2 if it did not begin: the command line is wrong, there is no device, or others use one. See docs/bandwidth.md.")
	c.Flag("device", "Measure only the devices whose whole name matches this regular expression. Default: all.").PlaceHolder("REGEX").RegexpVar(&o.include)
	c.Flag("yes", "Do it: use all bandwidth of one device after the other.").BoolVar(&o.bandwidth.yes)
	c.Flag("anyway", "Do it, and do not stop, even if other programs hold queue pairs on a device, or the kernel does not say whether they do.").BoolVar(&o.bandwidth.anyway)
	c.Flag("json", "Write the result as JSON.").BoolVar(&o.bandwidth.json)
}

// runBandwidth is the command bandwidth.
func runBandwidth(ctx context.Context, o *options, std stdio) int {
	if o.when = whenIdle; o.bandwidth.anyway {
		o.when = whenAlways
	}
	s, names, children, err := o.byHand()
	if err == nil && (len(names) == 0 || !o.bandwidth.yes) {
		err = fmt.Errorf("this uses all bandwidth of %d devices: [%s]; confirm with --yes", len(names), quotedList(names))
	}
	for _, name := range names {
		if used := reducedFor(ctx, *children.settings.Load(), name); used != nil && err == nil {
			err = fmt.Errorf("%s may be in use: %s; use it when it is idle, or confirm with --anyway", name, used.Detail)
		}
	}
	if err != nil {
		complain(std, err)
		return exitUsage
	}
	var all []state.Bandwidth
	for _, name := range names {
		all = append(all, s.Bandwidth(ctx, name))
	}
	report := bandwidth.NewReport(all)
	text, good := report.Text()
	if err := writeResult(text, report, o.bandwidth.json, std); err != nil || !good {
		return exitFailed
	}
	return exitOK
}

// scheduleBandwidth makes each device be measured at times that depend on the host and the device, so
// that those of a cluster are spread. It does nothing without --bandwidth.schedule.
func scheduleBandwidth(c *supervisor.Config, evaluator *health.Evaluator) {
	b := &c.Bandwidth
	if b.Interval == 0 {
		return
	}
	host, _ := os.Hostname() // Without a name, hosts with the same devices measure at the same time.
	b.Past = func(device string) *state.BandwidthState { return evaluator.History().Bandwidth[device] }
	b.Slot = func(device string, after time.Time) time.Time {
		return path.NextSlot(host+" "+device, b.Interval, after)
	}
}

// measureBandwidth is the command of the child that measures a device.
func measureBandwidth(ctx context.Context, s settings, o session.Options) error {
	runtime.GOMAXPROCS(2) //nolint:mnd // one for the goroutine that watches
	m := bandwidth.Options{Options: o, Nodes: hardware.NUMANodes(ctx, s.Hardware.Sysfs)}
	if !s.Anyway {
		u, done, err := usageOf(s, o.Device)
		if err != nil {
			return err
		}
		defer done()
		index, err := inventory.Index(ctx, u.Tables, o.Device)
		if err != nil {
			return err
		}
		m.Count = func(ctx context.Context) (int64, error) { return inventory.CountAt(ctx, u.Tables, index, "qp") }
		m.InUse = func(ctx context.Context) *state.Reduced { return reducedFor(ctx, s, o.Device) }
	}
	s.Hardware.Without = hardware.Parts{Counters: true, GIDs: true, InterruptCounts: true}
	m.Hardware = readDevice(ctx, s, o.Device, new(wire.HardwareRequest), new(hardware.GPUs), new(atomic.Pointer[string]))
	m.PCI = hardware.PathToMemory(ctx, s.Hardware.Sysfs, m.Hardware.Identity.PCI)
	return bandwidth.Run(ctx, m)
}
