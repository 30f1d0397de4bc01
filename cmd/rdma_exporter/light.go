package main

import (
	"context"
	"errors"
	"os"
	"time"

	"rdma_exporter/internal/inventory"
	simulatedhost "rdma_exporter/internal/inventory/simulated"
	"rdma_exporter/internal/owner"
	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
)

// reducedFor returns why a run on a device must do as little as possible, or nil.
func reducedFor(ctx context.Context, s settings, device string) *state.Reduced {
	if s.When != whenIdle {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	u, done, err := usageOf(s, device)
	if err != nil {
		return inventory.UsageUnknown(err)
	}
	defer done()
	u.Exporter = os.Getppid()
	return inventory.InUse(ctx, u)
}

// usageOf returns what it takes to find out whether others use a device. Callers must call done.
func usageOf(s settings, device string) (u inventory.Usage, done func(), err error) {
	u = inventory.Usage{Device: device, Own: programName}
	if s.Provider == providerSimulated {
		host := simulatedhost.New(s.parsed, device, time.Now(), nil)
		u.Tables, u.Relatives = host, host
		return u, func() {}, nil
	}
	if !restrack.ListsAllObjects() {
		return u, nil, errors.New("before Linux 5.5 its tables leave out the objects of others")
	}
	tables, err := restrack.Dial()
	if err != nil {
		return u, nil, err
	}
	u.Tables = tables
	// Without /proc, all queue pairs count as those of others.
	if people, err := owner.New(s.Inventory.Procfs, s.Inventory.Cgroup); err == nil {
		u.Relatives = people
	}
	return u, func() { _ = tables.Close() }, nil // Nothing was written.
}
