package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	simulatedhardware "rdma_exporter/internal/hardware/simulated"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// hardwareMemory is the memory, in bytes, from which on the garbage of a child that reads
// the hardware is collected at any price.
const hardwareMemory = 64 << 20

// hardwareSettings are what a child that reads the hardware is told.
type hardwareSettings struct {
	// Sysfs is where sysfs is mounted.
	Sysfs string `json:"sysfs,omitempty"`
	// NoCounters, NoAdapter and NoGIDs leave out what nobody would see.
	NoCounters bool `json:"no_counters,omitempty"`
	NoAdapter  bool `json:"no_adapter,omitempty"`
	NoGIDs     bool `json:"no_gids,omitempty"`
	// Budget is the time after which what was read is told, whatever is lacking.
	Budget time.Duration `json:"budget,omitempty"`
}

// readHardware is the command hardware: it reads all devices at the same time and tells of
// each as soon as it is done. Of those that are not done in time it tells what they wait
// for, and leaves them behind: the end of the process is theirs.
func readHardware(ctx context.Context, o *options, std stdio) error {
	debug.SetMemoryLimit(hardwareMemory)
	runtime.UnlockOSThread()
	giveWay(true)
	in, err := wire.ReadInput(std.in, o.settings())
	if err != nil {
		return err
	}
	if in.Request.Hardware == nil {
		return errors.New("the command hardware is what the exporter runs, which tells it of which devices")
	}
	out := wire.NewWriter(std.out)
	settings, names := in.Settings, in.Request.Hardware.Devices
	ctx, cancel := context.WithTimeout(ctx, settings.Hardware.Budget)
	defer cancel()

	type done struct {
		device int
		state.Hardware
	}
	results := make(chan done, len(names))
	reading := make([]atomic.Pointer[string], len(names))
	for i, name := range names {
		go func() {
			results <- done{i, readDevice(ctx, settings, name, in.Request.Hardware.Skip, &reading[i])}
		}()
	}
	missing := make(map[int]bool, len(names))
	for i := range names {
		missing[i] = true
	}
	take := func(d done) {
		delete(missing, d.device)
		_ = out.Hardware(d.Hardware) // The error comes again at the end.
	}
	for len(missing) > 0 && ctx.Err() == nil {
		select {
		case d := <-results:
			take(d)
		case <-ctx.Done():
		}
	}
	// Whoever minds the context has its say.
	for grace := time.After(settings.Hardware.Budget / 8); len(missing) > 0; { //nolint:mnd // an eighth
		select {
		case d := <-results:
			take(d)
			continue
		case <-grace:
		}
		break
	}
	for i, name := range names {
		if !missing[i] {
			continue
		}
		h := state.Hardware{Device: name, Failure: fmt.Sprintf("no end within %v", settings.Hardware.Budget), Reading: "something"}
		if file := reading[i].Load(); file != nil {
			h.Reading = *file
			h.Failure += " of " + *file
		}
		_ = out.Hardware(h)
	}
	return out.End(wire.End{})
}

// readDevice reads the hardware of one device.
func readDevice(_ context.Context, s settings, device string, _ []wire.SkipCounters, reading *atomic.Pointer[string]) state.Hardware {
	if s.Provider != providerSimulated {
		return state.Hardware{Device: device, Failure: "not there yet"}
	}
	s.Profile = s.Profiles[device]
	profile, err := profileOf(s)
	if err != nil {
		return state.Hardware{Device: device, Failure: err.Error()}
	}
	return simulatedhardware.Read(profile, device, time.Now(), !s.Hardware.NoCounters, func(file string) { reading.Store(&file) })
}
