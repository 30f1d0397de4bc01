package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// functions returns the functions of the template. Those that return safe text style or
// clean it; clean does so for the others.
func functions(screen Screen) template.FuncMap {
	style := func(look style) func(any) safe {
		return func(v any) safe {
			if v == "" {
				return ""
			}
			return screen.in(look, v)
		}
	}
	return template.FuncMap{
		"clean": screen.clean, "strong": style(strong), "faint": style(faint), "odd": style(odd), "bad": style(bad),
		"label": screen.label, "lines": screen.lines, "whole": func() safe { return safe(string(hang)) },
		"health": func(h health.Health) safe { return screen.in(lookOf(h), strings.ToUpper(string(h))) },
		"look":   func(like, v any) safe { return screen.in(lookOf(like), v) },
		"advice": func(a advice) safe {
			return screen.advice(lookOf(a.Severity), strings.ToUpper(string(a.Severity)), a.Action, a.Said...)
		},
		"finding": func(f health.Finding) safe {
			return screen.advice(lookOf(f.Severity), strings.ToUpper(string(f.Severity)), f.Action, fmt.Sprintf("%s (%s)", f.Subject, f.Kind), f.Message)
		},
		"problem": func(p *health.Problem) safe {
			return screen.advice(lookOf(p.Health), strings.ToUpper(string(p.Health)), p.Action, "", p.Message)
		},
		"rule": func(d *api.Device) safe {
			rule := "="
			if screen.Unicode {
				rule = "═"
			}
			name := screen.clean(d.Name)
			rest := screen.width() - columns(string(name)) - len(d.Health) - 6
			return screen.in(faint, rule+rule) + " " + screen.in(strong, name) + ": " + screen.in(lookOf(d.Health), d.Health) + " " +
				screen.in(faint, strings.Repeat(rule, max(rest, 2)))
		},
		"brief": func(d api.Device) string {
			width := 160
			if screen.Terminal {
				width = max(screen.width()-columns(d.Name)-24, minWidth)
			}
			return text.Truncate(brief(d), width)
		},
		"outcome": func(r *state.Run) safe {
			if r == nil {
				return screen.in(faint, "none")
			}
			return screen.in(lookOf(r.Outcome), r.Outcome)
		},
		"run": screen.run, "probes": screen.probes, "portLines": screen.ports, "vectors": screen.vectors, "distribution": screen.distribution,
		"arrow":  func() safe { return screen.clean("→") },
		"counts": counts, "verdict": verdict, "harm": harm, "shared": shared, "ports": portStates,
		"contracts": contractsCell, "fullest": fullest, "identity": identity, "accepted": accepted,
		"notified": func(d api.Device) string {
			median, measured := d.NotificationTime()
			if !measured {
				return ""
			}
			return text.Duration(median)
		},
		"stuck": stuck, "verdicts": verdicts, "blind": blind, "unread": unread, "adapter": adapter, "counters": counterLines,
		"failures": failures, "errata": errata, "sizes": sizesOf, "methods": methods, "objectNotes": objectNotes, "notes": notes,
		"owners": owners, "growing": growing, "leftover": leftover, "cgroups": cgroups, "errors": api.LatencyErrors,
		"number":  func(n any) string { return text.Number(toInt64(n)) },
		"percent": text.Percent, "took": text.Duration,
	}
}

func toInt64(n any) int64 {
	if i, ok := n.(int); ok {
		return int64(i)
	}
	i, _ := n.(int64)
	return i
}

func lookOf(v any) style {
	switch fmt.Sprint(v) {
	case string(health.OK), "active":
		return good
	case string(health.SeverityInfo), string(state.StatusSkipped):
		return faint
	case string(health.Critical), string(state.OutcomeFailed), string(state.OutcomeTimeout), string(state.OutcomeCrashed):
		return bad
	default:
		return odd
	}
}

type labelled struct {
	Label string
	Text  safe
}

func (s Screen) run(r *state.Run) safe {
	if r == nil {
		return s.in(faint, "not run")
	}
	words := s.in(lookOf(r.Outcome), r.Outcome) + s.clean(" in "+text.Duration(r.Duration))
	if r.Error != "" {
		words += s.clean(": " + r.Error)
	}
	for _, e := range r.Events {
		words += s.in(odd, "; event: "+api.Event(e))
	}
	if r.Reduced != nil {
		words += s.in(odd, "; reduced: "+r.Reduced.Detail)
	}
	return words
}

