package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// aborted adds findings for children that did not complete their run. A child that has not exited at all is reported
// by stuck.
func (a *assessor) aborted() {
	if a.state.Stuck != nil {
		return
	}
	c, last := a.contract, a.contract.Last
	a.ended(a.last, "the probes", HarmOutage, rootDevice)
	if last != nil && !condemned(c) {
		a.ended(last, "the contract run", HarmFailure, rootContracts)
		// An unusable device is reported by the probes, and undestroyed objects by undestroyed.
		if last.Outcome == state.OutcomeFailed && !isUnusable(a.last) &&
			(len(last.Undestroyed) == 0 || last.FailedVerb != "" && !destroys(last.FailedVerb)) {
			a.add(observation{
				kind: FindingRunAborted, entry: string(state.OutcomeFailed), subject: "the contract run", run: true, root: rootContracts,
				reason: failing(last.FailedVerb, last.Errno), verb: last.FailedVerb, errno: last.Errno,
				message: fmt.Sprintf("The last contract run, started at %s, failed: %s.", text.Moment(last.Started), reason(last.Error)),
			})
		}
	}
	for _, v := range c.Verdicts {
		ended := map[state.SkipReason]state.Outcome{
			state.SkipTimeout: state.OutcomeTimeout, state.SkipCrashed: state.OutcomeCrashed,
		}[v.Reason]
		// ended has reported the last child already. After an earlier one, another child checked the rest.
		reported := last != nil && last.Outcome != state.OutcomeOK && !v.CheckedAt.Before(last.Started)
		if v.Verdict != state.VerdictSkipped || ended == "" || reported {
			continue
		}
		a.add(observation{
			kind: FindingRunAborted, entry: string(ended), harm: HarmFailure, subject: "the contract run, at " + text.Name(v.Name),
			run: true, root: rootContracts,
			message: fmt.Sprintf("The contract %s could not be checked at %s: %s.", text.Name(v.Name), text.Moment(v.CheckedAt), reason(v.Observed)),
		})
	}
}

func (a *assessor) ended(run *state.Run, whose string, harm Harm, root string) {
	how, ok := map[state.Outcome]string{
		state.OutcomeTimeout: "was killed at its deadline",
		state.OutcomeCrashed: "ended without a complete report",
	}[run.Outcome]
	if !ok {
		return
	}
	in := text.Around(", in ", text.Name(run.Verb), "")
	message := fmt.Sprintf("The last run of %s, started at %s, %s", whose, text.Moment(run.Started), how)
	if !strings.Contains(run.Error, run.Verb) {
		message += in
	}
	message += text.Around(", while it checked ", text.Name(run.InProgress), "") + text.Around(": ", prose(run.Error), "") + "."
	a.add(observation{
		kind: FindingRunAborted, entry: string(run.Outcome), harm: harm, subject: whose + in, message: message, run: true, root: root, verb: run.Verb,
	})
}

// condemned reports whether the last contract run ended in a contract that is reported as violated for that reason.
func condemned(c *state.Contracts) bool {
	return c.Last != nil && c.Last.InProgress != "" && slices.ContainsFunc(c.Verdicts, func(v state.Contract) bool {
		return v.Name == c.Last.InProgress && v.Verdict == state.VerdictViolated && v.CheckedAt.Equal(c.Last.Started)
	})
}

func (a *assessor) probes() {
	run := a.last
	reported := func(f state.Failure) bool { return len(run.Undestroyed) > 0 && destroys(f.Verb) }
	for _, p := range a.state.Probes() {
		a.probe(&p, slices.DeleteFunc(p.Failures(), func(f state.Failure) bool {
			return reported(f) || slices.ContainsFunc(p.Runs(), func(p *state.Probe) bool { return measured(p, &f) || registered(p, &f) })
		}))
		a.registrations(p.Runs()[0])
		a.emptyMessages(p.Runs()[0])
	}
	// A failure outside the probes, such as a port that cannot be queried, unless a probe failed in the same way.
	other := state.Failure{Verb: run.FailedVerb, Errno: run.Errno}
	alike := func(f state.Failure) bool { return f.Verb == other.Verb && f.Errno == other.Errno }
	if run.Info == nil || other.Verb == "" || reported(other) ||
		slices.ContainsFunc(run.Probes, func(p state.Probe) bool { return slices.ContainsFunc(p.Failures, alike) }) {
		return
	}
	a.add(observation{
		kind: FindingProbeFailed, entry: "other", harm: HarmFailure, subject: text.Name(other.Verb), run: true,
		reason: failing(other.Verb, other.Errno), verb: other.Verb, errno: other.Errno,
		message: fmt.Sprintf("Not all of the device could be probed: %s.", cmp.Or(prose(run.Error), prose(failureText(&other)))),
	})
}

