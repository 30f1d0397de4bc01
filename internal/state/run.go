package state

import (
	"slices"
	"time"
)

// Run is one run on one device; or a reading of the hardware of all devices of the host.
type Run struct {
	Kind Kind `json:"kind,omitempty"`
	// Device is empty for all devices.
	Device  string    `json:"device"`
	Started time.Time `json:"started"`
	// Duration is from the start of the child to its end, or until it was given up.
	Duration time.Duration `json:"duration_ns"`
	Outcome  Outcome       `json:"outcome"`
	// Error explains an outcome other than ok.
	Error string `json:"error,omitempty"`
	// FailedVerb and Errno are the cause if the run finished without doing what it should.
	FailedVerb string `json:"failed_verb,omitempty"`
	Errno      string `json:"errno,omitempty"`
	// Verb is the verb in which the child was when it was killed or crashed.
	Verb string `json:"verb,omitempty"`
	// Info is absent if the device could not be opened or queried.
	Info *Device `json:"info,omitempty"`
	// Probes are the probes that finished, in order.
	Probes []Probe `json:"probes,omitempty"`
	// Calls are the calls of verbs that returned, in order.
	Calls []Call `json:"-"`
	// Contracts are the verdicts of a contract run, in order.
	Contracts []Contract `json:"contracts,omitempty"`
	// InProgress is the contract that was being checked when the run ended, and Provisional
	// the verdict on it.
	InProgress  string              `json:"judging,omitempty"`
	Provisional *ProvisionalVerdict `json:"presumed,omitempty"`
	// Planned are the contracts that a contract run was to check.
	Planned []Planned `json:"planned,omitempty"`
	// Undestroyed are the objects that the device refused to destroy.
	Undestroyed []Undestroyed `json:"undestroyed,omitempty"`
	// Events are asynchronous events that the run did not cause itself.
	Events []Events `json:"events,omitempty"`
	// Refused are the types of object that the device had exhausted.
	Refused []Refused `json:"refused,omitempty"`
	// Context is the device context of the child, if the kernel reports it.
	Context *Context `json:"context,omitempty"`
	// Depth is how much a probe run covered.
	Depth Depth `json:"depth,omitempty"`
	// Sizes identifies the configured sizes of a probe run.
	Sizes string `json:"sizes,omitempty"`
	// Reduced is why a probe run did as little as possible, or a contract run nothing.
	Reduced *Reduced `json:"reduced,omitempty"`
	// Inventory may have only the kernel's own counts if the child was killed.
	Inventory *Inventory `json:"inventory,omitempty"`
	// Facts are what a probe run learned for later runs.
	Facts *Facts `json:"facts,omitempty"`
	// Hardware has the devices in the order in which they were read.
	Hardware []Hardware `json:"hardware,omitempty"`
	// Path is the path to the peer that was asked.
	Path      *Path      `json:"path,omitempty"`
	Bandwidth *Bandwidth `json:"bandwidth,omitempty"`
	// CPU is the user and system time of the child.
	CPU time.Duration `json:"cpu_ns,omitempty"`
	// MaxRSS is the maximum resident memory of the child in bytes, as it reports itself
	// (wait4(2) includes the parent's memory).
	MaxRSS int64 `json:"max_rss_bytes,omitempty"`
}

// Kind is what was run.
type Kind string

// The kinds of run. KindHardware is one run for all devices, and KindAsk asks a peer.
const (
	KindProbe     Kind = "probe"
	KindContract  Kind = "contract"
	KindInventory Kind = "inventory"
	KindHardware  Kind = "hardware"
	KindAsk       Kind = "ask"
	// KindBandwidth is on a schedule, or by hand: the command bandwidth starts it.
	KindBandwidth Kind = "measure"
)

// Kinds returns the kinds of run that each device has by itself.
func Kinds() []Kind { return []Kind{KindProbe, KindContract, KindInventory} }

// Compact returns a copy without calls, samples, inventory and hardware. The samples are
// replaced by their distribution.
func (r *Run) Compact() *Run {
	compact := *r
	compact.Calls, compact.Inventory, compact.Hardware = nil, nil, nil
	compact.Probes = slices.Clone(r.Probes)
	for i := range compact.Probes {
		p := &compact.Probes[i]
		p.Latencies = slices.Clone(p.Latencies)
		for j := range p.Latencies {
			l := &p.Latencies[j]
			if l.Samples != nil {
				l.Bins = Distribution(l.Samples)
			}
			l.Samples, l.Arms = nil, nil
		}
	}
	return &compact
}

// Outcome is how a run ended.
type Outcome string

