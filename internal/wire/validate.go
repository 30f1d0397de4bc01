package wire

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unique"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// What a child reports becomes label values, so a child that is out of its mind
// must not be able to invent any number of them: words are held to the form that
// they have in a sane report, and lists to a length.

func validateCall(c *state.Call) error {
	if !isVerb(c.Verb) {
		return fmt.Errorf("%.64q is not the name of a verb", c.Verb)
	}
	if c.Duration < 0 {
		return fmt.Errorf("%s took %d ns", c.Verb, c.Duration)
	}
	if c.Errno != "" && !isLabel(c.Errno) {
		return fmt.Errorf("%.64q is not an errno", c.Errno)
	}
	return nil
}

func validateDevice(d *state.Device) error {
	if len(d.Limits) > maxLimits || len(d.Extended) > maxLimits || len(d.Ports) > maxPorts {
		return fmt.Errorf("%w: %d limits, %d ports", ErrTooLarge, max(len(d.Limits), len(d.Extended)), len(d.Ports))
	}
	if d.Driver != "" && !isLabel(d.Driver) {
		return fmt.Errorf("%.64q is not the name of a driver", d.Driver)
	}
	for _, s := range []string{d.Transport, d.Firmware, d.NodeGUID} {
		if len(s) > maxLabel {
			return fmt.Errorf("%w: an attribute of %d bytes", ErrTooLarge, len(s))
		}
	}
	for _, p := range d.Ports {
		if p.State != "" && !isLabel(p.State) || len(p.LinkLayer) > maxLabel {
			return fmt.Errorf("port %d in state %.64q with link layer %.64q", p.Number, p.State, p.LinkLayer)
		}
	}
	seen := make(map[any]bool)
	for _, l := range slices.Concat(d.Limits, d.Extended) {
		if !isLabel(l.Name) || seen[l.Name] {
			return fmt.Errorf("%.64q is not the name of a limit, or is there twice", l.Name)
		}
		seen[l.Name] = true
	}
	for _, p := range d.Ports {
		if seen[p.Number] {
			return fmt.Errorf("port %d is there twice", p.Number)
		}
		seen[p.Number] = true
	}
	return nil
}

// cleanDevice makes what a device says of itself fit for a label: a driver may hand on what
// the firmware has there, whatever that is.
func cleanDevice(d *state.Device) {
	for _, s := range []*string{&d.Transport, &d.Firmware, &d.NodeGUID} {
		*s = text.Clean(*s)
	}
	for _, list := range [][]state.Limit{d.Limits, d.Extended} {
		for i := range list {
			list[i].Name = shared(list[i].Name)
		}
	}
	for i := range d.Ports {
		d.Ports[i].LinkLayer = text.Clean(d.Ports[i].LinkLayer)
	}
}

func validateProbe(p *state.Probe) error {
	if !isLabel(p.Name) {
		return fmt.Errorf("%.64q is not the name of a probe", p.Name)
	}
	if !slices.Contains([]state.Status{state.StatusOK, state.StatusFailed, state.StatusSkipped}, p.Status) {
		return fmt.Errorf("probe %s: %.64q is not a status", p.Name, p.Status)
	}
	for _, n := range []int{len(p.Failures), len(p.Known), len(p.Skips), len(p.Clamps), len(p.CQs), len(p.SRQs), len(p.QPs), len(p.Inline), len(p.InlineSends), len(p.Memory), len(p.Registrations), len(p.Ways), len(p.Latencies)} {
		if n > maxItems {
			return fmt.Errorf("%w: probe %s has a list of %d", ErrTooLarge, p.Name, n)
		}
	}
	if p.Duration < 0 {
		return fmt.Errorf("probe %s took %d ns", p.Name, p.Duration)
	}
	var words []string
	var limits []*int64
	for _, f := range p.Failures {
		words, limits = append(words, f.Verb, f.Errno), append(limits, f.Memlock)
	}
	for _, k := range p.Known {
		words = append(words, k.Contract)
		if k.Contract == "" || k.Fact == "" || k.Source == "" {
			return fmt.Errorf("probe %s: a shortfall is said to be known: contract %.64q, fact %.64q, source %.64q", p.Name, k.Contract, k.Fact, k.Source)
		}
	}
	for _, s := range p.Skips {
		words, limits = append(words, string(s.Reason), s.Subject), append(limits, s.Memlock)
	}
	for _, l := range limits {
		if l != nil && *l < 0 {
			return fmt.Errorf("probe %s: a limit on locked memory of %d bytes", p.Name, *l)
		}
	}
	for _, c := range p.Clamps {
		words = append(words, c.Profile, c.Subject, c.Attribute, c.Limit)
	}
	for _, c := range p.CQs {
		words = append(words, c.Profile)
	}
	for _, s := range p.SRQs {
		words = append(words, s.Profile)
	}
	for _, q := range p.QPs {
		words = append(words, q.Type, q.Profile)
	}
	for _, i := range p.Inline {
		words = append(words, i.Type)
	}
	for _, i := range p.InlineSends {
		words = append(words, i.Type)
		if !slices.Contains(state.InlineResults(), i.Result) {
			return fmt.Errorf("probe %s: %.64q came of a send of inline data", p.Name, i.Result)
		}
	}
	for _, m := range p.Memory {
		words = append(words, m.Object, m.Profile)
	}
	for i := range p.Registrations {
		if err := validateRegistration(&p.Registrations[i]); err != nil {
			return fmt.Errorf("probe %s: %w", p.Name, err)
		}
	}
	for _, w := range p.Ways {
		if err := validateWay(&w); err != nil {
			return fmt.Errorf("probe %s: %w", p.Name, err)
		}
	}
	for i := range p.Latencies {
		if err := validateLatency(&p.Latencies[i]); err != nil {
			return fmt.Errorf("probe %s: %w", p.Name, err)
		}
		words = append(words, p.Latencies[i].Unsuccessful...)
	}
	for _, w := range words {
		if w != "" && !isLabel(w) {
			return fmt.Errorf("probe %s: %.64q is not a word", p.Name, w)
		}
	}
	return uniqueSizes(p)
}

