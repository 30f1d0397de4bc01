package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"rdma_exporter/internal/inventory"
	simulatedhost "rdma_exporter/internal/inventory/simulated"
	"rdma_exporter/internal/owner"
	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

const (
	// inventoryNice is how much a child of the inventory, or of the hardware, gives way to
	// others on its processor, the probes among them.
	inventoryNice = 10
	// childMemory is the memory, in bytes, from which on a child collects garbage at any price.
	childMemory = 64 << 20
)

// takeInventory is the command inventory.
func takeInventory(ctx context.Context, o *options, std stdio) error {
	debug.SetMemoryLimit(childMemory)
	giveWay(false)
	in, err := readInput(o, std.in)
	if err != nil {
		return err
	}
	s := in.Settings
	take := inventory.Options{
		Config: s.Inventory, Device: o.device, Exporter: os.Getppid(), Own: programName,
		MaxFill: in.Request.MaxFill, LeakCandidates: in.Request.LeakCandidates, Out: wire.NewWriter(std.out),
	}
	if s.Provider == providerSimulated {
		if err := s.parsed.Validate(); err != nil {
			return err
		}
		host := simulatedhost.New(s.parsed, o.device, time.Now(), in.Request.LeakCandidates)
		take.Tables, take.People = host, host
		return inventory.Run(ctx, take)
	}
	tables, err := restrack.Dial()
	if err != nil {
		return fmt.Errorf("ask the kernel for its tables: %w", err)
	}
	defer func() { _ = tables.Close() }() // nothing was written
	people, err := owner.New(s.Inventory.Procfs, s.Inventory.Cgroup)
	if err != nil {
		return fmt.Errorf("find the owners of objects: %w", err)
	}
	take.Tables, take.People = tables, people
	return inventory.Run(ctx, take)
}

// giveWay has this thread give way to others, or all threads of a child, which has a process
// group of its own. Who may not ask for that, or gives way already, goes on as it is.
func giveWay(all bool) {
	which := syscall.PRIO_PROCESS
	if all && syscall.Getpgrp() == os.Getpid() {
		which = syscall.PRIO_PGRP
	}
	// The system call returns 20 less the niceness.
	if raw, err := syscall.Getpriority(which, 0); err == nil && 20-raw < inventoryNice {
		_ = syscall.Setpriority(which, 0, inventoryNice)
	}
}

// announceTime bounds the time for finding out what the kernel calls a device.
const announceTime = time.Second

// errFound ends the search in a table.
var errFound = errors.New("found")

// announce tells what the kernel calls the device that this process has opened, so
// that what is left of it can be found when the process has ended. A kernel that
// does not tell, or not soon, costs that, and no more. A simulated device has a name
// at once.
func announce(ctx context.Context, s settings, device string, out *wire.Writer) {
	if s.Provider == providerSimulated {
		_ = out.Send(wire.Line{Context: new(simulatedhost.Context(os.Getpid()))})
		return
	}
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	own := make(map[string]bool, len(threads))
	for _, t := range threads {
		own[t.Name()] = true
	}
	tables, err := restrack.Dial()
	if err != nil {
		return
	}
	defer func() { _ = tables.Close() }() // nothing was written
	devices, err := tables.Devices(ctx)
	if err != nil {
		return
	}
	for _, d := range devices {
		if d.Name != device {
			continue
		}
		_ = tables.Dump(ctx, d.Index, restrack.CTX, func(o *restrack.Object) error {
			if o.HasID && own[strconv.FormatUint(uint64(o.Thread), 10)] {
				_ = out.Send(wire.Line{Context: &state.Context{Index: d.Index, ID: o.ID}})
				return errFound
			}
			return nil
		})
		return
	}
}