// The outcomes of a run.
const (
	// OutcomeOK means that every probe that could run succeeded.
	OutcomeOK Outcome = "ok"
	// OutcomeFailed means that the run finished, but a verb failed or gave less than requested.
	OutcomeFailed Outcome = "failed"
	// OutcomeTimeout means that the child was killed at its deadline.
	OutcomeTimeout Outcome = "timeout"
	// OutcomeCrashed means that the child ended without a complete report.
	OutcomeCrashed Outcome = "crashed"
)

// Outcomes returns every outcome.
func Outcomes() []Outcome {
	return []Outcome{OutcomeOK, OutcomeFailed, OutcomeTimeout, OutcomeCrashed}
}

// Probe is the result of one probe in one run.
type Probe struct {
	// Name is cq, comp_channel, srq, qp, mr or notification.
	Name     string        `json:"name" wire:"word,key"`
	Status   Status        `json:"status"`
	Duration time.Duration `json:"duration_ns"`
	Failures []Failure     `json:"failures,omitempty"`
	// Known are shortfalls by known driver errata. They are not failures.
	Known []KnownShortfall `json:"known,omitempty"`
	Skips []Skip           `json:"skips,omitempty"`
	// Clamps are sizes that were reduced to a limit of the device.
	Clamps []Clamp     `json:"clamps,omitempty"`
	CQs    []CQSize    `json:"cqs,omitempty"`
	SRQs   []SRQSize   `json:"srqs,omitempty"`
	QPs    []QPSize    `json:"qps,omitempty"`
	Inline []InlineMax `json:"inline,omitempty"`
	// InlineSends are the results of sending the maximum inline data.
	InlineSends []InlineSend `json:"inline_sends,omitempty"`
	// Memory is the memory per object.
	Memory        []Memory       `json:"memory,omitempty"`
	Registrations []Registration `json:"registrations,omitempty"`
	// Methods are how completions were produced, one for each path and port.
	Methods   []Method  `json:"methods,omitempty"`
	Latencies []Latency `json:"latencies,omitempty"`
}

// Method is how the completions of a path were produced on a port.
type Method struct {
	Port int         `json:"port" wire:"key,max=256"`
	Path LatencyPath `json:"path" wire:"key"`
	// By is the address by which the port reached itself, or what was flushed in which state.
	// It is empty if no method worked.
	By string `json:"by"`
	// InsteadOf lists the better methods that failed, and why.
	InsteadOf string `json:"instead_of,omitempty"`
}

// Status is how a probe ended.
type Status string

// The statuses of a probe. A skipped one counts neither as success nor as failure.
const (
	StatusOK      Status = "ok"
	StatusFailed  Status = "failed"
	StatusSkipped Status = "skipped"
)

// Failure is one failure in a probe.
type Failure struct {
	Subject Subject `json:"subject,omitzero"`
	Verb    string  `json:"verb,omitempty" wire:"word"`
	// Errno is empty if the verb succeeded with a wrong result.
	Errno   string `json:"errno,omitempty" wire:"word"`
	Message string `json:"message"`
	// Memlock is the limit RLIMIT_MEMLOCK if that can be the cause.
	Memlock *int64 `json:"memlock_limit_bytes,omitempty" wire:"size"`
}

// KnownShortfall is a size that was smaller than requested, or an object that was refused, by
// a known erratum of the driver.
type KnownShortfall struct {
	Subject Subject `json:"subject,omitzero"`
	Message string  `json:"message"`
	// Contract is the one that the driver breaks, Fact what it does, and Source where that is
	// written.
	Contract string `json:"contract" wire:"word"`
	Fact     string `json:"fact"`
	Source   string `json:"source"`
}

// Skip is something that a probe could not do.
type Skip struct {
	Subject Subject    `json:"subject,omitzero"`
	Reason  SkipReason `json:"reason"`
	Detail  string     `json:"detail,omitempty"`
	// Memlock is the limit RLIMIT_MEMLOCK if that can be the cause.
	Memlock *int64 `json:"memlock_limit_bytes,omitempty" wire:"size"`
}

// SkipReason is why something was skipped.
type SkipReason string

// The reasons for a skip.
const (
	// SkipNotSupported means that the device reports, by a limit of zero or by errno, that it
	// does not offer this.
	SkipNotSupported SkipReason = "not_supported"
	// SkipNotPermitted means that this process may not do it (EPERM, EACCES).
	SkipNotPermitted SkipReason = "not_permitted"
	// SkipNeeds means that something it needs is not available.
	SkipNeeds SkipReason = "prerequisite_failed"
	// SkipPortDown means that the port is not active.
	SkipPortDown SkipReason = "port_down"
	// SkipBudget means that no time was left for it.
	SkipBudget SkipReason = "budget"
	// SkipTimeout and SkipCrashed mean that the child was killed at its deadline, or crashed,
	// during the check.
	SkipTimeout SkipReason = "timeout"
	SkipCrashed SkipReason = "crashed"
)

