package supervisor

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/child"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// maxClasses limits the kinds of failure that a changeLogger remembers. Several are kept, so
// that a device that alternates between two is not logged each time.
const maxClasses = 16

// changeLogger logs what changes with the runs of one kind on one device. It logs repetitions
// for debugging only.
type changeLogger struct {
	log *slog.Logger
	// classes are the kinds of failure since the last run that was ok, the oldest first.
	classes []string
	// probedOnce is true after the first probe run that was ok or has failed.
	probedOnce bool
	// reduced is true if the last probe run was.
	reduced bool
	// notes are the skips and clamps of the last full run.
	notes string
	// verdicts are those that were logged. Nil before the first.
	verdicts []state.Contract
	// leaks are the leaked objects that were logged.
	leaks string
}

// isKnown reports whether a kind of failure was logged since the last run that was ok, and
// adds it.
func (l *changeLogger) isKnown(class string) bool {
	if slices.Contains(l.classes, class) {
		return true
	}
	l.classes = append(l.classes[max(0, len(l.classes)-maxClasses+1):], class)
	return false
}

func (l *changeLogger) run(run *state.Run, stderr, failed, again, done string) {
	attrs := []any{"outcome", run.Outcome, "duration", run.Duration.Round(time.Millisecond)}
	switch {
	case run.Outcome != state.OutcomeOK:
		l.failed(run, stderr, failed, attrs)
		return
	case len(l.classes) > 0:
		l.log.Info(again, attrs...)
	default:
		l.log.Debug(done, attrs...)
	}
	l.classes = nil
}

// failed logs a run that was not ok. It warns about a kind of failure once.
func (l *changeLogger) failed(run *state.Run, stderr, message string, attrs []any) {
	attrs = append(attrs, "error", run.Error)
	if run.InProgress != "" {
		attrs = append(attrs, "contract", run.InProgress)
	}
	if run.Verb != "" {
		attrs = append(attrs, "verb", run.Verb)
	}
	if run.Outcome == state.OutcomeCrashed && stderr != "" {
		attrs = append(attrs, "stderr", stderr)
	}
	if l.isKnown(classOf(run)) {
		l.log.Debug(message+" again", attrs...)
	} else {
		l.log.Warn(message, attrs...)
	}
}

// classOf returns what distinguishes the kinds of failure. Texts of errors do not, since they
// may contain process ids and addresses.
func classOf(run *state.Run) string {
	parts := []string{string(run.Outcome), run.InProgress, run.Verb, run.FailedVerb, run.Errno}
	for _, p := range run.Probes {
		for _, f := range p.Failures {
			parts = append(parts, p.Name, f.Verb, f.Errno)
		}
	}
	for _, u := range run.Undestroyed {
		parts = append(parts, u.Type, u.Errno)
	}
	return strings.Join(parts, "\x00")
}

func (l *changeLogger) probed(run *state.Run, stderr string) {
	if !l.probedOnce && run.Outcome == state.OutcomeOK {
		l.log.Info("Device probed for the first time", "outcome", run.Outcome, "duration", run.Duration.Round(time.Millisecond))
	} else {
		l.run(run, stderr, "Run on device failed", "Device can be probed again", "Device probed")
	}
	l.probedOnce = true
	switch {
	case run.Reduced != nil && !l.reduced:
		l.log.Info("Device left alone", "reason", run.Reduced.Reason, "detail", text.OneLine(run.Reduced.Detail, maxError))
	case run.Reduced == nil && l.reduced:
		l.log.Info("Device is probed in full again")
	}
	l.reduced = run.Reduced != nil
	// Without a finished probe nothing is known about skips.
	if run.Depth == state.DepthFull && run.Finished() {
		l.note(run)
	}
}

