package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// unusable adds a finding if the last probe run could not open or query the device.
func (a *assessor) unusable() {
	run := a.state.Last
	if run == nil || !isUnusable(run) {
		return
	}
	message := fmt.Sprintf("The device cannot be used: %s.", reason(run.Error))
	if a.state.Failures > 1 {
		message += fmt.Sprintf(" %d runs in a row have failed.", a.state.Failures)
	}
	if ok := a.state.LastSuccess; !ok.IsZero() {
		message += fmt.Sprintf(" The last good run started at %s.", text.Moment(ok))
	}
	a.add(observation{
		kind: FindingUnusable, entry: whyUnusable(run), message: message, run: true,
		subject: cmp.Or(word(strings.TrimSpace(run.FailedVerb+" "+run.Errno)), "the device"),
	})
}

// isUnusable reports whether a run could not open or query the device.
func isUnusable(run *state.Run) bool {
	return run.Outcome == state.OutcomeFailed && run.Info == nil && len(run.Probes) == 0
}

func (a *assessor) vanished() {
	a.add(observation{
		kind: FindingUnusable, entry: caseVanished, subject: "the device", run: true,
		message: "The device was there when the audit began and gone when it ended.",
	})
}

// whyUnusable returns the case of the catalogue.
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

// ports adds findings for ports that were not active in the last run.
func (a *assessor) ports() {
	if a.state.Last == nil || a.state.Last.Info == nil {
		return
	}
	all := a.state.Last.Info.Ports
	type group struct {
		entry    string
		severity Severity
	}
	inactive := make(map[group][]state.Port)
	down := slices.DeleteFunc(slices.Clone(all), isActive)
	active := len(all) - len(down)
	for _, p := range down {
		g := group{caseDown, a.portSeverity(p.Number, active)}
		if p.State == "init" || p.State == "armed" {
			g.entry = caseNotConfigured
		}
		inactive[g] = append(inactive[g], p)
	}
	for _, entry := range []string{caseDown, caseNotConfigured} {
		for _, severity := range Severities() {
			ports := inactive[group{entry, severity}]
			if len(ports) == 0 {
				continue
			}
			message := fmt.Sprintf("%d of %s active: %s.", active, text.Plural(len(all), "port"), portStates(ports))
			if severity != SeverityInfo && !a.config.Once {
				message = strings.TrimSuffix(message, ".") + fmt.Sprintf("; %s active before.", text.Either(len(ports), "it was", "they were"))
			}
			root := rootPort + entry + string(severity)
			for _, p := range ports {
				a.portRoots[p.Number] = root
			}
			a.add(observation{kind: FindingPortDown, entry: entry, severity: severity, subject: portNumbers(ports), message: message, root: root})
		}
	}
}

// portSeverity returns the severity of an inactive port on a device with a number of active ones.
func (a *assessor) portSeverity(number, active int) Severity {
	if a.config.Once { // There is no history.
		switch {
		case active > 0:
			return SeverityInfo
		case a.unplugged:
			return SeverityCritical
		default:
			return SeverityWarning
		}
	}
	switch {
	case !slices.Contains(a.activeOnce, number):
		return SeverityInfo
	case active > 0:
		return SeverityWarning
	default:
		return SeverityCritical
	}
}

func portNumbers(ports []state.Port) string {
	var numbers []string
	for _, p := range ports {
		numbers = append(numbers, fmt.Sprint(p.Number))
	}
	return text.Either(len(ports), "port ", "ports ") + text.Join(numbers, ", ", maxFew)
}

func portStates(ports []state.Port) string {
	var states []string
	for _, p := range ports {
		is := fmt.Sprintf("port %d is %s", p.Number, cmp.Or(word(p.State), "in an unknown state"))
		if p.LinkLayer != "" {
			is += fmt.Sprintf(" (%s)", word(p.LinkLayer))
		}
		states = append(states, is)
	}
	return text.Join(states, ", ", maxFew)
}

// contracts adds findings for broken contracts that are not known errata of the driver.
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
		// The gist of what was observed comes first.
		message, evidence := "The device breaks the contract "+name, ""
		if gist, _, _ := strings.Cut(prose(c.Observed), "; "); gist != "" {
			message += ": " + text.Truncate(strings.TrimSuffix(gist, "."), maxGist)
		}
		for _, part := range [][2]string{{"Observed", c.Observed}, {"Expected", c.Expected}, {"Asked", c.Asked}} {
			if said := prose(part[1]); said != "" {
				evidence += fmt.Sprintf(" %s: %s.", part[0], strings.TrimSuffix(said, "."))
			}
		}
		a.add(observation{
			kind: FindingContract, entry: string(severity), severity: severity,
			subject: name, message: message + ".", evidence: strings.TrimSpace(evidence), meaning: prose(c.Consequence),
			run:     condemned(a.state.Contracts) && c.Name == a.state.Contracts.Last.InProgress,
			replace: []string{"{contract}", name, "{remedy}", cmp.Or(prose(c.Remedy), "Programs should not rely on it.")},
		})
	}
}
