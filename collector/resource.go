package collector

import (
	"math"
	"slices"
	"strconv"

	"rdma_exporter/internal/state"
)

// resourceMetrics are the metrics of the objects on a device, of whichever process.
type resourceMetrics struct {
	resourceObjects      *family
	resourceLimit        *family
	resourceQueuePairs   *family
	resourceCQEntries    *family
	resourceMRBytes      *family
	resourceOwnerObjects *family
	resourceOrphaned     *family
	probeLeaked          *family
	cgroupObjects        *family
	cgroupLimit          *family
	ownerLocked          *family
	ownerLockedLimit     *family
}

func (m *resourceMetrics) declare(t *table) {
	t.about("Resources")
	m.resourceObjects = t.gauge("rdma_resource_objects", "objects",
		"Objects on the device by the kernel's account, of whichever process.", "device", "type", "owner")
	m.resourceLimit = t.gauge("rdma_resource_limit", "objects",
		"The most objects of a type that the device says it allows; absent if it has no limit.", "device", "type")
	m.resourceQueuePairs = t.gauge("rdma_resource_queue_pairs", "queue pairs",
		"Queue pairs, those of the kernel too, by the state that they were in. Absent if there are none, or if they were only counted.", "device", "qp_type", "state")
	m.resourceCQEntries = t.gauge("rdma_resource_cq_entries", "entries",
		"Entries of all completion queues.", "device", "owner")
	m.resourceMRBytes = t.gauge("rdma_resource_mr_bytes", "bytes",
		"Length of all memory regions; what is registered twice counts twice. One above 1 TiB, as implicit on-demand paging makes them, counts as that.", "device", "owner")
	m.resourceOwnerObjects = t.gauge("rdma_resource_owner_objects", "objects",
		"Objects of user programs by process, for the largest owners of each type. All other owners are under comm other, those whom the kernel does not name under comm unknown, both with an empty pid: the sum is rdma_resource_objects of owner user.", "device", "type", "pid", "comm", "container_id", "pod_uid")
	m.resourceOrphaned = t.gauge("rdma_resource_orphaned_objects", "objects",
		"Objects of user programs of whose opened device the kernel names no living thread: the owner has ended, or lives on and each of its threads that created something has ended. They pass by when a process ends. Absent if the exporter cannot see the processes of the host, for objects that were only counted, and for cm_id.", "device", "type")
	m.probeLeaked = t.gauge("rdma_probe_leaked_objects", "objects",
		"Objects that the kernel still holds of child processes of the exporter that have ended. Absent if they were not looked for.", "device", "type")
	m.cgroupObjects = t.gauge("rdma_cgroup_objects", "objects",
		"What the RDMA controller counts for the cgroups of the largest owners.", "device", "cgroup", "container_id", "pod_uid", "resource")
	m.cgroupLimit = t.gauge("rdma_cgroup_limit", "objects",
		"The most that the RDMA controller allows a cgroup (rdma.max); +Inf for no limit.", "device", "cgroup", "container_id", "pod_uid", "resource")
	m.ownerLocked = t.gauge("rdma_owner_locked_bytes", "bytes",
		"Memory that a process holds in place, on the host as a whole, for those 256 of the largest owners on any device that hold most. The kernel holds both kinds against the limit one by one.", "pid", "comm", "container_id", "pod_uid", "kind")
	m.ownerLockedLimit = t.gauge("rdma_owner_locked_limit_bytes", "bytes",
		"The most memory that a process may hold in place (RLIMIT_MEMLOCK, soft); +Inf for unlimited. One with CAP_IPC_LOCK may go beyond it.", "pid", "comm", "container_id", "pod_uid")
}

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
		b.gauge(b.inventoryIncomplete, 1, name, n.Type, string(n.Reason))
	}
	for _, o := range i.Objects {
		b.gauge(b.resourceObjects, float64(o.Objects), name, o.Type, string(o.Owner))
	}
	addLeaked(b, name, r)
	addOrphaned(b, name, i)
	for _, s := range i.CQEntries {
		b.gauge(b.resourceCQEntries, float64(s.Sum), name, string(s.Owner))
	}
	for _, s := range i.MRBytes {
		b.gauge(b.resourceMRBytes, float64(s.Sum), name, string(s.Owner))
	}
	for _, q := range i.QueuePairs {
		b.gauge(b.resourceQueuePairs, float64(q.Objects), name, q.Type, q.State)
	}
	addOwners(b, name, i)
	addCgroups(b, name, i)
}

// addResourceLimits adds how many objects of each type the device allows, of those
// types that it has a limit for.
func addResourceLimits(b *builder, name string, info *state.Device) {
	for _, l := range info.Limits {
		if kind, limits := l.Counted(); limits {
			b.gauge(b.resourceLimit, float64(l.Value), name, kind)
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
			b.gauge(b.probeLeaked, 0, name, kind)
		}
	}
	for _, l := range r.Leaked {
		b.gauge(b.probeLeaked, float64(l.Objects), name, l.Type)
	}
}

// addOrphaned adds the objects without an owner, of the types of which that can be told.
func addOrphaned(b *builder, name string, i *state.Inventory) {
	for _, kind := range state.ResourceTypes() {
		if orphans, told := i.Orphaned(kind); told {
			b.gauge(b.resourceOrphaned, float64(orphans), name, kind)
		}
	}
}

// addOwners adds who owns what. All series of a type sum up to its user objects.
func addOwners(b *builder, name string, i *state.Inventory) {
	unknown := make(map[string]int64)
	for _, c := range slices.Concat(i.Ownerless, i.Untraced) {
		unknown[c.Type] += c.Objects
		b.gauge(b.resourceOwnerObjects, float64(unknown[c.Type]), name, c.Type, "", unknownOwner, "", "")
	}
	for _, o := range i.Others {
		b.gauge(b.resourceOwnerObjects, float64(o.Objects), name, o.Type, "", otherName, "", "")
	}
	for n := range i.Owners {
		o := &i.Owners[n]
		pid := strconv.Itoa(o.PID)
		for _, c := range o.Objects {
			b.gauge(b.resourceOwnerObjects, float64(c.Objects), name, c.Type, pid, o.Comm, o.ContainerID, o.PodUID)
		}
	}
}

// addCgroups adds what the RDMA controller counts and allows.
func addCgroups(b *builder, name string, i *state.Inventory) {
	for n := range i.Cgroups {
		g := &i.Cgroups[n]
		b.gauge(b.cgroupObjects, float64(g.Current), name, g.Cgroup, g.ContainerID, g.PodUID, g.Resource)
		b.gauge(b.cgroupLimit, limitOrInf(g.Limit), name, g.Cgroup, g.ContainerID, g.PodUID, g.Resource)
	}
}

// limitOrInf returns a limit of which −1 stands for none.
func limitOrInf(n int64) float64 {
	if n < 0 {
		return math.Inf(1)
	}
	return float64(n)
}
