package collector

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/state"
)

// maxProcesses limits the processes whose locked memory has series, largest first.
const maxProcesses = 256

// maxOwnerNames limits the owners that get series of their own within ownerDay. A program chooses its
// name, and could choose another one each minute.
const (
	maxOwnerNames = 4096
	ownerDay      = 24 * time.Hour
)

// ownerNames are the labels of owners that got series of their own in the last ownerDay.
type ownerNames struct {
	since time.Time
	seen  map[string]bool
}

// admits reports whether an owner with these labels gets series of its own.
func (o *ownerNames) admits(labels []string) bool {
	if now := time.Now(); now.Sub(o.since) >= ownerDay {
		o.since, o.seen = now, make(map[string]bool)
	}
	key := strings.Join(labels, "\xff")
	if !o.seen[key] && len(o.seen) >= maxOwnerNames {
		return false
	}
	o.seen[key] = true
	return true
}

// addProcesses adds whether the host's processes are visible, and the memory that they
// lock, largest first. If a process owns objects on several devices, the newest inventory
// counts.
func addProcesses(b *builder, snapshot *state.Snapshot) {
	var inventories []*state.Resources
	for i := range snapshot.Devices {
		if d := &snapshot.Devices[i]; d.Present && d.Resources != nil && d.Resources.Inventory != nil {
			inventories = append(inventories, d.Resources)
		}
	}
	if len(inventories) == 0 {
		return
	}
	slices.SortStableFunc(inventories, func(a, b *state.Resources) int { return b.Taken.Compare(a.Taken) })
	b.boolGauge("rdma_inventory_pid_visibility", inventories[0].Inventory.PIDsVisible)

	seen := make(map[int]bool)
	var processes []*state.Owner
	for _, s := range inventories {
		for i := range s.Inventory.Owners {
			o := &s.Inventory.Owners[i]
			if !seen[o.PID] && o.Memlock != nil {
				processes = append(processes, o)
			}
			seen[o.PID] = true
		}
	}
	slices.SortFunc(processes, func(x, y *state.Owner) int {
		return cmp.Or(cmp.Compare(held(y.Memlock), held(x.Memlock)), cmp.Compare(x.PID, y.PID))
	})
	shown := make(map[string]bool)
	for _, o := range processes {
		labels, key := b.ownerLabels(strconv.Itoa(o.PID), o.Comm, o.ContainerID, o.PodUID, o.SlurmJobID)
		if shown[key] || len(shown) == maxProcesses {
			continue
		}
		shown[key] = true
		b.gauge("rdma_owner_locked_bytes", float64(o.Memlock.Pinned), slices.Concat(labels, []string{"pinned"})...)
		b.gauge("rdma_owner_locked_bytes", float64(o.Memlock.Locked), slices.Concat(labels, []string{"locked"})...)
		b.gauge("rdma_owner_locked_limit_bytes", limitOrInf(o.Memlock.Limit), labels...)
	}
}

// held returns the memory that counts against the limit of a process. The kernel counts
// pinned and locked memory separately.
func held(m *state.Memlock) int64 { return max(m.Pinned, m.Locked) }
