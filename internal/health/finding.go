package health

import (
	"cmp"
	"slices"
	"time"

	"rdma_exporter/internal/state"
)

// Finding is one problem of a device, or one fact worth knowing.
type Finding struct {
	Kind     Kind     `json:"kind"`
	Severity Severity `json:"severity"`
	// Harm is its effect on the users of the device.
	Harm Harm `json:"harm"`
	// Subject is what the finding is about, such as "qp" or "pid 4711 (trainer)".
	Subject string `json:"subject"`
	// Port is the port, or the first of several. Absent if it is about none.
	Port int `json:"port,omitempty"`
	// Rule is the key of expect that is not met. Absent unless something is not as expected.
	Rule string `json:"rule,omitempty"`
	// Reason names the cause in a clause, such as "port 1 is down". It is the same for the same cause on all hosts.
	Reason string `json:"reason"`
	// Verb is the call that failed or hangs. Empty if none.
	Verb string `json:"verb,omitempty"`
	// Errno is that of the failed call. Empty if none.
	Errno string `json:"errno,omitempty"`
	// Message says what was found, with values.
	Message string `json:"message"`
	// Evidence has further details. Empty if the message has them all.
	Evidence string `json:"evidence,omitempty"`
	// Meaning explains the finding to the users of the device.
	Meaning string `json:"meaning"`
	// Action says what to do. Commands are in backticks.
	Action string `json:"action"`
	// Remedy says the same to programs, in a word.
	Remedy Remedy `json:"remedy"`
	// Consequences are findings with the same root cause, the worst first. They count nowhere else and
	// have no consequences of their own.
	Consequences []Finding `json:"consequences,omitempty"`
	// Since is when it was seen first. Zero means unknown. A finding that returns within ten minutes is the same one.
	Since time.Time `json:"since,omitzero"`
	// LastSeen is when the state of the device last changed and the finding was still there. Zero means unknown.
	LastSeen time.Time `json:"last_seen,omitzero"`
	// Accepted says why the finding does not count as a problem. Nil if it counts.
	Accepted *Acceptance `json:"accepted,omitempty"`
	// about is the subject without the number of findings left out after it. Empty if none were left out.
	about string
}

// Counts reports whether the finding is a problem. That the exporter cannot see everything is none of the host's.
func (f *Finding) Counts() bool {
	return f.Severity != SeverityInfo && f.Accepted == nil && f.Kind != FindingNetnsBlind
}

// Kind is the kind of a finding.
type Kind string

// The kinds of finding, in the order in which those of the same severity are listed. Catalogue describes each.
const (
	FindingVanished         Kind = "device_vanished"
	FindingStuck            Kind = "stuck"
	FindingUnusable         Kind = "device_unusable"
	FindingRunAborted       Kind = "run_aborted"
	FindingExhausted        Kind = "resource_exhausted"
	FindingMemlockRefused   Kind = "memlock_refused"
	FindingProbeFailed      Kind = "probe_failed"
	FindingNotification     Kind = "notification_failed"
	FindingContract         Kind = "contract_violated"
	FindingUndestroyed      Kind = "undestroyed"
	FindingLeaked           Kind = "leaked"
	FindingOrphaned         Kind = "orphaned"
	FindingNearLimit        Kind = "near_limit"
	FindingCgroupNearLimit  Kind = "cgroup_near_limit"
	FindingMemlock          Kind = "memlock_near_limit"
	FindingGrowing          Kind = "growing"
	FindingQPError          Kind = "qp_error"
	FindingCQUnfillable     Kind = "cq_unfillable"
	FindingPortDown         Kind = "port_down"
	FindingFlapping         Kind = "port_flapping"
	FindingSlowPort         Kind = "port_slow"
	FindingPathFailed       Kind = "path_failed"
	FindingPathSlow         Kind = "path_slow"
	FindingCongested        Kind = "congested"
	FindingBusErrors        Kind = "pci_errors"
	FindingSlowBus          Kind = "pci_degraded"
	FindingBandwidthLow     Kind = "bandwidth_low"
	FindingNUMAAsymmetric   Kind = "numa_asymmetric"
	FindingSlowVector       Kind = "slow_vector"
	FindingGPUUnavailable   Kind = "gpudirect_unavailable"
	FindingGPUSlow          Kind = "gpudirect_slow"
	FindingTogether         Kind = "interrupts_together"
	FindingIsolated         Kind = "interrupts_isolated"
	FindingIncomplete       Kind = "inventory_incomplete"
	FindingUnreadable       Kind = "hardware_unreadable"
	FindingUnexpected       Kind = "unexpected"
	FindingRefused          Kind = "counters_refused"
	FindingNetnsBlind       Kind = "netns_blind"
	FindingPIDsInvisible    Kind = "pids_invisible"
	FindingSaturated        Kind = "counter_saturated"
	FindingUnaddressed      Kind = "no_roce_v2_ipv4"
	FindingAcceptanceUnused Kind = "acceptance_unused"
)

