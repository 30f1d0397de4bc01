package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// unusable finds that the last run of the probes did not come to know the device.
func (a *assessor) unusable() {
	run := a.state.Last
	if run == nil || run.Outcome != state.OutcomeFailed || run.Info != nil || len(run.Probes) > 0 {
		return
	}
	message := fmt.Sprintf("The device cannot be used: %s.", cmp.Or(prose(run.Error), "the run does not say why"))
	if a.state.Failures > 1 {
		message += fmt.Sprintf(" That was run %d in a row that failed.", a.state.Failures)
	}
	if ok := a.state.LastSuccess; !ok.IsZero() {
		message += fmt.Sprintf(" The last one that was ok was started at %s.", text.Moment(ok))
	}
	a.add(observation{
		kind: FindingUnusable, entry: whyUnusable(run), message: message,
		subject: cmp.Or(word(strings.TrimSpace(run.FailedVerb+" "+run.Errno)), "the device"),
	})
}

// vanished finds that a device is gone that was there when its audit began.
func (a *assessor) vanished() {
	a.add(observation{
		kind: FindingUnusable, entry: caseVanished, subject: "the device",
		message: "The device was there when the audit began, and had vanished when it ended.",
	})
}

// whyUnusable returns the case of the catalogue for a run that did not come to know
// the device.
func whyUnusable(run *state.Run) string {
	if run.FailedVerb != "ibv_open_device" && run.FailedVerb != "ibv_get_device_list" {
		return caseOther
	}
	switch run.Errno {
	case "EACCES", "EPERM":
		return caseForbidden
	case "ENOENT", "ENXIO":
		return caseNoNode
	case "ENODEV", "ENOSYS":
		return caseNotListed
	case "EAGAIN", "ENOMEM":
		return caseNoRoom
	default:
		return caseOther
	}
}

// ports finds the ports that are not active. Only the last run can tell: what a run
// before it saw is of the past.
func (a *assessor) ports() {
	if a.state.Last == nil || a.state.Last.Info == nil {
		return
	}
	all := a.state.Last.Info.Ports
	var down, unconfigured, active []state.Port
	for _, p := range all {
		switch p.State {
		case "active", "active_defer":
			active = append(active, p)
		case "init", "armed":
			unconfigured = append(unconfigured, p)
		default:
			down = append(down, p)
		}
	}
	severity := SeverityWarning
	if len(active) > 0 {
		severity = SeverityInfo
	}
	for _, group := range []struct {
		entry string
		ports []state.Port
	}{{caseDown, down}, {caseNotConfigured, unconfigured}} {
		if len(group.ports) == 0 {
			continue
		}
		var numbers, states []string
		for _, p := range group.ports {
			numbers = append(numbers, fmt.Sprint(p.Number))
			dev := fmt.Sprintf("port %d is %s", p.Number, cmp.Or(word(p.State), "in no known state"))
			if p.LinkLayer != "" {
				dev += fmt.Sprintf(" (%s)", word(p.LinkLayer))
			}
			states = append(states, dev)
		}
		subject := "port "
		if len(numbers) > 1 {
			subject = "ports "
		}
		a.add(observation{
			kind: FindingPortDown, entry: group.entry, severity: severity,
			subject: subject + text.Join(numbers, ", ", maxFew),
			message: fmt.Sprintf("Of %s, %d active: %s.", text.Plural(len(all), "port"), len(active), text.Join(states, ", ", maxFew)),
		})
	}
}

// contracts finds the contracts that the device breaks, though its driver is not known
// to.
func (a *assessor) contracts() {
	if a.state.Contracts == nil {
		return
	}
	for i := range a.state.Contracts.Verdicts {
		c := &a.state.Contracts.Verdicts[i]
		if c.Verdict != state.VerdictViolated || c.Known {
			continue
		}
		severity := Severity(c.Severity)
		if !slices.Contains(Severities(), severity) {
			severity = SeverityWarning
		}
		name := word(c.Name)
		message := "The device breaks the contract " + name + "."
		for _, part := range [][2]string{{"Observed", c.Observed}, {"Expected", c.Expected}, {"Asked", c.Asked}} {
			if said := prose(part[1]); said != "" {
				message += fmt.Sprintf(" %s: %s.", part[0], strings.TrimSuffix(said, "."))
			}
		}
		a.add(observation{
			kind: FindingContract, entry: string(severity), severity: severity,
			subject: name, message: message, meaning: prose(c.Consequence),
			replace: []string{"{contract}", name, "{remedy}", cmp.Or(prose(c.Remedy), "Have programs do without what it promises.")},
		})
	}
}