func (s Screen) probes(d *api.Device) safe {
	var words safe
	for _, p := range d.Probes() {
		if p.Status == "" {
			continue // The last run did not reach it.
		}
		separator := ", "
		if words == "" {
			separator = "; "
		}
		words += s.clean(separator+p.Name+" ") + s.in(lookOf(p.Status), p.Status)
	}
	return words
}

func failures(d *api.Device) []string {
	var all []string
	for _, p := range d.Probes() {
		for _, f := range p.Failures() {
			line := text.JoinWords(": ", "failed", p.Name, f.Subject.String(), f.Message)
			for _, word := range []string{f.Verb, f.Errno} {
				if !strings.Contains(line, word) {
					line += " (" + word + ")"
				}
			}
			all = append(all, line)
		}
		for _, skip := range p.Skips() {
			all = append(all, fmt.Sprintf("%s (%s)", text.JoinWords(": ", "skipped", p.Name, skip.Subject.String(), skip.Detail), skip.Reason))
		}
	}
	return all
}

func (s Screen) ports(status *api.Status, d *api.Device) []labelled {
	var all []labelled
	add := func(number int, portState, words string) {
		all = append(all, labelled{fmt.Sprintf("Port %d", number), s.in(lookOf(portState), portState) + s.clean(words)})
	}
	h := d.Hardware
	seen := make(map[int]bool)
	kernel := func(p *state.HardwarePort) string {
		var words string
		if p.Netdev != "" {
			words += ", " + p.Netdev
		}
		if p.Rate > 0 {
			words += ", " + api.PortRate(p)
		}
		if len(p.GIDs) > 0 {
			words += ", GIDs: " + api.GIDs(h, p)
		}
		if l := h.Link(p.Number); l != nil && l.Downs > 0 {
			words += "; " + text.Count(int64(l.Downs), "change", "changes") + " to down"
			if len(l.Recent) > 0 {
				words += ", " + text.Ago(status.Generated, slices.MaxFunc(l.Recent, timeCompare))
			}
		}
		return words
	}
	var ports []state.HardwarePort
	if h != nil && h.Latest != nil {
		ports = h.Latest.Ports
	}
	if d.Info != nil {
		for _, port := range d.Info.Ports {
			words := fmt.Sprintf(", %s, MTU %d", port.LinkLayer, port.ActiveMTU)
			if i := slices.IndexFunc(ports, func(p state.HardwarePort) bool { return p.Number == port.Number }); i >= 0 {
				words += kernel(&ports[i])
			}
			seen[port.Number] = true
			add(port.Number, port.State, words)
		}
	}
	for i := range ports {
		if p := &ports[i]; !seen[p.Number] {
			add(p.Number, h.PortState(p), ", "+p.LinkLayer+kernel(p))
		}
	}
	return all
}

func portStates(d api.Device) string {
	if d.Info == nil {
		return ""
	}
	var states []string
	count := make(map[string]int)
	for _, port := range d.Info.Ports {
		if count[port.State]++; count[port.State] == 1 {
			states = append(states, port.State)
		}
	}
	if len(d.Info.Ports) == 1 {
		return states[0]
	}
	for i, one := range states {
		states[i] = fmt.Sprintf("%d %s", count[one], one)
	}
	return strings.Join(states, ", ")
}

func identity(d *state.Device, withGUID bool) string {
	prefixed := func(prefix, s string) string {
		if s == "" {
			return ""
		}
		return prefix + s
	}
	guid := ""
	if withGUID {
		guid = prefixed("GUID ", d.NodeGUID)
	}
	return text.JoinWords(", ", prefixed("driver ", d.Driver), d.Transport, cmp.Or(prefixed("firmware ", d.Firmware), "no firmware"),
		fmt.Sprintf("vendor 0x%04x, part %d, hardware 0x%x", d.VendorID, d.VendorPartID, d.HWVersion), guid,
		text.Plural(d.CompletionVectors, "completion vector"))
}