// note logs a change of what a full run could not do as configured.
func (l *changeLogger) note(run *state.Run) {
	var skips, clamps []string
	for _, p := range run.Probes {
		for _, s := range p.Skips {
			skips = append(skips, text.JoinWords(": ", p.Name, s.Subject.String(), string(s.Reason), s.Detail))
		}
		for _, c := range p.Clamps {
			clamps = append(clamps, fmt.Sprintf("%s: %s %s %s: %d instead of %d (%s)",
				p.Name, c.Subject.Kind(), c.Subject.Profile, c.Attribute, c.Used, c.Configured, c.Limit))
		}
	}
	skipped, clamped := text.OneLine(strings.Join(skips, "; "), child.MaxTail), text.OneLine(strings.Join(clamps, "; "), child.MaxTail)
	notes := skipped + clamped
	switch notes {
	case l.notes:
	case "":
		l.log.Info("Device is probed as configured again")
	default:
		l.log.Info("Device is not probed as configured", "skipped", skipped, "cut_down", clamped)
	}
	l.notes = notes
}

// contracts logs the run of a child of a contract run, and the verdicts at the end of it.
func (l *changeLogger) contracts(c *contractRunner, res result, abandoned bool) {
	if run := res.run; run.Outcome != state.OutcomeOK || !c.failed {
		l.run(run, res.stderr, "Contract run on device failed", "Contracts of device can be checked completely again", "Contracts of device checked")
	}
	if c.goesOn() {
		return
	}
	if abandoned && !l.isKnown("abandoned") {
		l.log.Warn("Contract run given up: too many of its processes were killed or crashed", "processes", maxContinuations+1)
	}
	if len(c.verdicts) == 0 {
		return
	}
	if len(l.verdicts) == 0 {
		l.sumUp(c.verdicts)
	}
	for _, v := range c.verdicts {
		var before state.Contract
		if i := slices.IndexFunc(l.verdicts, func(b state.Contract) bool { return b.Name == v.Name }); i >= 0 {
			before = l.verdicts[i]
		}
		if before.Verdict != v.Verdict || before.Reason != v.Reason || v.Verdict == state.VerdictViolated && before.Known != v.Known {
			l.verdict(v, before)
		}
	}
	l.verdicts = c.verdicts
}

// sumUp logs the verdicts of the first contract run.
func (l *changeLogger) sumUp(verdicts []state.Contract) {
	count, known := make(map[state.Verdict]int), 0
	for _, v := range verdicts {
		count[v.Verdict]++
		if v.Verdict == state.VerdictViolated && v.Known {
			known++
		}
	}
	l.log.Info("Contracts of device checked for the first time", "hold", count[state.VerdictHolds],
		"violated", count[state.VerdictViolated], "known", known, "skipped", count[state.VerdictSkipped])
}

// verdict logs a verdict that changed. After the summary of the first contract run, it logs
// only violations.
func (l *changeLogger) verdict(v, before state.Contract) {
	attrs := []any{"contract", v.Name}
	if before.Verdict != "" {
		attrs = append(attrs, "before", before.Verdict)
	}
	observed := text.OneLine(v.Observed, maxError)
	switch {
	case v.Verdict == state.VerdictViolated && v.Known:
		l.log.Info("Device violates a contract, as its driver is known to", append(attrs,
			"fact", text.OneLine(v.Fact, maxError), "read_in", text.OneLine(v.Source, maxError), "observed", observed)...)
	case v.Verdict == state.VerdictViolated:
		l.log.Warn("Device violates a contract", append(attrs, "severity", v.Severity,
			"asked", text.OneLine(v.Asked, maxError), "expected", text.OneLine(v.Expected, maxError), "observed", observed)...)
	case len(l.verdicts) == 0:
	case v.Verdict == state.VerdictSkipped:
		l.log.Info("A contract of the device cannot be checked", append(attrs, "reason", v.Reason, "observed", observed)...)
	default:
		l.log.Info("Device keeps a contract again", append(attrs, "observed", observed)...)
	}
}

func (l *changeLogger) leaked(leaks []state.Leaked) {
	var parts []string
	for _, leak := range leaks {
		parts = append(parts, fmt.Sprintf("%d %s", leak.Objects, leak.Type))
	}
	text := strings.Join(parts, ", ")
	switch text {
	case l.leaks:
	case "":
		l.log.Info("Objects of ended children are gone")
	default:
		l.log.Warn("The kernel still holds objects of ended children", "objects", text)
	}
	l.leaks = text
}
