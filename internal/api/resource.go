package api

import (
	"cmp"
	"fmt"
	"slices"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// resourcesOf returns what is known of the objects on a device; nil for nothing.
func resourcesOf(judged *health.Device, runOf func(*state.Run, state.Kind) *Run) *Resources {
	r := judged.State.Resources
	if r == nil {
		return nil
	}
	resources := &Resources{Run: runOf(r.Last, state.KindInventory)}
	for _, kind := range state.ResourceTypes() {
		if t := typeOf(kind, judged); r.Inventory != nil || t.Leaked > 0 || t.Exhausted != nil {
			resources.Types = append(resources.Types, t)
		}
	}
	resources.addGrowth(judged.Growth)
	if i := r.Inventory; i != nil {
		resources.Taken = moment(r.Taken)
		resources.addInventory(i)
	}
	for i := range cut(judged.Left) {
		w := &judged.Left[i]
		left := Left{
			Context: w.Context.ID, PID: w.PID, Comm: text.Clean(w.Comm), ContainerID: text.Clean(w.ContainerID), PodUID: text.Clean(w.PodUID),
			Run: text.Clean(w.Run), FirstSeen: moment(w.First), LastSeen: moment(w.Last), Since: moment(w.LeftFirst), Until: moment(w.LeftLast),
			Types: make([]TypeCount, 0, len(w.Objects)),
		}
		for _, c := range cut(w.Objects) {
			left.Types = append(left.Types, TypeCount{Type: text.Clean(c.Type), Objects: count(c.Objects)})
		}
		resources.Left = append(resources.Left, left)
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
func typeOf(kind string, judged *health.Device) Type {
	t, r := Type{Type: kind}, judged.State.Resources
	for _, e := range judged.Exhausted {
		if e.Type == kind {
			t.Exhausted = &Exhausted{
				Objects: count(e.Objects), At: moment(e.At), Verb: text.Clean(e.Verb), Errno: text.Clean(e.Errno), Firmware: text.Clean(e.Firmware),
			}
		}
	}
	if info := judged.State.Info; info != nil {
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

// Name says who had the opened device, without container and pod.
func (l *Left) Name() string {
	switch {
	case l.Run != "":
		return "the exporter (" + l.Run + ")"
	case l.PID == 0:
		return "a process that was never seen"
	case l.Comm == "":
		return fmt.Sprintf("pid %d", l.PID)
	default:
		return fmt.Sprintf("pid %d (%s)", l.PID, l.Comm)
	}
}