// Kinds returns every kind of finding, in the order of the catalogue.
func Kinds() []Kind {
	var kinds []Kind
	for _, e := range Catalogue() {
		kinds = append(kinds, e.Kind)
	}
	return slices.Compact(kinds)
}

// Severity is how bad a finding is. Contracts have the same severities.
type Severity = state.Severity

// The severities.
const (
	SeverityCritical = state.SeverityCritical // Something fails or soon will, and does not recover by itself.
	SeverityWarning  = state.SeverityWarning  // Somebody should look at it before it gets there.
	SeverityInfo     = state.SeverityInfo     // It is good to know.
)

func bySeverity(a, b Severity) int {
	return cmp.Compare(slices.Index(state.Severities(), a), slices.Index(state.Severities(), b))
}

// Harm is the effect of a finding on the users of the device.
type Harm string

// The harms. A less harmful finding is never more severe.
const (
	HarmOutage      Harm = "outage"      // The device is unusable: gone, hung, out of objects, or missing where it is expected; or no port of the host is active.
	HarmFailure     Harm = "failure"     // Some uses of the device fail.
	HarmDegradation Harm = "degradation" // It works, but slower, with fewer ports, or near a limit.
	HarmQuirk       Harm = "quirk"       // It breaks a promise, which harms only programs that rely on it.
	HarmNote        Harm = "note"        // No harm is known.
)

// Remedy is what has to be mended first. Action has more, and the hardware is never to be replaced without it.
type Remedy string

// The remedies.
const (
	RemedyNone          Remedy = "none"          // Nothing has to be done.
	RemedyApplication   Remedy = "application"   // A program on the host: its owner closes, restarts or mends it.
	RemedyConfiguration Remedy = "configuration" // A setting of the host or container: rights, limits, addresses, interrupts.
	RemedyDriver        Remedy = "driver"        // The driver, firmware or rdma-core: load, reload or update it, or reset the device.
	RemedyReboot        Remedy = "reboot"        // The host: only a restart surely frees what hangs in the kernel.
	RemedyHardware      Remedy = "hardware"      // The adapter or its slot: look at it, reseat it.
	RemedyNetwork       Remedy = "network"       // The link and what is behind it: cable, module, switch, subnet manager.
	RemedyExporter      Remedy = "exporter"      // The exporter: its settings, rights or place. The devices may be fine.
)

// Harms returns every harm, the worst first.
func Harms() []Harm { return []Harm{HarmOutage, HarmFailure, HarmDegradation, HarmQuirk, HarmNote} }

// byHarm compares two harms, and then the severities x and y. The worse one is less.
func byHarm(a, b Harm, x, y Severity) int {
	return cmp.Or(cmp.Compare(slices.Index(Harms(), a), slices.Index(Harms(), b)), bySeverity(x, y))
}
