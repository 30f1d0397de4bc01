package state

import "time"

// Contract is the verdict on one promise of the libibverbs man pages, as one
// device keeps it.
type Contract struct {
	// Name is that of the contract, such as cq_at_least_requested.
	Name     string   `json:"name" wire:"word,key"`
	Severity Severity `json:"severity"`
	Verdict  Verdict  `json:"verdict"`
	// Reason is why the contract was not judged; empty if it was.
	Reason SkipReason `json:"reason,omitempty"`
	// Asked, Expected and Observed are the evidence in words: what was done, what
	// the manual has follow, and what followed. Of a contract that was skipped,
	// Observed says what stood in the way.
	Asked    string `json:"asked,omitempty"`
	Expected string `json:"expected,omitempty"`
	Observed string `json:"observed,omitempty"`
	// Consequence is what the violation means to an application, and Remedy what to do
	// about it; empty if the contract is not violated.
	Consequence string `json:"consequence,omitempty"`
	Remedy      string `json:"remedy,omitempty"`
	// Known tells that the driver of the device is known to break the contract: if it
	// is violated, in each of the ways that were seen. Fact is then what the driver
	// does, and Source where that is written.
	Known  bool   `json:"known,omitempty"`
	Fact   string `json:"fact,omitempty"`
	Source string `json:"source,omitempty"`
	// Duration is the time that the judgement took.
	Duration time.Duration `json:"duration_ns"`
	// CheckedAt is when the run that judged it was started; zero within a run.
	CheckedAt time.Time `json:"checked_at,omitzero"`
}

// Verdict is whether a device keeps a contract.
type Verdict string

// The verdicts.
const (
	VerdictHolds    Verdict = "holds"
	VerdictViolated Verdict = "violated"
	// VerdictSkipped: it could not be judged. It counts as neither.
	VerdictSkipped Verdict = "skipped"
)

// Verdicts returns every verdict.
func Verdicts() []Verdict { return []Verdict{VerdictHolds, VerdictViolated, VerdictSkipped} }

// Severity is what a violation means to an application.
type Severity string

// The severities.
const (
	// SeverityCritical: a program that relies on it hangs or loses data.
	SeverityCritical Severity = "critical"
	// SeverityWarning: a size or a state is reported wrongly.
	SeverityWarning Severity = "warning"
	// SeverityInfo: the device allows more than the manual does.
	SeverityInfo Severity = "info"
)

// Severities returns every severity.
func Severities() []Severity {
	return []Severity{SeverityCritical, SeverityWarning, SeverityInfo}
}

// Planned is a contract that a run is about to judge.
type Planned struct {
	Name     string   `json:"name" wire:"word"`
	Severity Severity `json:"severity"`
}

// ProvisionalVerdict is the verdict on the contract that is being judged, should nothing
// more be heard of it.
type ProvisionalVerdict struct {
	Contract Contract `json:"contract"`
	// Proven tells that the verdict holds whatever ended the process. Otherwise it
	// holds if the process died of, or hung in, a verb: one that the manual has
	// work.
	Proven bool `json:"proven,omitempty"`
}

// Contracts is what is known of how a device keeps the contracts.
type Contracts struct {
	// Last is the last finished contract run, without its verdicts.
	Last *Run `json:"last,omitempty"`
	// Verdicts are the latest on each contract, in the order of judgement.
	Verdicts []Contract `json:"verdicts"`
	// PutOff is why a contract run that is due waits; nil if none does.
	PutOff *Reduced `json:"put_off,omitempty"`
}
