package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/text"
)

// WriteBrief writes a line about each device to w, the worst first, and what comes of it
// in the last. The error is that of w.
func WriteBrief(w io.Writer, s *api.Status, end End, screen Screen) error {
	p := &page{screen: screen}
	names, healths, harms := 0, 0, 0
	for i := range s.Devices {
		d := &s.Devices[i]
		names = max(names, columns(p.clean(d.Name)))
		healths = max(healths, columns(p.clean(string(d.Health))))
		harms = max(harms, len(harmOf(d)))
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		name, health := p.of(strong, d.Name), p.of(healthStyle(d.Health), string(d.Health))
		p.put(name)
		p.pad(names - columns(name.text) + gutter)
		p.put(health)
		p.pad(healths - columns(health.text) + gutter)
		at := names + healths + 2*gutter
		if harms > 0 {
			p.put(p.of(plain, harmOf(d)))
			p.pad(harms - len(harmOf(d)) + gutter)
			at += harms + gutter
		}
		p.line(p.cut(inBrief(d), max(p.briefWidth()-at, minWidth)))
	}
	if s.Problem != nil {
		p.line(p.of(healthStyle(s.Problem.Health), strings.ToUpper(string(s.Problem.Health))), p.of(plain, "  "+s.Problem.Message))
	}
	p.line(p.verdict(s, end)...)
	_, err := io.WriteString(w, p.buf.String())
	return err
}

// briefWidth is how long a line about a device may be: no longer than a terminal's, and
// otherwise as long as a log may have it.
func (p *page) briefWidth() int {
	const most = 200
	if p.screen.Terminal {
		return p.screen.width()
	}
	return most
}

// harmOf is the worst harm on a device; empty for none.
func harmOf(d *api.Device) string {
	if len(d.Findings) == 0 || d.Findings[0].Harm == api.HarmNote || d.Findings[0].Accepted != nil {
		return ""
	}
	return string(d.Findings[0].Harm)
}

// inBrief says how a device is in one line.
func inBrief(d *api.Device) string {
	if d.Health != api.HealthOK {
		more := 0
		for i := range d.Findings {
			if i > 0 && d.Findings[i].Severity != api.SeverityInfo && d.Findings[i].Accepted == nil {
				more++
			}
		}
		words := d.Headline
		if more > 0 {
			words = fmt.Sprintf("%s And %s.", words, text.Plural(more, "further finding"))
		}
		return words
	}
	var facts []string
	if len(d.Ports) > 0 {
		facts = append(facts, text.Either(len(d.Ports), "port ", "ports ")+portStates(d))
	}
	facts = append(facts, d.Facts()...)
	if rest := strings.TrimSpace(strings.TrimPrefix(d.Headline, api.NothingToDo)); rest != "" {
		facts = append(facts, rest)
	}
	return strings.Join(facts, ", ")
}

// healths are how many devices are how well, the worst first.
func healths(s *api.Status) string {
	devices := make(map[api.Health]int)
	for i := range s.Devices {
		devices[s.Devices[i].Health]++
	}
	var counts []string
	for _, h := range slices.Backward(api.Healths()) {
		if n := devices[h]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, h))
		}
	}
	return strings.Join(counts, ", ")
}

// verdict is what comes of an audit, in a line.
func (p *page) verdict(s *api.Status, end End) []span {
	words := ", " + joined(": ", text.Plural(len(s.Devices), "device"), healths(s))
	if s.Problem != nil {
		words += fmt.Sprintf("; %s", s.Problem.Kind)
	}
	late := 0
	for i := range s.Devices {
		if len(s.Devices[i].Skipped) > 0 {
			late++
		}
	}
	if late > 0 {
		words += fmt.Sprintf("; %s not fully audited within %s", text.Plural(late, "device"), end.Within)
	}
	words += fmt.Sprintf("; exit status %d (--fail-on=%s).", end.Status, end.FailOn)
	return []span{p.of(plain, "Verdict: "), p.of(healthStyle(s.Health), strings.ToUpper(string(s.Health))), p.of(plain, words)}
}
