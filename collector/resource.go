package collector

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

func declareResource(t *table) {
	t.about("Resources")
	t.of(Inventory)
	t.gauge("rdma_resource_objects", "objects",
		"Objects on the device of any process, as the kernel counts them. Those of the kernel are absent until it has some.", "device", "type", "owner")
	t.gauge("rdma_resource_limit", "objects",
		"Maximum number of objects of a type that the device reports; absent if it reports no limit.", "device", "type")
	t.gauge("rdma_resource_queue_pairs", "queue pairs",
		"Queue pairs, including the kernel's, by state. Absent if zero, or if they were only counted.", "device", "qp_type", "state")
	t.gauge("rdma_resource_cq_entries", "entries",
		"Entries of all completion queues. Those of the kernel are absent until it has some.", "device", "owner")
	t.gauge("rdma_resource_mr_bytes", "bytes",
		"Length of all memory regions; memory registered twice counts twice, and a region above 1 TiB, as implicit on-demand paging makes them, as 1 TiB. Those of the kernel are absent until it has some.", "device", "owner")
	t.gauge("rdma_resource_orphaned_objects", "objects",
		"Objects of user programs for whose open device the kernel names no living thread: the owner has ended, or every thread of it that created something has. Briefly seen when a process ends. Absent until there is one, if the exporter cannot see the host's processes, for objects only counted, and for cm_id.", "device", "type")
	t.gauge("rdma_probe_leaked_objects", "objects",
		"Objects that the kernel still holds for ended child processes of the exporter. Absent until there is one, or if not checked.", "device", "type")
	t.gauge("rdma_resource_exhausted_objects", "objects",
		"Object count, of all owners, when the device refused the exporter one more of the type: its real limit, unlike rdma_resource_limit. Absent until that happens, after a change of adapter or firmware, and once the device gives more.", "device", "type")
	t.gauge("rdma_resource_exhausted_timestamp_seconds", "seconds since 1970",
		"Start of the last run that was refused. Kept over restarts with --state.dir.", "device", "type")
	t.of(Owners)
	pid := []string{"comm", "container_id", "pod_uid", "slurm_job_id"}
	if t.on[OwnersPID] {
		pid = append(pid, "pid")
	}
	t.gauge("rdma_resource_owner_objects", "objects",
		"Objects of user programs by command and container, for the largest owners of each type. All other owners are comm other, those the kernel does not name comm unknown: the sum is rdma_resource_objects of owner user.", slices.Concat([]string{"device", "type"}, pid)...)
	t.gauge("rdma_owner_locked_bytes", "bytes",
		"Memory that a process locks, on the whole host: for each command in a container, the process that locks most, for up to 256 of the largest owners on any device. The kernel checks each kind against the limit separately.", append(slices.Clone(pid), "kind")...)
	t.gauge("rdma_owner_locked_limit_bytes", "bytes",
		"Maximum memory that this process may lock (RLIMIT_MEMLOCK, soft); +Inf for unlimited. CAP_IPC_LOCK lifts it.", pid...)
	t.of(Cgroups)
	t.gauge("rdma_cgroup_objects", "objects",
		"What the RDMA controller counts for the cgroups of the largest owners.", "device", "cgroup", "container_id", "pod_uid", "resource")
	t.gauge("rdma_cgroup_limit", "objects",
		"Maximum that the RDMA controller allows a cgroup (rdma.max); +Inf for no limit.", "device", "cgroup", "container_id", "pod_uid", "resource")
}

// unknownOwner stands for owners whom the kernel does not name: they are dead, or in
// another pid namespace.
const unknownOwner = "unknown"

