package api

import (
	"cmp"
	"slices"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// Usage is the state of the objects of one type on a device.
type Usage struct {
	Type string
	// Objects counts all objects. User, Kernel and Unknown are its parts by owner, without
	// those of the exporter. Unknown were only counted.
	Objects, User, Kernel, Unknown int64
	// Others belong to processes that are not named as owners. Unowned are user objects for
	// which the kernel names no process.
	Others, Unowned int64
	// Limit is the maximum that the device reports. Zero means that it reports none.
	Limit int64
	// Exhausted is when the device had no more objects; nil if that has not happened.
	Exhausted *health.Exhausted
	// Orphaned counts objects without a living owner; nil if that is not known.
	Orphaned *int64
	// Leaked counts objects that exited children of the exporter left.
	Leaked int64
	// Incomplete is why the objects were not inspected one by one; nil if they were.
	Incomplete *state.Incomplete
}

// Usage returns the state of the objects of each type; nil before the first inventory.
func (d *Device) Usage() []Usage {
	r := d.Resources
	if r == nil {
		return nil
	}
	var all []Usage
	for _, kind := range state.ResourceTypes() {
		if u := d.usage(kind, r); r.Inventory != nil || u.Leaked > 0 || u.Exhausted != nil {
			all = append(all, u)
		}
	}
	return all
}

func (d *Device) usage(kind string, r *state.Resources) Usage {
	u := Usage{Type: kind}
	if i := slices.IndexFunc(d.Exhausted, func(e health.Exhausted) bool { return e.Type == kind }); i >= 0 {
		u.Exhausted = &d.Exhausted[i]
	}
	u.Limit, _ = cmp.Or(d.Info, new(state.Device)).LimitOf(kind)
	for _, l := range r.Leaked {
		if l.Type == kind {
			u.Leaked += l.Objects
		}
	}
	i := r.Inventory
	if i == nil {
		return u
	}
	for _, o := range i.Objects {
		switch {
		case o.Type != kind || o.Owner == state.OwnerExporter:
		case o.Owner == state.OwnerUser:
			u.User += o.Objects
		case o.Owner == state.OwnerKernel:
			u.Kernel += o.Objects
		default:
			u.Unknown += o.Objects
		}
	}
	u.Objects, u.Others = i.Count(kind), state.CountOf(i.Others, kind)
	u.Unowned = state.CountOf(slices.Concat(i.Ownerless, i.Untraced), kind)
	if orphaned, ok := i.Orphaned(kind); ok {
		u.Orphaned = &orphaned
	}
	if n := slices.IndexFunc(i.Incomplete, func(n state.Incomplete) bool { return n.Type == kind }); n >= 0 {
		u.Incomplete = &i.Incomplete[n]
	}
	return u
}
