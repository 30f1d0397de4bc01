package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/probe/contract"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// settings are what each child of a device is told.
type settings struct {
	Provider string `json:"provider"`
	// Profile is the profile of the devices that the child is of, if they are simulated,
	// left encoded by children of others, whose time it would take to learn its type.
	// Without one, the devices are the built-in ones.
	Profile json.RawMessage `json:"profile,omitempty"`
	// parsed is that profile.
	parsed    *simulated.Profile
	Probe     probe.Config     `json:"probe"`
	Inventory inventory.Config `json:"inventory"`
	Hardware  hardwareSettings `json:"hardware"`
	// When is when the device is probed in full: always, which nothing stands for too, or
	// idle.
	When string `json:"when,omitempty"`
}

// runChild is the commands probe, contract and inventory: one run on one device,
// reported on standard output; and hardware, which is one on all.
func runChild(ctx context.Context, o *options, std stdio) int {
	if err := runOnce(ctx, o, std); err != nil {
		fmt.Fprintf(std.err, "%s: %v\n", programName, err)
		return exitFailed
	}
	return exitOK
}

func runOnce(ctx context.Context, o *options, std stdio) error {
	if err := endWithParent(); err != nil {
		return err
	}
	if err := setName(programName); err != nil {
		return err
	}
	switch o.command {
	case commandInventory:
		return takeInventory(ctx, o, std)
	case commandHardware:
		return readHardware(ctx, o, std)
	}
	// A collection in the middle of a run would move what the probes measure. A
	// run allocates little; if it does not, memory is still bounded.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(childMemory)

	in, err := readInput(o, std.in)
	if err != nil {
		return err
	}
	s := in.Settings
	if s.Probe.NoMemory {
		// A goroutine that keeps a thread to itself has others wake each other.
		runtime.UnlockOSThread()
	} else {
		startThreads(spareThreads)
	}
	provider, err := providerOf(s)
	if err != nil {
		return err
	}
	driver, err := driverOf(ctx, s, o.command, o.device)
	if err != nil {
		return err
	}
	out := wire.NewWriter(std.out)
	return work(ctx, o.command, in.Request, probe.Options{
		Options: session.Options{
			Provider: provider, Device: o.device, Out: out,
			Opened:    func() { announce(ctx, s, o.device, out) },
			Exhausted: func(err *verbs.Error) (state.Refused, bool) { return exhausted(ctx, s, o.device, err) },
		},
		Driver: driver, Config: s.Probe, Reduced: reducedFor(ctx, s, o.device),
		Facts: in.Request.Facts, Short: in.Request.Short, LocksMemory: s.Provider == providerLibibverbs,
		RefusedMemory: func(err *verbs.Error, size int) (state.RefusedBy, string) {
			return refusedMemory(s, o.device, err, size)
		},
	})
}

// work is the commands probe and contract, on a device that is as the options say.
func work(ctx context.Context, command string, r wire.Request, o probe.Options) error {
	if command == commandContract && o.Reduced != nil {
		// Contracts are judged when others need not mind.
		return errors.Join(o.Out.Send(wire.Line{Reduced: o.Reduced}), o.Out.Send(wire.Line{End: &wire.End{}}))
	}
	if command == commandContract {
		o.Vectors, o.DestroyTimeout = o.Config.Notification.Vectors, o.Config.DestroyTimeout
		return contract.Run(ctx, contract.Options{
			Options: o.Options, Driver: o.Driver, Skip: r.Done, WithoutCompletions: r.WithoutCompletions,
		})
	}
	return probe.Run(ctx, o)
}

// spareThreads is how many threads are started before the probes: more than the
// runtime uses at any time in a process that does so little.
const spareThreads = 4

// startThreads makes the runtime start n threads, which it keeps. The stack of one
// that it started in the middle of a run, 8 MiB of address space, would pass for
// the cost of the object that is being created.
func startThreads(n int) {
	var locked, done sync.WaitGroup
	locked.Add(n)
	for range n {
		done.Go(func() {
			// All of them at once have a thread of their own.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			locked.Done()
			locked.Wait()
		})
	}
	done.Wait()
}

// readInput reads what a child is told; with nothing to read, as when a person calls
// the command by hand, it is what the flags say.
func readInput(o *options, r io.Reader) (wire.Input[settings], error) {
	in, err := wire.ReadInput(r, o.settings())
	if err != nil {
		return in, err
	}
	if err := in.Settings.parse(); err != nil {
		return in, err
	}
	return in, in.Settings.Probe.Validate()
}

// parse parses the profile. What it says of devices is checked by whoever makes them.
func (s *settings) parse() error {
	switch {
	case s.Provider != providerSimulated:
	case s.Profile == nil:
		s.parsed = simulated.Default()
	default:
		s.parsed = new(simulated.Profile)
		if err := json.Unmarshal(s.Profile, s.parsed); err != nil {
			return fmt.Errorf("read the profile of the simulated devices: %w", err)
		}
	}
	return nil
}

// setName gives the process the name that others see. Started by way of
// /proc/self/exe it would be called exe.
func setName(name string) error {
	b, err := unix.BytePtrFromString(name)
	if err != nil {
		return fmt.Errorf("name the process: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(b)), 0, 0, 0); err != nil {
		return fmt.Errorf("name the process: %w", err)
	}
	return nil
}

// endWithParent makes the kernel kill this process when its parent ends. The
// parent asks for that too, but the kernel forgets it when a program with file
// capabilities is started.
func endWithParent() error {
	parent := os.Getppid()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("ask to be ended with the parent process: %w", err)
	}
	if os.Getppid() != parent {
		return fmt.Errorf("the parent process %d has ended", parent)
	}
	return nil
}