func destroys(verb string) bool {
	prefixes := []string{"ibv_destroy_", "ibv_dealloc_", "ibv_dereg_", "ibv_close_"}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(verb, prefix) })
}

// measured reports whether a measurement of the probe counts a failure already.
func measured(p *state.Probe, f *state.Failure) bool {
	return f.Verb == "" && f.Errno == "" && slices.ContainsFunc(p.Latencies, func(l state.Latency) bool {
		return l.Wrong() && f.Subject.Object == string(l.Path) && f.Subject.Profile == string(l.Mode) &&
			f.Subject.Vector != nil && *f.Subject.Vector == l.Vector && (f.Subject.Port == 0 || f.Subject.Port == l.Port)
	})
}

func (a *assessor) probe(p *state.ProbeResult, failures []state.Failure) {
	if len(failures) == 0 {
		return
	}
	name, first := cmp.Or(text.Name(p.Name), "unknown"), &failures[0]
	gist, evidence := failureTexts(failures)
	o := observation{
		kind: FindingProbeFailed, entry: "other", harm: HarmFailure, subject: name, size: float64(len(failures)), run: true,
		message: fmt.Sprintf("The probe %s failed: %s.", name, gist), evidence: evidence, root: rootOf(first),
		reason: failing(first.Verb, first.Errno), verb: first.Verb, errno: first.Errno,
	}
	noRoom := func(f state.Failure) bool { return f.Errno == "ENOMEM" || f.Errno == "EAGAIN" }
	long := func(f state.Failure) bool { return f.Verb == "" || f.Errno != "" }
	if nothingMade(p.Runs()[0], failures) {
		o.harm = HarmOutage
	}
	switch limited := find(failures, func(f *state.Failure) bool { return f.Memlock != nil }); {
	case limited != nil:
		o.entry, o.harm, o.root, o.reason, o.verb, o.errno = "memlock", HarmFailure, rootMemlock, "", limited.Verb, limited.Errno
		o.message += memlockText(*limited.Memlock)
	case slices.ContainsFunc(failures, noRoom):
		o.entry = "no_room"
	case !slices.ContainsFunc(failures, long):
		o.entry = "less_than_asked"
	}
	a.add(o)
}

// failing returns the reason of a finding whose verb failed with an errno. Empty if either is not known.
func failing(verb, errno string) string {
	if verb == "" || errno == "" {
		return ""
	}
	return text.Name(verb) + " fails with " + text.Name(errno)
}

func rootOf(f *state.Failure) string {
	if f.Verb == "" {
		return ""
	}
	return text.Around(f.Verb+" ", f.Errno, "")
}

// failureTexts returns the failures with equal ones grouped, and each of them as evidence if that says more.
func failureTexts(failures []state.Failure) (gist, evidence string) {
	var texts, each []string
	subjects := make(map[string][]string)
	for i := range failures {
		f := &failures[i]
		each = append(each, failureText(f))
		subjects[rootOf(f)] = append(subjects[rootOf(f)], prose(f.Subject.String()))
	}
	for i := range failures {
		root := rootOf(&failures[i])
		switch alike := subjects[root]; {
		case root == "" || len(alike) == 1:
			texts = append(texts, each[i])
		case len(alike) > 1:
			texts = append(texts, fmt.Sprintf("%s, %d times (%s)", text.Name(root), len(alike), text.Join(alike, ", ", maxFew)))
			delete(subjects, root)
		}
	}
	gist = text.Join(texts, "; ", maxFew)
	if all := text.Join(each, "; ", maxPerKind); all != gist {
		evidence = all + "."
	}
	return gist, evidence
}

