package supervisor

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/state"
)

// maxClasses limits the kinds of failure that a journal remembers.
const maxClasses = 16

// journal logs the changes of one device. It repeats what stays only for debugging.
type journal struct {
	log *slog.Logger
	// outcome is that of the last run of the probes; empty before the first.
	outcome state.Outcome
	// classes are the kinds of failure since the last run that was ok.
	classes classes
	// reduced is true if the last probe run was.
	reduced bool
	// notes are the skips and clamps of the last whole run.
	notes string
	// contractClasses are the kinds of failure since the last contract run without one.
	contractClasses classes
	// verdicts are those that were logged; nil before the first.
	verdicts []state.Contract
	// left are the leaked objects that were logged.
	left string
}

// run logs a finished run of the probes.
func (j *journal) run(run *state.Run, stderr string) {
	if run.Outcome == state.OutcomeOK {
		attrs := runAttrs(run)
		switch j.outcome {
		case state.OutcomeOK:
			j.log.Debug("Device probed", attrs...)
		case "":
			j.log.Info("Device probed for the first time", attrs...)
		default:
			j.log.Info("Device can be probed again", attrs...)
		}
		j.classes = nil
	} else {
		j.failed(run, stderr, &j.classes, "Run on device failed")
	}
	j.outcome = run.Outcome
	j.logReduced(run)
	j.note(run)
}

// logReduced logs that runs have begun, or ceased, to be reduced.
func (j *journal) logReduced(run *state.Run) {
	switch {
	case run.Reduced != nil && !j.reduced:
		j.log.Info("Device left alone", "reason", run.Reduced.Reason, "detail", oneLine(run.Reduced.Detail, maxError))
	case run.Reduced == nil && j.reduced:
		j.log.Info("Device is probed in full again")
	}
	j.reduced = run.Reduced != nil
}

// contractRun logs a finished contract run, without its verdicts.
func (j *journal) contractRun(run *state.Run, stderr string) {
	if run.Outcome == state.OutcomeOK {
		j.log.Debug("Contracts of device judged", runAttrs(run)...)
		return
	}
	j.failed(run, stderr, &j.contractClasses, "Contract run on device failed")
}

// contractEnd logs the end of a contract run.
func (j *journal) contractEnd(a *judge) {
	switch {
	case !a.failed && len(j.contractClasses) > 0:
		j.log.Info("Contracts of device can be judged completely again")
		j.contractClasses = nil
	case a.abandoned && !j.contractClasses.known("abandoned"):
		j.log.Warn("Contract run given up: too many of its processes were killed or crashed", "processes", maxContinuations+1)
	}
	j.judged(a.verdicts)
}

// judged logs the verdicts that changed.
func (j *journal) judged(verdicts []state.Contract) {
	if len(verdicts) == 0 {
		return
	}
	if len(j.verdicts) == 0 {
		j.sumUp(verdicts)
	}
	for _, c := range verdicts {
		var before state.Contract
		for _, b := range j.verdicts {
			if b.Name == c.Name {
				before = b
			}
		}
		if before.Verdict != c.Verdict || before.Reason != c.Reason || c.Verdict == state.VerdictViolated && before.Known != c.Known {
			j.verdict(c, before)
		}
	}
	j.verdicts = verdicts
}

// sumUp logs the verdicts of the first contract run.
func (j *journal) sumUp(verdicts []state.Contract) {
	count := make(map[state.Verdict]int)
	var violated, known []string
	for _, c := range verdicts {
		count[c.Verdict]++
		switch {
		case c.Verdict != state.VerdictViolated:
		case c.Known:
			known = append(known, c.Name)
		default:
			violated = append(violated, c.Name)
		}
	}
	attrs := []any{
		"hold", count[state.VerdictHolds], "violated", count[state.VerdictViolated],
		"skipped", count[state.VerdictSkipped],
	}
	if len(violated) > 0 {
		attrs = append(attrs, "violations", strings.Join(violated, ", "))
	}
	if len(known) > 0 {
		attrs = append(attrs, "known", strings.Join(known, ", "))
	}
	j.log.Info("Contracts of device judged for the first time", attrs...)
}

// verdict logs a verdict that changed. After the summary of the first contract run, it logs
// only violations.
func (j *journal) verdict(c, before state.Contract) {
	attrs := []any{"contract", c.Name}
	if before.Verdict != "" {
		attrs = append(attrs, "before", before.Verdict)
	}
	observed := oneLine(c.Observed, maxError)
	switch {
	case c.Verdict == state.VerdictViolated && c.Known:
		j.log.Info("Device violates a contract, as its driver is known to", append(attrs,
			"fact", oneLine(c.Fact, maxError), "read_in", oneLine(c.Source, maxError), "observed", observed)...)
	case c.Verdict == state.VerdictViolated:
		j.log.Warn("Device violates a contract", append(attrs,
			"severity", c.Severity, "asked", oneLine(c.Asked, maxError),
			"expected", oneLine(c.Expected, maxError), "observed", observed)...)
	case len(j.verdicts) == 0:
	case c.Verdict == state.VerdictSkipped:
		j.log.Info("A contract of the device cannot be judged", append(attrs, "reason", c.Reason, "observed", observed)...)
	default:
		j.log.Info("Device keeps a contract again", append(attrs, "observed", observed)...)
	}
}