// validateRefused makes sure that a refusal is of a type that the kernel counts, and the
// only one of it.
func validateRefused(r *state.Refused, others []state.Refused) error {
	if !slices.Contains(state.ResourceTypes(), r.Type) || !isVerb(r.Verb) || !isLabel(r.Errno) || r.Objects < 1 {
		return fmt.Errorf("%.64q was refused by %.64q with errno %.64q, at %d", r.Type, r.Verb, r.Errno, r.Objects)
	}
	if slices.ContainsFunc(others, func(o state.Refused) bool { return o.Type == r.Type }) {
		return fmt.Errorf("%s was refused twice", r.Type)
	}
	return nil
}

func validateWay(w *state.Way) error {
	if !slices.Contains(state.LatencyPaths(), w.Path) || w.Port < 0 || w.Port > maxPorts {
		return fmt.Errorf("a way of path %.64q on port %d", w.Path, w.Port)
	}
	return nil
}

// clip cuts the texts of a way down to what a reader keeps of them.
func clipWay(w *state.Way) { w.By, w.InsteadOf = clip(w.By), clip(w.InsteadOf) }

func validateLatency(l *state.Latency) error {
	if !slices.Contains(state.LatencyPaths(), l.Path) || !slices.Contains(state.LatencyModes(), l.Mode) {
		return fmt.Errorf("a measurement of path %.64q and mode %.64q", l.Path, l.Mode)
	}
	if l.Port < 0 || l.Port > maxPorts || l.Vector < 0 || l.Vector > maxVector {
		return fmt.Errorf("a measurement on port %d and vector %d", l.Port, l.Vector)
	}
	if len(l.Samples) > maxSamples || len(l.Arms) > maxSamples || len(l.Unsuccessful) > maxSamples {
		return fmt.Errorf("%w: a measurement of %d samples", ErrTooLarge, max(len(l.Samples), len(l.Arms), len(l.Unsuccessful)))
	}
	if l.Count != len(l.Samples) {
		return fmt.Errorf("a measurement of %d samples says that it has %d", len(l.Samples), l.Count)
	}
	for _, n := range []int{l.Missed, l.Spurious, l.Misdirected, l.Missing} {
		if n < 0 {
			return fmt.Errorf("a measurement counted %d", n)
		}
	}
	for _, list := range [][]time.Duration{l.Samples, l.Arms, {l.P50, l.P99}} {
		if i := slices.IndexFunc(list, func(d time.Duration) bool { return d < 0 }); i >= 0 {
			return fmt.Errorf("a sample of %d ns", list[i])
		}
	}
	return nil
}

