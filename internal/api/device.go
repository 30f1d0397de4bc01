package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// deviceOf returns the status of one device.
func deviceOf(s *state.DeviceState, o *Options) Device {
	d := Device{
		Name:        text.Clean(s.Name),
		Present:     s.Present,
		Findings:    findingsOf(s.Assessment),
		Identity:    identityOf(s.Info),
		Run:         runOf(s.Last, state.KindProbe, o),
		LastSuccess: moment(s.LastSuccess),
		Failures:    count(s.Failures),
		Stuck:       stuckOf(s),
		Contracts:   contractsOf(s.Contracts, o),
		Known:       knownOf(s),
		Resources:   resourcesOf(s.Resources, s.Info, o),
	}
	if s.Info != nil {
		for _, p := range cut(s.Info.Ports) {
			d.Ports = append(d.Ports, Port{
				Number: p.Number, State: text.Clean(p.State), LinkLayer: text.Clean(p.LinkLayer), ActiveMTU: count(p.ActiveMTU),
			})
		}
		for _, l := range cut(s.Info.Limits) {
			d.Limits = append(d.Limits, Limit{Name: text.Clean(l.Name), Value: l.Value})
		}
	}
	if s.Last != nil {
		for i := range cut(s.Last.Probes) {
			d.addProbe(&s.Last.Probes[i])
		}
		d.markKnown()
		d.Latencies = latenciesOf(s.Last)
	}
	if s.Notification != nil {
		d.Vectors = vectorsOf(s.Notification)
	}
	health, headline := d.verdict(o.Now)
	d.Health, d.Headline = health, text.Clean(headline)
	return d
}

// NothingToDo is the headline of a device of which there is nothing else to say.
const NothingToDo = "There is nothing to be done."

// verdict sums up how the device is, in a word and in a sentence.
func (d *Device) verdict(now time.Time) (Health, string) {
	if len(d.Findings) > 0 {
		switch worst := d.Findings[0]; worst.Severity {
		case state.SeverityCritical:
			return HealthCritical, headlineOf(&worst)
		case state.SeverityWarning:
			return HealthWarning, headlineOf(&worst)
		}
	}
	switch {
	case len(d.Stuck) > 0:
		return HealthCritical, fmt.Sprintf("Process %d, which was killed, has not ended.", d.Stuck[0].PID)
	case d.Run != nil && d.Run.Outcome != state.OutcomeOK:
		return HealthWarning, strings.TrimSpace("The last run of the probes " + ended(d.Run.Outcome) + ". " + d.Run.Error)
	case !d.Present:
		return HealthUnknown, "The device is gone."
	case d.Run == nil:
		return HealthUnknown, "It has not been probed yet."
	case d.Run.Stale:
		return HealthUnknown, fmt.Sprintf("What is known is old: the last run of the probes was started %s.", text.Ago(now, d.Run.Started))
	}
	return HealthOK, strings.Join(append([]string{NothingToDo}, d.gaps(now)...), " ")
}

// headlineOf returns what a finding found, in a sentence. The evidence against a
// contract is left out, and of what is long, all beyond the first sentence.
func headlineOf(f *Finding) string {
	const long = 120
	if f.Kind != state.FindingContract && utf8.RuneCountInString(f.Message) <= long {
		return f.Message
	}
	for end := range f.Message {
		// What goes on with a small letter may be after an abbreviation.
		if rest, ends := strings.CutPrefix(f.Message[end:], ". "); ends {
			if next, _ := utf8.DecodeRuneInString(rest); unicode.IsUpper(next) {
				return f.Message[:end+1]
			}
		}
	}
	return f.Message
}

// ended says how a run ended that was not ok.
func ended(o state.Outcome) string {
	switch o {
	case state.OutcomeFailed, state.OutcomeCrashed:
		return string(o)
	case state.OutcomeTimeout:
		return "timed out"
	default:
		return fmt.Sprintf("ended with %q", o)
	}
}