// Clamp is a configured size that was reduced to what the device allows.
type Clamp struct {
	Subject Subject `json:"subject,omitzero"`
	// Attribute is the size's name, such as cqe, and Limit that of the device's limit, such as
	// max_cqe.
	Attribute  string `json:"attribute" wire:"word"`
	Limit      string `json:"limit" wire:"word"`
	Configured int64  `json:"configured"`
	Used       int64  `json:"used"`
}

// CQSize is the size of a CQ.
type CQSize struct {
	Profile   string `json:"profile" wire:"word,key"`
	Requested int64  `json:"requested"`
	Actual    int64  `json:"actual" wire:"any"`
}

// SRQSize has the sizes of an SRQ. Queried is what ibv_query_srq reports.
type SRQSize struct {
	Profile   string   `json:"profile" wire:"word,key"`
	Requested SRQAttr  `json:"requested"`
	Actual    SRQAttr  `json:"actual"`
	Queried   *SRQAttr `json:"queried,omitempty"`
}

// SRQAttr has the attributes of an SRQ.
type SRQAttr struct {
	WorkRequests  int64 `json:"work_requests"`
	ScatterGather int64 `json:"scatter_gather_entries"`
}

// QPSize has the sizes of a QP. Type is rc, uc, ud, raw_packet or srd.
type QPSize struct {
	Type      string `json:"type" wire:"word,key"`
	Profile   string `json:"profile" wire:"word,key"`
	Requested QPCap  `json:"requested"`
	Actual    QPCap  `json:"actual"`
}

// QPCap has the capacities of a QP.
type QPCap struct {
	SendWorkRequests  int64 `json:"send_work_requests"`
	RecvWorkRequests  int64 `json:"recv_work_requests"`
	SendScatterGather int64 `json:"send_scatter_gather_entries"`
	RecvScatterGather int64 `json:"recv_scatter_gather_entries"`
	InlineBytes       int64 `json:"inline_bytes"`
}

// InlineMax is the maximum inline data of a QP type.
type InlineMax struct {
	Type  string `json:"type" wire:"word,key"`
	Bytes int64  `json:"bytes"`
}

// InlineSend is the result of sending the maximum inline data of a QP type.
type InlineSend struct {
	Type   string       `json:"type" wire:"word,key"`
	Bytes  int64        `json:"bytes"`
	Result InlineResult `json:"result"`
	Detail string       `json:"detail,omitempty"`
}

// InlineResult is the result of sending inline data.
type InlineResult string

// The results. The device accepted the size in each case.
const (
	InlineSent    InlineResult = "sent"
	InlineUntried InlineResult = "untried"
	InlineFailed  InlineResult = "failed"
)

// Memory is the memory of one object in the process that creates it.
type Memory struct {
	// Object is comp_channel, cq, srq, or a QP type such as qp_rc.
	Object  string `json:"object" wire:"word,key"`
	Profile string `json:"profile,omitempty" wire:"word,key"`
	// Virtual is address space, and Locked pinned memory.
	Virtual int64 `json:"virtual_bytes" wire:"any"`
	Locked  int64 `json:"locked_bytes" wire:"any"`
}

// Call is a call of a verb that returned.
type Call struct {
	Verb     string        `json:"verb" wire:"verb"`
	Duration time.Duration `json:"ns"`
	// Errno is empty on success.
	Errno string `json:"errno,omitempty" wire:"word"`
	// Expected is true if the probe provoked the failure.
	Expected bool `json:"expected,omitempty"`
}

// Events are asynchronous events of one type, such as port_err.
type Events struct {
	Type string `json:"type" wire:"word"`
	// Port is zero if they are not about a port.
	Port  int `json:"port,omitempty" wire:"max=256"`
	Count int `json:"count" wire:"min=1,max=16384"`
}

// AddEvents returns a list with more events added. It has each type once for a port.
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

// Refused is an object that the device, rather than a limit of the child or of the host,
// refused to create because it had no more of its type.
type Refused struct {
	Type  string `json:"type" wire:"object,key"`
	Verb  string `json:"verb" wire:"verb"`
	Errno string `json:"errno" wire:"word"`
	// Objects is how many the kernel counted at that moment, of all owners.
	Objects int64 `json:"objects" wire:"min=1"`
}

// Undestroyed is an object that the device refused to destroy.
type Undestroyed struct {
	// Type is pd, mr, cq, srq, qp, ctx or comp_channel.
	Type string `json:"type" wire:"word"`
	// Errno is that of the last refusal.
	Errno    string `json:"errno" wire:"word"`
	Attempts int    `json:"attempts"`
}
