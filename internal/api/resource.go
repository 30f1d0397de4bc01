package api

import (
	"cmp"
	"slices"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// resourcesOf returns what is known of the objects on a device; nil for nothing. info
// is nil if the device never said what it allows.
func resourcesOf(r *state.Resources, info *state.Device, grows *health.Growth, runOf func(*state.Run, state.Kind) *Run) *Resources {
	if r == nil {
		return nil
	}
	resources := &Resources{Run: runOf(r.Last, state.KindInventory)}
	for _, kind := range state.ResourceTypes() {
		if t := typeOf(kind, r, info); r.Inventory != nil || t.Leaked > 0 {
			resources.Types = append(resources.Types, t)
		}
	}
	resources.addGrowth(grows)
	if i := r.Inventory; i != nil {
		resources.Taken = moment(r.Taken)
		resources.addInventory(i)
	}
	return resources
}

func (r *Resources) addInventory(i *state.Inventory) {
	r.PIDsVisible = new(i.PIDsVisible)
	for _, q := range cut(i.QueuePairs) {
		r.QueuePairs = append(r.QueuePairs, QueuePairs{Type: text.Clean(q.Type), State: text.Clean(q.State), Objects: count(q.Objects)})
	}
	all := make(map[int]int64)
	for n := range cut(i.Owners) {
		o := &i.Owners[n]
		owner := Owner{
			PID: o.PID, Comm: text.Clean(o.Comm), ContainerID: text.Clean(o.ContainerID), PodUID: text.Clean(o.PodUID),
			Types: make([]TypeCount, 0, len(o.Objects)),
		}
		for _, c := range cut(o.Objects) {
			owner.Types = append(owner.Types, TypeCount{Type: text.Clean(c.Type), Objects: count(c.Objects)})
			all[o.PID] = plus(all[o.PID], c.Objects)
		}
		if m := o.Memlock; m != nil {
			owner.Memlock = &Memlock{Pinned: count(m.Pinned), Locked: count(m.Locked), Limit: limitOf(m.Limit)}
		}
		r.Owners = append(r.Owners, owner)
	}
	slices.SortStableFunc(r.Owners, func(a, b Owner) int {
		return cmp.Or(cmp.Compare(all[b.PID], all[a.PID]), cmp.Compare(a.PID, b.PID))
	})
	for _, g := range cut(i.Cgroups) {
		r.Cgroups = append(r.Cgroups, Cgroup{
			Cgroup: text.Clean(g.Cgroup), ContainerID: text.Clean(g.ContainerID), PodUID: text.Clean(g.PodUID),
			Resource: text.Clean(g.Resource), Objects: count(g.Current), Limit: limitOf(g.Limit),
		})
	}
}

// addGrowth adds how the objects grow.
func (r *Resources) addGrowth(g *health.Growth) {
	for i := range r.Types {
		for n := range g.All {
			if g.All[n].Type == r.Types[i].Type {
				r.Types[i].Growth = new(growthOf(&g.All[n]))
			}
		}
	}
	for _, o := range g.Fastest() {
		r.Growers = append(r.Growers, Grower{
			PID: o.PID, Comm: text.Clean(o.Comm), ContainerID: text.Clean(o.ContainerID), PodUID: text.Clean(o.PodUID),
			Type: text.Clean(o.Type), Growth: growthOf(&o.Trend),
		})
	}
}

// growthOf returns how a number of objects grows.
func growthOf(t *health.Trend) Growth {
	g := Growth{From: t.From, To: t.To, Over: t.Over.Seconds(), PerHour: t.Rounded(), OnlyGrows: t.OnlyGrows, Steady: t.Steady}
	if t.Limit > 0 {
		g.UntilLimit = new(t.Left.Seconds())
	}
	return g
}

// typeOf returns what is known of the objects of one type.
func typeOf(kind string, r *state.Resources, info *state.Device) Type {
	t := Type{Type: kind}
	if info != nil {
		if limit, limited := info.LimitOf(kind); limited {
			t.Limit = &limit
		}
	}
	for _, l := range r.Leaked {
		if l.Type == kind {
			t.Leaked = plus(t.Leaked, l.Objects)
		}
	}
	i := r.Inventory
	if i == nil {
		return t
	}
	for _, o := range i.Objects {
		if o.Type != kind {
			continue
		}
		t.Objects = plus(t.Objects, o.Objects)
		switch o.Owner {
		case state.OwnerUser:
			t.User = plus(t.User, o.Objects)
		case state.OwnerKernel:
			t.Kernel = plus(t.Kernel, o.Objects)
		case state.OwnerExporter:
			t.Exporter = plus(t.Exporter, o.Objects)
		default:
			t.Unknown = plus(t.Unknown, o.Objects)
		}
	}
	t.Others = state.CountOf(i.Others, kind)
	t.Unowned = plus(state.CountOf(i.Ownerless, kind), state.CountOf(i.Untraced, kind))
	if orphaned, told := i.Orphaned(kind); told {
		t.Orphaned = &orphaned
	}
	for _, n := range i.Incomplete {
		if n.Type == kind {
			t.Incomplete, t.IncompleteDetail = state.IncompleteReason(text.Clean(string(n.Reason))), text.Clean(n.Detail)
		}
	}
	return t
}

// limitOf returns a limit, of which a report has −1 for none.
func limitOf(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}
