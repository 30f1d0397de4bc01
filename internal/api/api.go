// Package api says what is known of the host's devices in the words that people
// and programs are shown: the status page, the terminal report and the JSON of
// /api/v1/status all are renderings of it. It is made of the same snapshot as the
// metrics.
//
// The JSON is an interface: within a version, fields are added and never renamed,
// removed or given another meaning. Times are RFC 3339 in UTC, durations are in
// seconds. Text that comes from a device, a driver or another process is free of
// control characters and valid UTF-8, and harmless nowhere else: whoever renders it
// escapes it. No list has more than 4096 items, and no text much more than 4096 bytes.
// Numbers are integers up to 2^63-1, of which a reader that takes them for
// floating-point keeps no more than the first 53 bits.
//
// docs/reference/status-page.md follows from the comments of the types.
package api

import (
	"fmt"
	"strconv"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Version is the version of the types of this package, and part of the path under
// which they are served.
const Version = 1

// Status is what is known of the host at one moment.
type Status struct {
	// Version of these types.
	Version int `json:"version"`
	// When the status was made.
	Generated time.Time `json:"generated"`
	// Version of the exporter.
	Exporter string `json:"exporter_version"`
	// Name of the host; absent if it is not known.
	Host string `json:"host,omitempty"`
	// Where the documentation is: before a path such as docs/reference/findings.md it makes a
	// URL. Absent if it is not configured; otherwise actions have such URLs.
	DocsURL string `json:"docs_url,omitempty"`
	// Where the devices come from: libibverbs or simulated.
	Provider string `json:"provider"`
	// Whether the devices exist only to try the exporter.
	Simulated bool `json:"simulated"`
	// Whether each device found at first has been probed once.
	Ready bool `json:"ready"`
	// The worst of the host and of all devices.
	Health health.Health `json:"health"`
	// What is wrong with the host rather than with a device; absent if nothing is.
	Problem *Problem `json:"problem,omitempty"`
	// What is worth knowing of the host itself: what is accepted and matches no finding, or
	// is accepted no more. Absent if there is nothing.
	Findings []Finding `json:"findings,omitempty"`
	// How many findings there are on all devices, by severity: each severity once.
	FindingCounts []SeverityCount `json:"finding_counts"`
	// The devices, the worst first, those that are as bad by name.
	Devices []Device `json:"devices"`
	// What is wrong on one device or on several, or worth knowing, the worst first: each
	// thing about which the same is to be done once.
	Troubles []Trouble `json:"troubles"`
}

// Trouble is what is wrong in one way, or worth knowing, on one device or on several.
type Trouble struct {
	// How bad it is.
	Severity health.Severity `json:"severity"`
	// What it does to those who use the devices.
	Harm health.Harm `json:"harm"`
	// What kind of finding it is; absent if none says what is wrong, but the headlines of
	// the devices.
	Kind health.Kind `json:"kind,omitempty"`
	// The device whose name is in what there is to do, if it is the same on several; absent
	// otherwise.
	For string `json:"for,omitempty"`
	// Where it is. What it means and what to do is the same everywhere.
	Places []Place `json:"places"`
}

// Place is where trouble is.
type Place struct {
	// The place of the device in the list of devices, from 0.
	Device int `json:"device"`
	// The place of the finding in the list of the device, from 0; -1 for none.
	Finding int `json:"finding"`
}

// The words of a judgement.
type (
	// Health sums up how a device or the host is.
	Health = health.Health
	// Severity is how bad a finding is.
	Severity = health.Severity
	// Kind is what a finding is about.
	Kind = health.Kind
	// Harm is what a finding does to those who use the device.
	Harm = health.Harm
)

// Those of the words that whoever renders a status has to tell apart.
const (
	HealthOK       = health.OK
	HealthUnknown  = health.Unknown
	HealthWarning  = health.Warning
	HealthCritical = health.Critical

	SeverityCritical = health.SeverityCritical
	SeverityWarning  = health.SeverityWarning
	SeverityInfo     = health.SeverityInfo

	HarmNote = health.HarmNote

	KindContract  = health.FindingContract
	KindNearLimit = health.FindingNearLimit
)

// Healths returns every health, from best to worst.
func Healths() []Health { return health.Healths() }

// Severities returns every severity, the worst first.
func Severities() []Severity { return health.Severities() }

// Problem is what is wrong with the host.
type Problem struct {
	// What it is about.
	Kind health.ProblemKind `json:"kind"`
	// How bad it is.
	Health health.Health `json:"health"`
	// What is wrong.
	Message string `json:"message"`
	// What to do. Commands are in backticks.
	Action string `json:"action"`
}

// SeverityCount counts findings of one severity.
type SeverityCount struct {
	// The severity.
	Severity health.Severity `json:"severity"`
	// How many findings there are of it, without those that are accepted.
	Count int `json:"count"`
	// How many findings of it are accepted; absent if none is.
	Accepted int `json:"accepted,omitempty"`
}

// Device is what is known of one device.
type Device struct {
	// Name of the device, as in /sys/class/infiniband.
	Name string `json:"name"`
	// Whether the host has the device now. One that it has not is listed only while
	// a child process that was to probe it does not end.
	Present bool `json:"present"`
	// How it is, in a word.
	Health health.Health `json:"health"`
	// How it is, in a sentence or two: what its worst finding found, without what is said
	// beyond the first sentence if that is long, or that no action is needed, and
	// then what is accepted, what could not be probed and which runs are old.
	Headline string `json:"headline"`
	// What somebody should know of, the worst first, and what is accepted last.
	Findings []Finding `json:"findings"`
	// What the device says it is; absent if it never said.
	Identity *Identity `json:"identity,omitempty"`
	// Its ports, as the device last told.
	Ports []Port `json:"ports,omitempty"`
	// What the device says it allows, and further attributes of it, as ibv_query_device and
	// ibv_query_device_ex name them.
	Limits []Limit `json:"limits,omitempty"`
	// The last finished run of the probes; absent before the first.
	Run *Run `json:"run,omitempty"`
	// When the last run of the probes that was ok was started; absent if none was.
	LastSuccess time.Time `json:"last_success,omitzero"`
	// How many runs of the probes there were since then.
	Failures int `json:"failures"`
	// Child processes that were killed and have not ended.
	Stuck []Stuck `json:"stuck,omitempty"`
	// The kinds of run for which the command audit had no time, or not enough; absent if it
	// had.
	Skipped []SkippedRun `json:"skipped,omitempty"`
	// The probes of the last run.
	Probes []Probe `json:"probes,omitempty"`
	// The sizes that the last run asked for and was given.
	Sizes []Size `json:"sizes,omitempty"`
	// The most inline data that queue pairs could be given in the last run, by type.
	MaxInline []MaxInline `json:"max_inline,omitempty"`
	// What objects cost in the last run.
	Memory []Memory `json:"memory,omitempty"`
	// What came of registering memory, by its kind.
	Registrations []Registration `json:"memory_registrations,omitempty"`
	// How the completions of each path and port were brought about in the last run.
	Ways []Way `json:"ways,omitempty"`
	// How long completions took in the last run, by port, path and mode.
	Latencies []Latency `json:"latencies,omitempty"`
	// The latest measurement of completion notification on each completion vector that
	// was measured, in the order of the vectors: one run need not measure all.
	Vectors []Vector `json:"vectors,omitempty"`
	// How the device keeps the contracts of the manual; absent before they were judged.
	Contracts *Contracts `json:"contracts,omitempty"`
	// What is known of its driver: promises of the manual that it breaks, whether they
	// were seen broken or kept. No action needed about them.
	Known []Known `json:"known,omitempty"`
	// The objects on the device, of all processes; absent before the first resource
	// audit.
	Resources *Resources `json:"resources,omitempty"`
	// What the kernel shows of the adapter without opening it: its place in the
	// host, its ports with their counters, and its interrupts. Absent before it was first
	// read.
	Hardware *Hardware `json:"hardware,omitempty"`
}

// Finding is one thing that somebody should know of, or do something about.
// docs/reference/findings.md has every kind.
type Finding struct {
	// What kind it is of.
	Kind health.Kind `json:"kind"`
	// How bad it is.
	Severity health.Severity `json:"severity"`
	// What it does to those who use the device.
	Harm health.Harm `json:"harm"`
	// What it is about, such as a type of object or a process.
	Subject string `json:"subject"`
	// What was found, with figures.
	Message string `json:"message"`
	// The rest of what tells so; absent if the message has it all.
	Evidence string `json:"evidence,omitempty"`
	// What that means to those who use the device.
	Meaning string `json:"meaning"`
	// What to do. Commands are in backticks.
	Action string `json:"action"`
	// What else was found of the same root, which is gone once this is: it counts nowhere
	// else, and none of it has consequences of its own.
	Consequences []Finding `json:"consequences,omitempty"`
	// When it was seen first; absent if that is not known. One that was gone for less than
	// ten minutes is the same one.
	Since time.Time `json:"since,omitzero"`
	// When what is known of the device last changed and it was still there; absent if that
	// is not known.
	LastSeen time.Time `json:"last_seen,omitzero"`
	// Why it is accepted, so that it is no trouble; absent if it is not accepted.
	Accepted *Acceptance `json:"accepted,omitempty"`
}

// Beneath names what else was found of the same root, at most so many; empty for nothing.
func (f *Finding) Beneath(most int) string {
	var others []string
	for i := range f.Consequences {
		c := &f.Consequences[i]
		others = append(others, fmt.Sprintf("%s (%s)", c.Subject, c.Kind))
	}
	return text.Join(others, ", ", most)
}

// Acceptance is why a finding is accepted.
type Acceptance struct {
	// Why.
	Reason string `json:"reason"`
	// The last moment at which it is; absent if it is for good.
	Until time.Time `json:"until,omitzero"`
}

// Identity is what a device says it is.
type Identity struct {
	// Name of its driver, such as mlx5; absent if it is not known.
	Driver string `json:"driver,omitempty"`
	// Its transport, such as InfiniBand or iWARP.
	Transport string `json:"transport"`
	// Version of its firmware; may be empty.
	Firmware string `json:"fw_version"`
	// Its vendor.
	VendorID uint32 `json:"vendor_id"`
	// The vendor's number of the part.
	VendorPartID uint32 `json:"vendor_part_id"`
	// Version of the hardware.
	HWVersion uint32 `json:"hw_version"`
	// The GUID of the node.
	NodeGUID string `json:"node_guid"`
	// How many completion vectors the device has.
	CompletionVectors int `json:"completion_vectors"`
}

// Port is a port of a device.
type Port struct {
	// Its number, from 1.
	Number int `json:"number"`
	// Its state, such as active or down.
	State string `json:"state"`
	// Its link layer, such as Ethernet or InfiniBand.
	LinkLayer string `json:"link_layer"`
	// The largest transfer unit in use, in bytes.
	ActiveMTU int `json:"active_mtu_bytes"`
}

// Limit is the most that a device says it allows of something.
type Limit struct {
	// The name that struct ibv_device_attr gives it, such as max_qp.
	Name string `json:"name"`
	// The most. Of max_mr_size, devices tell up to 2^63-1.
	Value int64 `json:"value"`
}

// Run is a run of a child process on a device: of the probes, of the contract run
// or of the inventory.
type Run struct {
	// When it was started; absent if that is not known.
	Started time.Time `json:"started,omitzero"`
	// How long it took.
	Duration float64 `json:"duration_seconds"`
	// How it ended.
	Outcome state.Outcome `json:"outcome"`
	// Why the outcome is not ok; absent otherwise.
	Error string `json:"error,omitempty"`
	// The verb that kept the run from doing what it was to do; absent if none did.
	FailedVerb string `json:"failed_verb,omitempty"`
	// The errno of that verb.
	Errno string `json:"errno,omitempty"`
	// The verb in which the child was when it was killed or crashed; absent if it was
	// in none.
	Verb string `json:"verb,omitempty"`
	// Whether the run is older than it should be: there ought to have been another one
	// since.
	Stale bool `json:"stale"`
	// Why the run did as little as it could; absent if it did not.
	Light *Light `json:"light,omitempty"`
	// The asynchronous events that came while the run had the device open; absent if
	// there were none.
	Events []Events `json:"events,omitempty"`
}

// Events are asynchronous events of one type.
type Events struct {
	// Type of event: device_fatal, port_err and so on.
	Type string `json:"type"`
	// The port that they are of; absent if they are of none.
	Port int `json:"port,omitempty"`
	// How many came.
	Count int `json:"count"`
}

// String says it in words.
func (e Events) String() string {
	s := strconv.Itoa(e.Count) + " × " + e.Type
	if e.Port > 0 {
		s += " of port " + strconv.Itoa(e.Port)
	}
	return s
}

// Light is why a device is left alone, with --probe.when=idle.
type Light struct {
	// Why.
	Reason state.LightReason `json:"reason"`
	// Why, in words.
	Detail string `json:"detail"`
}

// SkippedRun is a kind of run that was not made, or not to its end.
type SkippedRun struct {
	// What it was to do.
	Kind state.Kind `json:"kind"`
	// Why it was not done: budget, for lack of time.
	Reason state.SkipReason `json:"reason"`
}

// Stuck is a child process that was killed and has not ended.
type Stuck struct {
	// What it was to do: probe, for one that had opened the device, inventory or hardware.
	Kind state.Kind `json:"kind"`
	// The process, as the exporter sees it.
	PID int `json:"pid"`
	// The verb that it is in; absent if it is in none.
	Verb string `json:"verb,omitempty"`
	// When it was killed; absent if that is not known.
	Since time.Time `json:"since,omitzero"`
}

// Probe is how one probe did.
type Probe struct {
	// Name of the probe: cq, comp_channel, srq, qp, mr or notification.
	Name string `json:"name"`
	// How it ended.
	Status state.Status `json:"status"`
	// How long it took.
	Duration float64 `json:"duration_seconds"`
	// What went wrong.
	Failures []Failure `json:"failures,omitempty"`
	// What could not be probed.
	Skips []Skip `json:"skips,omitempty"`
}

// Failure is one thing that went wrong in a probe.
type Failure struct {
	// What was being probed, such as "rc medium".
	Subject string `json:"subject"`
	// The verb that failed; absent if none did.
	Verb string `json:"verb,omitempty"`
	// How it failed; absent if it succeeded and its result was wrong.
	Errno string `json:"errno,omitempty"`
	// What went wrong, in words.
	Message string `json:"message"`
	// The limit on the memory that the exporter may have in place, if that can be the
	// cause; absent otherwise.
	Memlock *int64 `json:"memlock_limit_bytes,omitempty"`
}

// Skip is one thing that a probe could not do.
type Skip struct {
	// What was not probed; absent for the whole probe.
	Subject string `json:"subject,omitempty"`
	// Why.
	Reason state.SkipReason `json:"reason"`
	// Why, in words.
	Detail string `json:"detail,omitempty"`
	// The limit on the memory that the exporter may have in place, if that can be the
	// cause; absent otherwise.
	Memlock *int64 `json:"memlock_limit_bytes,omitempty"`
}

// Size is one size of one object: what was asked for and what was given.
type Size struct {
	// The object: cq, srq, or a type of queue pair such as qp_rc.
	Object string `json:"object"`
	// The profile of its sizes, as configured.
	Profile string `json:"profile"`
	// Which size it is: entries, work_requests, scatter_gather_entries, for a queue
	// pair with send_ or recv_ before it, or inline_bytes.
	Attribute string `json:"attribute"`
	// What was configured, if it was cut down to a limit of the device; absent
	// otherwise.
	Configured *int64 `json:"configured,omitempty"`
	// The name of the limit that it was cut down to, such as max_cqe; absent if it was not.
	LimitName string `json:"limit_name,omitempty"`
	// What was asked for.
	Requested int64 `json:"requested"`
	// What the creating verb wrote back.
	Actual int64 `json:"actual"`
	// What the querying verb told; absent if it was not asked.
	Queried *int64 `json:"queried,omitempty"`
	// Whether it is known of the driver that less is given than was asked for, or
	// something else told when queried, whichever is the case.
	Known bool `json:"known,omitempty"`
}

// MaxInline is the most inline data that a queue pair of one type can be given.
type MaxInline struct {
	// The type of queue pair: rc, uc, ud, raw_packet or srd.
	Type string `json:"qp_type"`
	// The most, in bytes.
	Bytes int64 `json:"bytes"`
	// What came of sending a message of that size: sent (it arrived), untried (the size was
	// accepted, and not tried) or failed (no message of that size can be sent).
	Result state.InlineResult `json:"result"`
	// Why it was not sent; absent if it was.
	Detail string `json:"detail,omitempty"`
}

// Memory is what one object costs the process that creates it.
type Memory struct {
	// The object: comp_channel, cq, srq, or a type of queue pair such as qp_rc.
	Object string `json:"object"`
	// The profile of its sizes; absent where size is not a choice.
	Profile string `json:"profile,omitempty"`
	// Address space, in bytes.
	Virtual int64 `json:"virtual_bytes"`
	// Locked memory, in bytes.
	Locked int64 `json:"locked_bytes"`
}

// Registration is what came of registering memory of one kind.
type Registration struct {
	// The memory: 4KiB and 2MiB (ordinary pages), huge_page (one of 2 MiB) or dmabuf (of
	// 2 MiB).
	Memory state.RegisteredMemory `json:"memory"`
	// How much it was.
	Bytes int64 `json:"bytes"`
	// What came of it: registered, refused, not_supported (by the device, its library or
	// the kernel) or unavailable (the host has none to spare for the exporter).
	Result state.RegistrationResult `json:"result"`
	// How long the verb took; absent unless the memory was registered.
	Duration float64 `json:"duration_seconds,omitempty"`
	// What refused it: memlock (RLIMIT_MEMLOCK), cgroup (rdma.max), host or device;
	// absent unless it was refused.
	By state.RefusedBy `json:"refused_by,omitempty"`
	// How it was refused; absent unless it was.
	Errno string `json:"errno,omitempty"`
	// Why it was not registered, in words; absent if it was.
	Detail string `json:"detail,omitempty"`
}

// Way is how the completions of a path were brought about on a port.
type Way struct {
	// The port.
	Port int `json:"port"`
	// The path.
	Path state.LatencyPath `json:"path"`
	// The way in words: the address by which the port reached itself, or what was
	// flushed in which state. Absent if none of several ways did.
	By string `json:"by,omitempty"`
	// The better ways that did not do, and why; absent if the best one did.
	InsteadOf string `json:"instead_of,omitempty"`
}

// Latency is how long completions took on one port in one way, over all completion
// vectors that the run measured: from posting the work request to having the event
// or, with mode poll, the completion.
type Latency struct {
	// The port.
	Port int `json:"port"`
	// How the completions were brought about.
	Path state.LatencyPath `json:"path"`
	// How they were awaited.
	Mode state.LatencyMode `json:"mode"`
	// How many samples went well.
	Samples int `json:"samples"`
	// The median of the samples; 0 without samples. Over several completion vectors it
	// is read off the distribution, and so right to some 15 %.
	P50 float64 `json:"p50_seconds"`
	// The 99th percentile of the samples, as the median.
	P99 float64 `json:"p99_seconds"`
	// How the samples are distributed: the bins that have samples, in ascending order.
	Distribution []Bin `json:"distribution,omitempty"`
	// Events that had not come by the deadline though their completions had.
	Missed int `json:"missed"`
	// Events without a completion.
	Spurious int `json:"spurious"`
	// Events on a wrong channel or for a wrong completion queue.
	Misdirected int `json:"misdirected"`
	// Completions that had not come by the deadline.
	Missing int `json:"missing"`
	// Completions with another status than they should have had.
	Unsuccessful int `json:"unsuccessful"`
}

// Bin is how many samples were in a range of times.
type Bin struct {
	// The samples took longer than this.
	From float64 `json:"from_seconds"`
	// The samples took no longer than this.
	To float64 `json:"to_seconds"`
	// How many samples there were.
	Samples int `json:"samples"`
}

// Vector is the latest measurement of completion notification on one completion
// vector, with mode any.
type Vector struct {
	// The number of the vector, from 0.
	Number int `json:"number"`
	// The port.
	Port int `json:"port"`
	// How the completions were brought about.
	Path state.LatencyPath `json:"path"`
	// How many samples went well.
	Samples int `json:"samples"`
	// The median of the samples; 0 without samples.
	P50 float64 `json:"p50_seconds"`
	// The 99th percentile of the samples; 0 without samples.
	P99 float64 `json:"p99_seconds"`
	// What is usual: the median of the medians of all vectors that were measured on the
	// same port and path; absent if fewer than two were.
	Usual float64 `json:"usual_seconds,omitempty"`
	// How many events and completions went wrong.
	Wrong int `json:"wrong"`
	// Whether notification takes much longer than on the other vectors.
	Slow bool `json:"slow"`
	// When the run was started that measured it; absent if that is not known.
	Measured time.Time `json:"measured,omitzero"`
}

// Contracts is how the device keeps the contracts of the manual.
type Contracts struct {
	// The last finished contract run; absent before the first.
	Run *Run `json:"run,omitempty"`
	// Why a contract run that is due is put off; absent if none is.
	PutOff *Light `json:"put_off,omitempty"`
	// How many contracts hold.
	Holds int `json:"holds"`
	// How many are violated.
	Violated int `json:"violated"`
	// How many of the violated ones the driver is known to break.
	KnownViolated int `json:"known_violated"`
	// How many could not be judged.
	Skipped int `json:"skipped"`
	// The verdicts: the violated ones first, of them those that are not known of the
	// driver, the worst first, then those that were skipped.
	Verdicts []Contract `json:"verdicts"`
}

// Contract is the verdict on one contract. docs/reference/contracts.md has every contract.
type Contract struct {
	// Name of the contract, such as cq_at_least_requested.
	Name string `json:"name"`
	// What a violation means to an application.
	Severity state.Severity `json:"severity"`
	// Whether the device keeps it.
	Verdict state.Verdict `json:"verdict"`
	// Why it was not judged; absent if it was.
	Reason state.SkipReason `json:"reason,omitempty"`
	// The evidence: what was done.
	Asked string `json:"asked,omitempty"`
	// The evidence: what the manual has follow.
	Expected string `json:"expected,omitempty"`
	// The evidence: what followed, or what stood in the way of a judgement.
	Observed string `json:"observed,omitempty"`
	// What the violation means to an application; absent if the contract is not violated.
	Consequence string `json:"consequence,omitempty"`
	// What to do about the violation; absent if the contract is not violated.
	Remedy string `json:"remedy,omitempty"`
	// Whether the driver of the device is known to break it: if it is violated, in each
	// of the ways that were seen.
	Known bool `json:"known,omitempty"`
	// What the driver does; absent if it is not known to break the contract.
	Fact string `json:"fact,omitempty"`
	// Where that is written.
	Source string `json:"source,omitempty"`
	// When the run was started that judged it.
	Judged time.Time `json:"judged,omitzero"`
}

// Known is one promise of the manual that the driver of a device is known to break.
type Known struct {
	// The contract that has the promise.
	Contract string `json:"contract"`
	// Whether the device was seen to break it: violated or holds.
	Verdict state.Verdict `json:"verdict"`
	// What was seen.
	Observed string `json:"observed,omitempty"`
	// What the driver does.
	Fact string `json:"fact"`
	// What programs can do about it; absent if that was not said or there is no need to.
	Remedy string `json:"remedy,omitempty"`
	// Where that is written: functions and files of rdma-core and Linux.
	Source string `json:"source"`
}

// Resources are the objects on a device as the kernel counts them, of all
// processes.
type Resources struct {
	// The last finished inventory; absent before the first.
	Run *Run `json:"run,omitempty"`
	// When the run was started that took the inventory of which all else is; absent if
	// none did.
	Taken time.Time `json:"taken,omitzero"`
	// Whether the exporter sees the processes of the whole host; absent without an
	// inventory.
	PIDsVisible *bool `json:"pids_visible,omitempty"`
	// The objects by type.
	Types []Type `json:"types,omitempty"`
	// The queue pairs by type and state.
	QueuePairs []QueuePairs `json:"queue_pairs,omitempty"`
	// The largest owners of any type, those with most objects first.
	Owners []Owner `json:"owners,omitempty"`
	// The owners of which objects of one type grow fastest, ten at most; absent if none do,
	// or inventories have not gone on for ten minutes.
	Growers []Grower `json:"growers,omitempty"`
	// What was left within a day of opened devices that nobody has any more, the latest
	// first, and who had them.
	Left []Left `json:"left,omitempty"`
	// What the RDMA controller counts for the cgroups of the owners.
	Cgroups []Cgroup `json:"cgroups,omitempty"`
}

// Grower is an owner of which the objects of one type grow.
type Grower struct {
	// The process, as the exporter sees it.
	PID int `json:"pid"`
	// Name of its command; absent if it is not known.
	Comm string `json:"comm,omitempty"`
	// Its container; absent if it is in none.
	ContainerID string `json:"container_id,omitempty"`
	// The pod of the container; absent if there is none.
	PodUID string `json:"pod_uid,omitempty"`
	// The type, as rdma(8) names it.
	Type string `json:"type"`
	// How they grow.
	Growth Growth `json:"growth"`
}

// Growth is how a number of objects has grown, by the inventories of the last hour.
type Growth struct {
	// How many there were at first.
	From int64 `json:"from"`
	// How many there were at last.
	To int64 `json:"to"`
	// The time between.
	Over float64 `json:"over_seconds"`
	// The usual pace, in objects an hour, which those that come all at once do not change.
	PerHour int64 `json:"per_hour"`
	// Whether there never were fewer than before.
	OnlyGrows bool `json:"only_grows"`
	// Whether they grow all the time, which is the finding growing.
	Steady bool `json:"steady"`
	// How long it takes until the limit of the device, at this pace or at that of all
	// owners together; absent if it tells no limit.
	UntilLimit *float64 `json:"until_limit_seconds,omitempty"`
}

// Type is what is known of the objects of one type.
type Type struct {
	// The type, as rdma(8) names it: pd, cq, qp, cm_id, mr, ctx or srq.
	Type string `json:"type"`
	// How many objects there are.
	Objects int64 `json:"objects"`
	// How many of them are of user programs.
	User int64 `json:"user"`
	// How many of them are the kernel's own.
	Kernel int64 `json:"kernel"`
	// How many of them children of the exporter held during the inventory; absent if
	// none.
	Exporter int64 `json:"exporter,omitempty"`
	// How many of them were only counted.
	Unknown int64 `json:"unknown"`
	// The most that the device says it allows; absent if it has no limit.
	Limit *int64 `json:"limit,omitempty"`
	// When the device had no more of them to give; absent if that has not happened.
	Exhausted *Exhausted `json:"exhausted,omitempty"`
	// Objects whose owner is gone; absent if not known.
	Orphaned *int64 `json:"orphaned,omitempty"`
	// Objects that child processes of the exporter left.
	Leaked int64 `json:"leaked"`
	// How they grow, of all owners together; absent if they do not.
	Growth *Growth `json:"growth,omitempty"`
	// Objects of processes that are not among the owners that are named.
	Others int64 `json:"others"`
	// Objects of user programs of which the kernel names no process.
	Unowned int64 `json:"unowned"`
	// Why the objects could not be looked at one by one, or not reliably; absent if
	// they were.
	Incomplete state.IncompleteReason `json:"incomplete,omitempty"`
	// Why, in words.
	IncompleteDetail string `json:"incomplete_detail,omitempty"`
}

// Exhausted is that a device had no more objects of a type to give to a run of the exporter.
type Exhausted struct {
	// How many there were then as the kernel counts, of all processes.
	Objects int64 `json:"objects"`
	// When the run was started.
	At time.Time `json:"at"`
	// The verb that was refused.
	Verb string `json:"verb"`
	// Its errno.
	Errno string `json:"errno"`
	// The firmware of the device; absent if it does not tell.
	Firmware string `json:"firmware,omitempty"`
}

// QueuePairs counts the queue pairs of one type in one state.
type QueuePairs struct {
	// The type of queue pair, such as rc.
	Type string `json:"qp_type"`
	// Its state, such as rts or err.
	State string `json:"state"`
	// How many there are.
	Objects int64 `json:"objects"`
}

// Owner is a process that owns objects.
type Owner struct {
	// The process, as the exporter sees it.
	PID int `json:"pid"`
	// Name of its command; absent if it is not known.
	Comm string `json:"comm,omitempty"`
	// Its container; absent if it is in none.
	ContainerID string `json:"container_id,omitempty"`
	// The pod of the container; absent if there is none.
	PodUID string `json:"pod_uid,omitempty"`
	// The types of which it is among the largest owners, and how many objects it has of
	// them.
	Types []TypeCount `json:"types"`
	// The memory that it holds in place; absent if that is not known.
	Memlock *Memlock `json:"memlock,omitempty"`
}

// Left is what was left of an opened device that no living process has any more.
type Left struct {
	// The kernel's number of the opened device.
	Context uint32 `json:"context"`
	// The process that had it, as the exporter saw it; absent if it never did, and of a
	// child of the exporter.
	PID int `json:"pid,omitempty"`
	// Name of its command; absent if it is not known.
	Comm string `json:"comm,omitempty"`
	// Its container; absent if it was in none.
	ContainerID string `json:"container_id,omitempty"`
	// The pod of the container; absent if there was none.
	PodUID string `json:"pod_uid,omitempty"`
	// What a child of the exporter did, and how that ended; absent for other processes.
	Run string `json:"run,omitempty"`
	// When the process was first seen, or the child was started; absent if it never was.
	FirstSeen time.Time `json:"first_seen,omitzero"`
	// When it was last seen; absent if it never was.
	LastSeen time.Time `json:"last_seen,omitzero"`
	// The objects without an owner, by the latest inventory that found some.
	Types []TypeCount `json:"types"`
	// When the first inventory found some.
	Since time.Time `json:"since"`
	// When the latest did. If that is before taken, they are gone.
	Until time.Time `json:"until"`
}

// TypeCount counts the objects of one type.
type TypeCount struct {
	// The type, as rdma(8) names it.
	Type string `json:"type"`
	// How many there are.
	Objects int64 `json:"objects"`
}

// Memlock is the memory that a process holds in place. The kernel holds each figure
// against the limit by itself.
type Memlock struct {
	// What drivers pinned on behalf of the process (VmPin), in bytes.
	Pinned int64 `json:"pinned_bytes"`
	// What it locked itself (VmLck), in bytes.
	Locked int64 `json:"locked_bytes"`
	// Its soft limit (RLIMIT_MEMLOCK), in bytes; absent for unlimited.
	Limit *int64 `json:"limit_bytes,omitempty"`
}

// Cgroup is the use of one resource of the RDMA controller by one cgroup.
type Cgroup struct {
	// Path of the cgroup.
	Cgroup string `json:"cgroup"`
	// The container that it is of; absent if it is of none.
	ContainerID string `json:"container_id,omitempty"`
	// The pod of the container; absent if there is none.
	PodUID string `json:"pod_uid,omitempty"`
	// What is counted: hca_handle (opened devices) or hca_object (all else).
	Resource string `json:"resource"`
	// How many there are.
	Objects int64 `json:"objects"`
	// The most that the cgroup may have; absent for no limit.
	Limit *int64 `json:"limit,omitempty"`
}
