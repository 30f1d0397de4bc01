package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// aborted finds that the last run of the probes, or a process of the last contract
// inventory, did not come to its end. Of a child that has not ended at all, stuck tells.
func (a *assessor) aborted() {
	if a.state.Stuck != nil {
		return
	}
	a.ended()
	c := a.state.Contracts
	if c == nil {
		return
	}
	for i := range c.Verdicts {
		v := &c.Verdicts[i]
		ended := map[state.SkipReason]state.Outcome{
			state.SkipTimeout: state.OutcomeTimeout, state.SkipCrashed: state.OutcomeCrashed,
		}[v.Reason]
		// The last process has been told of, with what the inventory did not come to. After an
		// earlier one another process judged the rest.
		if v.Verdict != state.VerdictSkipped || ended == "" || c.Last != nil && c.Last.Outcome != state.OutcomeOK && !v.Judged.Before(c.Last.Started) {
			continue
		}
		a.add(observation{
			kind: FindingRunAborted, entry: string(ended), harm: HarmFailure, subject: "the contract run, at " + word(v.Name),
			run: true, root: rootContracts,
			message: fmt.Sprintf("The contract %s could not be judged at %s: %s.", word(v.Name), text.Moment(v.Judged), cmp.Or(prose(v.Observed), "no reason given")),
		})
	}
}

// ended finds how the last run of the probes, and that of the contract run, ended.
func (a *assessor) ended() {
	find := func(run *state.Run, whose string, harm Harm, root string) {
		ended := ""
		if run != nil {
			ended = map[state.Outcome]string{
				state.OutcomeTimeout: "was killed at its deadline",
				state.OutcomeCrashed: "ended without a complete report",
			}[run.Outcome]
		}
		if ended == "" {
			return
		}
		subject, message := whose, fmt.Sprintf("The last run of %s, started at %s, %s", whose, text.Moment(run.Started), ended)
		if run.Verb != "" {
			subject += ", in " + word(run.Verb)
			if !strings.Contains(run.Error, run.Verb) {
				message += ", in " + word(run.Verb)
			}
		}
		if run.Judging != "" {
			message += ", while it judged " + word(run.Judging)
		}
		if run.Error != "" {
			message += ": " + prose(run.Error)
		}
		a.add(observation{kind: FindingRunAborted, entry: string(run.Outcome), harm: harm, subject: subject, message: message + ".", run: true, root: root})
	}
	find(a.state.Last, "the probes", HarmOutage, rootDevice)
	c := a.state.Contracts
	if c == nil || c.Last == nil || condemned(c) {
		return
	}
	find(c.Last, "the contract run", HarmFailure, rootContracts)
	// Whoever cannot use the device is told so by the probes, and what is left behind is
	// told as undestroyed.
	if c.Last.Outcome == state.OutcomeFailed && !a.has(FindingUnusable) && (len(c.Last.Undestroyed) == 0 || c.Last.FailedVerb != "" && !destroys(c.Last.FailedVerb)) {
		a.add(observation{
			kind: FindingRunAborted, entry: string(state.OutcomeFailed), severity: SeverityWarning, subject: "the contract run", run: true, root: rootContracts,
			message: fmt.Sprintf("The last contract run, started at %s, failed: %s.", text.Moment(c.Last.Started), cmp.Or(prose(c.Last.Error), "no reason given")),
		})
	}
}

// has tells whether there is a finding of a kind already.
func (a *assessor) has(kind Kind) bool {
	return slices.ContainsFunc(a.found, func(f found) bool { return f.Kind == kind })
}

// condemned tells whether what ended the last contract run is told as the
// violation of the contract that was being judged.
func condemned(c *state.Contracts) bool {
	return c.Last != nil && c.Last.Judging != "" && slices.ContainsFunc(c.Verdicts, func(v state.Contract) bool {
		return v.Name == c.Last.Judging && v.Verdict == state.VerdictViolated && v.Judged.Equal(c.Last.Started)
	})
}

