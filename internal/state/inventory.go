package state

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Inventory is what the kernel's tables (restrack) show of the objects of all processes on
// one device.
type Inventory struct {
	// Index is the kernel's number of the device. The ids of objects hold for it: another
	// device of the same name has another index.
	Index uint32 `json:"index"`
	// PIDsVisible is true if the inventory ran in the host's pid namespace. If not, an object
	// without a known owner may have one.
	PIDsVisible bool `json:"pids_visible"`
	// Objects counts the objects by owner, or as unknown where the kernel only counts. Those
	// of the exporter are in no other field.
	Objects []ObjectCount `json:"objects,omitempty"`
	// QueuePairs counts the queue pairs by type and state.
	QueuePairs []QueuePairCount `json:"queue_pairs,omitempty"`
	// TransientErrors counts queue pairs in the state err or sqe that are expected: those of
	// other exporters' children, and of processes that ended during the inventory.
	TransientErrors int64 `json:"passing_errors,omitempty"`
	// CQEntries and MRBytes are sums of sizes.
	CQEntries []OwnerSum `json:"cq_entries,omitempty"`
	MRBytes   []OwnerSum `json:"mr_bytes,omitempty"`
	// OversizedCQs are completion queues that are larger than what uses them can ever fill.
	OversizedCQs *CQSum `json:"unfillable_cqs,omitempty"`
	// Owners are the processes among the largest owners of any type.
	Owners []Owner `json:"owners,omitempty"`
	// Others counts the objects of the other owners, and those of an incomplete type that were not read.
	Others []TypeCount `json:"others,omitempty"`
	// Ownerless counts user objects whose context has no living thread that created anything:
	// the owner is dead or, unless PIDsVisible, may be in another pid namespace.
	Ownerless []TypeCount `json:"ownerless,omitempty"`
	// Orphans are the contexts that the Ownerless belong to, those with most objects first.
	Orphans []Orphan `json:"orphans,omitempty" wire:"max=64"`
	// Untraced counts user objects for which the kernel names neither thread nor context.
	Untraced []TypeCount `json:"untraced,omitempty"`
	// Leftover are objects of contexts of exited children.
	Leftover []Leftover `json:"left,omitempty"`
	// Cgroups are uses and limits of the RDMA controller on this device.
	Cgroups []CgroupUse `json:"cgroups,omitempty"`
	// Incomplete are the types that could not be enumerated, or not reliably.
	Incomplete []Incomplete `json:"incomplete,omitempty"`
}

// Count returns how many objects of a type there are, of all owners.
func (i *Inventory) Count(typ string) int64 {
	var objects int64
	for _, o := range i.Objects {
		if o.Type == typ {
			objects = Sum(objects, o.Objects)
		}
	}
	return objects
}

// Enumerated reports whether the objects of a type were read one by one.
func (i *Inventory) Enumerated(typ string) bool {
	for _, n := range i.Incomplete {
		if n.Type == typ && n.Reason != IncompleteInterrupted {
			return false
		}
	}
	return true
}

// Orphaned returns how many objects of a type have no owner; false if that is unknown. It is
// unknown for connection ids, since the kernel does not report their context.
func (i *Inventory) Orphaned(typ string) (objects int64, ok bool) {
	if !i.PIDsVisible || typ == "cm_id" || !i.Enumerated(typ) {
		return 0, false
	}
	return CountOf(i.Ownerless, typ), true
}

// ResourceTypes returns the types of objects that the kernel tracks, as rdma(8) names them.
func ResourceTypes() []string { return []string{"pd", "cq", "qp", "cm_id", "mr", "ctx", "srq"} }

// TypeCount counts the objects of one type.
type TypeCount struct {
	Type    string `json:"type" wire:"word,key"`
	Objects int64  `json:"objects"`
}

// CompareLargest orders counts, the largest first.
func (c TypeCount) CompareLargest(o TypeCount) int {
	return cmp.Or(cmp.Compare(o.Objects, c.Objects), cmp.Compare(c.Type, o.Type))
}

// CountOf returns how many objects of a type a list has, without negative counts. It does
// not overflow.
func CountOf(list []TypeCount, typ string) (objects int64) {
	for _, c := range list {
		if c.Type == typ {
			objects = Sum(objects, c.Objects)
		}
	}
	return objects
}

