package state

import "time"

// Contract is the verdict on one promise of the libibverbs man pages for one device.
type Contract struct {
	Name     string   `json:"name" wire:"word,key"`
	Severity Severity `json:"severity"`
	Verdict  Verdict  `json:"verdict"`
	// Reason is why the contract was skipped.
	Reason SkipReason `json:"reason,omitempty"`
	// Asked is what was done, Expected what the manual requires, and Observed what happened
	// or what prevented the check.
	Asked    string `json:"asked,omitempty"`
	Expected string `json:"expected,omitempty"`
	Observed string `json:"observed,omitempty"`
	// Consequence is what a violation means to an application, and Remedy what to do.
	Consequence string `json:"consequence,omitempty"`
	Remedy      string `json:"remedy,omitempty"`
	// Known is true if the driver is known to break the contract in each mode that was seen.
	// Fact is then what the driver does, and Source where that is written.
	Known    bool          `json:"known,omitempty"`
	Fact     string        `json:"fact,omitempty"`
	Source   string        `json:"source,omitempty"`
	Duration time.Duration `json:"duration_ns"`
	// CheckedAt is when the run started that checked it; zero within a run.
	CheckedAt time.Time `json:"checked_at,omitzero"`
}

// Verdict is whether a device keeps a contract.
type Verdict string

// The verdicts. A skipped contract could not be checked, and counts as neither.
const (
	VerdictHolds    Verdict = "holds"
	VerdictViolated Verdict = "violated"
	VerdictSkipped  Verdict = "skipped"
)

// Verdicts returns every verdict.
func Verdicts() []Verdict { return []Verdict{VerdictHolds, VerdictViolated, VerdictSkipped} }

// Severity is what a violation means to an application.
type Severity string

// The severities: a program hangs or loses data; a size or a state is reported wrongly; the
// device allows more than the manual does.
const (
	SeverityCritical Severity = "critical"
	SeverityWarning  Severity = "warning"
	SeverityInfo     Severity = "info"
)

// Severities returns every severity, the worst first.
func Severities() []Severity { return []Severity{SeverityCritical, SeverityWarning, SeverityInfo} }

// Planned is a contract that a run is about to check.
type Planned struct {
	Name     string   `json:"name" wire:"word"`
	Severity Severity `json:"severity"`
}

// ProvisionalVerdict is the verdict on the contract in progress if the child ends before it
// reports another one.
type ProvisionalVerdict struct {
	Contract Contract `json:"contract"`
	// Proven is true if the verdict holds whatever ended the process. Otherwise it holds only
	// if the process crashed or hung in a verb.
	Proven bool `json:"proven,omitempty"`
}

// Contracts is the state of the contracts of a device.
type Contracts struct {
	// Last is the last finished contract run, without its verdicts.
	Last *Run `json:"last,omitempty"`
	// Verdicts are the latest on each contract, in the order of the checks.
	Verdicts []Contract `json:"verdicts"`
	// PutOff is why a contract run that is due waits.
	PutOff *Reduced `json:"put_off,omitempty"`
}
