package simulated

import (
	"encoding/json"
	"strings"
	"time"

	"rdma_exporter/verbs"
)

// Resources says what the kernel reports about the objects on the device, which is what
// the inventory reads. Objects that a process creates with this package are not among
// them, because an inventory is another process.
type Resources struct {
	Holders []Holder `yaml:"holders,omitempty"`
	Leak    Leak     `yaml:"leak,omitempty"`
	// PIDsInvisible is true if the exporter is in a pid namespace of its own, where the
	// kernel names no process.
	PIDsInvisible bool `yaml:"pids_invisible,omitempty"`
	// Incomplete says how reading a table goes wrong: TableNotSupported and so on.
	Incomplete map[string]string `yaml:"incomplete,omitempty" keys:"object type" of:"table fault"`
}

// Holder is a process that holds objects, a part of the kernel, or a process that has
// ended: exactly one of PID, Kernel and Dead is set. Only processes have Comm, Cgroup,
// Memlock and RDMAMax.
type Holder struct {
	PID int `yaml:"pid,omitempty" in:"0-4194304"`
	// Kernel is the part of the kernel, such as ib_core.
	Kernel string `yaml:"kernel,omitempty"`
	// Dead is true if the owner has ended and left its objects behind.
	Dead bool `yaml:"dead,omitempty"`
	// Ends is when the process ends, such as 2026-03-01T12:00:00Z. Empty means never.
	Ends string `yaml:"ends,omitempty"`
	// Comm is the name of the command: at most 15 bytes, none of them 0. Empty if it
	// cannot be read.
	Comm string `yaml:"comm,omitempty"`
	// Cgroup is the path of the control group, which determines container and pod.
	Cgroup string `yaml:"cgroup,omitempty"`
	// Objects are the numbers of objects by type. Queue pairs have the type rc and the
	// state rts. Objects on which these depend need not be listed.
	Objects map[string]int `yaml:"objects,omitempty" keys:"object type" in:"0-16777216"`
	// Growth is how many more there are at the end of each hour than at its start.
	Growth map[string]int `yaml:"growth,omitempty" keys:"object type" in:"0-16777216"`
	// GrowthShape says how these come and go within the hour: GrowthEven and so on.
	// Empty means evenly.
	GrowthShape string       `yaml:"growth_shape,omitempty" of:"growth shape"`
	QueuePairs  []QueuePairs `yaml:"queue_pairs,omitempty"`
	// CQEntries is the number of entries of each CQ. Zero means 256.
	CQEntries int `yaml:"cq_entries,omitempty"`
	// MRBytes is the length of each MR. Zero means 4096.
	MRBytes int64   `yaml:"mr_bytes,omitempty"`
	Memlock Memlock `yaml:"memlock,omitempty"`
	// RDMAMax holds the limits of the RDMA controller for the cgroup, by resource. A
	// missing resource has no limit. If none is there, the controller does not count.
	RDMAMax map[string]int `yaml:"rdma_max,omitempty" keys:"resource"`
}

// MarshalJSON implements json.Marshaler. It keeps text that is not UTF-8.
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

// Ended reports whether the process has ended by a moment.
func (h *Holder) Ended(now time.Time) bool {
	ends, err := time.Parse(time.RFC3339, h.Ends)
	return h.Dead || err == nil && !now.Before(ends)
}

// QueuePairs are queue pairs of one type in one state, both as rdma(8) writes them.
type QueuePairs struct {
	Type    string `yaml:"type" of:"QP type"`
	State   string `yaml:"state" of:"QP state"`
	Objects int    `yaml:"objects" in:"1-16777216"`
}

// Memlock is the locked memory of a process, in bytes.
type Memlock struct {
	// Pinned is the memory that drivers pinned. Zero means the length of all MRs.
	Pinned int64 `yaml:"pinned,omitempty"`
	Locked int64 `yaml:"locked,omitempty"`
	// Limit is RLIMIT_MEMLOCK. Zero means unlimited.
	Limit int64 `yaml:"limit,omitempty"`
}

// Leak is what a process leaves behind when it ends.
type Leak struct {
	// Objects are the numbers of objects by type.
	Objects map[string]int `yaml:"objects,omitempty" keys:"object type" in:"0-1024"`
	// Times is the number of processes that leak, those that ended first. Zero means all.
	Times int `yaml:"times,omitempty"`
}

// The shapes of Holder.Growth, which docs/reference/simulator.md describes.
const (
	GrowthEven  = "even"
	GrowthStep  = "step"
	GrowthFill  = "fill"
	GrowthChurn = "churn"
)

// The ways in which reading a table goes wrong. TableTimeout ends at the deadline, and
// TableHang does not end.
const (
	TableNotSupported = "not_supported"
	TableFailed       = "failed"
	TableInterrupted  = "interrupted"
	TableTimeout      = "timeout"
	TableHang         = "hang"
)

// The longest names that the kernel accepts for modules, commands and cgroups, in bytes.
const maxModule, maxComm, maxCgroup = 55, 15, 4095

// resourceWords returns the list of a tag in Resources.
func resourceWords(list string) []string {
	switch list {
	case "object type":
		return []string{"pd", "cq", "qp", "cm_id", "mr", "ctx", "srq"}
	case "QP type":
		names := []string{"gsi", "smi", "xrc_ini", "xrc_tgt", "driver"} // driver: SRD and others
		for _, t := range verbs.QPTypes() {
			names = append(names, t.Label())
		}
		return names
	case "QP state":
		return strings.Split(strings.ToLower(strings.Join(named(verbs.Reset, verbs.Err), " ")), " ")
	case "growth shape":
		return []string{GrowthEven, GrowthStep, GrowthFill, GrowthChurn}
	case "table fault":
		return []string{TableNotSupported, TableFailed, TableInterrupted, TableTimeout, TableHang}
	case "resource":
		return []string{"hca_handle", "hca_object"}
	}
	return nil
}