// OwnerKind is the kind of owner of an object.
type OwnerKind string

// The kinds of owner.
const (
	OwnerUser   OwnerKind = "user"
	OwnerKernel OwnerKind = "kernel"
	// OwnerExporter is for objects of the exporter's own children at that moment.
	OwnerExporter OwnerKind = "exporter"
	// OwnerUnknown is for objects that were only counted.
	OwnerUnknown OwnerKind = "unknown"
)

// ObjectCount counts the objects of one type and kind of owner.
type ObjectCount struct {
	Type    string    `json:"type" wire:"object,key"`
	Owner   OwnerKind `json:"owner" wire:"key"`
	Objects int64     `json:"objects"`
}

// QueuePairCount counts the queue pairs of one type in one state, as rdma(8) names them in
// lower case.
type QueuePairCount struct {
	Type    string `json:"qp_type" wire:"word,key"`
	State   string `json:"state" wire:"word,key"`
	Objects int64  `json:"objects"`
}

// OwnerSum is a sum over the objects of one kind of owner.
type OwnerSum struct {
	Owner OwnerKind `json:"owner" wire:"key"`
	Sum   int64     `json:"sum" wire:"size"`
}

// CQSum sums up some completion queues.
type CQSum struct {
	Objects int64 `json:"objects"`
	Entries int64 `json:"entries"`
	// Largest is the one with most entries, and PID its owner if known.
	Largest int64 `json:"largest_entries"`
	PID     int   `json:"largest_pid,omitempty"`
}

// Owner is a process that owns objects.
type Owner struct {
	// PID is in the pid namespace of the exporter.
	PID int `json:"pid" wire:"key,min=1"`
	// Started is in clock ticks since the kernel started. It distinguishes processes with the
	// same PID.
	Started uint64 `json:"started_ticks,omitempty"`
	Comm    string `json:"comm,omitempty"`
	Cgroup  string `json:"cgroup,omitempty"`
	// ContainerID, PodUID and SlurmJobID, which may be a SLUID, are from the path of the cgroup.
	ContainerID string `json:"container_id,omitempty"`
	PodUID      string `json:"pod_uid,omitempty"`
	SlurmJobID  string `json:"slurm_job_id,omitempty"`
	// Objects has the types of which it is among the largest owners.
	Objects []TypeCount `json:"objects"`
	Memlock *Memlock    `json:"memlock,omitempty"`
	// Contexts are the kernel's numbers of contexts in which it created objects.
	Contexts []uint32 `json:"contexts,omitempty" wire:"max=16"`
}

const (
	// MaxContexts limits the contexts of an owner.
	MaxContexts = 16
	// MaxOrphans limits the contexts without an owner.
	MaxOrphans = 64
)

// Orphan is a context without a living thread that created anything.
type Orphan struct {
	Context uint32      `json:"context" wire:"key"`
	Objects []TypeCount `json:"objects"`
}

// Memlock is the locked memory of a process. The kernel compares Pinned and Locked with the
// limit separately.
type Memlock struct {
	// Pinned is what drivers pinned for the process (VmPin).
	Pinned int64 `json:"pinned_bytes" wire:"size"`
	// Locked is what it locked itself, as by mlock(2) (VmLck).
	Locked int64 `json:"locked_bytes" wire:"size"`
	// Limit is the soft limit RLIMIT_MEMLOCK; −1 means unlimited.
	Limit int64 `json:"limit_bytes" wire:"min=-1,size"`
}

// CgroupUse is the use of one resource of the RDMA controller by one cgroup.
type CgroupUse struct {
	Cgroup      string `json:"cgroup" wire:"key"`
	ContainerID string `json:"container_id,omitempty"`
	PodUID      string `json:"pod_uid,omitempty"`
	SlurmJobID  string `json:"slurm_job_id,omitempty"`
	// Resource is hca_handle (contexts) or hca_object (the rest).
	Resource string `json:"resource" wire:"word,key"`
	Current  int64  `json:"current"`
	// Limit is −1 if there is none.
	Limit int64 `json:"limit" wire:"min=-1,size"`
}

