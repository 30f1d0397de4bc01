package state

import (
	"math"
	"time"
)

// Inventory is what the kernel's own tables (restrack) said of the objects on one
// device, of all processes: one inventory of the device.
type Inventory struct {
	// Index is the kernel's number of the device. The ids of objects hold for it: a
	// device of the same name that was added anew has another.
	Index uint32 `json:"index"`
	// PIDsVisible tells that the inventory ran in the host's pid namespace. If not, an
	// object without a known owner may have one that cannot be seen.
	PIDsVisible bool `json:"pids_visible"`
	// Objects are how many objects there are. Of a type that was looked at they are
	// told apart by owner, OwnerExporter only if it has any; of another there is the
	// kernel's own count alone, as OwnerUnknown, if it has one. What is OwnerExporter is
	// in nothing else that is counted here.
	Objects []ObjectCount `json:"objects,omitempty"`
	// QueuePairs are the queue pairs by type and state.
	QueuePairs []QueuePairCount `json:"queue_pairs,omitempty"`
	// TransientErrors are the queue pairs in the state err or sqe that are no sign of
	// trouble: those of other exporters' children, which break some on purpose for a
	// moment, and those of processes that ended during the inventory.
	TransientErrors int64 `json:"passing_errors,omitempty"`
	// CQEntries and MRBytes sum up sizes.
	CQEntries []OwnerSum `json:"cq_entries,omitempty"`
	MRBytes   []OwnerSum `json:"mr_bytes,omitempty"`
	// OversizedCQs are the completion queues that are larger than what uses them
	// can ever fill; nil if there are none.
	OversizedCQs *CQSum `json:"unfillable_cqs,omitempty"`
	// Owners are those processes that are among the largest owners of any type.
	Owners []Owner `json:"owners,omitempty"`
	// Others sum up the objects of the other owners, by type.
	Others []TypeCount `json:"others,omitempty"`
	// Ownerless are the user objects of opened devices of which the kernel names no
	// living thread that created anything: the owner is dead or, unless PIDsVisible,
	// may be in another pid namespace.
	Ownerless []TypeCount `json:"ownerless,omitempty"`
	// Orphans are the opened devices that the Ownerless belong to, those with most objects
	// first; no more than MaxOrphans.
	Orphans []Orphan `json:"orphans,omitempty" wire:"max=64"`
	// Untraced are the user objects of which the kernel names neither a living thread
	// nor the opened device that they belong to.
	Untraced []TypeCount `json:"untraced,omitempty"`
	// Leftover are the objects that are left of the contexts that were asked for.
	Leftover []Leftover `json:"left,omitempty"`
	// Cgroups are the uses and limits of the RDMA controller of the owners'
	// cgroups, for this device.
	Cgroups []CgroupUse `json:"cgroups,omitempty"`
	// Incomplete are the types that could not be looked at one by one, or not
	// reliably, and why.
	Incomplete []Incomplete `json:"incomplete,omitempty"`
}

// Count returns how many objects of a type there are, of all owners. It stops at the
// most that there can be; counts below nothing do not count.
func (i *Inventory) Count(typ string) (objects int64) {
	for _, o := range i.Objects {
		if o.Type == typ && o.Objects > 0 {
			objects += min(o.Objects, math.MaxInt64-objects)
		}
	}
	return objects
}

// Enumerated reports whether the objects of a type were looked at one by one.
func (i *Inventory) Enumerated(typ string) bool {
	for _, n := range i.Incomplete {
		if n.Type == typ && n.Reason != IncompleteInterrupted {
			return false
		}
	}
	return true
}

// Orphaned returns how many objects of a type have no owner; false if that cannot be
// told. Where owners cannot be seen they cannot be told from orphans, and of a type that
// was only counted nothing is known; nor of connection ids, of which the kernel does not
// tell the opened device.
func (i *Inventory) Orphaned(typ string) (objects int64, told bool) {
	if !i.PIDsVisible || typ == "cm_id" || !i.Enumerated(typ) {
		return 0, false
	}
	return CountOf(i.Ownerless, typ), true
}

// ResourceTypes returns the types of objects that the kernel tracks, as rdma(8)
// names them.
func ResourceTypes() []string { return []string{"pd", "cq", "qp", "cm_id", "mr", "ctx", "srq"} }

