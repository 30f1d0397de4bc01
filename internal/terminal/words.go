package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"

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
		"label": screen.label, "whole": func() safe { return safe(string(hang)) },
		"item": func(i int, name string) safe {
			if i > 0 {
				name = ""
			}
			return screen.label(name)
		},
		"health": func(h health.Health) safe { return screen.in(lookOf(h), strings.ToUpper(string(h))) },
		"look":   func(like, v any) safe { return screen.in(lookOf(like), v) },
		"advice": func(a advice) safe {
			return screen.advice(lookOf(a.Severity), strings.ToUpper(string(a.Severity)), a.Action, a.Remedy, a.Said...)
		},
		"finding": func(f health.Finding) safe {
			return screen.advice(lookOf(f.Severity), strings.ToUpper(string(f.Severity)), f.Action, f.Remedy, fmt.Sprintf("%s (%s)", f.Subject, f.Kind), f.Message)
		},
		"problem": func(p *health.Problem) safe {
			return screen.advice(lookOf(p.Health), strings.ToUpper(string(p.Health)), p.Action, p.Remedy, "", p.Message)
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
		"arrow":  func() safe { return screen.clean("→") },
		"counts": counts, "verdict": verdict, "harm": harm, "shared": shared, "ports": portStates, "fullest": fullest,
		"identity": identity, "accepted": accepted, "counters": counterLines, "sizes": sizesOf, "notes": notes, "kind": kindName,
		"notified": func(d api.Device) string {
			median, measured := d.NotificationTime()
			if !measured {
				return ""
			}
			return text.Duration(median)
		},
		"paths": func(s *api.Status) (all []api.PathRow) {
			for _, d := range s.Devices {
				all = append(all, api.PathRows(d.Name, d.Paths, s.Generated)...)
			}
			return all
		},
		"speed":       api.Speed,
		"pathColumns": api.PathColumns, "bytes": text.Bytes, "gpuAdapters": gpuAdapters, "nearest": nearest, "adapter": api.Adapter, "errors": api.LatencyErrors, "event": api.Event, "growth": api.Growth, "links": api.Links,
		"memlock": api.Memlock, "method": api.Method, "objects": api.Counts, "steadiness": api.Steadiness,
		"ago":    func(s *api.Status, t time.Time) string { return text.Ago(s.Generated, t) },
		"times":  func(n uint64) string { return text.Count(int64(n), "time", "times") },
		"moment": text.Moment, "number": text.NumberOf, "percent": text.Percent, "short": text.ShortID, "took": text.Duration, "until": text.Until,
	}
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

func portStates(d api.Device) string {
	var states groups[string]
	for _, port := range d.Ports() {
		states.add(port.State, "")
	}
	if len(d.Ports()) == 1 {
		return states.keys[0]
	}
	var words []string
	for _, one := range states.keys {
		words = append(words, fmt.Sprintf("%d %s", len(states.of[one]), one))
	}
	return strings.Join(words, ", ")
}

func identity(d *state.Device, withGUID bool) string {
	guid := ""
	if withGUID {
		guid = text.Around("GUID ", d.NodeGUID, "")
	}
	return text.JoinWords(", ", text.Around("driver ", d.Driver, ""), d.Transport, cmp.Or(text.Around("firmware ", d.Firmware, ""), "no firmware"),
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

// counterLines returns the counters that count errors, by port, and those that count nothing.
func counterLines(h *state.HardwareState) []string {
	c := api.CountersOf(h)
	if c == nil {
		return nil
	}
	var ports groups[int]
	for _, one := range c.NotZero {
		if one.IsError() {
			ports.add(one.Port, one.Count()+" "+one.Name())
		}
	}
	var all []string
	for _, port := range ports.keys {
		all = append(all, fmt.Sprintf("port %d: %s", port, strings.Join(ports.of[port], ", ")))
	}
	return append(all, c.Odd...)
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
		line := fmt.Sprintf("%s, %s, %s%s: %s", f.Kind, f.Subject, f.Severity, since(s, f.Since), f.Accepted.Reason)
		if !f.Accepted.Until.IsZero() {
			line += " (until " + text.Date(f.Accepted.Until) + ")"
		}
		all = append(all, line)
	}
	return all
}
