package state

import (
	"slices"
	"time"
)

// Run is one run of the probes, of the contract run, or of the inventory,
// on one device; or of a reading of the hardware, on all devices of the host.
type Run struct {
	// Kind tells what was run.
	Kind Kind `json:"kind,omitempty"`
	// Device is the name of the device, as in /sys/class/infiniband; empty for all.
	Device string `json:"device"`
	// Started is when the child process was started.
	Started time.Time `json:"started"`
	// Duration is from the start of the child process to its end, or to the
	// moment at which it was given up.
	Duration time.Duration `json:"duration_ns"`
	// Outcome sums the run up.
	Outcome Outcome `json:"outcome"`
	// Error says in words why Outcome is not OutcomeOK; empty otherwise.
	Error string `json:"error,omitempty"`
	// FailedVerb and Errno describe a run that finished, but could not do what
	// it was to do, which verb was the cause; both are empty if none was. Info is nil
	// if it was not even possible to open the device and ask what it is.
	FailedVerb string `json:"failed_verb,omitempty"`
	Errno      string `json:"errno,omitempty"`
	// Verb is the verb in which the child was when it was killed or crashed;
	// empty if it was in none.
	Verb string `json:"verb,omitempty"`
	// Info is what the device said of itself; nil if it could not be asked.
	Info *Device `json:"info,omitempty"`
	// Probes are the probes that finished, in order.
	Probes []Probe `json:"probes,omitempty"`
	// Calls are the calls of verbs that returned, in order.
	Calls []Call `json:"-"`
	// Contracts are the verdicts of a contract run, in order.
	Contracts []Contract `json:"contracts,omitempty"`
	// InProgress is the contract that was being judged when the run ended; empty if
	// none was.
	InProgress string `json:"judging,omitempty"`
	// Provisional is what the verdict on that contract is then; nil if nothing was
	// said of it.
	Provisional *ProvisionalVerdict `json:"presumed,omitempty"`
	// Planned are the contracts that a contract run set out to judge.
	Planned []Planned `json:"planned,omitempty"`
	// Undestroyed are the objects whose destruction the device refused to the
	// end.
	Undestroyed []Undestroyed `json:"undestroyed,omitempty"`
	// Events are the asynchronous events that came while the device was open, without
	// those that the run brings about itself.
	Events []Events `json:"events,omitempty"`
	// Refused are the types of object of which the device had no more to give, by what the
	// kernel counted at that moment.
	Refused []Refused `json:"refused,omitempty"`
	// Context is what the kernel calls the device that the child opened; nil if it
	// opened none or the kernel does not tell.
	Context *Context `json:"context,omitempty"`
	// Depth is how much a probe run covered; empty for other runs.
	Depth Depth `json:"depth,omitempty"`
	// Sizes identifies the sizes that the configuration of a probe run requests. Runs with
	// the same sizes have the same value.
	Sizes string `json:"sizes,omitempty"`
	// Reduced is why a probe run has DepthReduced, or why a contract run did nothing. Nil
	// means that it was not reduced.
	Reduced *Reduced `json:"reduced,omitempty"`
	// Inventory is what an inventory found; nil if it did not come that far. Of
	// an inventory that was killed it may be no more than the kernel's own count.
	Inventory *Inventory `json:"inventory,omitempty"`
	// Facts are what a run of the probes found out that need not be asked again; nil if
	// that was nothing.
	Facts *Facts `json:"facts,omitempty"`
	// Hardware is what was read of the hardware of each device, in the order in which the
	// readings ended. A run that is of one device has only that one's.
	Hardware []Hardware `json:"hardware,omitempty"`
	// CPU is the processor time that the child used, user and system.
	CPU time.Duration `json:"cpu_ns,omitempty"`
	// MaxRSS is the most memory that the child had resident, in bytes, by its own
	// account: wait4(2) counts the parent's memory too.
	// It is 0 for a run that has no whole report.
	MaxRSS int64 `json:"max_rss_bytes,omitempty"`
}

// Kind is what was run.
type Kind string

// The kinds of run.
const (
	// KindProbe: the probes.
	KindProbe Kind = "probe"
	// KindContract: the contract run, or a part of it.
	KindContract Kind = "contract"
	// KindInventory: the inventory.
	KindInventory Kind = "inventory"
	// KindHardware: the reading of what the kernel shows of adapters without opening them.
	// It is one run for all devices.
	KindHardware Kind = "hardware"
)