func validateContract(c *state.Contract) error {
	if !isLabel(c.Name) {
		return fmt.Errorf("%.64q is not the name of a contract", c.Name)
	}
	if !slices.Contains(state.Verdicts(), c.Verdict) || !slices.Contains(state.Severities(), c.Severity) {
		return fmt.Errorf("contract %s: verdict %.64q of severity %.64q", c.Name, c.Verdict, c.Severity)
	}
	if (c.Verdict == state.VerdictSkipped) != (c.Reason != "") || c.Reason != "" && !isLabel(string(c.Reason)) {
		return fmt.Errorf("contract %s: verdict %s with reason %.64q", c.Name, c.Verdict, c.Reason)
	}
	if c.Known != (c.Fact != "" && c.Source != "") || c.Known && c.Verdict == state.VerdictSkipped {
		return fmt.Errorf("contract %s: verdict %s, known %t, with fact %.64q and source %.64q", c.Name, c.Verdict, c.Known, c.Fact, c.Source)
	}
	if c.Duration < 0 {
		return fmt.Errorf("contract %s took %d ns", c.Name, c.Duration)
	}
	return nil
}

func (e *End) validate() error {
	if e.MaxRSS < 0 {
		return fmt.Errorf("%d bytes resident", e.MaxRSS)
	}
	if e.Verb != "" && !isVerb(e.Verb) || e.Errno != "" && !isLabel(e.Errno) {
		return fmt.Errorf("the end names the verb %.64q and the errno %.64q", e.Verb, e.Errno)
	}
	return nil
}

// clip cuts the texts of a verdict down to what a reader keeps of them. Those of devices that
// are judged together are mostly the same, and kept once.
func clipContract(c *state.Contract) {
	for _, text := range []*string{
		&c.Name, (*string)(&c.Severity), (*string)(&c.Verdict), (*string)(&c.Reason),
		&c.Asked, &c.Expected, &c.Observed, &c.Consequence, &c.Remedy, &c.Fact, &c.Source,
	} {
		*text = shared(clip(*text))
	}
}

// shared returns s, in the memory of an equal string that was read at about the same time
// if there is one.
func shared(s string) string { return unique.Make(s).Value() }

// uniqueSizes makes sure that no size is told twice: each becomes the value of one
// time series.
func uniqueSizes(p *state.Probe) error {
	type key struct{ list, subject, profile string }
	var keys []key
	for _, c := range p.CQs {
		keys = append(keys, key{"cqs", "", c.Profile})
	}
	for _, s := range p.SRQs {
		keys = append(keys, key{"srqs", "", s.Profile})
	}
	for _, q := range p.QPs {
		keys = append(keys, key{"qps", q.Type, q.Profile})
	}
	for _, i := range p.Inline {
		keys = append(keys, key{"inline", i.Type, ""})
	}
	for _, i := range p.InlineSends {
		keys = append(keys, key{"inline_sends", i.Type, ""})
	}
	for _, m := range p.Memory {
		keys = append(keys, key{"memory", m.Object, m.Profile})
	}
	for _, r := range p.Registrations {
		keys = append(keys, key{"registrations", string(r.Memory), ""})
	}
	for _, w := range p.Ways {
		keys = append(keys, key{"ways", string(w.Path), fmt.Sprintf("port %d", w.Port)})
	}
	for _, l := range p.Latencies {
		keys = append(keys, key{"latencies", fmt.Sprintf("%s %s", l.Path, l.Mode), fmt.Sprintf("port %d vector %d", l.Port, l.Vector)})
	}
	seen := make(map[key]bool, len(keys))
	for _, k := range keys {
		if seen[k] {
			return fmt.Errorf("probe %s: %s %q of profile %q is there twice", p.Name, k.list, k.subject, k.profile)
		}
		seen[k] = true
	}
	return nil
}

// clip cuts the texts of a probe down to what a reader keeps of them.
func clipProbe(p *state.Probe) {
	for i := range p.Failures {
		f := &p.Failures[i]
		f.Subject, f.Message = clip(f.Subject), clip(f.Message)
	}
	for i := range p.Skips {
		p.Skips[i].Detail = clip(p.Skips[i].Detail)
	}
	for i := range p.InlineSends {
		p.InlineSends[i].Detail = clip(p.InlineSends[i].Detail)
	}
	for i := range p.Registrations {
		p.Registrations[i].Detail = clip(p.Registrations[i].Detail)
	}
	for i := range p.Ways {
		clipWay(&p.Ways[i])
	}
	for i := range p.Latencies {
		p.Latencies[i].Stopped = clip(p.Latencies[i].Stopped)
	}
}

// isVerb reports whether s has the form of a verb's name.
func isVerb(s string) bool {
	return strings.HasPrefix(s, "ibv_") && len(s) <= 48 && isLabel(s)
}

// isLabel reports whether s is a word that can be a label value: letters,
// digits, and a few signs.
func isLabel(s string) bool {
	if s == "" || len(s) > maxLabel {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-. ", r)
	})
}