// nothingMade reports whether the device created no completion queue, or no queue pair, at all.
func nothingMade(p *state.Probe, failures []state.Failure) bool {
	made := map[string]int{"cq": len(p.CQs), "qp": len(p.QPs)}
	n, needed := made[p.Name]
	return needed && n == 0 && !slices.ContainsFunc(failures, func(f state.Failure) bool {
		return f.Errno == "" || !strings.HasPrefix(f.Verb, "ibv_create_")
	})
}

func (a *assessor) emptyMessages(p *state.Probe) {
	s := find(p.Skips, func(s *state.Skip) bool { return s.Subject.Object == "message" && s.Reason == state.SkipNotPermitted })
	if s == nil {
		return
	}
	message, root := fmt.Sprintf("No memory could be registered: %s.", reason(s.Detail)), a.rootOfPage()
	if s.Memlock != nil {
		root = rootMemlock
		message += memlockText(*s.Memlock)
	}
	a.add(observation{
		kind: FindingProbeFailed, entry: "empty_messages", severity: SeverityWarning,
		subject: cmp.Or(text.Name(p.Name), "unknown") + " message", message: message, run: true, root: root,
	})
}

func memlockText(limit int64) string {
	return fmt.Sprintf(" The exporter's processes may lock %s (RLIMIT_MEMLOCK).", text.Bytes(max(limit, 0)))
}

// The message usually names the verb and the errno.
func failureText(f *state.Failure) string {
	parts := []string{prose(f.Subject.String())}
	for _, w := range []string{f.Verb, f.Errno} {
		if !strings.Contains(f.Message, w) {
			parts = append(parts, text.Name(w))
		}
	}
	return cmp.Or(text.JoinWords(": ", append(parts, prose(f.Message))...), "no reason given")
}

func (a *assessor) unexplained() {
	run := a.last
	// Empty messages make no run fail.
	explains := func(f found) bool {
		return f.Kind == FindingProbeFailed && f.Severity == SeverityCritical || f.Kind == FindingMemlockRefused
	}
	if run.Outcome != state.OutcomeFailed || a.wrongNow || isUnusable(run) || slices.ContainsFunc(a.found, explains) ||
		len(run.Undestroyed) > 0 && (run.FailedVerb == "" || destroys(run.FailedVerb)) {
		return
	}
	a.add(observation{
		kind: FindingProbeFailed, entry: "other", harm: HarmFailure, subject: "the probes", run: true,
		message: fmt.Sprintf("The last probe run failed: %s.", reason(run.Error)),
	})
}

func (a *assessor) registrations(p *state.Probe) {
	for _, by := range state.AllRefusedBy() {
		var kinds []string
		var first *state.Registration
		for i := range p.Registrations {
			if r := &p.Registrations[i]; r.Result == state.MemoryRefused && refuser(r) == by {
				kinds = append(kinds, text.Name(string(r.Memory)))
				first = cmp.Or(first, r)
			}
		}
		if first == nil {
			continue
		}
		o := observation{
			kind: FindingProbeFailed, entry: "registration_" + string(by),
			subject: "memory", run: true, root: rootOfMemory(first), verb: "ibv_reg_mr", errno: first.Errno,
			message: fmt.Sprintf("Memory could not be registered (%s): %s.", text.Join(kinds, ", ", maxFew), reason(first.Detail)),
		}
		if by == state.RefusedByMemlock {
			o.kind, o.entry, o.message = FindingMemlockRefused, "", o.message+" The limit is that of the exporter's processes."
		}
		a.add(o)
	}
}

func rootOfMemory(r *state.Registration) string {
	if refuser(r) == state.RefusedByMemlock {
		return rootMemlock
	}
	return rootOf(&state.Failure{Verb: "ibv_reg_mr", Errno: r.Errno})
}

func (a *assessor) rootOfPage() string {
	for _, p := range a.last.Probes {
		for _, r := range p.Registrations {
			if r.Memory == state.MemoryPage && r.Result == state.MemoryRefused {
				return rootOfMemory(&r)
			}
		}
	}
	return ""
}