// Kinds returns every kind of which each device has runs of its own.
func Kinds() []Kind { return []Kind{KindProbe, KindContract, KindInventory} }

// Compact returns a copy without calls, samples, inventory and hardware. The samples are
// replaced by their distribution.
func (r *Run) Compact() *Run {
	kept := *r
	kept.Calls, kept.Inventory, kept.Hardware = nil, nil, nil
	kept.Probes = slices.Clone(r.Probes)
	for i := range kept.Probes {
		p := &kept.Probes[i]
		p.Latencies = slices.Clone(p.Latencies)
		for j := range p.Latencies {
			l := &p.Latencies[j]
			if l.Samples != nil {
				l.Bins = Distribution(l.Samples)
			}
			l.Samples, l.Arms = nil, nil
		}
	}
	return &kept
}

// Outcome is how a run ended.
type Outcome string

// The outcomes of a run.
const (
	// OutcomeOK: every probe that could run succeeded.
	OutcomeOK Outcome = "ok"
	// OutcomeFailed: the run finished, but a verb failed or gave less
	// than was asked.
	OutcomeFailed Outcome = "failed"
	// OutcomeTimeout: the child was killed at its deadline.
	OutcomeTimeout Outcome = "timeout"
	// OutcomeCrashed: the child ended without a complete report.
	OutcomeCrashed Outcome = "crashed"
)

// Outcomes returns every outcome.
func Outcomes() []Outcome {
	return []Outcome{OutcomeOK, OutcomeFailed, OutcomeTimeout, OutcomeCrashed}
}

// Probe is what one probe found in one run.
type Probe struct {
	// Name is cq, comp_channel, srq, qp, mr or notification.
	Name string `json:"name" wire:"word,key"`
	// Status sums the probe up.
	Status Status `json:"status"`
	// Duration is the time that the probe took.
	Duration time.Duration `json:"duration_ns"`
	// Failures are what went wrong, in order.
	Failures []Failure `json:"failures,omitempty"`
	// Known are the shortfalls that the driver is known for. They fail nothing.
	Known []KnownShortfall `json:"known,omitempty"`
	// Skips are what could not be probed, and why.
	Skips []Skip `json:"skips,omitempty"`
	// Clamps are the sizes that were cut down to a limit of the device.
	Clamps []Clamp `json:"clamps,omitempty"`
	// CQs, SRQs, QPs and Inline are sizes asked for and given.
	CQs    []CQSize    `json:"cqs,omitempty"`
	SRQs   []SRQSize   `json:"srqs,omitempty"`
	QPs    []QPSize    `json:"qps,omitempty"`
	Inline []InlineMax `json:"inline,omitempty"`
	// InlineSends are what came of sending as much inline data as was given.
	InlineSends []InlineSend `json:"inline_sends,omitempty"`
	// Memory is what objects cost.
	Memory []Memory `json:"memory,omitempty"`
	// Registrations are what came of registering memory.
	Registrations []Registration `json:"registrations,omitempty"`
	// Methods are those by which completions were brought about, one for each path and
	// port.
	Methods []Method `json:"methods,omitempty"`
	// Latencies are measurements of completions.
	Latencies []Latency `json:"latencies,omitempty"`
}

// Method is how the completions of a path were brought about on a port.
type Method struct {
	Port int         `json:"port" wire:"key,max=256"`
	Path LatencyPath `json:"path" wire:"key"`
	// By says it in words: the address by which the port reached itself, or what was
	// flushed in which state. It is empty if none of several ways did.
	By string `json:"by"`
	// InsteadOf lists the better ways that did not work, and why; empty if none was
	// tried.
	InsteadOf string `json:"instead_of,omitempty"`
}

// Status is how a probe ended.
type Status string

// The statuses of a probe.
const (
	// StatusOK: something was probed and nothing of it failed.
	StatusOK Status = "ok"
	// StatusFailed: something failed.
	StatusFailed Status = "failed"
	// StatusSkipped: nothing could be probed. It counts neither as success nor as
	// failure.
	StatusSkipped Status = "skipped"
)

