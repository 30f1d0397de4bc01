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

// dated is an inventory with the time at which it was taken.
type dated struct {
	inventory *state.Inventory
	taken     time.Time
}

// inventoriesOf returns the inventories of all present devices.
func inventoriesOf(s *state.Snapshot) []dated {
	var inventories []dated
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Present && d.Resources != nil && d.Resources.Inventory != nil {
			inventories = append(inventories, dated{d.Resources.Inventory, d.Resources.Taken})
		}
	}
	return inventories
}

// addProcesses adds whether processes can be seen, and what memory they hold in
// place, those that hold most first. A process can own objects on several devices, whose inventories are not
// taken at the same moment: the newest counts.
func addProcesses(b *builder, inventories []dated) {
	if len(inventories) == 0 {
		return
	}
	slices.SortStableFunc(inventories, func(a, b dated) int { return b.taken.Compare(a.taken) })
	b.boolGauge("rdma_inventory_pid_visibility", inventories[0].inventory.PIDsVisible)

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
		b.gauge("rdma_owner_locked_bytes", float64(o.Memlock.Pinned), slices.Concat(labels, []string{"pinned"})...)
		b.gauge("rdma_owner_locked_bytes", float64(o.Memlock.Locked), slices.Concat(labels, []string{"locked"})...)
		b.gauge("rdma_owner_locked_limit_bytes", limitOrInf(o.Memlock.Limit), labels...)
	}
}

// held returns the memory that a process holds in place against its limit. The
// kernel counts what is pinned and what is locked apart.
func held(m *state.Memlock) int64 { return max(m.Pinned, m.Locked) }