// failed logs a run that was not ok. It warns about a kind of failure once.
func (j *journal) failed(run *state.Run, stderr string, known *classes, message string) {
	attrs := append(runAttrs(run), "error", run.Error)
	if run.InProgress != "" {
		attrs = append(attrs, "contract", run.InProgress)
	}
	if run.Verb != "" {
		attrs = append(attrs, "verb", run.Verb)
	}
	if run.Outcome == state.OutcomeCrashed && stderr != "" {
		attrs = append(attrs, "stderr", stderr)
	}
	if known.known(classOf(run)) {
		j.log.Debug(message+" again", attrs...)
	} else {
		j.log.Warn(message, attrs...)
	}
}

func runAttrs(run *state.Run) []any {
	return []any{"outcome", run.Outcome, "duration", run.Duration.Round(time.Millisecond)}
}

// classes are kinds of failure, the oldest first. Several are kept, so that a device that
// alternates between two is not logged each time.
type classes []string

// known reports whether a kind of failure is among them, and adds it.
func (c *classes) known(class string) bool {
	if slices.Contains(*c, class) {
		return true
	}
	if len(*c) == maxClasses {
		*c = (*c)[1:]
	}
	*c = append(*c, class)
	return false
}

// classOf returns what distinguishes the kinds of failure. Texts of errors do not: another
// process id or address is no other failure.
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

// note logs a change of what could not be probed as configured. A run without a finished
// probe shows nothing about it.
func (j *journal) note(run *state.Run) {
	if run.Depth != state.DepthFull || !run.Finished() {
		return
	}
	var skips, clamps []string
	for _, p := range run.Probes {
		for _, s := range p.Skips {
			text := p.Name
			if subject := s.Subject.String(); subject != "" {
				text += ": " + subject
			}
			text += ": " + string(s.Reason)
			if s.Detail != "" {
				text += " (" + s.Detail + ")"
			}
			skips = append(skips, text)
		}
		for _, c := range p.Clamps {
			clamps = append(clamps, fmt.Sprintf("%s: %s %s %s: %d instead of %d (%s)",
				p.Name, c.Subject.Kind(), c.Subject.Profile, c.Attribute, c.Used, c.Configured, c.Limit))
		}
	}
	s, c := oneLine(strings.Join(skips, "; "), maxTail), oneLine(strings.Join(clamps, "; "), maxTail)
	notes := s + "\x00" + c
	if notes == j.notes || j.notes == "" && s == "" && c == "" {
		return
	}
	j.notes = notes
	if s == "" && c == "" {
		j.log.Info("Device is probed as configured again")
		return
	}
	j.log.Info("Device is not probed as configured", "skipped", s, "cut_down", c)
}

// inventoried logs a finished inventory.
func (j *journal) inventoried(run *state.Run, stderr string) {
	if run.Outcome != state.OutcomeOK {
		j.failed(run, stderr, &j.classes, "Inventory of device failed")
		return
	}
	if len(j.classes) > 0 {
		j.log.Info("Device can be inventoried again")
		j.classes = nil
	}
	j.log.Debug("Device inventoried", runAttrs(run)...)
}

// hardware logs a finished reading of the hardware.
func (j *journal) hardware(run *state.Run, stderr string) {
	if run.Outcome != state.OutcomeOK {
		j.failed(run, stderr, &j.classes, "Hardware of device could not be read")
		return
	}
	if len(j.classes) > 0 {
		j.log.Info("Hardware of device can be read again")
		j.classes = nil
	}
}

// leaked logs a change of the objects that ended children left.
func (j *journal) leaked(left []state.Leaked) {
	var parts []string
	for _, l := range left {
		parts = append(parts, fmt.Sprintf("%d %s", l.Objects, l.Type))
	}
	text := strings.Join(parts, ", ")
	if text == j.left {
		return
	}
	j.left = text
	if text == "" {
		j.log.Info("Objects of ended children are gone")
		return
	}
	j.log.Warn("The kernel still holds objects of ended children", "objects", text)
}

// changed logs how a device has changed.
func (j *journal) changed(changes []string) {
	j.log.Info("Device or its software changed; everything about it is probed anew", "changes", strings.Join(changes, "; "))
}

func (j *journal) stuck(s *state.Stuck) {
	j.log.Warn("A killed child does not end; its work on the device waits until it does", "pid", s.PID, "verb", s.Verb)
}

func (j *journal) unstuck(s *state.Stuck) {
	j.log.Info("The killed child has ended", "pid", s.PID, "verb", s.Verb, "after", time.Since(s.Since).Round(time.Millisecond))
}

func (s *Supervisor) logAppeared(name string) {
	s.cfg.Logger.Info("Device found", "device", name)
}

func (s *Supervisor) logVanished(name string) {
	s.cfg.Logger.Info("Device vanished", "device", name)
}

func (s *Supervisor) logRejected(names []string) {
	if len(names) == 0 {
		s.cfg.Logger.Info("All devices have usable names again")
		return
	}
	s.cfg.Logger.Warn("Devices with unusable names are not probed", "names", names)
}

// discoveryFailed records and logs why the devices could not be listed. Caller holds mu.
func (s *Supervisor) discoveryFailed(text string) {
	if text != s.discoveryError {
		s.cfg.Logger.Warn("Cannot list the devices; the known ones are kept", "error", text)
	}
	s.discoveryError = text
}

// discoveryWorks records that devices can be listed. Caller holds mu.
func (s *Supervisor) discoveryWorks() {
	if s.discoveryError != "" {
		s.cfg.Logger.Info("Devices can be listed again")
	}
	s.discoveryError = ""
}