// Failure is one thing that went wrong in a probe.
type Failure struct {
	// Subject is what was being probed.
	Subject Subject `json:"subject,omitzero"`
	// Verb and Errno tell which verb failed and how; Errno is empty when the
	// verb succeeded and its result was wrong.
	Verb  string `json:"verb,omitempty" wire:"word"`
	Errno string `json:"errno,omitempty" wire:"word"`
	// Message says it in words.
	Message string `json:"message"`
	// Memlock is the limit on the memory that the process may have in place
	// (RLIMIT_MEMLOCK), in bytes, if that can be the cause; nil otherwise.
	Memlock *int64 `json:"memlock_limit_bytes,omitempty" wire:"size"`
}

// KnownShortfall is a size that came out less than was asked for, or an object that was
// refused, as the driver of the device is known to do.
type KnownShortfall struct {
	// Subject is what was being probed.
	Subject Subject `json:"subject,omitzero"`
	// Message says in words what was asked for and given, or how it was refused.
	Message string `json:"message"`
	// Contract is the name of the contract that the driver breaks by that, Fact what
	// the driver does, and Source where that is written.
	Contract string `json:"contract" wire:"word"`
	Fact     string `json:"fact"`
	Source   string `json:"source"`
}

// Skip is one thing that a probe could not do.
type Skip struct {
	// Subject is what was skipped. The zero value stands for the whole probe.
	Subject Subject    `json:"subject,omitzero"`
	Reason  SkipReason `json:"reason"`
	// Detail says it in words.
	Detail string `json:"detail,omitempty"`
	// Memlock is as that of a Failure.
	Memlock *int64 `json:"memlock_limit_bytes,omitempty" wire:"size"`
}

// SkipReason is why something was skipped.
type SkipReason string

// The reasons for a skip.
const (
	// SkipNotSupported: the device says, by a limit of zero or by errno, that it
	// does not offer this.
	SkipNotSupported SkipReason = "not_supported"
	// SkipNotPermitted: this process may not do it (EPERM, EACCES).
	SkipNotPermitted SkipReason = "not_permitted"
	// SkipNeeds: something that this needs could not be had.
	SkipNeeds SkipReason = "prerequisite_failed"
	// SkipPortDown: the port is not active.
	SkipPortDown SkipReason = "port_down"
	// SkipBudget: the time for it was used up before its turn came.
	SkipBudget SkipReason = "budget"
	// SkipTimeout and SkipCrashed: the process that was at it was killed at its
	// deadline, or crashed.
	SkipTimeout SkipReason = "timeout"
	SkipCrashed SkipReason = "crashed"
)

// Clamp is a configured size that was cut down to what the device allows.
type Clamp struct {
	Subject Subject `json:"subject,omitzero"`
	// Attribute is the size's name, such as cqe or max_send_wr.
	Attribute string `json:"attribute" wire:"word"`
	// Limit is the name of the device's limit, such as max_cqe.
	Limit      string `json:"limit" wire:"word"`
	Configured int64  `json:"configured"`
	Used       int64  `json:"used"`
}

// CQSize are the sizes of a CQ.
type CQSize struct {
	Profile   string `json:"profile" wire:"word,key"`
	Requested int64  `json:"requested"`
	Actual    int64  `json:"actual" wire:"any"`
}

// SRQSize are the sizes of an SRQ: asked for, written back by ibv_create_srq,
// and told by ibv_query_srq (nil if that failed).
type SRQSize struct {
	Profile   string   `json:"profile" wire:"word,key"`
	Requested SRQAttr  `json:"requested"`
	Actual    SRQAttr  `json:"actual"`
	Queried   *SRQAttr `json:"queried,omitempty"`
}

// SRQAttr are the attributes of an SRQ.
type SRQAttr struct {
	WorkRequests  int64 `json:"work_requests"`
	ScatterGather int64 `json:"scatter_gather_entries"`
}

// QPSize are the sizes of a QP of one type.
type QPSize struct {
	// Type is rc, uc, ud, raw_packet or srd.
	Type      string `json:"type" wire:"word,key"`
	Profile   string `json:"profile" wire:"word,key"`
	Requested QPCap  `json:"requested"`
	Actual    QPCap  `json:"actual"`
}

