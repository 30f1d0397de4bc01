package simulated

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"rdma_exporter/verbs"
)

// Resources says what the kernel tells of the objects on the device, which is what
// the inventory reads. What a process makes by way of this package is not
// among them: an inventory is another process.
type Resources struct {
	// Holders are those who hold objects.
	Holders []Holder `yaml:"holders,omitempty"`
	// Leak is what is left of each process that opens the device, when it has ended.
	Leak Leak `yaml:"leak,omitempty"`
	// PIDsInvisible makes the exporter one in a pid namespace of its own: the kernel
	// names it no process.
	PIDsInvisible bool `yaml:"pids_invisible,omitempty"`
	// Incomplete says which tables cannot be read, and how reading them goes wrong, in
	// the words of TableFaults.
	Incomplete map[string]string `yaml:"incomplete,omitempty"`
}

// Holder is a process that holds objects, a part of the kernel that does, or one
// that has ended: exactly one of PID, Kernel and Dead is set. Comm, Cgroup, Memlock
// and RDMAMax are those of a process.
type Holder struct {
	// PID is the process.
	PID int `yaml:"pid,omitempty"`
	// Kernel is the part of the kernel, as ib_core.
	Kernel string `yaml:"kernel,omitempty"`
	// Dead has the owner gone, and what it held left.
	Dead bool `yaml:"dead,omitempty"`
	// Ends is when the process ends and what it holds is left, as 2026-03-01T12:00:00Z;
	// empty for never.
	Ends string `yaml:"ends,omitempty"`
	// Comm is the name of the command, of at most 15 bytes, of which any but 0 will
	// do; empty if nobody may ask.
	Comm string `yaml:"comm,omitempty"`
	// Cgroup is the path of the control group, which tells container and pod.
	Cgroup string `yaml:"cgroup,omitempty"`
	// Objects are how many there are of each type of ResourceTypes. Queue pairs are of
	// the type rc, in the state rts; QueuePairs has others. What objects cannot be
	// without is there even if it is not mentioned, once: a CQ for queue pairs; a PD
	// for them, MRs and SRQs; a context for all but connection ids.
	Objects map[string]int `yaml:"objects,omitempty"`
	// Growth is how many more there are at the end of each hour than at its
	// beginning.
	Growth map[string]int `yaml:"growth,omitempty"`
	// GrowthShape says how these come and go in the course of the hour, in the words of
	// GrowthShapes; empty for evenly.
	GrowthShape string `yaml:"growth_shape,omitempty"`
	// QueuePairs are further queue pairs.
	QueuePairs []QueuePairs `yaml:"queue_pairs,omitempty"`
	// CQEntries are the entries of each CQ; 0 stands for 256. Of queue pairs and CQs
	// each of these uses the same number of those, give or take one.
	CQEntries int `yaml:"cq_entries,omitempty"`
	// MRBytes is the length of each MR; 0 stands for 4096.
	MRBytes int64 `yaml:"mr_bytes,omitempty"`
	// Memlock is the memory that the process holds in place.
	Memlock Memlock `yaml:"memlock,omitempty"`
	// RDMAMax is what the RDMA controller allows the cgroup, by resource: hca_handle,
	// which are contexts, and hca_object, which are PDs, CQs, QPs, MRs and SRQs. Those
	// that are not there have no limit; if none is, the controller does not count.
	RDMAMax map[string]int `yaml:"rdma_max,omitempty"`
}

