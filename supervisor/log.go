package supervisor

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"rdma_exporter/report"
)

// maxClasses is how many kinds of failure a journal remembers.
const maxClasses = 16

// journal logs what changes about one device. What stays as it is, it repeats
// for debugging only.
type journal struct {
	log *slog.Logger
	// outcome is that of the last run; empty before the first.
	outcome report.Outcome
	// classes are the kinds of failure since the last run that was ok: a device
	// that fails in two ways by turns is no news each time.
	classes []string
	// notes are the skips and clamps of the last whole run.
	notes string
}

// run logs a finished run.
func (j *journal) run(run *report.Run, stderr string) {
	attrs := []any{"outcome", run.Outcome, "duration", run.Duration.Round(time.Millisecond)}
	if run.Outcome == report.OutcomeOK {
		switch j.outcome {
		case report.OutcomeOK:
			j.log.Debug("The device was probed", attrs...)
		case "":
			j.log.Info("The device was probed for the first time", attrs...)
		default:
			j.log.Info("The device can be probed now", attrs...)
		}
		j.classes = nil
	} else {
		attrs = append(attrs, "error", run.Error)
		if run.Verb != "" {
			attrs = append(attrs, "verb", run.Verb)
		}
		if run.Outcome == report.OutcomeCrashed && stderr != "" {
			attrs = append(attrs, "stderr", stderr)
		}
		if j.known(run) {
			j.log.Debug("A run on the device failed again", attrs...)
		} else {
			j.log.Warn("A run on the device failed", attrs...)
		}
	}
	j.outcome = run.Outcome
	j.note(run)
}

// known tells whether the last runs included a failure like this one, and
// remembers it.
func (j *journal) known(run *report.Run) bool {
	class := classOf(run)
	for _, c := range j.classes {
		if c == class {
			return true
		}
	}
	if len(j.classes) == maxClasses {
		j.classes = j.classes[1:]
	}
	j.classes = append(j.classes, class)
	return false
}

// classOf tells failures apart, but for the numbers in their errors: a process
// id or an address makes no other failure.
func classOf(run *report.Run) string {
	return string(run.Outcome) + "\x00" + run.Verb + "\x00" + withoutNumbers(run.Error)
}

func withoutNumbers(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		digits := "0123456789"
		if strings.HasPrefix(s[i:], "0x") {
			digits = "x0123456789abcdefABCDEF"
		}
		n := len(s[i:]) - len(strings.TrimLeft(s[i:], digits))
		if n == 0 {
			b.WriteByte(s[i])
			i++
			continue
		}
		b.WriteByte('#')
		i += n
	}
	return b.String()
}

// note logs what could not be probed as configured, when that changes. The run
// of a child that did not come to its end, or to no probe, says nothing of it.
func (j *journal) note(run *report.Run) {
	failed := run.Outcome == report.OutcomeFailed && len(run.Probes) > 0
	if run.Outcome != report.OutcomeOK && !failed {
		return
	}
	var skips, clamps []string
	for _, p := range run.Probes {
		for _, s := range p.Skips {
			text := p.Name
			if s.Subject != "" {
				text += ": " + s.Subject
			}
			text += ": " + string(s.Reason)
			if s.Detail != "" {
				text += " (" + s.Detail + ")"
			}
			skips = append(skips, text)
		}
		for _, c := range p.Clamps {
			clamps = append(clamps, fmt.Sprintf("%s: %s %s %s: %d instead of %d (%s)",
				p.Name, c.Subject, c.Profile, c.Attribute, c.Used, c.Configured, c.Limit))
		}
	}
	s, c := oneLine(strings.Join(skips, "; "), maxTail), oneLine(strings.Join(clamps, "; "), maxTail)
	notes := s + "\x00" + c
	if notes == j.notes || j.notes == "" && s == "" && c == "" {
		return
	}
	j.notes = notes
	if s == "" && c == "" {
		j.log.Info("The device is probed as configured now")
		return
	}
	j.log.Info("The device is not probed as configured", "skipped", s, "cut_down", c)
}

func (j *journal) stuck(s *report.Stuck) {
	j.log.Warn("A child was killed and does not end; the device is not probed until it has", "pid", s.PID, "verb", s.Verb)
}

func (j *journal) unstuck(s *report.Stuck) {
	j.log.Info("The child that did not end has ended", "pid", s.PID, "verb", s.Verb, "after", time.Since(s.Since).Round(time.Millisecond))
}

func (s *Supervisor) logAppeared(name string) {
	s.cfg.Logger.Info("A device was found", "device", name)
}

func (s *Supervisor) logVanished(name string) {
	s.cfg.Logger.Info("A device has vanished", "device", name)
}

func (s *Supervisor) logRejected(names []string) {
	if len(names) == 0 {
		s.cfg.Logger.Info("Every device has a usable name now")
		return
	}
	s.cfg.Logger.Warn("Devices with unusable names are not probed", "names", names)
}

// discoveryFailed keeps and logs why the devices could not be listed. It is
// called with mu held.
func (s *Supervisor) discoveryFailed(text string) {
	if text != s.discoveryError {
		s.cfg.Logger.Warn("The devices cannot be listed; those that are known are kept", "error", text)
	}
	s.discoveryError = text
}

// discoveryWorks is called with mu held.
func (s *Supervisor) discoveryWorks() {
	if s.discoveryError != "" {
		s.cfg.Logger.Info("The devices can be listed again")
	}
	s.discoveryError = ""
}