// gaps returns what is not known of a device that is ok otherwise, in sentences.
func (d *Device) gaps(now time.Time) []string {
	var gaps, skipped, old []string
	for i := range d.Probes {
		if d.Probes[i].Status == state.StatusSkipped {
			skipped = append(skipped, d.Probes[i].Name)
		}
	}
	if len(skipped) > 0 {
		gaps = append(gaps, "Could not be probed: "+strings.Join(skipped, ", ")+".")
	}
	if d.Run.Light != nil {
		gaps = append(gaps, "Left alone for the time being: "+d.Run.Light.Detail+".")
	}
	if c := d.Contracts; c != nil && c.Run != nil && c.Run.Stale {
		old = append(old, "the contract run, started "+text.Ago(now, c.Run.Started))
	}
	if r := d.Resources; r != nil && r.Run != nil && r.Run.Stale {
		old = append(old, "the inventory, started "+text.Ago(now, r.Run.Started))
	}
	if len(old) > 0 {
		gaps = append(gaps, "Old: "+strings.Join(old, ", and ")+".")
	}
	return gaps
}

// findingsOf returns the findings, the worst first.
func findingsOf(a *state.Assessment) []Finding {
	if a == nil {
		return []Finding{}
	}
	findings := make([]Finding, 0, len(a.Findings))
	for i := range cut(a.Findings) {
		f := &a.Findings[i]
		findings = append(findings, Finding{
			Kind: state.FindingKind(text.Clean(string(f.Kind))), Severity: severityOf(f.Severity), Subject: text.Clean(f.Subject),
			Message: text.Clean(f.Message), Meaning: text.Clean(f.Meaning), Action: text.Clean(f.Action),
		})
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return bySeverity(a.Severity, b.Severity) })
	return findings
}

// severityOf returns a severity that there is: one that there is not is taken for a
// warning.
func severityOf(s state.Severity) state.Severity {
	if !slices.Contains(state.Severities(), s) {
		return state.SeverityWarning
	}
	return s
}

// bySeverity compares two severities; the worse is less.
func bySeverity(a, b state.Severity) int {
	return cmp.Compare(slices.Index(state.Severities(), a), slices.Index(state.Severities(), b))
}

func identityOf(info *state.Device) *Identity {
	if info == nil {
		return nil
	}
	return &Identity{
		Driver: text.Clean(info.Driver), Transport: text.Clean(info.Transport), Firmware: text.Clean(info.Firmware), VendorID: info.VendorID,
		VendorPartID: info.VendorPartID, HWVersion: info.HWVersion, NodeGUID: text.Clean(info.NodeGUID),
		CompletionVectors: count(info.CompletionVectors),
	}
}

// runOf returns a run of one kind; nil for none.
func runOf(r *state.Run, kind state.Kind, o *Options) *Run {
	if r == nil {
		return nil
	}
	after, ages := o.StaleAfter[kind]
	return &Run{
		Started: moment(r.Started), Duration: seconds(r.Duration), Outcome: state.Outcome(text.Clean(string(r.Outcome))),
		Error: text.Clean(r.Error), FailedVerb: text.Clean(r.FailedVerb), Errno: text.Clean(r.Errno), Verb: text.Clean(r.Verb),
		Stale: ages && o.Now.Sub(r.Started) > after, Light: lightOf(r.Light),
	}
}

func lightOf(l *state.Light) *Light {
	if l == nil {
		return nil
	}
	return &Light{Reason: state.LightReason(text.Clean(string(l.Reason))), Detail: text.Clean(l.Detail)}
}

// stuckOf returns the children that have not ended.
func stuckOf(s *state.DeviceState) []Stuck {
	var stuck []Stuck
	add := func(kind state.Kind, c *state.Stuck) {
		if c != nil {
			stuck = append(stuck, Stuck{Kind: kind, PID: c.PID, Verb: text.Clean(c.Verb), Since: moment(c.Since)})
		}
	}
	add(state.KindProbe, s.Stuck)
	if s.Resources != nil {
		add(state.KindInventory, s.Resources.Stuck)
	}
	return stuck
}

// seconds returns a duration in seconds, which is never less than none.
func seconds(d time.Duration) float64 { return max(d, 0).Seconds() }