// Context is a device context by the kernel's numbers of the device and of the context. The
// kernel does not reuse the latter while the device exists.
type Context struct {
	Index uint32 `json:"index"`
	ID    uint32 `json:"id"`
}

// Leftover counts the objects of one type that a context has left.
type Leftover struct {
	Context Context `json:"context" wire:"key"`
	Type    string  `json:"type" wire:"object,key"`
	Objects int64   `json:"objects"`
}

// Incomplete is a type whose objects could not be enumerated, or not reliably.
type Incomplete struct {
	Type   string           `json:"type" wire:"object,key"`
	Reason IncompleteReason `json:"reason"`
	Detail string           `json:"detail,omitempty"`
}

// IncompleteReason is why objects could not be enumerated, or not reliably.
type IncompleteReason string

// The reasons for an incomplete type.
const (
	// IncompleteMaxObjects means that there are more than the inventory may read in its time.
	IncompleteMaxObjects IncompleteReason = "max_objects"
	// IncompleteTimeout means that the time of the inventory was up.
	IncompleteTimeout IncompleteReason = "timeout"
	// IncompleteInterrupted means that the table changed during each reading. Some objects may
	// be missing or counted twice.
	IncompleteInterrupted IncompleteReason = "interrupted"
	// IncompleteNotSupported means that the kernel has no such table.
	IncompleteNotSupported IncompleteReason = "not_supported"
	// IncompleteFailed means that the kernel refused, or its answer was invalid.
	IncompleteFailed IncompleteReason = "failed"
)

// IncompleteReasons returns every reason for an incomplete type.
func IncompleteReasons() []IncompleteReason {
	return []IncompleteReason{IncompleteMaxObjects, IncompleteTimeout, IncompleteInterrupted, IncompleteNotSupported, IncompleteFailed}
}

// Resources is the state of the objects on one device.
type Resources struct {
	// Last is the last finished inventory run, without its inventory.
	Last *Run `json:"last,omitempty"`
	// Inventory is the latest inventory, of a run that started at Taken.
	Inventory *Inventory `json:"inventory,omitempty"`
	Taken     time.Time  `json:"taken,omitzero"`
	// Samples are the counts of the last hour, the oldest first.
	Samples []Sample `json:"-"`
	// Leaked are objects of exited children of the exporter, by the latest inventory that
	// enumerated their type.
	Leaked []Leaked `json:"leaked,omitempty"`
	// LeakedBy are the children that left them, as far as known.
	LeakedBy []LeakedBy `json:"leaked_by,omitempty"`
	// OrphanedSince is when the first of an unbroken series of inventories with ownerless
	// objects started.
	OrphanedSince time.Time `json:"orphaned_since,omitzero"`
	// Stuck is a child that was killed and has not exited.
	Stuck *Stuck `json:"stuck,omitempty"`
}

// Leaked counts the objects of one type that exited children left.
type Leaked struct {
	Type    string `json:"type"`
	Objects int64  `json:"objects"`
	// Since is when the first of an unbroken series of inventories that found some started.
	Since time.Time `json:"since"`
}

// LeakedBy is a child of the exporter that has exited and left objects.
type LeakedBy struct {
	Context Context   `json:"context"`
	Kind    Kind      `json:"kind"`
	Started time.Time `json:"started"`
	Outcome Outcome   `json:"outcome"`
	// Verb is the one in which it ended.
	Verb    string      `json:"verb,omitempty"`
	Objects []TypeCount `json:"objects"`
}

// Sum adds counts without overflow. It ignores negative ones.
func Sum(counts ...int64) int64 {
	var total int64
	for _, n := range counts {
		total += min(max(n, 0), math.MaxInt64-total)
	}
	return total
}

// Totals returns one count for each type, and the number of all objects.
func Totals(counts []TypeCount) (all []TypeCount, objects int64) {
	for _, c := range counts {
		objects = Sum(objects, c.Objects)
		if c.Objects > 0 && !slices.ContainsFunc(all, func(other TypeCount) bool { return other.Type == c.Type }) {
			all = append(all, TypeCount{Type: c.Type, Objects: CountOf(counts, c.Type)})
		}
	}
	return all, objects
}
