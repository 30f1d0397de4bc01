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
	run := a.last
	if !isUnusable(run) {
		return
	}
	message := fmt.Sprintf("The device cannot be used: %s.", reason(run.Error))
	if a.state.Failures > 1 {
		message += fmt.Sprintf(" %d runs in a row have failed.", a.state.Failures)
	}
	if ok := a.state.LastSuccess; !ok.IsZero() {
		message += fmt.Sprintf(" The last good run started at %s.", text.Moment(ok))
	}
	entry := caseOther
	if run.FailedVerb == "ibv_open_device" || run.FailedVerb == "ibv_get_device_list" {
		entry = cmp.Or(map[string]string{
			"EACCES": caseForbidden, "EPERM": caseForbidden, "ENOENT": caseNoNode, "ENXIO": caseNoNode,
			"ENODEV": caseNotListed, "ENOSYS": caseNotListed, "EAGAIN": caseNoRoom, "ENOMEM": caseNoRoom,
		}[run.Errno], caseOther)
	}
	a.add(observation{
		kind: FindingUnusable, entry: entry, message: message, run: true,
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

// ports adds findings for ports that were not active in the last run.
func (a *assessor) ports() {
	if a.last.Info == nil {
		return
	}
	all := a.last.Info.Ports
	down := slices.DeleteFunc(slices.Clone(all), isActive)
	active := len(all) - len(down)
	type group struct {
		entry    string
		severity Severity
	}
	inactive := make(map[group][]state.Port)
	for _, p := range down {
		g := group{caseDown, a.portSeverity(p.Number, active)}
		if p.State == "init" || p.State == "armed" {
			g.entry = caseNotConfigured
		}
		inactive[g] = append(inactive[g], p)
		a.portRoots[p.Number] = rootPort + g.entry + string(g.severity)
	}
	for _, entry := range []string{caseDown, caseNotConfigured} {
		for _, severity := range Severities() {
			ports := inactive[group{entry, severity}]
			if len(ports) == 0 {
				continue
			}
			var numbers, states []string
			for _, p := range ports {
				is := fmt.Sprintf("port %d is %s", p.Number, cmp.Or(word(p.State), "in an unknown state"))
				if p.LinkLayer != "" {
					is += fmt.Sprintf(" (%s)", word(p.LinkLayer))
				}
				numbers, states = append(numbers, fmt.Sprint(p.Number)), append(states, is)
			}
			message := fmt.Sprintf("%d of %s active: %s", active, text.Plural(len(all), "port"), text.Join(states, ", ", maxFew))
			if severity != SeverityInfo && !a.config.Once {
				message += fmt.Sprintf("; %s active before", text.Either(len(ports), "it was", "they were"))
			}
			a.add(observation{
				kind: FindingPortDown, entry: entry, severity: severity, root: a.portRoots[ports[0].Number], message: message + ".",
				subject: text.Either(len(ports), "port ", "ports ") + text.Join(numbers, ", ", maxFew),
			})
		}
	}
}

// portSeverity returns the severity of an inactive port on a device with a number of active ones.
func (a *assessor) portSeverity(number, active int) Severity {
	// With Config.Once there is no history.
	before, gone := slices.Contains(a.activeOnce, number), true
	if a.config.Once {
		before, gone = active == 0, a.unplugged
	}
	switch {
	case !before:
		return SeverityInfo
	case active > 0 || !gone:
		return SeverityWarning
	default:
		return SeverityCritical
	}
}

// contracts adds findings for broken contracts that are not known errata of the driver.
func (a *assessor) contracts() {
	for _, c := range a.contract.Verdicts {
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
			run:     condemned(a.contract) && c.Name == a.contract.Last.InProgress,
			replace: []string{"{contract}", name, "{remedy}", cmp.Or(prose(c.Remedy), "Programs should not rely on it.")},
		})
	}
}
