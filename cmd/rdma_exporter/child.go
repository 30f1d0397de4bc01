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

	"rdma_exporter/internal/child"
	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/path"
	"rdma_exporter/internal/path/answer"
	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/probe/contract"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

type settings struct {
	Provider string `json:"provider"`
	// Profile is the profile of simulated devices. Nil means the built-in ones. Children on real
	// devices do not decode it, since learning its type takes time.
	Profile   json.RawMessage    `json:"profile,omitempty"`
	parsed    *simulated.Profile // Profile, decoded
	Probe     probe.Config       `json:"probe"`
	Inventory inventory.Config   `json:"inventory"`
	Hardware  hardwareSettings   `json:"hardware"`
	// When is the value of --probe.when. Empty means always.
	When string `json:"when,omitempty"`
	// Audit is true in the command audit.
	Audit bool `json:"audit,omitempty"`
	// Quick is true in a quick audit.
	Quick bool `json:"quick,omitempty"`
	// Anyway is true if bandwidth is measured even on a device in use.
	Anyway bool `json:"anyway,omitempty"`
	// Peers is how to ask peers.
	Peers path.Config `json:"peers"`
}

// runChild is the commands probe, contract, inventory and hardware. Each writes a report to
// standard output.
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
	case string(state.KindInventory):
		return takeInventory(ctx, o, std)
	case string(state.KindHardware):
		return readHardware(ctx, o, std)
	case commandAsk, commandAnswer:
	default:
		// A garbage collection would change what the probes measure. A run allocates little.
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(childMemory)
	}
	in, err := readInput(o, std.in)
	if err != nil {
		return err
	}
	s := in.Settings
	switch {
	case o.command == string(state.KindBandwidth):
		// The kernel names the thread that created a queue pair only as long as it lives. This one does,
		// unlike those that measure.
	case s.Probe.NoMemory:
		// With its own thread, a goroutine is slower to wake others.
		runtime.UnlockOSThread()
	default:
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
	opened := session.Options{
		Provider: provider, Device: o.device, Vectors: s.Probe.Notification.Vectors, DestroyTimeout: s.Probe.DestroyTimeout, Out: out,
		Opened: func() { announce(ctx, s, o.device, out) },
	}
	switch o.command {
	case commandAnswer:
		opened.Opened = nil // Nobody reads its report.
		inUse := func(ctx context.Context) *state.Reduced { return reducedFor(ctx, s, o.device) }
		answer.Serve(ctx, opened, inUse, os.NewFile(child.ExtraFD, "parent"))
		return nil
	case string(state.KindBandwidth):
		s.When = map[bool]string{false: whenIdle, true: whenAlways}[s.Anyway]
	}
	reduced := reducedFor(ctx, s, o.device)
	switch {
	case reduced != nil && o.command != string(state.KindProbe): // It waits until no one else uses the device.
		return errors.Join(out.Send(wire.Line{Reduced: reduced}), out.Send(wire.Line{End: &wire.End{}}))
	case o.command == commandAsk:
		return askPeer(ctx, in, driver, opened)
	case o.command == string(state.KindBandwidth):
		return measureBandwidth(ctx, s, opened)
	}
	opened.Exhausted = func(err *verbs.Error) (state.Refused, bool) { return exhausted(ctx, s, o.device, err) }
	return work(ctx, o.command, in.Request, probe.Options{
		Options: opened, Driver: driver, Config: s.Probe, Reduced: reduced,
		Facts: in.Request.Facts, Short: in.Request.Short, Quick: s.Quick, LocksMemory: s.Provider == providerLibibverbs,
		RefusedMemory: func(err *verbs.Error, size int) (state.RefusedBy, string) {
			return refusedMemory(s, o.device, err, size)
		},
	})
}

// work is the commands probe and contract, after their preparation.
func work(ctx context.Context, command string, r wire.Request, o probe.Options) error {
	if command != string(state.KindContract) {
		return probe.Run(ctx, o)
	}
	o.Vectors, o.DestroyTimeout = o.Config.Notification.Vectors, o.Config.DestroyTimeout
	return contract.Run(ctx, contract.Options{
		Options: o.Options, Driver: o.Driver, Skip: r.Done, WithoutCompletions: r.WithoutCompletions,
	})
}

// spareThreads are more threads than the runtime uses at any time in a process that does so little.
const spareThreads = 4

// startThreads makes the runtime start n threads, which it keeps. The stack of a thread that it
// started in the middle of a run, 8 MiB of address space, would be attributed to an object.
func startThreads(n int) {
	var locked, done sync.WaitGroup
	locked.Add(n)
	for range n {
		done.Go(func() {
			// Each has its own thread until all have one.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			locked.Done()
			locked.Wait()
		})
	}
	done.Wait()
}

// readInput reads the input of a child. Without input, as in a call by hand, the flags apply.
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

// parse decodes the profile of simulated devices. The parent has validated it.
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

// setName names the process. Started as /proc/self/exe, it would be called exe.
func setName(name string) error {
	b, err := unix.BytePtrFromString(name)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(b)), 0, 0, 0)
	}
	if err != nil {
		return fmt.Errorf("name the process: %w", err)
	}
	return nil
}

// endWithParent makes the kernel kill this process when its parent ends. The kernel drops the
// parent's request for that when it starts a program with file capabilities.
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
