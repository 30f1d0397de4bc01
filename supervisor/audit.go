package supervisor

import (
	"slices"
	"time"

	"rdma_exporter/report"
)

// maxContinuations is how many further children one audit may have after one that
// was killed or crashed. Each can take the whole timeout, so that on a device on
// which everything hangs an audit takes five times the timeout at most. What such
// a device does with the remaining contracts is no longer the question.
const maxContinuations = 4

// audit is the contract audit of one device. It takes one child, as a rule. One
// that is killed or crashes while it judges a contract costs the audit this
// verdict; another child judges the rest.
type audit struct {
	job
	// began is when the first child of the last audit was started.
	began time.Time
	// judged are the contracts that the last audit is done with, in order.
	judged []string
	// children counts the children of the audit that goes on; 0 if none does.
	children int
	// hung tells that a child of the last audit was killed at its deadline, failed
	// that one did not end well, and abandoned that too many were killed or
	// crashed.
	hung, failed, abandoned bool
	// verdicts are the latest on each contract, in the order in which they were
	// first judged. They are shared: a change makes a new slice.
	verdicts []report.Contract
}

func newAudit(timeout time.Duration) *audit {
	return &audit{
		job:      job{kind: report.KindContract, timeout: timeout},
		verdicts: []report.Contract{},
	}
}

// goesOn reports whether the audit needs another child.
func (a *audit) goesOn() bool { return a.children > 0 }

// done returns a copy of the contracts that the audit which goes on is done with.
func (a *audit) done() []string {
	if !a.goesOn() {
		return nil
	}
	return slices.Clone(a.judged)
}

// take adds a finished run to the audit. The verdict on the contract that was
// being judged when the run was ended is added to the run. stuck tells that its
// child has not ended: then no other can follow.
func (a *audit) take(run *report.Run, stuck bool) {
	if !a.goesOn() {
		a.began, a.judged = run.Started, nil
		a.hung, a.failed, a.abandoned = false, false, false
	}
	a.children++
	a.hung = a.hung || run.Outcome == report.OutcomeTimeout
	a.failed = a.failed || run.Outcome != report.OutcomeOK
	a.suspect = a.hung

	interrupted := run.Judging != "" && (run.Outcome == report.OutcomeTimeout || run.Outcome == report.OutcomeCrashed)
	if interrupted {
		run.Contracts = merged(run.Contracts, a.culprit(run))
	}
	for _, c := range run.Contracts {
		c.Judged = run.Started
		a.verdicts = merged(a.verdicts, c)
		if !slices.Contains(a.judged, c.Name) {
			a.judged = append(a.judged, c.Name)
		}
	}
	a.abandoned = interrupted && a.children > maxContinuations
	if !interrupted || stuck || a.abandoned {
		a.children = 0
	}
}

// culprit returns the verdict on the contract that was being judged when a run
// was ended: the one that the run presumed for this case, or that there is none.
func (a *audit) culprit(run *report.Run) report.Contract {
	reason, end := report.SkipTimeout, "the process that judged it was killed"
	if run.Outcome == report.OutcomeCrashed {
		reason, end = report.SkipCrashed, "the process that judged it crashed"
		if run.Verb != "" {
			end += " in " + run.Verb
		}
	}
	end += ": " + run.Error
	if run.Presumed != nil {
		c := *run.Presumed
		c.Observed += "; " + end
		return c
	}
	c := report.Contract{
		Name: run.Judging, Severity: report.SeverityWarning, Verdict: report.VerdictSkipped,
		Reason: reason, Observed: end,
	}
	for _, known := range a.verdicts {
		if known.Name == c.Name {
			c.Severity = known.Severity
		}
	}
	return c
}

// merged returns a copy of verdicts with c in the place of the one on the same
// contract, or at the end if there is none.
func merged(verdicts []report.Contract, c report.Contract) []report.Contract {
	verdicts = slices.Clone(verdicts)
	for i := range verdicts {
		if verdicts[i].Name == c.Name {
			verdicts[i] = c
			return verdicts
		}
	}
	return append(verdicts, c)
}
