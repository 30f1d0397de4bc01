package health

import (
	"cmp"
	"slices"
	"time"
)

// Finding is one thing about a device that somebody should know of, or do
// something about.
type Finding struct {
	Kind     Kind
	Severity Severity
	// Harm is what it does to those who use the device.
	Harm Harm
	// Subject is what it is about, such as "qp" or "pid 4711 (trainer)".
	Subject string
	// Message says what was found, with figures, and Evidence the rest of what tells so;
	// empty if the message has it all.
	Message  string
	Evidence string
	// Meaning says what it means to those who use the device, and Action what to
	// do.
	Meaning string
	Action  string
	// Consequences are what else was found of the same root, the worst first: they are
	// gone once it is. None of them has consequences of its own.
	Consequences []Finding
	// Since is when it was seen first, and LastSeen when what is known of the device last
	// changed and it was still there; zero if nobody kept count.
	Since, LastSeen time.Time
	// Accepted says why it is no trouble; nil if it is.
	Accepted *Acceptance
	// about is the subject without what it says of others that are left out; empty if it
	// says nothing of them.
	about string
}

// Kind is what a finding is about.
type Kind string

// The kinds of finding, by how much of the device each is about: what keeps it from
// being used at all comes first.
const (
	// FindingStuck: a killed child that does not end.
	FindingStuck Kind = "stuck"
	// FindingUnusable: the device could not be opened, or not asked what it is.
	FindingUnusable Kind = "device_unusable"
	// FindingRunAborted: the last run of the probes or of the contract run was
	// killed at its deadline, or crashed.
	FindingRunAborted Kind = "run_aborted"
	// FindingProbeFailed: verbs failed in the last run, or gave less than was asked.
	FindingProbeFailed Kind = "probe_failed"
	// FindingNotification: events or completions did not come, or not as they should.
	FindingNotification Kind = "notification_failed"
	// FindingContract: the device does not keep a contract.
	FindingContract Kind = "contract_violated"
	// FindingUndestroyed: objects that the device refused to destroy in the last
	// run.
	FindingUndestroyed Kind = "undestroyed"
	// FindingLeaked: objects of children of the exporter that have ended.
	FindingLeaked Kind = "leaked"
	// FindingOrphaned: objects of processes that are dead.
	FindingOrphaned Kind = "orphaned"
	// FindingNearLimit: of a type of object, nearly as many exist as the device
	// allows.
	FindingNearLimit Kind = "near_limit"
	// FindingExhausted: of a type of object, the device had no more to give.
	FindingExhausted Kind = "resource_exhausted"
	// FindingCgroupNearLimit: a cgroup has used up nearly what it may.
	FindingCgroupNearLimit Kind = "cgroup_near_limit"
	// FindingMemlock: a process has nearly as much memory in place as it may.
	FindingMemlock Kind = "memlock_near_limit"
	// FindingGrowing: the objects of a process, or of all together, grow all the time.
	FindingGrowing Kind = "growing"
	// FindingQPError: queue pairs in the error state.
	FindingQPError Kind = "qp_error"
	// FindingCQUnfillable: completion queues larger than what uses them can fill.
	FindingCQUnfillable Kind = "cq_unfillable"
	// FindingPortDown: a port is not active.
	FindingPortDown Kind = "port_down"
	// FindingSlowVector: notification on a completion vector takes much longer than
	// on the others.
	FindingSlowVector Kind = "slow_vector"
	// FindingIncomplete: the inventory could not look at everything.
	FindingIncomplete Kind = "inventory_incomplete"
	// FindingPIDsInvisible: the owners are in a pid namespace that the exporter
	// does not see.
	FindingPIDsInvisible Kind = "pids_invisible"
	// FindingFlapping: a port went down time and again.
	FindingFlapping Kind = "port_flapping"
	// FindingSlowPort: a port has a lower rate than it had.
	FindingSlowPort Kind = "port_slow"
	// FindingBusErrors: errors of the adapter on the PCI bus that were not corrected.
	FindingBusErrors Kind = "pci_errors"
	// FindingSlowBus: less of the PCI bus than the adapter could have.
	FindingSlowBus Kind = "pci_degraded"
	// FindingTogether: most completion vectors are served by one processor.
	FindingTogether Kind = "interrupts_together"
	// FindingIsolated: completion vectors are served by isolated processors.
	FindingIsolated Kind = "interrupts_isolated"
	// FindingUnreadable: what the kernel tells of the adapter could not be read.
	FindingUnreadable Kind = "hardware_unreadable"
	// FindingRefused: counters that the kernel refused to read.
	FindingRefused Kind = "counters_refused"
	// FindingSaturated: counters that are at the end of their width.
	FindingSaturated Kind = "counter_saturated"
	// FindingUnaddressed: a RoCE port without an address of RoCE v2 and IPv4.
	FindingUnaddressed Kind = "no_roce_v2_ipv4"
	// FindingAcceptanceUnused: what is accepted matches nothing, or is accepted no more.
	// It is the only one of a host rather than of a device.
	FindingAcceptanceUnused Kind = "acceptance_unused"
)

