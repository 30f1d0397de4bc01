package supervisor

import (
	"slices"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
	"rdma_exporter/internal/wire"
)

const (
	// maxContinuations limits the further children of one contract run, after some that were
	// killed or crashed. Each can take the whole timeout.
	maxContinuations = 4
	// maxVerdicts limits the verdicts that are kept of a device, whatever names its children
	// report.
	maxVerdicts = 256
)

// contractRunner drives the children of the contract runs on one device. Usually a run takes
// one. A child that is killed or crashes costs the run the verdict on the contract that it was
// checking. Another child checks the rest. The worker's goroutine uses it.
type contractRunner struct {
	job
	log changeLogger
	// planned are the contracts that the last run set out to check, and done those that it has
	// checked.
	planned []state.Planned
	done    []string
	// withoutCompletions is true if the last run leaves completions out.
	withoutCompletions bool
	// children counts those of the current run. Zero means no run.
	children int
	// failed is true if a child of the last run did not end well.
	failed bool
	// undestroyed and events are those of all children of the last run.
	undestroyed []state.Undestroyed
	events      []state.Events
	// partial is the run of a child for which there was no more time.
	partial *state.Run
	// verdicts are the latest ones on each contract. They are shared, so a change makes a new
	// slice.
	verdicts []state.Contract
}

// goesOn reports whether the contract run needs another child.
func (c *contractRunner) goesOn() bool { return c.children > 0 }

func (c *contractRunner) request() wire.Request {
	if !c.goesOn() {
		return wire.Request{}
	}
	return wire.Request{Done: slices.Clone(c.done), WithoutCompletions: c.withoutCompletions}
}

// take adds a child's run to the contract run. If the child did not end well, it adds the
// verdict on the contract that it was checking to both. A child that has not exited cannot be
// followed by another.
func (c *contractRunner) take(res result) {
	run := res.run
	if !c.goesOn() {
		c.began, c.planned, c.done, c.withoutCompletions = run.Started, nil, nil, false
		c.hung, c.failed, c.undestroyed, c.events = false, false, nil, nil
	}
	c.children++
	c.hung = c.hung || run.Outcome == state.OutcomeTimeout
	c.failed = c.failed || run.Outcome != state.OutcomeOK
	c.undestroyed = slices.Concat(c.undestroyed, run.Undestroyed)
	c.events = state.AddEvents(c.events, run.Events...)
	if c.planned == nil {
		c.planned = run.Planned
	}

	broken := run.Outcome == state.OutcomeTimeout || run.Outcome == state.OutcomeCrashed
	if broken && run.InProgress != "" {
		run.Contracts = merged(run.Contracts, c.culprit(res))
	}
	// Before the first contract, a child tries which completions the device gives.
	if broken && run.InProgress == "" && len(run.Planned) > 0 && len(run.Contracts) == 0 {
		c.withoutCompletions = true
	}
	c.add(run)
	goesOn := broken && (run.InProgress != "" || c.withoutCompletions)
	abandoned := goesOn && c.children > maxContinuations
	if !goesOn || res.left != nil || abandoned {
		c.end(run)
	}
	c.log.contracts(c, res, abandoned)
}

func (c *contractRunner) add(run *state.Run) {
	latest := slices.Clone(run.Contracts)
	for i := range latest {
		latest[i].CheckedAt = run.Started
		if name := latest[i].Name; !slices.Contains(c.done, name) {
			c.done = append(c.done, name)
		}
	}
	c.verdicts = merged(c.verdicts, latest...)
}

func (c *contractRunner) end(run *state.Run) {
	c.children = 0
	switch {
	case run.Outcome == state.OutcomeOK:
		// Contracts that are no longer checked are dropped.
		c.verdicts = slices.DeleteFunc(slices.Clone(c.verdicts), func(v state.Contract) bool {
			return !slices.Contains(c.done, v.Name)
		})
	case c.hung:
		c.skipRest(run, state.SkipTimeout, "the contract run did not reach it: "+run.Error)
	default:
		c.skipRest(run, state.SkipCrashed, "the contract run did not reach it: "+run.Error)
	}
}

// cutShort ends a contract run for which there is no more time.
func (c *contractRunner) cutShort() {
	run := c.partial
	if run == nil {
		run = new(state.Run)
	}
	if !c.goesOn() {
		c.planned = run.Planned
	}
	c.children = 0
	c.add(run)
	c.skipRest(run, state.SkipBudget, "out of time")
}

// skipRest adds a verdict on each planned contract without one.
func (c *contractRunner) skipRest(run *state.Run, reason state.SkipReason, observed string) {
	var rest []state.Contract
	for _, p := range c.planned {
		if !slices.ContainsFunc(c.verdicts, func(v state.Contract) bool { return v.Name == p.Name }) {
			rest = append(rest, state.Contract{
				Name: p.Name, Severity: p.Severity, Verdict: state.VerdictSkipped, Reason: reason,
				CheckedAt: run.Started, Observed: observed,
			})
		}
	}
	c.verdicts = merged(c.verdicts, rest...)
}

// culprit returns the verdict on the contract that a child was checking when it was killed or
// crashed. That is the one that it presumed for this case, or a skip.
func (c *contractRunner) culprit(res result) state.Contract {
	run := res.run
	reason, end := state.SkipTimeout, "the process that checked it was killed"
	if run.Outcome == state.OutcomeCrashed {
		reason, end = state.SkipCrashed, "the process that checked it crashed"+text.Around(" in ", run.Verb, "")
	}
	end += ": " + run.Error
	if p := run.Provisional; p != nil && (p.Proven || res.died) {
		v := p.Contract
		v.Observed += "; " + end
		return v
	}
	v := state.Contract{
		Name: run.InProgress, Severity: state.SeverityWarning, Verdict: state.VerdictSkipped, Reason: reason, Observed: end,
	}
	for _, known := range c.verdicts {
		if known.Name == v.Name {
			v.Severity = known.Severity
		}
	}
	for _, p := range c.planned {
		if p.Name == v.Name {
			v.Severity = p.Severity
		}
	}
	return v
}

// merged returns a copy of verdicts in which the others replace those on the same contract, or
// are added at the end.
func merged(verdicts []state.Contract, others ...state.Contract) []state.Contract {
	verdicts = slices.Clone(verdicts)
	for _, v := range others {
		i := slices.IndexFunc(verdicts, func(c state.Contract) bool { return c.Name == v.Name })
		switch {
		case i >= 0:
			verdicts[i] = v
		case len(verdicts) < maxVerdicts:
			verdicts = append(verdicts, v)
		}
	}
	return verdicts
}
