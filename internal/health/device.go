package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

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
	entry := "other"
	if run.FailedVerb == "ibv_open_device" || run.FailedVerb == "ibv_get_device_list" {
		entry = cmp.Or(map[string]string{
			"EACCES": "permission", "EPERM": "permission", "ENOENT": "no_node", "ENXIO": "no_node",
			"ENODEV": "not_listed", "ENOSYS": "not_listed", "EAGAIN": "no_room", "ENOMEM": "no_room",
		}[run.Errno], "other")
	}
	a.add(observation{
		kind: FindingUnusable, entry: entry, message: message, run: true,
		reason: failing(run.FailedVerb, run.Errno), verb: run.FailedVerb, errno: run.Errno,
		subject: cmp.Or(text.Name(strings.TrimSpace(run.FailedVerb+" "+run.Errno)), "the device"),
	})
}

func isUnusable(run *state.Run) bool {
	return run.Outcome == state.OutcomeFailed && run.Info == nil && len(run.Probes) == 0
}

func (a *assessor) ports() {
	all := a.state.Ports()
	down := slices.DeleteFunc(slices.Clone(all), isActive)
	active := len(all) - len(down)
	for _, entry := range []string{"down", "not_configured"} {
		for _, severity := range state.Severities() {
			root := rootPort + entry + string(severity)
			var numbers, states []string
			first := 0
			for _, p := range down {
				hasLink := p.State == "init" || p.State == "armed"
				if hasLink != (entry == "not_configured") || severity != a.portSeverity(p.Number, active) {
					continue
				}
				a.portRoots[p.Number] = root
				numbers, first = append(numbers, fmt.Sprint(p.Number)), cmp.Or(first, p.Number)
				states = append(states, fmt.Sprintf("port %d is %s%s", p.Number,
					cmp.Or(text.Name(p.State), "in an unknown state"), text.Around(" (", text.Name(p.LinkLayer), ")")))
			}
			if numbers == nil {
				continue
			}
			message := fmt.Sprintf("%d of %s active: %s", active, text.Plural(len(all), "port"), text.Join(states, ", ", maxFew))
			if severity != SeverityInfo && !a.config.Once {
				message += fmt.Sprintf("; %s active before", text.Either(len(numbers), "it was", "they were"))
			}
			a.add(observation{
				kind: FindingPortDown, entry: entry, severity: severity, root: root, message: message + ".",
				subject: text.Either(len(numbers), "port ", "ports ") + text.Join(numbers, ", ", maxFew), port: first,
				replace: []string{"{are}", text.Either(len(numbers), "is", "are")},
			})
		}
	}
}

func (a *assessor) portSeverity(number, active int) Severity {
	before := slices.Contains(a.activeOnce, number)
	if a.config.Once { // There is no history.
		before = active == 0
	}
	if before && a.unplugged {
		return SeverityCritical
	}
	return warningIf(before)
}

func (a *assessor) contracts() {
	for _, c := range a.contract.Verdicts {
		if c.Verdict != state.VerdictViolated || c.Known {
			continue
		}
		severity := c.Severity
		if !severity.Valid() {
			severity = SeverityWarning
		}
		name := text.Name(c.Name)
		// The gist of what was observed comes first.
		gist, _, _ := strings.Cut(prose(c.Observed), "; ")
		said := func(title, s string) string { return text.Around(title+": ", strings.TrimSuffix(prose(s), "."), ".") }
		a.add(observation{
			kind: FindingContract, entry: string(severity), severity: severity, subject: name, meaning: prose(c.Consequence),
			message:  "The device breaks the contract " + name + text.Around(": ", text.Truncate(strings.TrimSuffix(gist, "."), maxGist), "") + ".",
			evidence: text.JoinWords(" ", said("Observed", c.Observed), said("Expected", c.Expected), said("Asked", c.Asked)),
			run:      condemned(a.contract) && c.Name == a.contract.Last.InProgress,
			replace:  []string{"{contract}", name, "{remedy}", cmp.Or(prose(c.Remedy), "Programs should not rely on it.")},
		})
	}
}
