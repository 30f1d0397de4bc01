package collector

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/state"
)

// maxProcesses is how many processes have series of the memory that they hold in
// place: those that hold most.
const maxProcesses = 256

// dated is an inventory with the time at which it was taken. A published inventory
// is never changed, so equal pointers mean equal series.
type dated struct {
	inventory *state.Inventory
	taken     time.Time
}

// cachedOwners is a block of what inventories say of the host as a whole, with the
// inventories that it was made from.
type cachedOwners struct {
	inventories []dated
	block       block
}

// ownersBlock returns the series of what the inventories of all present devices say
// of the host as a whole. It is built anew when one of the inventories is new.
func (c *Collector) ownersBlock(s *state.Snapshot) block {
	inventories := make([]dated, 0, len(s.Devices))
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Present && d.Resources != nil && d.Resources.Inventory != nil {
			inventories = append(inventories, dated{d.Resources.Inventory, d.Resources.Taken})
		}
	}
	if c.owners.block == nil || !slices.Equal(inventories, c.owners.inventories) {
		b := newBuilder(c.metrics)
		addProcesses(b, inventories)
		c.owners = cachedOwners{inventories, b.block()}
	}
	return c.owners.block
}

// addProcesses adds whether processes can be seen, and what memory they hold in
// place, those that hold most first. A process can own objects on several devices, whose inventories are not
// taken at the same moment: the newest counts.
func addProcesses(b *builder, inventories []dated) {
	if len(inventories) == 0 {
		return
	}
	inventories = slices.Clone(inventories)
	slices.SortStableFunc(inventories, func(a, b dated) int { return b.taken.Compare(a.taken) })
	b.truth(b.inventoryPIDVisibility, inventories[0].inventory.PIDsVisible)

	seen := make(map[int]bool)
	var processes []*state.Owner
	for _, s := range inventories {
		for i := range s.inventory.Owners {
			o := &s.inventory.Owners[i]
			if seen[o.PID] {
				continue
			}
			seen[o.PID] = true
			if o.Memlock != nil {
				processes = append(processes, o)
			}
		}
	}
	slices.SortFunc(processes, func(x, y *state.Owner) int {
		return cmp.Or(cmp.Compare(held(y.Memlock), held(x.Memlock)), cmp.Compare(x.PID, y.PID))
	})
	told := make(map[string]bool)
	for _, o := range processes {
		labels := b.ownerLabels(strconv.Itoa(o.PID), o.Comm, o.ContainerID, o.PodUID)
		key := strings.Join(labels, "\xff")
		if told[key] || len(told) == maxProcesses {
			continue
		}
		told[key] = true
		b.gauge(b.ownerLocked, float64(o.Memlock.Pinned), slices.Concat(labels, []string{"pinned"})...)
		b.gauge(b.ownerLocked, float64(o.Memlock.Locked), slices.Concat(labels, []string{"locked"})...)
		b.gauge(b.ownerLockedLimit, limitOrInf(o.Memlock.Limit), labels...)
	}
}

// held returns the memory that a process holds in place against its limit. The
// kernel counts what is pinned and what is locked apart.
func held(m *state.Memlock) int64 { return max(m.Pinned, m.Locked) }