// refuser returns what refused memory. An unknown cause counts as the device.
func refuser(r *state.Registration) state.RefusedBy {
	if slices.Contains(state.AllRefusedBy(), r.By) {
		return r.By
	}
	return state.RefusedByDevice
}

func registered(p *state.Probe, f *state.Failure) bool {
	return f.Errno != "" && slices.ContainsFunc(p.Registrations, func(r state.Registration) bool {
		return r.Result == state.MemoryRefused && string(r.Memory) == f.Subject.Object && r.Errno == f.Errno
	})
}

// notification adds one finding for each failure mode of events and completions. A vector that failed in the last full
// run counts as failing until a full run has measured it again.
func (a *assessor) notification() {
	type measurement struct {
		state.Latency
		run *state.Run
	}
	var measurements []measurement
	for _, run := range slices.Compact([]*state.Run{a.last, cmp.Or(a.state.Full, a.last)}) {
		for _, p := range run.Probes {
			for _, l := range p.Latencies {
				measurements = append(measurements, measurement{l, run})
			}
		}
	}
	for _, w := range []struct {
		entry, subject, thing, mode string
		count                       func(*state.Latency) int
	}{
		{"missed", "missed events", "completion", "whose event missed the deadline", func(l *state.Latency) int { return l.Missed }},
		{"misdirected", "misdirected events", "event", "on a wrong channel or for a wrong queue", func(l *state.Latency) int { return l.Misdirected }},
		{"missing", "missing completions", "completion", "that missed the deadline", func(l *state.Latency) int { return l.Missing }},
		{"spurious", "spurious events", "event", "without a completion", func(l *state.Latency) int { return l.Spurious }},
		{"unsuccessful", "unsuccessful completions", "completion", "with a wrong status", func(l *state.Latency) int { return len(l.Unsuccessful) }},
	} {
		var all int64
		var where []string
		for _, m := range measurements {
			n, now := w.count(&m.Latency), m.run == a.last
			if n <= 0 {
				continue
			}
			all = state.Sum(all, int64(n))
			a.wrongNow = a.wrongNow || now
			line := fmt.Sprintf("%s %s on port %d, vector %d: %d", text.Name(string(m.Path)), text.Name(string(m.Mode)), m.Port, m.Vector, n)
			if w.entry == "unsuccessful" {
				line += " (" + prose(text.Join(slices.Compact(slices.Sorted(slices.Values(m.Unsuccessful))), ", ", maxFew)) + ")"
			}
			line += fmt.Sprintf(", while %s succeeded", text.Plural(m.Count, "sample"))
			if !now {
				line += ", last measured at " + text.Moment(m.run.Started)
			}
			where = append(where, line)
		}
		if all == 0 {
			continue
		}
		a.add(observation{
			kind: FindingNotification, entry: w.entry, subject: w.subject, size: float64(all), run: true,
			message: text.Plural(all, w.thing) + " " + w.mode + ". Where: " + text.Join(where, "; ", maxFew) + ".",
		})
	}
}

func (a *assessor) slowVectors() {
	vectors := a.state.Vectors()
	slow := state.SlowVectors(vectors)
	var numbers, texts []string
	for _, v := range vectors {
		if !slices.Contains(slow, v.Vector) {
			continue
		}
		numbers = append(numbers, fmt.Sprint(v.Vector))
		line := fmt.Sprintf("vector %d takes %s in the median and %s at the 99th percentile", v.Vector, text.Duration(v.P50), text.Duration(v.P99))
		if len(texts) < maxFew {
			usual := state.UsualLatency(vectors, v.Path, v.Port)
			line += fmt.Sprintf(", against the usual %s (%s on port %d, measured at %s)", text.Duration(usual), text.Name(string(v.Path)), v.Port, text.Moment(a.state.Full.Started))
		}
		texts = append(texts, line)
	}
	if n := len(numbers); n > 0 {
		a.add(observation{
			kind: FindingSlowVector, size: float64(n),
			subject: text.Either(n, "vector ", "vectors ") + text.Join(numbers, ", ", maxFew),
			message: fmt.Sprintf("%d of %s measured are slow: %s.", n, text.Plural(len(vectors), "completion vector"), text.Join(texts, "; ", maxFew)),
		})
	}
}
