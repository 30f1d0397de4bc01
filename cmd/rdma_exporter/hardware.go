package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/ethtool"
	"rdma_exporter/internal/hardware"
	"rdma_exporter/internal/hardware/counters"
	simulatedhardware "rdma_exporter/internal/hardware/simulated"
	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

type hardwareSettings struct {
	Sysfs string `json:"sysfs,omitempty"`
	// Without are the parts that no collector shows.
	Without hardware.Parts `json:"without"`
	// Budget is the time after which the child reports what it has.
	Budget time.Duration `json:"budget,omitempty"`
}

// readHardware is the command hardware. It reads all devices concurrently and reports each one
// when it is done. The end of the process ends readings that hang.
func readHardware(ctx context.Context, o *options, std stdio) error {
	debug.SetMemoryLimit(childMemory)
	runtime.UnlockOSThread()
	in, err := wire.ReadInput(std.in, o.settings())
	if err != nil {
		return err
	}
	if err := in.Settings.parse(); err != nil {
		return err
	}
	in.Settings.giveWay(true)
	request, budget, gpus := in.Request.Hardware, in.Settings.Hardware.Budget, new(hardware.GPUs)
	if request == nil {
		return errors.New("the command hardware is for the exporter itself, which passes it the devices")
	}
	out := wire.NewWriter(std.out)
	over := time.NewTimer(budget)
	defer over.Stop()
	// Readings that obey the context have an eighth of the time for their report.
	ctx, cancel := context.WithTimeout(ctx, budget-budget/8) //nolint:mnd // an eighth
	defer cancel()

	results := make(chan state.Hardware, len(request.Devices))
	// reading has the file that each device which is not done waits for.
	reading := make(map[string]*atomic.Pointer[string])
	for _, name := range request.Devices {
		file := new(atomic.Pointer[string])
		reading[name] = file
		go func() { results <- readDevice(ctx, in.Settings, name, request, gpus, file) }()
	}
	report := func(h state.Hardware) {
		delete(reading, h.Device)
		_ = out.Send(wire.Line{Hardware: &h}) // The error comes again at the end.
	}
	for late := false; len(reading) > 0 && !late; {
		select {
		case h := <-results:
			report(h)
		case <-over.C:
			late = true
			for len(results) > 0 { // This process may have waited for a processor.
				report(<-results)
			}
		}
	}
	for name, file := range reading {
		h := state.Hardware{Device: name, Failure: fmt.Sprintf("out of time after %v", budget), Late: true}
		if file := file.Load(); file != nil {
			h = state.Hardware{Device: name, Failure: fmt.Sprintf("timed out after %v of %s", budget, *file), Reading: *file}
		}
		report(h)
	}
	return out.Send(wire.Line{End: &wire.End{}})
}

func readDevice(ctx context.Context, s settings, device string, r *wire.HardwareRequest, gpus *hardware.GPUs, reading *atomic.Pointer[string]) state.Hardware {
	if s.Provider == providerSimulated {
		h := simulatedhardware.Read(s.parsed, device, time.Now(), !s.Hardware.Without.Counters, func(file string) { reading.Store(&file) })
		h.Table = counters.TableOf(h.Driver)
		return h
	}
	o := hardware.Options{
		Sysfs: s.Hardware.Sysfs, Procfs: s.Inventory.Procfs, Device: device, Reading: reading, Ethtool: ethtool.Reader{},
		Without: s.Hardware.Without, GPUs: gpus,
	}
	for _, skip := range r.Skip {
		if skip.Device == device {
			o.Skip = append(o.Skip, hardware.Group{Port: skip.Port, Group: skip.Group})
		}
	}
	var mode string
	if conn, err := restrack.Dial(); err == nil {
		defer func() { _ = conn.Close() }() // Nothing was written.
		reading.Store(new("the kernel's answer over netlink"))
		mode, _ = conn.NetnsMode(ctx) // Older kernels do not report it.
		// Without the kernel's answer, sysfs has most of the rest.
		if index, err := inventory.Index(ctx, conn, device); err == nil {
			o.Driver = conn.Driver(ctx, device, index)
			o.Statistics, o.Netdevs = kernelDevice{conn, index}, kernelDevice{conn, index}
		}
		reading.Store(nil)
	}
	h := hardware.Read(ctx, o)
	if !s.Hardware.Without.Adapter {
		h.Identity.NetnsMode = mode
	}
	return h
}

type kernelDevice struct {
	conn  *restrack.Conn
	index uint32
}

// Statistics implements hardware.Statistics.
func (d kernelDevice) Statistics(ctx context.Context, _ string, port int) ([]state.Counter, error) {
	return d.conn.Statistic(ctx, d.index, port)
}

// Netdev implements hardware.Netdevs.
func (d kernelDevice) Netdev(ctx context.Context, _ string, port int) (string, error) {
	return d.conn.Netdev(ctx, d.index, port)
}