// TypeCount counts the objects of one type.
type TypeCount struct {
	Type    string `json:"type" wire:"word,key"`
	Objects int64  `json:"objects"`
}

// CountOf returns how many objects of a type a list has. It stops at the most that there
// can be; counts below nothing do not count.
func CountOf(list []TypeCount, typ string) (objects int64) {
	for _, c := range list {
		if c.Type == typ && c.Objects > 0 {
			objects += min(c.Objects, math.MaxInt64-objects)
		}
	}
	return objects
}

// OwnerKind is on which side of the kernel's border an object is owned.
type OwnerKind string

// The kinds of owner.
const (
	OwnerUser   OwnerKind = "user"
	OwnerKernel OwnerKind = "kernel"
	// OwnerExporter: those that the exporter's own children held at that moment.
	OwnerExporter OwnerKind = "exporter"
	// OwnerUnknown: the objects were only counted.
	OwnerUnknown OwnerKind = "unknown"
)

// OwnerKinds returns every kind of owner.
func OwnerKinds() []OwnerKind {
	return []OwnerKind{OwnerUser, OwnerKernel, OwnerExporter, OwnerUnknown}
}

// ObjectCount counts the objects of one type and kind of owner.
type ObjectCount struct {
	Type    string    `json:"type" wire:"object,key"`
	Owner   OwnerKind `json:"owner" wire:"key"`
	Objects int64     `json:"objects"`
}

// QueuePairCount counts the queue pairs of one type in one state, both as rdma(8)
// names them, in lower case: rc, ud, …; reset, init, rtr, rts, sqd, sqe, err.
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
	// Largest is the one with the most entries, and PID its owner; 0 if unknown.
	Largest int64 `json:"largest_entries"`
	PID     int   `json:"largest_pid,omitempty"`
}

// Owner is a process that owns objects.
type Owner struct {
	// PID is the process, in the pid namespace of the exporter.
	PID int `json:"pid" wire:"key,min=1"`
	// Started is when it was started, in clock ticks since the kernel was, to tell it from
	// another one with its number; 0 if that is not known.
	Started uint64 `json:"started_ticks,omitempty"`
	// Comm is the name of its command; empty if it ended before it could be asked
	// or may not be asked.
	Comm string `json:"comm,omitempty"`
	// Cgroup is the path of its control group. ContainerID and PodUID are what the
	// path says, if it is that of a container.
	Cgroup      string `json:"cgroup,omitempty"`
	ContainerID string `json:"container_id,omitempty"`
	PodUID      string `json:"pod_uid,omitempty"`
	// Objects are those types of which it is among the largest owners.
	Objects []TypeCount `json:"objects"`
	// Memlock is nil if it could not be asked.
	Memlock *Memlock `json:"memlock,omitempty"`
	// Contexts are the opened devices of which it created something, by the kernel's
	// number; no more than MaxContexts.
	Contexts []uint32 `json:"contexts,omitempty" wire:"max=16"`
}

const (
	// MaxContexts is the most opened devices that are told of an owner.
	MaxContexts = 16
	// MaxOrphans is the most opened devices without an owner that are told.
	MaxOrphans = 64
)

// Orphan is an opened device of which the kernel names no living thread that created
// anything.
type Orphan struct {
	// Context is the kernel's number of it.
	Context uint32 `json:"context" wire:"key"`
	// Objects are those that belong to it.
	Objects []TypeCount `json:"objects"`
}

// Memlock is the memory that a process holds in place, in bytes. The kernel holds
// Pinned and Locked against the limit one by one.
type Memlock struct {
	// Pinned is what drivers pinned on behalf of the process (VmPin).
	Pinned int64 `json:"pinned_bytes" wire:"size"`
	// Locked is what it locked itself, as by mlock(2) (VmLck).
	Locked int64 `json:"locked_bytes" wire:"size"`
	// Limit is the soft limit RLIMIT_MEMLOCK; −1 for unlimited.
	Limit int64 `json:"limit_bytes" wire:"min=-1,size"`
}

