package collector

import (
	"math"
	"slices"
	"strconv"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// unknownOwner stands for owners whom the kernel does not name: they are dead, or in
// another pid namespace.
const unknownOwner = "unknown"

// addResources adds what the inventories found on a present device: what sums
// up first, and what there may be much of last, so that if something has to be
// dropped it is that.
func addResources(b *builder, name string, info *state.Device, r *state.Resources) {
	if info != nil {
		addResourceLimits(b, name, info)
	}
	if r.Inventory == nil {
		addLeaked(b, name, r)
		return
	}
	i := r.Inventory
	for _, n := range i.Incomplete {
		b.gauge(inventoryIncomplete, 1, name, n.Type, string(n.Reason))
	}
	for _, o := range i.Objects {
		b.gauge(resourceObjects, float64(o.Objects), name, o.Type, string(o.Owner))
	}
	addLeaked(b, name, r)
	addOrphaned(b, name, i)
	for _, s := range i.CQEntries {
		b.gauge(resourceCQEntries, float64(s.Sum), name, string(s.Owner))
	}
	for _, s := range i.MRBytes {
		b.gauge(resourceMRBytes, float64(s.Sum), name, string(s.Owner))
	}
	for _, q := range i.QueuePairs {
		b.gauge(resourceQueuePairs, float64(q.Objects), name, q.Type, q.State)
	}
	addOwners(b, name, i)
	addCgroups(b, name, i)
}

// addInventory adds how the last run of the inventory went.
func addInventory(b *builder, name string, r *state.Resources) {
	b.truth(inventoryStuck, r.Stuck != nil, name)
	if r.Last != nil {
		b.truth(inventorySuccess, r.Last.Outcome == state.OutcomeOK, name)
		b.gauge(inventoryDuration, r.Last.Duration.Seconds(), name)
		addTime(b, inventoryLastRun, name, r.Last.Started)
	}
	if r.Inventory != nil {
		addTime(b, inventoryTaken, name, r.Taken)
	}
}

// addResourceLimits adds how many objects of each type the device allows, of those
// types that it has a limit for.
func addResourceLimits(b *builder, name string, info *state.Device) {
	for _, l := range info.Limits {
		if kind, limits := l.Counted(); limits {
			b.gauge(resourceLimit, float64(l.Value), name, kind)
		}
	}
}

// looked returns the types whose objects were looked at one by one.
func looked(i *state.Inventory) []string {
	return slices.DeleteFunc(state.ResourceTypes(), func(kind string) bool { return !i.Looked(kind) })
}

// addLeaked adds what is left of ended children, and zero for what was looked for
// and not found, so that an alert sees the change.
func addLeaked(b *builder, name string, r *state.Resources) {
	if r.Inventory != nil {
		for _, kind := range looked(r.Inventory) {
			b.gauge(probeLeaked, 0, name, kind)
		}
	}
	for _, l := range r.Leaked {
		b.gauge(probeLeaked, float64(l.Objects), name, l.Type)
	}
}

// addOrphaned adds the objects without an owner, of the types of which that can be told.
func addOrphaned(b *builder, name string, i *state.Inventory) {
	for _, kind := range state.ResourceTypes() {
		if orphans, told := i.Orphaned(kind); told {
			b.gauge(resourceOrphaned, float64(orphans), name, kind)
		}
	}
}

// addOwners adds who owns what. All series of a type sum up to its user objects.
func addOwners(b *builder, name string, i *state.Inventory) {
	unknown := make(map[string]int64)
	for _, c := range slices.Concat(i.Ownerless, i.Untraced) {
		unknown[c.Type] += c.Objects
		b.gauge(resourceOwnerObjects, float64(unknown[c.Type]), name, c.Type, "", unknownOwner, "", "")
	}
	for _, o := range i.Others {
		b.gauge(resourceOwnerObjects, float64(o.Objects), name, o.Type, "", otherName, "", "")
	}
	for n := range i.Owners {
		o := &i.Owners[n]
		pid := strconv.Itoa(o.PID)
		for _, c := range o.Objects {
			b.gauge(resourceOwnerObjects, float64(c.Objects), name, c.Type, pid, o.Comm, o.ContainerID, o.PodUID)
		}
	}
}

// addCgroups adds what the RDMA controller counts and allows.
func addCgroups(b *builder, name string, i *state.Inventory) {
	for n := range i.Cgroups {
		g := &i.Cgroups[n]
		b.gauge(cgroupObjects, float64(g.Current), name, g.Cgroup, g.ContainerID, g.PodUID, g.Resource)
		b.gauge(cgroupLimit, limitOrInf(g.Limit), name, g.Cgroup, g.ContainerID, g.PodUID, g.Resource)
	}
}

// limitOrInf returns a limit of which −1 stands for none.
func limitOrInf(n int64) float64 {
	if n < 0 {
		return math.Inf(1)
	}
	return float64(n)
}

// addFindings counts the findings about a device. There is zero for all others that
// there could be, so that alerts see the change: for a device that is not present, for
// which none are named, there is only what still holds.
func addFindings(b *builder, name string, findings []health.Finding, all ...health.Finding) {
	for _, f := range all {
		b.gauge(findingsOf, 0, name, string(f.Kind), string(f.Severity))
	}
	type key struct {
		kind     health.Kind
		severity health.Severity
	}
	counts := make(map[key]int)
	for n := range findings {
		k := key{findings[n].Kind, findings[n].Severity}
		counts[k]++
		b.gauge(findingsOf, float64(counts[k]), name, string(k.kind), string(k.severity))
	}
}
