package health

import (
	"cmp"

	"rdma_exporter/internal/state"
)

// Usage is the state of the objects of one type on a device.
type Usage struct {
	Type string
	// Objects counts all objects. User, Kernel, Exporter and Unknown are its parts by owner.
	// Unknown were only counted.
	Objects, User, Kernel, Exporter, Unknown int64
	// Others belong to processes that are not named as owners. Unowned are user objects for
	// which the kernel names no process.
	Others, Unowned int64
	// Limit is the maximum that the device reports. Zero means that it reports none.
	Limit int64
	// Exhausted is when the device had no more objects; nil if that has not happened.
	Exhausted *Exhausted
	// Orphaned counts objects without a living owner; nil if that is not known.
	Orphaned *int64
	// Leaked counts objects that exited children of the exporter left.
	Leaked int64
	// Trend is the growth of all owners together; nil if they do not grow.
	Trend *Trend
	// Incomplete is why the objects were not inspected one by one; nil if they were.
	Incomplete *state.Incomplete
}

// Usage returns the state of the objects of each type; nil before the first inventory.
func (d *Device) Usage() []Usage {
	r := d.State.Resources
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
	u.Exhausted = find(d.Exhausted, func(e *Exhausted) bool { return e.Type == kind })
	u.Trend = find(cmp.Or(d.Growth, new(Growth)).All, func(t *Trend) bool { return t.Type == kind })
	if d.State.Info != nil {
		u.Limit, _ = d.State.Info.LimitOf(kind)
	}
	for _, l := range r.Leaked {
		if l.Type == kind {
			u.Leaked = sum(u.Leaked, l.Objects)
		}
	}
	i := r.Inventory
	if i == nil {
		return u
	}
	parts := map[state.OwnerKind]*int64{state.OwnerUser: &u.User, state.OwnerKernel: &u.Kernel, state.OwnerExporter: &u.Exporter}
	for _, o := range i.Objects {
		if o.Type == kind {
			part := cmp.Or(parts[o.Owner], &u.Unknown)
			*part = sum(*part, o.Objects)
		}
	}
	u.Objects, u.Others = i.Count(kind), state.CountOf(i.Others, kind)
	u.Unowned = sum(state.CountOf(i.Ownerless, kind), state.CountOf(i.Untraced, kind))
	if orphaned, ok := i.Orphaned(kind); ok {
		u.Orphaned = &orphaned
	}
	u.Incomplete = find(i.Incomplete, func(n *state.Incomplete) bool { return n.Type == kind })
	return u
}