// QPCap are the sizes of a QP.
type QPCap struct {
	SendWorkRequests  int64 `json:"send_work_requests"`
	RecvWorkRequests  int64 `json:"recv_work_requests"`
	SendScatterGather int64 `json:"send_scatter_gather_entries"`
	RecvScatterGather int64 `json:"recv_scatter_gather_entries"`
	InlineBytes       int64 `json:"inline_bytes"`
}

// InlineMax is the most inline data that a QP of one type can be given.
type InlineMax struct {
	Type  string `json:"type" wire:"word,key"`
	Bytes int64  `json:"bytes"`
}

// InlineSend is what came of sending the most inline data that a QP of one type can be
// given.
type InlineSend struct {
	Type   string       `json:"type" wire:"word,key"`
	Bytes  int64        `json:"bytes"`
	Result InlineResult `json:"result"`
	// Detail says why the message was not tried or failed; empty if it was sent.
	Detail string `json:"detail,omitempty"`
}

// InlineResult says what came of a send of inline data.
type InlineResult string

// The results.
const (
	// InlineSent: the data arrived.
	InlineSent InlineResult = "sent"
	// InlineUntried: the size was accepted, and not tried.
	InlineUntried InlineResult = "untried"
	// InlineFailed: the size was accepted, and no message of that size can be sent.
	InlineFailed InlineResult = "failed"
)

// InlineResults returns every result.
func InlineResults() []InlineResult { return []InlineResult{InlineSent, InlineUntried, InlineFailed} }

// Memory is what one object costs the process that creates it.
type Memory struct {
	// Object is comp_channel, cq, srq, or a QP type such as qp_rc.
	Object string `json:"object" wire:"word,key"`
	// Profile is the profile of its size; empty where size is not a choice.
	Profile string `json:"profile,omitempty" wire:"word,key"`
	// Virtual and Locked are in bytes: address space, and memory pinned.
	Virtual int64 `json:"virtual_bytes" wire:"any"`
	Locked  int64 `json:"locked_bytes" wire:"any"`
}

// Call is one call of a verb that returned.
type Call struct {
	Verb     string        `json:"verb" wire:"verb"`
	Duration time.Duration `json:"ns"`
	// Errno is the symbol of the errno, such as ENOMEM; empty for success.
	Errno string `json:"errno,omitempty" wire:"word"`
	// Expected marks a failure that the probe provoked on purpose, such as the
	// search for the largest inline size does; it is no failure of the device.
	Expected bool `json:"expected,omitempty"`
}

// Events are asynchronous events of one type.
type Events struct {
	// Type is their kind, such as port_err.
	Type string `json:"type" wire:"word"`
	// Port is the port that they are of; 0 if they are of none.
	Port  int `json:"port,omitempty" wire:"max=256"`
	Count int `json:"count" wire:"min=1,max=16384"`
}

// AddEvents adds to a list of events, each type of which it has once for a port, and
// returns it.
func AddEvents(list []Events, more ...Events) []Events {
	list = slices.Clone(list)
	for _, e := range more {
		if i := slices.IndexFunc(list, func(o Events) bool { return o.Type == e.Type && o.Port == e.Port }); i >= 0 {
			list[i].Count += e.Count
		} else {
			list = append(list, e)
		}
	}
	return list
}

// Refused is the refusal of an object because the device, rather than a limit of the child
// or of the host, had no more of its type to give.
type Refused struct {
	// Type is the type of object, as rdma(8) names it.
	Type  string `json:"type" wire:"object,key"`
	Verb  string `json:"verb" wire:"verb"`
	Errno string `json:"errno" wire:"word"`
	// Objects is how many of the type the kernel counted on the device at that moment,
	// whoever had them; at least 1.
	Objects int64 `json:"objects" wire:"min=1"`
}

// Undestroyed is an object whose destruction the device refused to the end.
type Undestroyed struct {
	// Type is the kind of object, as rdma(8) names it: pd, mr, cq, srq, qp, ctx (the
	// opened device); or comp_channel.
	Type string `json:"type" wire:"word"`
	// Errno is the symbol of the last refusal's errno.
	Errno string `json:"errno" wire:"word"`
	// Attempts is how often its destruction was asked for.
	Attempts int `json:"attempts"`
}