// probes finds the probes that failed, and why.
func (a *assessor) probes() {
	run := a.state.Last
	if run == nil {
		return
	}
	told := func(f *state.Failure) bool { return len(run.Undestroyed) > 0 && destroys(f.Verb) }
	for i := range run.Probes {
		p := &run.Probes[i]
		a.probe(p, slices.DeleteFunc(slices.Clone(p.Failures), func(f state.Failure) bool {
			return told(&f) || measured(p, &f) || registered(p, &f)
		}))
		a.registrations(p)
		a.emptyMessages(p)
	}
	// What kept the run as a whole from going well, such as a port that cannot be
	// asked, unless a probe has met with it, too.
	whole := state.Failure{Verb: run.FailedVerb, Errno: run.Errno}
	if run.Info == nil || whole.Verb == "" || told(&whole) {
		return
	}
	for i := range run.Probes {
		if slices.ContainsFunc(run.Probes[i].Failures, func(f state.Failure) bool { return f.Verb == whole.Verb && f.Errno == whole.Errno }) {
			return
		}
	}
	a.add(observation{
		kind: FindingProbeFailed, entry: caseOther, harm: HarmFailure, subject: word(whole.Verb), run: true,
		message: fmt.Sprintf("Not all of the device could be probed: %s.", cmp.Or(prose(run.Error), prose(failureText(&whole)))),
	})
}

// destroys tells whether a verb destroys an object.
func destroys(verb string) bool {
	return slices.ContainsFunc([]string{"ibv_destroy_", "ibv_dealloc_", "ibv_dereg_", "ibv_close_"}, func(prefix string) bool {
		return strings.HasPrefix(verb, prefix)
	})
}

// measured tells whether a failure says in words what a measurement of the probe
// counted.
func measured(p *state.Probe, f *state.Failure) bool {
	return f.Verb == "" && f.Errno == "" && slices.ContainsFunc(p.Latencies, func(l state.Latency) bool {
		return l.Wrong() && strings.HasPrefix(f.Subject, fmt.Sprintf("%s %s ", l.Path, l.Mode)) &&
			strings.HasSuffix(f.Subject, fmt.Sprintf(" vector %d", l.Vector))
	})
}

// probe finds that a probe failed, by its failures.
func (a *assessor) probe(p *state.Probe, failures []state.Failure) {
	if len(failures) == 0 {
		return
	}
	entry, short := "", true
	var limit *int64
	for i := range failures {
		f := &failures[i]
		short = short && f.Verb != "" && f.Errno == ""
		switch {
		case f.Memlock != nil:
			entry, limit = caseMemlock, f.Memlock
		case entry == "" && (f.Errno == "ENOMEM" || f.Errno == "EAGAIN"):
			entry = caseNoRoom
		}
	}
	root := rootOf(&failures[0])
	switch {
	case short:
		entry = caseShort
	case limit != nil:
		root = rootMemlock
	}
	harm := HarmFailure
	if entry != caseMemlock && nothingMade(p, failures) {
		harm = HarmOutage
	}
	name := cmp.Or(word(p.Name), "unknown")
	gist, evidence := failureTexts(failures)
	message := fmt.Sprintf("The probe %s failed: %s.", name, gist)
	if limit != nil {
		message += memlockText(*limit)
	}
	a.add(observation{
		kind: FindingProbeFailed, entry: cmp.Or(entry, caseOther), harm: harm, subject: name, message: message,
		size: float64(len(failures)), evidence: evidence, run: true, root: root,
	})
}

// rootOf returns what a failure shares with others of the same root; empty for nothing.
func rootOf(f *state.Failure) string {
	if f.Verb == "" || f.Errno == "" {
		return ""
	}
	return f.Verb + " " + f.Errno
}