// Kinds returns every kind of finding, in the order in which those of the same
// severity are told.
func Kinds() []Kind {
	return []Kind{
		FindingStuck, FindingUnusable, FindingRunAborted, FindingExhausted, FindingProbeFailed, FindingNotification, FindingContract,
		FindingUndestroyed, FindingLeaked, FindingOrphaned, FindingNearLimit, FindingCgroupNearLimit, FindingMemlock,
		FindingGrowing, FindingQPError, FindingCQUnfillable, FindingPortDown, FindingFlapping, FindingSlowPort, FindingBusErrors, FindingSlowBus,
		FindingSlowVector, FindingTogether, FindingIsolated, FindingIncomplete, FindingUnreadable, FindingRefused,
		FindingPIDsInvisible, FindingSaturated, FindingUnaddressed, FindingAcceptanceUnused,
	}
}

// Severity is how bad a finding is.
type Severity string

// The severities. Those of contracts are words of their own, and mean the same.
const (
	// SeverityCritical: something fails already or is about to, and nothing mends itself.
	SeverityCritical Severity = "critical"
	// SeverityWarning: it deserves a look before it gets there.
	SeverityWarning Severity = "warning"
	// SeverityInfo: worth knowing.
	SeverityInfo Severity = "info"
)

// Severities returns every severity, the worst first.
func Severities() []Severity {
	return []Severity{SeverityCritical, SeverityWarning, SeverityInfo}
}

// bySeverity compares two severities; the worse is less.
func bySeverity(a, b Severity) int {
	return cmp.Compare(slices.Index(Severities(), a), slices.Index(Severities(), b))
}

// Harm is what a finding does to those who use the device.
type Harm string

// The harms. None is less severe than one that is less harm.
const (
	// HarmOutage: the device cannot be used: it is gone, has no active port any more,
	// hangs, or gives no objects.
	HarmOutage Harm = "outage"
	// HarmFailure: some of what programs do with it fails.
	HarmFailure Harm = "failure"
	// HarmDegradation: it goes on, with less: slower, with fewer ports, or near a limit.
	HarmDegradation Harm = "degradation"
	// HarmQuirk: it breaks a promise, which harms nobody who does not rely on it.
	HarmQuirk Harm = "quirk"
	// HarmNote: none that is known of.
	HarmNote Harm = "note"
)

// Harms returns every harm, the worst first.
func Harms() []Harm {
	return []Harm{HarmOutage, HarmFailure, HarmDegradation, HarmQuirk, HarmNote}
}

// byHarm compares two harms, and what is as harmful by its severity; the worse is less.
func byHarm(a, b Harm, x, y Severity) int {
	return cmp.Or(cmp.Compare(slices.Index(Harms(), a), slices.Index(Harms(), b)), bySeverity(x, y))
}