// addResources adds the inventory of a present device. Long lists come last, so that they
// are dropped first.
func addResources(b *builder, name string, info *state.Device, r *state.Resources) {
	if info != nil {
		for _, l := range info.Limits {
			if kind, limits := l.Counted(); limits {
				b.gauge("rdma_resource_limit", float64(l.Value), name, kind)
			}
		}
	}
	if r.Inventory == nil {
		addLeaked(b, name, r)
		return
	}
	i := r.Inventory
	for _, n := range i.Incomplete {
		b.gauge("rdma_inventory_incomplete", 1, name, n.Type, string(n.Reason))
	}
	for _, o := range i.Objects {
		b.owned("rdma_resource_objects", o.Owner, float64(o.Objects), name, o.Type, string(o.Owner))
	}
	addLeaked(b, name, r)
	for _, kind := range state.ResourceTypes() {
		if orphans, ok := i.Orphaned(kind); ok {
			b.sparse("rdma_resource_orphaned_objects", float64(orphans), name, kind)
		}
	}
	for _, s := range i.CQEntries {
		b.owned("rdma_resource_cq_entries", s.Owner, float64(s.Sum), name, string(s.Owner))
	}
	for _, s := range i.MRBytes {
		b.owned("rdma_resource_mr_bytes", s.Owner, float64(s.Sum), name, string(s.Owner))
	}
	for _, q := range i.QueuePairs {
		b.gauge("rdma_resource_queue_pairs", float64(q.Objects), name, q.Type, q.State)
	}
	addOwners(b, name, i)
	for _, g := range i.Cgroups {
		b.gauge("rdma_cgroup_objects", float64(g.Current), name, g.Cgroup, g.ContainerID, g.PodUID, g.Resource)
		b.gauge("rdma_cgroup_limit", limitOrInf(g.Limit), name, g.Cgroup, g.ContainerID, g.PodUID, g.Resource)
	}
}

// owned adds a series of an owner. For other owners than user programs, it appears once it
// is not 0.
func (b *builder) owned(metric string, o state.OwnerKind, value float64, values ...string) {
	if o == state.OwnerUser {
		b.gauge(metric, value, values...)
	} else {
		b.sparse(metric, value, values...)
	}
}

// addLeaked adds objects leaked by exited children. It adds zeros for types that no longer
// have any, so that alerts see the change.
func addLeaked(b *builder, name string, r *state.Resources) {
	for _, kind := range state.ResourceTypes() {
		if r.Inventory != nil && r.Inventory.Enumerated(kind) {
			b.sparse("rdma_probe_leaked_objects", 0, name, kind)
		}
	}
	for _, l := range r.Leaked {
		b.sparse("rdma_probe_leaked_objects", float64(l.Objects), name, l.Type)
	}
}

func addExhausted(b *builder, name string, all []health.Exhausted) {
	for _, e := range all {
		b.gauge("rdma_resource_exhausted_objects", float64(e.Objects), name, e.Type)
		b.gauge("rdma_resource_exhausted_timestamp_seconds", float64(e.At.UnixMilli())/1e3, name, e.Type)
	}
}

// jobLabel is the place of the job in ownerLabels.
const jobLabel = 3

// ownerLabels returns the label values of a process, or of all with the same command in the
// same container, and their identity whatever the job. Beyond maxOwnerNames it is one of the others.
func (b *builder) ownerLabels(pid, comm, containerID, podUID, job string) (labels []string, key string) {
	labels = []string{text.Valid(comm), text.Valid(containerID), text.Valid(podUID), text.Valid(job)}
	if b.on[OwnersPID] {
		labels = append(labels, pid)
	}
	if comm != unknownOwner && comm != otherName && !b.owners.admits(labels) {
		labels = make([]string, len(labels))
		labels[0] = otherName
	}
	return labels, seriesKey("", slices.Concat(labels[:jobLabel], labels[jobLabel+1:]))
}

// addOwners adds the owners of objects. All series of a type add up to its user objects. One of
// processes of several jobs names no job.
func addOwners(b *builder, name string, i *state.Inventory) {
	type series struct {
		labels  []string
		objects int64
	}
	all := make(map[string]*series)
	add := func(c state.TypeCount, labels []string, key string) {
		key = c.Type + key
		s := all[key]
		switch {
		case s == nil:
			s = &series{labels: slices.Concat([]string{name, c.Type}, labels)}
			all[key] = s
		case s.labels[2+jobLabel] != labels[jobLabel]:
			s.labels[2+jobLabel] = ""
		}
		s.objects += c.Objects
	}
	unknown, key := b.ownerLabels("", unknownOwner, "", "", "")
	for _, c := range slices.Concat(i.Ownerless, i.Untraced) {
		add(c, unknown, key)
	}
	others, key := b.ownerLabels("", otherName, "", "", "")
	for _, c := range i.Others {
		add(c, others, key)
	}
	for n := range i.Owners {
		o := &i.Owners[n]
		labels, key := b.ownerLabels(strconv.Itoa(o.PID), o.Comm, o.ContainerID, o.PodUID, o.SlurmJobID)
		for _, c := range o.Objects {
			add(c, labels, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		b.gauge("rdma_resource_owner_objects", float64(all[key].objects), all[key].labels...)
	}
}

// limitOrInf returns a limit. A negative one means no limit.
func limitOrInf(n int64) float64 {
	if n < 0 {
		return math.Inf(1)
	}
	return float64(n)
}