// MarshalJSON implements json.Marshaler. Text that is not UTF-8 stays as it is.
func (h Holder) MarshalJSON() ([]byte, error) {
	type plain Holder
	return json.Marshal(struct {
		plain
		Comm, Cgroup []byte
	}{plain: plain(h), Comm: []byte(h.Comm), Cgroup: []byte(h.Cgroup)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (h *Holder) UnmarshalJSON(b []byte) error {
	type plain Holder
	var all struct {
		plain
		Comm, Cgroup []byte
	}
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	*h = Holder(all.plain)
	h.Comm, h.Cgroup = string(all.Comm), string(all.Cgroup)
	return nil
}

// Ended tells whether the process has ended by a moment.
func (h *Holder) Ended(now time.Time) bool {
	ends, err := time.Parse(time.RFC3339, h.Ends)
	return h.Dead || err == nil && !now.Before(ends)
}

// QueuePairs are queue pairs that are alike.
type QueuePairs struct {
	// Type and State are words of rdma(8) in lower case, as rc and err.
	Type  string `yaml:"type"`
	State string `yaml:"state"`
	// Objects is how many there are.
	Objects int `yaml:"objects"`
}

// Memlock is the memory that a process holds in place, in bytes.
type Memlock struct {
	// Pinned is what drivers pinned; 0 stands for the length of its MRs.
	Pinned int64 `yaml:"pinned,omitempty"`
	// Locked is what the process locked.
	Locked int64 `yaml:"locked,omitempty"`
	// Limit is RLIMIT_MEMLOCK; 0 stands for none.
	Limit int64 `yaml:"limit,omitempty"`
}

// Leak is what is left of a process that has ended.
type Leak struct {
	// Objects are how many of each type. Nothing is left if there are none.
	Objects map[string]int `yaml:"objects,omitempty"`
	// Times is of how many processes, those that ended first; 0 means all.
	Times int `yaml:"times,omitempty"`
}

// The ways in which what grows comes and goes in the course of an hour.
const (
	// GrowthEven: ever more come, as of a program that leaks.
	GrowthEven = "even"
	// GrowthStep: all come at once after 10 minutes, as of a job that starts.
	GrowthStep = "step"
	// GrowthFill: all have come after 20 minutes, and stay, as of a pool.
	GrowthFill = "fill"
	// GrowthChurn: they come and go every 7 minutes.
	GrowthChurn = "churn"
)

// GrowthShapes returns the ways in which what grows comes and goes.
func GrowthShapes() []string { return []string{GrowthEven, GrowthStep, GrowthFill, GrowthChurn} }

// The ways in which reading a table goes wrong. All but the last are those that an
// inventory tells of.
const (
	// TableNotSupported: the kernel has no such table.
	TableNotSupported = "not_supported"
	// TableFailed: the kernel refuses.
	TableFailed = "failed"
	// TableInterrupted: the table changes under each reading.
	TableInterrupted = "interrupted"
	// TableTimeout: the end of the table does not come, as long as one waits.
	TableTimeout = "timeout"
	// TableHang: reading it cannot be given up either.
	TableHang = "hang"
)

// TableFaults returns the ways in which reading a table goes wrong.
func TableFaults() []string {
	return []string{TableNotSupported, TableFailed, TableInterrupted, TableTimeout, TableHang}
}

// ResourceTypes returns the types of objects that the kernel tracks, as rdma(8)
// names them.
func ResourceTypes() []string { return []string{"pd", "cq", "qp", "cm_id", "mr", "ctx", "srq"} }

const (
	// maxObjects is the most objects of one type on one device. Numbers of objects
	// have 24 bits on most devices.
	maxObjects = 1 << 24
	// maxLeak is the most objects of one type that one process leaves.
	maxLeak = 1 << 10
	// maxPID is the highest that pid_max can be on Linux.
	maxPID = 1 << 22
	// maxModule, maxComm and maxCgroup are the longest names that the kernel takes of
	// its modules, of commands and of cgroups, in bytes.
	maxModule, maxComm, maxCgroup = 55, 15, 4095
)

// clone returns a copy that shares nothing with r.
func (r Resources) clone() Resources {
	r.Holders = slices.Clone(r.Holders)
	for i := range r.Holders {
		h := &r.Holders[i]
		h.Objects, h.Growth, h.RDMAMax = maps.Clone(h.Objects), maps.Clone(h.Growth), maps.Clone(h.RDMAMax)
		h.QueuePairs = slices.Clone(h.QueuePairs)
	}
	r.Leak.Objects = maps.Clone(r.Leak.Objects)
	r.Incomplete = maps.Clone(r.Incomplete)
	return r
}

func (v *validator) resources(at path, r *Resources) {
	total := make(map[string]int)
	first := make(map[int]int)
	// The limits of each cgroup, by path and resource.
	limits := make(map[[2]string]int)
	for i := range r.Holders {
		h, holder := &r.Holders[i], at.to("holders", i)
		if before, ok := first[h.PID]; ok && h.PID != 0 {
			v.report(holder.to("pid"), "write all that a process holds into one place", "the process %d is that of holders[%d] already", h.PID, before)
		} else {
			first[h.PID] = i
		}
		v.holder(holder, h, total)
		for _, resource := range sortedKeys(h.RDMAMax) {
			key := [2]string{h.Cgroup, resource}
			if before, ok := limits[key]; ok && before != h.RDMAMax[resource] {
				v.report(holder.to("rdma_max", resource), "processes of one cgroup share its limits", "the cgroup is allowed %d already", before)
			}
			limits[key] = h.RDMAMax[resource]
		}
	}
	for _, t := range sortedKeys(total) {
		if total[t] > maxObjects {
			v.report(at.to("holders"), "lower them", "there are up to %d objects of the type %s, more than %d", total[t], t, maxObjects)
		}
	}
	v.objects(at.to("leak", "objects"), r.Leak.Objects, maxLeak)
	if r.Leak.Objects["ctx"] > 1 {
		v.report(at.to("leak", "objects", "ctx"), "write 1, or leave it out", "a process that opens the device once has one context")
	}
	if r.Leak.Objects["cm_id"] != 0 {
		v.report(at.to("leak", "objects", "cm_id"), "leave it out", "the kernel does not tell which context a connection id belongs to")
	}
	v.within(at.to("leak", "times"), r.Leak.Times, 0, math.MaxInt32)
	for _, t := range sortedKeys(r.Incomplete) {
		v.oneOf(at.to("incomplete", t), "type", t, ResourceTypes())
		v.oneOf(at.to("incomplete", t), "way to go wrong", r.Incomplete[t], TableFaults())
	}
}

// holder checks a holder, and adds what it holds at most to the total of the
// device.
func (v *validator) holder(at path, h *Holder, total map[string]int) {
	var whose []string
	for _, who := range []struct {
		key string
		set bool
	}{{"pid", h.PID != 0}, {"kernel", h.Kernel != ""}, {"dead", h.Dead}} {
		if who.set {
			whose = append(whose, who.key)
		}
	}
	const remedy = "give exactly one of pid, kernel and dead"
	switch len(whose) {
	case 0:
		v.report(at, remedy, "the holder is nobody")
	case 1:
	default:
		v.report(at, remedy, "the holder is several: %s", strings.Join(whose, ", "))
	}
	if h.PID != 0 {
		v.within(at.to("pid"), h.PID, 1, maxPID)
	} else {
		v.nobody(at, h)
	}
	if _, err := time.Parse(time.RFC3339, h.Ends); h.Ends != "" && err != nil {
		v.report(at.to("ends"), "write it like 2026-03-01T12:00:00Z", "%q is no time", h.Ends)
	}
	if len(h.Kernel) > maxModule || strings.ContainsRune(h.Kernel, 0) {
		v.report(at.to("kernel"), "write it like ib_core", "%q is no name of a part of the kernel", h.Kernel)
	}
	if len(h.Comm) > maxComm || strings.ContainsRune(h.Comm, 0) {
		v.report(at.to("comm"), "write up to 15 bytes, none of them 0", "%q is no name of a command", h.Comm)
	}
	if h.Cgroup != "" && !isCgroup(h.Cgroup) {
		v.report(at.to("cgroup"), "write it like /system.slice/slurmd.service", "%q is no path of a cgroup", h.Cgroup)
	}
	v.objects(at.to("objects"), h.Objects, maxObjects)
	v.objects(at.to("growth"), h.Growth, maxObjects)
	if h.GrowthShape != "" {
		v.oneOf(at.to("growth_shape"), "shape of growth", h.GrowthShape, GrowthShapes())
	}
	for _, n := range []map[string]int{h.Objects, h.Growth} {
		for t, count := range n {
			total[t] += min(max(count, 0), maxObjects+1)
		}
	}
	if h.Kernel != "" && (h.Objects["ctx"] != 0 || h.Growth["ctx"] != 0) {
		v.report(at.to("kernel"), "leave out ctx", "the kernel itself has no contexts")
	}
	for i, q := range h.QueuePairs {
		pairs := at.to("queue_pairs", i)
		v.oneOf(pairs.to("type"), "type of queue pair", q.Type, trackedQPTypes())
		v.oneOf(pairs.to("state"), "state of queue pair", q.State, trackedQPStates())
		v.within(pairs.to("objects"), q.Objects, 1, maxObjects)
		total["qp"] += min(max(q.Objects, 0), maxObjects+1)
	}
	v.within(at.to("cq_entries"), h.CQEntries, 0, math.MaxInt32)
	for _, size := range []struct {
		at    path
		bytes int64
	}{
		{at.to("mr_bytes"), h.MRBytes},
		{at.to("memlock", "pinned"), h.Memlock.Pinned},
		{at.to("memlock", "locked"), h.Memlock.Locked},
		{at.to("memlock", "limit"), h.Memlock.Limit},
	} {
		if size.bytes < 0 {
			v.report(size.at, "write a number of bytes", "%d is negative", size.bytes)
		}
	}
	for _, resource := range sortedKeys(h.RDMAMax) {
		v.oneOf(at.to("rdma_max", resource), "resource", resource, []string{"hca_handle", "hca_object"})
		v.within(at.to("rdma_max", resource), h.RDMAMax[resource], 0, math.MaxInt32)
	}
	if len(h.RDMAMax) > 0 && (h.Cgroup == "" || h.Cgroup == "/") {
		v.report(at.to("rdma_max"), "write a cgroup below the root", "only a cgroup has limits, and the root has none")
	}
}

// nobody reports what a holder has that only a process has.
func (v *validator) nobody(at path, h *Holder) {
	for _, of := range []struct {
		key string
		set bool
	}{
		{"ends", h.Ends != ""},
		{"comm", h.Comm != ""},
		{"cgroup", h.Cgroup != ""},
		{"memlock", h.Memlock != Memlock{}},
		{"rdma_max", len(h.RDMAMax) > 0},
	} {
		if of.set {
			v.report(at.to(of.key), "leave it out, or give the holder a pid", "only a process has %s", of.key)
		}
	}
}

// objects checks numbers of objects by type.
func (v *validator) objects(at path, objects map[string]int, most int) {
	for _, t := range sortedKeys(objects) {
		// The path goes by way of the type, so that the line is the key's.
		v.oneOf(at.to(t), "type", t, ResourceTypes())
		v.within(at.to(t), objects[t], 0, most)
	}
}

// isCgroup reports whether the kernel would have such a path of a cgroup.
func isCgroup(path string) bool {
	return strings.HasPrefix(path, "/") && len(path) <= maxCgroup && !strings.ContainsAny(path, "\n\x00")
}

// trackedQPTypes are the types of queue pairs in the kernel's tables: those that
// programs can create here, and some that only the kernel and other verbs can.
func trackedQPTypes() []string {
	var names []string
	for _, t := range verbs.QPTypes() {
		names = append(names, t.Label())
	}
	return append(names, "gsi", "smi", "xrc_ini", "xrc_tgt", "driver") // driver: SRD and others
}

func trackedQPStates() []string {
	var names []string
	for _, s := range named(verbs.Reset, verbs.Err) {
		names = append(names, strings.ToLower(s))
	}
	return names
}
