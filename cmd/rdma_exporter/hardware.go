package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/ethtool"
	"rdma_exporter/internal/hardware"
	"rdma_exporter/internal/hardware/counters"
	simulatedhardware "rdma_exporter/internal/hardware/simulated"
	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// hardwareMemory is the memory, in bytes, from which on the garbage of a child that reads
// the hardware is collected at any price.
const hardwareMemory = 64 << 20

// hardwareSettings are the settings of a child that reads the hardware.
type hardwareSettings struct {
	// Sysfs is where sysfs is mounted.
	Sysfs string `json:"sysfs,omitempty"`
	// NoCounters, NoAdapter, NoInterrupts and NoGIDs leave out what nobody would see.
	NoCounters   bool `json:"no_counters,omitempty"`
	NoAdapter    bool `json:"no_adapter,omitempty"`
	NoInterrupts bool `json:"no_interrupts,omitempty"`
	NoGIDs       bool `json:"no_gids,omitempty"`
	// Budget is the time after which the child reports what it has, whatever is missing.
	Budget time.Duration `json:"budget,omitempty"`
}

// readHardware is the command hardware: it reads all devices at the same time and tells of
// each as soon as it is done. Of those that are not done in time it tells what they wait
// for, and leaves them behind: the end of the process is theirs.
func readHardware(ctx context.Context, o *options, std stdio) error {
	debug.SetMemoryLimit(hardwareMemory)
	runtime.UnlockOSThread()
	giveWay(true)
	told, err := wire.ReadInput(std.in, o.settings())
	if err != nil {
		return err
	}
	if err := told.Settings.parse(); err != nil {
		return err
	}
	if told.Request.Hardware == nil {
		return errors.New("the command hardware is for the exporter itself, which passes it the devices")
	}
	out := wire.NewWriter(std.out)
	settings, names := told.Settings, told.Request.Hardware.Devices
	// Whoever minds the context has a part of the time for its say.
	grace := settings.Hardware.Budget / 8 //nolint:mnd // an eighth
	over := time.NewTimer(settings.Hardware.Budget)
	defer over.Stop()
	ctx, cancel := context.WithTimeout(ctx, settings.Hardware.Budget-grace)
	defer cancel()

	kernel := newKernel(ctx)
	results := make(chan finished, len(names))
	in := make([]atomic.Pointer[string], len(names))
	for i, name := range names {
		go func() {
			results <- finished{i, readDevice(ctx, settings, name, told.Request.Hardware, kernel, &in[i])}
		}()
	}
	missing := make(map[int]bool, len(names))
	for i := range names {
		missing[i] = true
	}
	gather(results, over.C, len(names), func(r finished) {
		delete(missing, r.device)
		_ = out.Send(wire.Line{Hardware: &r.Hardware}) // The error comes again at the end.
	})
	for i, name := range names {
		if !missing[i] {
			continue
		}
		h := state.Hardware{Device: name, Failure: fmt.Sprintf("out of time after %v", settings.Hardware.Budget), Late: true}
		if file := in[i].Load(); file != nil {
			h = state.Hardware{Device: name, Failure: fmt.Sprintf("timed out after %v of %s", settings.Hardware.Budget, *file), Reading: *file}
		}
		_ = out.Send(wire.Line{Hardware: &h})
	}
	return out.Send(wire.Line{End: &wire.End{}})
}

// finished is what was read of one of the devices, by its place among them.
type finished struct {
	device int
	state.Hardware
}

// gather calls take with each of n results as it comes, until over. What has come by then is
// not late, however long this process had to wait for a processor.
func gather(results <-chan finished, over <-chan time.Time, n int, take func(finished)) {
	for ; n > 0; n-- {
		select {
		case r := <-results:
			take(r)
			continue
		default:
		}
		select {
		case r := <-results:
			take(r)
		case <-over:
			for len(results) > 0 {
				take(<-results)
			}
			return
		}
	}
}

// readDevice reads the hardware of one device.
func readDevice(ctx context.Context, s settings, device string, r *wire.HardwareRequest, kernel *kernel, reading *atomic.Pointer[string]) state.Hardware {
	if s.Provider == providerSimulated {
		h := simulatedhardware.Read(s.parsed, device, time.Now(), !s.Hardware.NoCounters, func(file string) { reading.Store(&file) })
		h.Table = counters.TableOf(h.Driver)
		return h
	}
	o := hardware.Options{
		Sysfs: s.Hardware.Sysfs, Procfs: s.Inventory.Procfs, Device: device, Reading: reading, Ethtool: ethtool.Reader{},
		Without: hardware.Parts{
			Counters: s.Hardware.NoCounters, Adapter: s.Hardware.NoAdapter, GIDs: s.Hardware.NoGIDs, InterruptCounts: s.Hardware.NoInterrupts,
		},
	}
	for _, skip := range r.Skip {
		if skip.Device == device {
			o.Skip = append(o.Skip, hardware.Group{Port: skip.Port, Group: skip.Group})
		}
	}
	netlink := "the kernel's answer over netlink"
	reading.Store(&netlink)
	told, known := kernel.devices()[device]
	if known {
		if conn, err := restrack.Dial(); err == nil {
			defer func() { _ = conn.Close() }() // nothing was written
			o.Driver = conn.Driver(ctx, device, told)
			o.Statistics, o.Netdevs = asked{conn, told}, asked{conn, told}
		}
	}
	mode := kernel.mode()
	reading.Store(nil)
	h := hardware.Read(ctx, o)
	if !s.Hardware.NoAdapter {
		h.Identity.NetnsMode = mode
	}
	return h
}

// kernel is what the kernel tells over netlink of all devices, asked for once.
type kernel struct {
	// devices returns the numbers of the devices, and mode the network namespace mode.
	devices func() map[string]uint32
	mode    func() string
}

func newKernel(ctx context.Context) *kernel {
	return &kernel{
		devices: sync.OnceValue(func() map[string]uint32 {
			numbers := make(map[string]uint32)
			_ = ask(func(conn *restrack.Conn) error { // without an answer sysfs has to do
				devices, err := conn.Devices(ctx)
				for _, d := range devices {
					numbers[d.Name] = d.Index
				}
				return err
			})
			return numbers
		}),
		mode: sync.OnceValue(func() (mode string) {
			_ = ask(func(conn *restrack.Conn) (err error) { // an older kernel does not know
				mode, err = conn.NetnsMode(ctx)
				return err
			})
			return mode
		}),
	}
}

// ask asks the kernel for something over a connection of its own.
func ask(f func(*restrack.Conn) error) error {
	conn, err := restrack.Dial()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing was written
	return f(conn)
}

// asked is a device that the kernel is asked about over netlink.
type asked struct {
	conn  *restrack.Conn
	index uint32
}

// Statistics implements hardware.Statistics.
func (s asked) Statistics(ctx context.Context, _ string, port int) ([]state.Counter, error) {
	return s.conn.Statistic(ctx, s.index, port)
}

// Netdev implements hardware.Netdevs.
func (s asked) Netdev(ctx context.Context, _ string, port int) (string, error) {
	return s.conn.Netdev(ctx, s.index, port)
}