// failureTexts returns what went wrong, what failed in the same way at once, and all of it
// if that says more.
func failureTexts(failures []state.Failure) (gist, evidence string) {
	var texts, each []string
	subjects := make(map[string][]string)
	for i := range failures {
		f := &failures[i]
		each = append(each, failureText(f))
		subjects[rootOf(f)] = append(subjects[rootOf(f)], prose(f.Subject))
	}
	for i := range failures {
		root := rootOf(&failures[i])
		switch alike := subjects[root]; {
		case root == "" || len(alike) == 1:
			texts = append(texts, each[i])
		case len(alike) > 1:
			texts = append(texts, fmt.Sprintf("%s, %d times (%s)", word(root), len(alike), text.Join(alike, ", ", maxFew)))
			delete(subjects, root)
		}
	}
	gist = text.Join(texts, "; ", maxFew)
	if all := text.Join(each, "; ", maxPerKind); all != gist {
		evidence = all + "."
	}
	return gist, evidence
}

// nothingMade tells that the device gave a probe none of what no program can do without:
// completion queues, or queue pairs.
func nothingMade(p *state.Probe, failures []state.Failure) bool {
	made := map[string]int{"cq": len(p.CQs), "qp": len(p.QPs)}
	n, needed := made[p.Name]
	return needed && n == 0 && !slices.ContainsFunc(failures, func(f state.Failure) bool {
		return f.Errno == "" || !strings.HasPrefix(f.Verb, "ibv_create_")
	})
}

// emptyMessages finds that no memory could be registered for messages.
func (a *assessor) emptyMessages(p *state.Probe) {
	for i := range p.Skips {
		s := &p.Skips[i]
		if s.Subject != "message" || s.Reason != state.SkipNotPermitted {
			continue
		}
		message, root := fmt.Sprintf("No memory could be registered: %s.", cmp.Or(prose(s.Detail), "no reason given")), a.rootOfPage()
		if s.Memlock != nil {
			root = rootMemlock
			message += memlockText(*s.Memlock)
		}
		a.add(observation{
			kind: FindingProbeFailed, entry: caseEmpty, severity: SeverityWarning,
			subject: cmp.Or(word(p.Name), "unknown") + " message", message: message, run: true, root: root,
		})
		return
	}
}

// memlockText says what the limit on locked memory is, as an addition to a message.
func memlockText(limit int64) string {
	return fmt.Sprintf(" The exporter's processes may lock %s (RLIMIT_MEMLOCK).", text.Bytes(max(limit, 0)))
}

// failureText returns one thing that went wrong in words. The message mostly names
// the verb and the errno.
func failureText(f *state.Failure) string {
	var parts []string
	if f.Subject != "" {
		parts = append(parts, prose(f.Subject))
	}
	for _, w := range []string{f.Verb, f.Errno} {
		if w != "" && !strings.Contains(f.Message, w) {
			parts = append(parts, word(w))
		}
	}
	if f.Message != "" {
		parts = append(parts, prose(f.Message))
	}
	return cmp.Or(strings.Join(parts, ": "), "no reason given")
}

// unexplained finds that the last run failed and nothing else says why, so that no
// failed run passes for a good one.
func (a *assessor) unexplained() {
	run := a.state.Last
	if run == nil || run.Outcome != state.OutcomeFailed || a.wrongNow {
		return
	}
	if len(run.Undestroyed) > 0 && (run.FailedVerb == "" || destroys(run.FailedVerb)) {
		return
	}
	if slices.ContainsFunc(a.found, func(f found) bool {
		switch f.Kind {
		case FindingUnusable:
			return true
		case FindingProbeFailed:
			return f.Severity == SeverityCritical // Empty messages make no run fail.
		default:
			return false
		}
	}) {
		return
	}
	a.add(observation{
		kind: FindingProbeFailed, entry: caseOther, harm: HarmFailure, subject: "the probes", run: true,
		message: fmt.Sprintf("The last run of the probes failed: %s.", cmp.Or(prose(run.Error), "no reason given")),
	})
}
