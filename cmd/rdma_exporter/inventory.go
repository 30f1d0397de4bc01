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
	// inventoryNice is the niceness of children that inventory or read the hardware.
	inventoryNice = 10
	// childMemory is the memory, in bytes, from which on a child collects garbage at any price.
	childMemory = 64 << 20
)

func takeInventory(ctx context.Context, o *options, std stdio) error {
	debug.SetMemoryLimit(childMemory)
	in, err := readInput(o, std.in)
	if err != nil {
		return err
	}
	s := in.Settings
	s.giveWay(false)
	take := inventory.Options{
		Config: s.Inventory, Device: o.device, Exporter: os.Getppid(), Own: programName,
		MaxFill: in.Request.MaxFill, LeakCandidates: in.Request.LeakCandidates, Out: wire.NewWriter(std.out),
	}
	if s.Provider == providerSimulated {
		host := simulatedhost.New(s.parsed, o.device, time.Now(), in.Request.LeakCandidates)
		take.Tables, take.People = host, host
		return inventory.Run(ctx, take)
	}
	tables, err := restrack.Dial()
	if err != nil {
		return fmt.Errorf("ask the kernel for its tables: %w", err)
	}
	defer func() { _ = tables.Close() }() // Nothing was written.
	people, err := owner.New(s.Inventory.Procfs, s.Inventory.Cgroup)
	if err != nil {
		return fmt.Errorf("find the owners of objects: %w", err)
	}
	take.Tables, take.People = tables, people
	return inventory.Run(ctx, take)
}

// giveWay lowers the priority of this thread, or of all threads of a child, which has its own
// process group. In an audit, for which somebody waits, it does not.
func (s *settings) giveWay(all bool) {
	if s.Audit {
		return
	}
	which := syscall.PRIO_PROCESS
	if all && syscall.Getpgrp() == os.Getpid() {
		which = syscall.PRIO_PGRP
	}
	// The system call returns 20 less the niceness.
	if raw, err := syscall.Getpriority(which, 0); err == nil && 20-raw < inventoryNice {
		_ = syscall.Setpriority(which, 0, inventoryNice)
	}
}

// announceTime limits the time for a question to the kernel.
const announceTime = time.Second

var errFound = errors.New("found")

// announce reports the kernel's number of the context that this process has opened, so that an
// inventory can find what the process leaves behind. Without an answer, it reports nothing.
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
	defer func() { _ = tables.Close() }() // Nothing was written.
	index, err := inventory.Index(ctx, tables, device)
	if err != nil {
		return
	}
	_ = tables.Dump(ctx, index, restrack.CTX, func(o *restrack.Object) error {
		if o.HasID && own[strconv.FormatUint(uint64(o.Thread), 10)] {
			_ = out.Send(wire.Line{Context: &state.Context{Index: index, ID: o.ID}})
			return errFound
		}
		return nil
	})
}
