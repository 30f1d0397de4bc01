package simulated

import "time"

// Resources says what the kernel reports about the objects on the device, for the inventory.
// It leaves out objects that processes create with this package.
type Resources struct {
	Holders []Holder `yaml:"holders,omitempty"`
	Leak    Leak     `yaml:"leak,omitempty"`
	// PIDsInvisible is true if the exporter is in a pid namespace of its own, where the
	// kernel names no process.
	PIDsInvisible bool `yaml:"pids_invisible,omitempty"`
	// Incomplete says how reading a table goes wrong. A timeout ends at the deadline, a hang
	// does not end.
	Incomplete map[string]string `yaml:"incomplete,omitempty" keys:"pd cq qp cm_id mr ctx srq" of:"not_supported failed interrupted timeout hang"`
}

// Holder is a process that holds objects, a part of the kernel, or a process that has
// ended: exactly one of PID, Kernel and Dead is set. Only processes have Comm, Cgroup,
// Memlock and RDMAMax. The limits of texts are the kernel's.
type Holder struct {
	PID    int       `yaml:"pid,omitempty" in:"0-4194304"`
	Kernel string    `yaml:"kernel,omitempty" max:"55" match:"[^\\x00]*" example:"ib_core"`
	Dead   bool      `yaml:"dead,omitempty"`
	Ends   time.Time `yaml:"ends,omitempty"`
	Comm   string    `yaml:"comm,omitempty" max:"15" match:"(?s)[^\\x00]*" example:"python3"`
	Cgroup string    `yaml:"cgroup,omitempty" max:"4095" match:"/[^\\n\\x00]*" example:"/system.slice/slurmd.service"`
	// Objects are the numbers of objects by type. Queue pairs have the type rc and the
	// state rts. Objects on which these depend need not be listed.
	Objects map[string]int `yaml:"objects,omitempty" keys:"pd cq qp cm_id mr ctx srq" in:"0-16777216"`
	// Growth is how many more there are at the end of each hour than at its start.
	Growth      map[string]int `yaml:"growth,omitempty" keys:"pd cq qp cm_id mr ctx srq" in:"0-16777216"`
	GrowthShape string         `yaml:"growth_shape,omitempty" of:"even step fill churn"`
	QueuePairs  []QueuePairs   `yaml:"queue_pairs,omitempty"`
	CQEntries   int            `yaml:"cq_entries,omitempty"`
	MRBytes     int64          `yaml:"mr_bytes,omitempty"`
	Memlock     Memlock        `yaml:"memlock,omitempty"`
	// RDMAMax holds the limits of the RDMA controller for the cgroup, by resource. A
	// missing resource has no limit. If none is there, the controller does not count.
	RDMAMax map[string]int `yaml:"rdma_max,omitempty" keys:"hca_handle hca_object"`
}

// Ended reports whether the process has ended by a moment.
func (h *Holder) Ended(now time.Time) bool {
	return h.Dead || !h.Ends.IsZero() && !now.Before(h.Ends)
}

// QueuePairs are queue pairs of one type in one state, both as rdma(8) writes them. SRD has
// the type driver.
type QueuePairs struct {
	Type    string `yaml:"type" of:"rc uc ud raw_packet gsi smi xrc_ini xrc_tgt driver"`
	State   string `yaml:"state" of:"reset init rtr rts sqd sqe err"`
	Objects int    `yaml:"objects" in:"1-16777216"`
}

// Memlock is the locked memory of a process, in bytes.
type Memlock struct {
	Pinned int64 `yaml:"pinned,omitempty"`
	Locked int64 `yaml:"locked,omitempty"`
	Limit  int64 `yaml:"limit,omitempty"`
}

// Leak is what a process leaves behind when it ends.
type Leak struct {
	Objects map[string]int `yaml:"objects,omitempty" keys:"pd cq qp cm_id mr ctx srq" in:"0-1024"`
	Times   int            `yaml:"times,omitempty"`
}
