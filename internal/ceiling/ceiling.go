// Package ceiling finds out by hand how many objects of a type a device really gives:
// it creates the smallest ones, one after the other, until one is refused or a budget is
// used up, and destroys all of them. What a device claims is often more than can be had,
// and what refuses is often not the device, but a limit of the process or its cgroup.
//
// A climb takes what others may need meanwhile. So it is for a process of its own, which
// the kernel takes everything back from however it ends, and never for the exporter that
// serves.
package ceiling

import (
	"fmt"
	"slices"
	"time"

	"rdma_exporter/verbs"
)

// Type is a type of object.
type Type string

// The types of object of which a ceiling can be found.
const (
	CQ  Type = "cq"
	QP  Type = "qp"
	SRQ Type = "srq"
	MR  Type = "mr"
	PD  Type = "pd"
	AH  Type = "ah"
)

// Types returns all types, in the order in which people are told of them.
func Types() []Type { return []Type{CQ, QP, SRQ, MR, PD, AH} }

// kind is what is to be known of a type.
type kind struct {
	create, destroy verbs.Verb
	// limit is the name of what the device claims, and claimed is how to read it.
	limit   string
	claimed func(verbs.Limits) int
}

// kind returns what is to be known of a type; nothing of one that there is not.
func (t Type) kind() kind {
	return map[Type]kind{
		CQ:  {verbs.CreateCQ, verbs.DestroyCQ, "max_cq", func(l verbs.Limits) int { return l.MaxCQ }},
		QP:  {verbs.CreateQP, verbs.DestroyQP, "max_qp", func(l verbs.Limits) int { return l.MaxQP }},
		SRQ: {verbs.CreateSRQ, verbs.DestroySRQ, "max_srq", func(l verbs.Limits) int { return l.MaxSRQ }},
		MR:  {verbs.RegMR, verbs.DeregMR, "max_mr", func(l verbs.Limits) int { return l.MaxMR }},
		PD:  {verbs.AllocPD, verbs.DeallocPD, "max_pd", func(l verbs.Limits) int { return l.MaxPD }},
		AH:  {verbs.CreateAH, verbs.DestroyAH, "max_ah", func(l verbs.Limits) int { return l.MaxAH }},
	}[t]
}

// Config says what to climb, and what the climb may cost.
type Config struct {
	// Type is the type of object.
	Type Type `json:"type"`
	// Within is the longest that the climb may take, without giving everything back.
	Within time.Duration `json:"within"`
	// Memory is the most bytes that it may take.
	Memory int64 `json:"memory"`
}

// DefaultConfig returns budgets that a host in use bears.
func DefaultConfig() Config { return Config{Within: 2 * time.Minute, Memory: 1 << 30} }

// Validate returns an error that names each flag whose value makes no sense.
func (c Config) Validate() error {
	switch {
	case !slices.Contains(Types(), c.Type):
		return fmt.Errorf("--type is %q: use one of %v", c.Type, Types())
	case c.Within <= 0:
		return fmt.Errorf("--within is %s: use a duration above 0s", c.Within)
	case c.Memory <= 0:
		return fmt.Errorf("--memory is %d bytes: use a size above 0, such as 1GiB", c.Memory)
	}
	return nil
}

// End is what ended a climb.
type End string

// The ends of a climb. All before EndMemory are ceilings.
const (
	// EndDevice: the device refused.
	EndDevice End = "device"
	// EndMemlock: RLIMIT_MEMLOCK of the process is reached.
	EndMemlock End = "memlock"
	// EndCgroup: the RDMA controller of a cgroup allows no more.
	EndCgroup End = "cgroup"
	// EndFiles: the process, or the host, may open no more files.
	EndFiles End = "open_files"
	// EndMappings: the process may have no more memory mappings (vm.max_map_count).
	EndMappings End = "mappings"

	// EndMemory: the budget of memory is used up.
	EndMemory End = "memory_budget"
	// EndTime: the budget of time is used up.
	EndTime End = "time_budget"
	// EndInterrupted: somebody ended it.
	EndInterrupted End = "interrupted"
	// EndError: something failed that tells of no limit.
	EndError End = "error"
)

// Found tells whether a climb that ended so has found a ceiling.
func (e End) Found() bool {
	return slices.Contains([]End{EndDevice, EndMemlock, EndCgroup, EndFiles, EndMappings}, e)
}

// Phase is what a climb is at.
type Phase string

// The phases of a climb, in their order.
const (
	PhaseClimbing   Phase = "climbing"
	PhaseGivingBack Phase = "giving_back"
	PhaseEnded      Phase = "ended"
)

// GivenBack is how everything was given back.
type GivenBack string

// The ways in which everything is given back.
const (
	// ByVerbs: each object was destroyed.
	ByVerbs GivenBack = "verbs"
	// ByKernel: the process ended, and the kernel took back what was not destroyed.
	ByKernel GivenBack = "kernel"
	// NotYet: the process does not end.
	NotYet GivenBack = "not_yet"
)

// Version is that of the form of a Report. A field that goes, or means something else,
// raises it.
const Version = 1

// Report is what is known of a climb at a moment, and at its end. It is a plain value.
type Report struct {
	Version int    `json:"version"`
	Device  string `json:"device"`
	Type    Type   `json:"type"`
	// QPType is the type of the queue pairs, such as rc.
	QPType   string `json:"qp_type,omitempty"`
	Firmware string `json:"firmware,omitempty"`
	Phase    Phase  `json:"phase"`
	// Objects is how many were created.
	Objects int64 `json:"objects"`
	// Limit is the name of what the device claims, and Claimed its value; nil if the
	// device could not be asked.
	Limit   string `json:"limit"`
	Claimed *int64 `json:"claimed,omitempty"`
	// Before is how many of them the kernel counted before; nil if it did not say.
	Before *int64 `json:"before,omitempty"`
	// EndedBy is empty while it climbs. Verb and Errno are those of the refusal, or of
	// the error, if a verb had any part in that. Detail says in a line what there is to it.
	EndedBy End    `json:"ended_by,omitempty"`
	Verb    string `json:"verb,omitempty"`
	Errno   string `json:"errno,omitempty"`
	Detail  string `json:"detail,omitempty"`
	// Began is when the climb began. Seconds is how long it took, and GivingBackSeconds
	// how long it took to give everything back.
	Began             time.Time `json:"began"`
	Seconds           float64   `json:"seconds"`
	GivingBackSeconds float64   `json:"giving_back_seconds"`
	// MemoryBytes is what the climb took.
	MemoryBytes int64 `json:"memory_bytes"`
	// GivenBack is empty until everything is given back. Left is how many objects there
	// are still or, at the end, were not destroyed, and LeftDetail says why.
	GivenBack  GivenBack `json:"given_back,omitempty"`
	Left       int64     `json:"left"`
	LeftDetail string    `json:"left_detail,omitempty"`
}

// InVerb returns the verb that a climb mostly is in.
func (r *Report) InVerb() verbs.Verb {
	if r.Phase == PhaseClimbing {
		return r.Type.kind().create
	}
	return r.Type.kind().destroy
}

// Cut makes the report that of a climb whose process was ended before it had given
// everything back. What ended the climb before that stays.
func (r *Report) Cut(by End, why string, back GivenBack, now time.Time) {
	if r.EndedBy == "" {
		r.EndedBy, r.Detail = by, why
		r.Seconds = now.Sub(r.Began).Seconds()
	} else if r.LeftDetail == "" {
		r.LeftDetail = why
	}
	r.Phase, r.GivenBack = PhaseEnded, back
}
