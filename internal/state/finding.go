package state

// Finding is one thing about a device that somebody should know of, or do
// something about.
type Finding struct {
	Kind     FindingKind `json:"kind"`
	Severity Severity    `json:"severity"`
	// Subject is what it is about, such as "qp" or "pid 4711 (trainer)".
	Subject string `json:"subject"`
	// Message says what was found, with figures.
	Message string `json:"message"`
	// Meaning says what it means to those who use the device, and Action what to
	// do.
	Meaning string `json:"meaning"`
	Action  string `json:"action"`
}

// FindingKind is what a finding is about.
type FindingKind string

// The kinds of finding, by how much of the device each is about: what keeps it from
// being used at all comes first.
const (
	// FindingStuck: a killed child that does not end.
	FindingStuck FindingKind = "stuck"
	// FindingUnusable: the device could not be opened, or not asked what it is.
	FindingUnusable FindingKind = "device_unusable"
	// FindingRunAborted: the last run of the probes or of the contract run was
	// killed at its deadline, or crashed.
	FindingRunAborted FindingKind = "run_aborted"
	// FindingProbeFailed: verbs failed in the last run, or gave less than was asked.
	FindingProbeFailed FindingKind = "probe_failed"
	// FindingNotification: events or completions did not come, or not as they should.
	FindingNotification FindingKind = "notification_failed"
	// FindingContract: the device does not keep a contract.
	FindingContract FindingKind = "contract_violated"
	// FindingUndestroyed: objects that the device refused to destroy in the last
	// run.
	FindingUndestroyed FindingKind = "undestroyed"
	// FindingLeaked: objects of children of the exporter that have ended.
	FindingLeaked FindingKind = "leaked"
	// FindingOrphaned: objects of processes that are dead.
	FindingOrphaned FindingKind = "orphaned"
	// FindingNearLimit: of a type of object, nearly as many exist as the device
	// allows.
	FindingNearLimit FindingKind = "near_limit"
	// FindingCgroupNearLimit: a cgroup has used up nearly what it may.
	FindingCgroupNearLimit FindingKind = "cgroup_near_limit"
	// FindingMemlock: a process has nearly as much memory in place as it may.
	FindingMemlock FindingKind = "memlock_near_limit"
	// FindingQPError: queue pairs in the error state.
	FindingQPError FindingKind = "qp_error"
	// FindingCQUnfillable: completion queues larger than what uses them can fill.
	FindingCQUnfillable FindingKind = "cq_unfillable"
	// FindingPortDown: a port is not active.
	FindingPortDown FindingKind = "port_down"
	// FindingSlowVector: notification on a completion vector takes much longer than
	// on the others.
	FindingSlowVector FindingKind = "slow_vector"
	// FindingIncomplete: the inventory could not look at everything.
	FindingIncomplete FindingKind = "inventory_incomplete"
	// FindingPIDsInvisible: the owners are in a pid namespace that the exporter
	// does not see.
	FindingPIDsInvisible FindingKind = "pids_invisible"
)

// FindingKinds returns every kind of finding, in the order in which those of the same
// severity are told.
func FindingKinds() []FindingKind {
	return []FindingKind{
		FindingStuck, FindingUnusable, FindingRunAborted, FindingProbeFailed, FindingNotification, FindingContract,
		FindingUndestroyed, FindingLeaked, FindingOrphaned, FindingNearLimit, FindingCgroupNearLimit, FindingMemlock,
		FindingQPError, FindingCQUnfillable, FindingPortDown, FindingSlowVector, FindingIncomplete, FindingPIDsInvisible,
	}
}