// CgroupUse is the use of one resource of the RDMA controller by one cgroup.
type CgroupUse struct {
	Cgroup      string `json:"cgroup" wire:"key"`
	ContainerID string `json:"container_id,omitempty"`
	PodUID      string `json:"pod_uid,omitempty"`
	// Resource is hca_handle (contexts) or hca_object (all else).
	Resource string `json:"resource" wire:"word,key"`
	Current  int64  `json:"current"`
	// Limit is −1 for no limit.
	Limit int64 `json:"limit" wire:"min=-1,size"`
}

// Context names an opened device in the kernel's tables: everything that the
// process creates on the device belongs to it. It is not used again while the
// device is there.
type Context struct {
	// Index is the kernel's number of the device.
	Index uint32 `json:"index"`
	ID    uint32 `json:"id"`
}

// Leftover counts the objects of one type that are left of an opened device.
type Leftover struct {
	Context Context `json:"context" wire:"key"`
	Type    string  `json:"type" wire:"object,key"`
	Objects int64   `json:"objects"`
}

// Incomplete is a type whose objects could not be looked at one by one, or not
// reliably.
type Incomplete struct {
	Type   string           `json:"type" wire:"object,key"`
	Reason IncompleteReason `json:"reason"`
	// Detail says it in words.
	Detail string `json:"detail,omitempty"`
}

// IncompleteReason is why objects were not looked at one by one, or not
// reliably.
type IncompleteReason string

// The reasons for an incomplete type.
const (
	// IncompleteMaxObjects: there are more than the inventory may look at.
	IncompleteMaxObjects IncompleteReason = "max_objects"
	// IncompleteTimeout: the time of the inventory was up.
	IncompleteTimeout IncompleteReason = "timeout"
	// IncompleteInterrupted: the table changed under each attempt to read it. The
	// objects were looked at even so, and some may be missing or counted twice.
	IncompleteInterrupted IncompleteReason = "interrupted"
	// IncompleteNotSupported: the kernel has no such table.
	IncompleteNotSupported IncompleteReason = "not_supported"
	// IncompleteFailed: the kernel refused, or its answer made no sense.
	IncompleteFailed IncompleteReason = "failed"
)

// IncompleteReasons returns every reason for an incomplete type.
func IncompleteReasons() []IncompleteReason {
	return []IncompleteReason{IncompleteMaxObjects, IncompleteTimeout, IncompleteInterrupted, IncompleteNotSupported, IncompleteFailed}
}

// Resources is what is known of the objects on one device.
type Resources struct {
	// Last is the last finished inventory, without its inventory.
	Last *Run `json:"last,omitempty"`
	// Inventory is the latest inventory, taken by a run that was started at Taken.
	// It is nil before the first.
	Inventory *Inventory `json:"inventory,omitempty"`
	Taken     time.Time  `json:"taken,omitzero"`
	// Samples are what the inventories of the last hour counted, the oldest first.
	Samples []Sample `json:"-"`
	// Leaked are the objects that are left of children of the exporter which have
	// ended, as of the latest inventory that looked at their type.
	Leaked []Leaked `json:"leaked,omitempty"`
	// LeakedBy are the children that the Leaked are left of, as far as they are known; those
	// with the lowest numbers of what they opened first.
	LeakedBy []LeakedBy `json:"leaked_by,omitempty"`
	// OrphanedSince is when the first of an unbroken series of inventories that found
	// ownerless objects was started; zero if the latest that could tell found none, or
	// PIDs are not visible.
	OrphanedSince time.Time `json:"orphaned_since,omitzero"`
	// Stuck is a child that was killed and has not ended; nil if there is
	// none.
	Stuck *Stuck `json:"stuck,omitempty"`
}

// Leaked counts the objects of one type that are left of ended children.
type Leaked struct {
	Type    string `json:"type"`
	Objects int64  `json:"objects"`
	// Since is when the first of an unbroken series of inventories that found some was
	// started.
	Since time.Time `json:"since"`
}

// LeakedBy is a child of the exporter that has ended and left objects.
type LeakedBy struct {
	// Context is what it had opened.
	Context Context `json:"context"`
	// Kind is what it was to do, Started when it was started, and Outcome how its run
	// ended, in the verb Verb, if in any.
	Kind    Kind      `json:"kind"`
	Started time.Time `json:"started"`
	Outcome Outcome   `json:"outcome"`
	Verb    string    `json:"verb,omitempty"`
	// Objects are those that it left.
	Objects []TypeCount `json:"objects"`
}