func kindName(k state.Kind) string {
	switch k {
	case state.KindProbe, "":
		return "probes"
	case state.KindContract:
		return "contracts"
	default:
		return string(k)
	}
}

func stuck(d *api.Device) []string {
	var all []string
	for _, s := range d.StuckChildren() {
		line := fmt.Sprintf("process %d of the %s was killed at %s but has not ended", s.PID, kindName(s.Kind), text.Moment(s.Since))
		if s.Verb != "" {
			line += ", in " + s.Verb
		}
		all = append(all, line)
	}
	return all
}

func unread(d *api.Device) []string {
	if d.Hardware == nil || d.Hardware.Failure == "" {
		return nil
	}
	words := "read incompletely: " + d.Hardware.Failure
	if d.Hardware.Reading != "" {
		words += "; " + d.Hardware.Reading + " did not return"
	}
	return []string{words}
}

func adapter(d *api.Device) []string {
	if d.Hardware == nil || d.Hardware.Latest == nil {
		return nil
	}
	var words []string
	for _, f := range api.Adapter(d.Hardware.Latest) {
		words = append(words, f.Name+" "+f.Value)
	}
	if len(words) == 0 {
		return nil
	}
	return []string{strings.Join(words, "; ")}
}

// counterLines returns the counters that count errors, and those that count nothing.
func counterLines(d *api.Device) []string {
	if d.Hardware == nil || d.Hardware.Latest == nil {
		return nil
	}
	h := d.Hardware.Latest
	var all []string
	add := func(of string, p *state.HardwarePort) {
		var words []string
		for _, c := range api.Counters(h, p) {
			if c.IsError() {
				words = append(words, c.Count()+" "+c.Name())
			}
		}
		for _, name := range api.Saturated(h, p.Counters) {
			words = append(words, name+" saturated")
		}
		for _, r := range p.Refused {
			words = append(words, text.JoinWords(" ", string(r.Group), "refused", r.Errno))
		}
		if len(words) > 0 {
			all = append(all, of+": "+strings.Join(words, ", "))
		}
	}
	add("the device", &state.HardwarePort{Refused: h.Refused})
	for i := range h.Ports {
		add(fmt.Sprintf("port %d", h.Ports[i].Number), &h.Ports[i])
	}
	return all
}

func verdicts(c *state.Contracts) string {
	words := fmt.Sprintf("%d hold, %d violated", len(c.With(state.VerdictHolds)), len(c.With(state.VerdictViolated)))
	if known := c.KnownViolated(); known > 0 {
		words += fmt.Sprintf(", %d violated as the driver is known to", known)
	}
	return words + fmt.Sprintf(", %d skipped", len(c.With(state.VerdictSkipped)))
}

func contractsCell(d api.Device) string {
	switch c := d.Contracts; {
	case c == nil:
		return "not checked"
	case c.PutOff != nil && c.Last == nil:
		return "put off"
	case len(c.With(state.VerdictViolated)) > 0:
		return fmt.Sprintf("%d violated", len(c.With(state.VerdictViolated)))
	default:
		return fmt.Sprintf("%d hold", len(c.With(state.VerdictHolds)))
	}
}

func errata(d *api.Device) []string {
	var all []string
	for _, c := range d.Errata() {
		words := text.JoinWords(" ", c.Fact, c.Remedy)
		if c.Verdict == state.VerdictHolds {
			words = "kept here, although the driver is known to break it: " + words
		}
		all = append(all, c.Name+": "+words)
	}
	return all
}

func known(s *api.Status, d *api.Device) string {
	var names []string
	for _, c := range d.Errata() {
		if c.Verdict == state.VerdictViolated && !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "breaks " + strings.Join(names, ", ") + ", as its driver is known to (" + s.DocsURL + "docs/reference/contracts.md)"
}

func accepted(s *api.Status, d *api.Device) []string {
	var all []string
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.Accepted == nil {
			continue
		}
		line := fmt.Sprintf("%s, %s, %s%s: %s", f.Kind, f.Subject, f.Severity, since(s, f), f.Accepted.Reason)
		if !f.Accepted.Until.IsZero() {
			line += " (until " + text.Date(f.Accepted.Until) + ")"
		}
		all = append(all, line)
	}
	return all
}
