package api

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// deviceOf returns the status of one device.
func deviceOf(judged *health.Device, o *Options) Device {
	s := &judged.State
	runOf := func(r *state.Run, kind state.Kind) *Run { return runOf(r, judged.Stale(kind, o.Now)) }
	d := Device{
		Name:        text.Clean(s.Name),
		Present:     s.Present,
		Findings:    findingsOf(judged.Findings),
		Identity:    identityOf(s.Info),
		Run:         runOf(s.Last, state.KindProbe),
		LastSuccess: moment(s.LastSuccess),
		Failures:    count(s.Failures),
		Stuck:       stuckOf(s),
		Contracts:   contractsOf(s.Contracts, runOf),
		Known:       knownOf(s),
		Resources:   resourcesOf(judged, runOf),
		Hardware:    hardwareOf(s.Hardware),
	}
	if s.OutOfTime != nil {
		for _, kind := range cut(s.OutOfTime.Kinds) {
			d.Skipped = append(d.Skipped, SkippedRun{Kind: state.Kind(text.Clean(string(kind))), Reason: state.SkipBudget})
		}
	}
	if s.Info != nil {
		for _, p := range cut(s.Info.Ports) {
			d.Ports = append(d.Ports, Port{
				Number: p.Number, State: text.Clean(p.State), LinkLayer: text.Clean(p.LinkLayer), ActiveMTU: count(p.ActiveMTU),
			})
		}
		for _, l := range cut(slices.Concat(s.Info.Limits, s.Info.Extended)) {
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
	health, headline := judged.At(o.Now)
	d.Health, d.Headline = health, text.Clean(headline)
	return d
}

// NothingToDo is the headline of a device of which there is nothing else to say.
const NothingToDo = health.NothingToDo

// Notified returns how long an event takes, in seconds, by the way that is nearest to what
// programs do; false if that was not measured.
func (d *Device) Notified() (seconds float64, measured bool) {
	for _, path := range state.LatencyPaths() {
		for _, l := range d.Latencies {
			if l.Path == path && l.Mode == state.ModeAny && l.Samples > 0 {
				return l.P50, true
			}
		}
	}
	return 0, false
}

// Facts returns what can be said in short of a device that is well, a few words each;
// nothing if nothing is known.
func (d *Device) Facts() []string {
	var facts []string
	if c := d.Contracts; c != nil && c.Holds > 0 {
		facts = append(facts, text.Plural(c.Holds, "contract")+" kept")
		if c.KnownViolated > 0 {
			facts = append(facts, fmt.Sprintf("%d broken as known", c.KnownViolated))
		}
	}
	if seconds, measured := d.Notified(); measured {
		facts = append(facts, "notified in "+text.Seconds(seconds))
	}
	return facts
}

// findingsOf returns findings, in their order.
func findingsOf(all []health.Finding) []Finding {
	findings := make([]Finding, 0, len(all))
	for i := range cut(all) {
		f := &all[i]
		finding := Finding{
			Kind: health.Kind(text.Clean(string(f.Kind))), Severity: f.Severity, Harm: f.Harm, Subject: text.Clean(f.Subject),
			Message: text.Clean(f.Message), Evidence: text.Clean(f.Evidence), Meaning: text.Clean(f.Meaning), Action: text.Clean(f.Action),
			Since: moment(f.Since), LastSeen: moment(f.LastSeen), Accepted: acceptanceOf(f.Accepted),
		}
		if len(f.Consequences) > 0 {
			finding.Consequences = findingsOf(f.Consequences)
		}
		findings = append(findings, finding)
	}
	return findings
}

// acceptanceOf returns why a finding is accepted; nil if it is not.
func acceptanceOf(a *health.Acceptance) *Acceptance {
	if a == nil {
		return nil
	}
	return &Acceptance{Reason: text.Clean(a.Reason), Until: moment(a.Until)}
}

// severityOf returns a severity of a contract that there is: one that there is not is
// taken for a warning.
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

// runOf returns a run; nil for none.
func runOf(r *state.Run, stale bool) *Run {
	if r == nil {
		return nil
	}
	return &Run{
		Started: moment(r.Started), Duration: seconds(r.Duration), Outcome: state.Outcome(text.Clean(string(r.Outcome))),
		Error: text.Clean(r.Error), FailedVerb: text.Clean(r.FailedVerb), Errno: text.Clean(r.Errno), Verb: text.Clean(r.Verb),
		Stale: stale, Light: lightOf(r.Light), Events: eventsOf(r.Events),
	}
}

func eventsOf(list []state.Events) []Events {
	var events []Events
	for _, e := range list {
		events = append(events, Events{Type: text.Clean(e.Type), Port: max(0, e.Port), Count: max(0, e.Count)})
	}
	return events
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
	if s.Hardware != nil {
		add(state.KindHardware, s.Hardware.Stuck)
	}
	return stuck
}

// seconds returns a duration in seconds, which is never less than none.
func seconds(d time.Duration) float64 { return max(d, 0).Seconds() }
