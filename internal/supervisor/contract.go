package supervisor

import (
	"slices"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// maxContinuations is how many further children one contract run may have after one that
// was killed or crashed. Each can take the whole timeout, so that on a device on
// which everything hangs a contract run takes five times the timeout at most. What such
// a device does with the remaining contracts is no longer the question.
const maxContinuations = 4

// judge holds one device to its contracts, run after run. It takes one child, as a rule. One
// that is killed or crashes while it judges a contract costs the contract run this
// verdict; another child judges the rest.
type judge struct {
	job
	// began is when the first child of the last contract run was started.
	began time.Time
	// planned are the contracts that the last contract run set out to judge, and judged
	// those that it is done with, in order.
	planned []state.Planned
	judged  []string
	// completions tells that the last contract run leaves them out.
	completions bool
	// children counts the children of the contract run that goes on; 0 if none does.
	children int
	// hung tells that a child of the last contract run was killed at its deadline, failed
	// that one did not end well, and abandoned that too many were killed or
	// crashed.
	hung, failed, abandoned bool
	// undestroyed are the objects that the children of the last contract run could not destroy.
	undestroyed []state.Undestroyed
	events      []state.Events
	// cut tells that there was no time for all of it.
	cut bool
	// verdicts are the latest on each contract, in the order in which they were
	// first judged. They are shared: a change makes a new slice.
	verdicts []state.Contract
}

// maxVerdicts is the most verdicts that are kept of a device, whatever names its
// children invent.
const maxVerdicts = 256

func newJudge(timeout time.Duration) *judge {
	return &judge{
		job:      job{kind: state.KindContract, timeout: timeout},
		verdicts: []state.Contract{},
	}
}

// goesOn reports whether the contract run needs another child.
func (a *judge) goesOn() bool { return a.children > 0 }

// request returns what the next child is to leave out.
func (a *judge) request() wire.Request {
	if !a.goesOn() {
		return wire.Request{}
	}
	return wire.Request{Done: slices.Clone(a.judged), WithoutCompletions: a.completions}
}

// take adds a finished run to the contract run. The verdict on the contract that was
// being judged when the run was ended is added to the run. A child that has not
// ended cannot be followed by another.
func (a *judge) take(res result) {
	run := res.run
	if !a.goesOn() {
		a.began, a.planned, a.judged, a.completions = run.Started, nil, nil, false
		a.hung, a.failed, a.abandoned, a.undestroyed, a.events = false, false, false, nil, nil
	}
	a.children++
	a.hung = a.hung || run.Outcome == state.OutcomeTimeout
	a.failed = a.failed || run.Outcome != state.OutcomeOK
	a.suspect = a.hung
	a.undestroyed = slices.Concat(a.undestroyed, run.Undestroyed)
	a.events = state.AddEvents(a.events, run.Events...)
	if a.planned == nil {
		a.planned = run.Planned
	}

	broken := run.Outcome == state.OutcomeTimeout || run.Outcome == state.OutcomeCrashed
	if broken && run.InProgress != "" {
		run.Contracts = merged(run.Contracts, a.culprit(res))
	}
	// Before it judges, a child tries which completions the device gives.
	if broken && run.InProgress == "" && len(run.Planned) > 0 && len(run.Contracts) == 0 {
		a.completions = true
	}
	var latest []state.Contract
	for _, c := range run.Contracts {
		c.CheckedAt = run.Started
		latest = append(latest, c)
		if !slices.Contains(a.judged, c.Name) {
			a.judged = append(a.judged, c.Name)
		}
	}
	a.verdicts = merged(a.verdicts, latest...)
	goesOn := broken && (run.InProgress != "" || a.completions)
	a.abandoned = goesOn && a.children > maxContinuations
	if !goesOn || res.left != nil || a.abandoned {
		a.end(run)
	}
}

// end ends a contract run with its last run.
func (a *judge) end(run *state.Run) {
	a.children = 0
	if run.Outcome == state.OutcomeOK {
		// What is not judged any more is not known any more.
		a.verdicts = slices.DeleteFunc(slices.Clone(a.verdicts), func(c state.Contract) bool {
			return !slices.Contains(a.judged, c.Name)
		})
		return
	}
	reason := state.SkipCrashed
	if a.hung {
		reason = state.SkipTimeout
	}
	var unknown []state.Contract
	for _, p := range a.planned {
		if !slices.ContainsFunc(a.verdicts, func(c state.Contract) bool { return c.Name == p.Name }) {
			unknown = append(unknown, state.Contract{
				Name: p.Name, Severity: p.Severity, Verdict: state.VerdictSkipped, Reason: reason, CheckedAt: run.Started,
				Observed: "the contract run did not reach it: " + run.Error,
			})
		}
	}
	a.verdicts = merged(a.verdicts, unknown...)
}

// cutShort ends a contract run for which there is no more time, with what its last child
// came to, and returns all verdicts.
func (a *judge) cutShort(run *state.Run) []state.Contract {
	a.children, a.cut = 0, true
	if a.planned == nil {
		a.planned = run.Planned
	}
	judged := slices.Clone(run.Contracts)
	for i := range judged {
		judged[i].CheckedAt = run.Started
	}
	a.verdicts = merged(a.verdicts, judged...)
	var left []state.Contract
	for _, p := range a.planned {
		if !slices.ContainsFunc(a.verdicts, func(c state.Contract) bool { return c.Name == p.Name }) {
			left = append(left, state.Contract{
				Name: p.Name, Severity: p.Severity, Verdict: state.VerdictSkipped, Reason: state.SkipBudget,
				CheckedAt: run.Started, Observed: "out of time",
			})
		}
	}
	a.verdicts = merged(a.verdicts, left...)
	return a.verdicts
}

// culprit returns the verdict on the contract that was being judged when a run
// was ended: the one that the run presumed for this case, or that there is none.
func (a *judge) culprit(res result) state.Contract {
	run := res.run
	reason, end := state.SkipTimeout, "the process that judged it was killed"
	if run.Outcome == state.OutcomeCrashed {
		reason, end = state.SkipCrashed, "the process that judged it crashed"
		if run.Verb != "" {
			end += " in " + run.Verb
		}
	}
	end += ": " + run.Error
	if p := run.Provisional; p != nil && (p.Proven || res.died) {
		c := p.Contract
		c.Observed += "; " + end
		return c
	}
	c := state.Contract{
		Name: run.InProgress, Severity: state.SeverityWarning, Verdict: state.VerdictSkipped,
		Reason: reason, Observed: end,
	}
	for _, known := range a.verdicts {
		if known.Name == c.Name {
			c.Severity = known.Severity
		}
	}
	for _, p := range a.planned {
		if p.Name == c.Name {
			c.Severity = p.Severity
		}
	}
	return c
}

// merged returns a copy of verdicts with each of the others in the place of the
// one on the same contract, or at the end if there is none.
func merged(verdicts []state.Contract, others ...state.Contract) []state.Contract {
	verdicts = slices.Clone(verdicts)
	place := make(map[string]int, len(verdicts))
	for i, c := range verdicts {
		place[c.Name] = i
	}
	for _, c := range others {
		i, ok := place[c.Name]
		switch {
		case ok:
			verdicts[i] = c
		case len(verdicts) < maxVerdicts:
			place[c.Name] = len(verdicts)
			verdicts = append(verdicts, c)
		}
	}
	return verdicts
}
