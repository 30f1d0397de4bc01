package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const (
	// maxOnTop is the most findings that are told at the top. Further ones are told
	// with their devices.
	maxOnTop = 20
	// maxDetailed is the most devices of which each is told in detail. Of more, only
	// those are that are not as they should be.
	maxDetailed = 8
	// maxNames is the most devices that are named of those with the same finding.
	maxNames = 6
)

// Write writes a status to w at once: what is wrong and what to do on top, then the
// devices. The error is that of w.
func Write(w io.Writer, s *api.Status, screen Screen) error {
	p := &page{screen: screen}
	p.report(s)
	_, err := io.WriteString(w, p.buf.String())
	return err
}

// report writes everything.
func (p *page) report(s *api.Status) {
	p.title(s)
	told := p.findings(s)
	p.ofHost(s)
	if len(s.Devices) > 1 {
		p.overview(s)
	}
	var left []string
	for i := range s.Devices {
		d := &s.Devices[i]
		if len(s.Devices) > maxDetailed && d.Health == api.HealthOK {
			left = append(left, d.Name)
			continue
		}
		p.device(s, i, told)
	}
	if len(left) > 0 {
		p.blank()
		p.wrap(0, 0, p.of(faint, fmt.Sprintf("Left out here: the details of %s that %s nothing wrong with %s. --device=%s shows them.",
			text.Plural(len(left), "device"), text.Either(len(left), "has", "have"), text.Either(len(left), "it", "them"), left[0])))
	}
}

// title says how everything is in one look.
func (p *page) title(s *api.Status) {
	host := ""
	if s.Host != "" {
		host = " of " + s.Host
	}
	p.wrap(0, 2, p.of(strong, "RDMA devices"+host+": "), p.of(healthStyle(s.Health), strings.ToUpper(string(s.Health))))

	devices := make(map[api.Health]int)
	for i := range s.Devices {
		devices[s.Devices[i].Health]++
	}
	var parts []string
	for _, h := range slices.Backward(api.Healths()) {
		if n := devices[h]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, h))
		}
	}
	line := text.Plural(len(s.Devices), "device")
	if len(parts) > 0 {
		line += " (" + strings.Join(parts, ", ") + ")"
	}
	all, accepted := 0, 0
	parts = nil
	for _, c := range s.FindingCounts {
		all += c.Count
		accepted += c.Accepted
		if c.Count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.Count, c.Severity))
		}
	}
	line += ", " + text.Plural(all, "finding")
	if all > 0 {
		line += " (" + strings.Join(parts, ", ") + ")"
	}
	if accepted > 0 {
		line += fmt.Sprintf(", %d accepted", accepted)
	}
	p.wrap(0, 2, p.of(plain, line+"."))
	p.wrap(0, 2, p.of(faint, joined(", ", text.Moment(s.Generated), strings.TrimSpace("rdma_exporter "+s.Exporter))+"."))
	if s.Simulated {
		p.wrap(0, 2, p.of(odd, "The devices are simulated: they exist only to try the exporter."))
	}
	if s.Problem != nil {
		p.blank()
		p.advice(healthStyle(s.Problem.Health), strings.ToUpper(string(s.Problem.Health)), s.Problem.Action, said{message: s.Problem.Message})
	}
}

// maxMessage is the most columns of a message at the top. What is longer has its
// place in the details.
const maxMessage = 320

// said is what is wrong with something.
type said struct{ subject, message string }

// since says since when a finding is there, as an addition to what it is about; nothing if
// that is not known.
func since(s *api.Status, f *api.Finding) string {
	if f.Since.IsZero() {
		return ""
	}
	return ", " + text.Since(s.Generated, f.Since)
}

// ofHost writes what is worth knowing of the host itself.
func (p *page) ofHost(s *api.Status) {
	for i := range s.Findings {
		f := &s.Findings[i]
		p.blank()
		p.advice(severityStyle(f.Severity), strings.ToUpper(string(f.Severity)), f.Action, said{fmt.Sprintf("%s (%s)", f.Subject, f.Kind), f.Message})
	}
}

// advice writes what is wrong and what to do.
func (p *page) advice(s style, word, action string, all ...said) {
	const column = 10
	label := p.of(s, word)
	p.put(label)
	at := max(columns(label.text)+1, column)
	p.pad(at - columns(label.text))
	for i, what := range all {
		if i > 0 {
			p.pad(column)
			at = column
		}
		if what.subject != "" {
			p.wrap(at, column, p.of(strong, what.subject))
			p.pad(column)
			at = column
		}
		p.wrap(at, column, p.cut(what.message, maxMessage))
	}
	if action != "" {
		p.pad(column)
		p.wrap(column, column, p.of(strong, "To do: "), p.of(plain, action))
	}
}

// told tells which findings are told at the top.
type told map[api.Place]bool

// findings writes the worst findings of all devices, and returns which those are.
// What is the same on several devices is told once.
func (p *page) findings(s *api.Status) told {
	top := make(told)
	total, left := 0, maxOnTop
	for _, c := range s.FindingCounts {
		total += c.Count
	}
	for i := range s.Troubles {
		t := &s.Troubles[i]
		all, places := together(s, t)
		all = all[:min(len(all), left)]
		left -= len(all)
		if len(all) == 0 {
			continue
		}
		for _, of := range places[:len(all)] {
			for _, place := range of {
				top[place] = true
			}
		}
		action := s.Devices[t.Places[0].Device].Findings[t.Places[0].Finding].Action
		if t.For != "" {
			action = fmt.Sprintf("(here for %s) %s", t.For, action)
		}
		p.blank()
		p.advice(severityStyle(t.Severity), strings.ToUpper(string(t.Severity)), action, all...)
	}
	if more := total - len(top); more > 0 {
		p.blank()
		p.wrap(0, 2, p.of(strong, fmt.Sprintf("And %s, below, with %s.", text.Plural(more, "further finding"), text.Either(len(s.Devices), "the device", "their devices"))))
	}
	return top
}

// together returns what the findings of trouble say, each once, with the devices that it
// is said of, and in which places it is. Trouble without findings has none.
func together(s *api.Status, t *api.Trouble) (all []said, places [][]api.Place) {
	known := make(map[said]int)
	for _, place := range t.Places {
		if place.Finding < 0 {
			continue
		}
		f := &s.Devices[place.Device].Findings[place.Finding]
		what := said{f.Subject, f.Message}
		i, ok := known[what]
		if !ok {
			i = len(all)
			known[what] = i
			all, places = append(all, what), append(places, nil)
		}
		places[i] = append(places[i], place)
	}
	for i := range all {
		var devices []string
		var first *api.Finding
		for _, place := range places[i] {
			devices = append(devices, s.Devices[place.Device].Name)
			f := &s.Devices[place.Device].Findings[place.Finding]
			if first == nil || f.Since.Before(first.Since) {
				first = f
			}
		}
		all[i].subject = fmt.Sprintf("%s: %s (%s)%s", text.Join(devices, ", ", maxNames), all[i].subject, t.Kind, since(s, first))
	}
	return all, places
}

// overview writes a line about each device.
func (p *page) overview(s *api.Status) {
	p.blank()
	t := &table{head: []string{"device", "health", "ports", "probes", "contracts", "notified in", "fullest"}, right: map[int]bool{5: true}}
	for i := range s.Devices {
		d := &s.Devices[i]
		health := string(d.Health)
		if !d.Present {
			health += ", gone"
		}
		t.add(
			p.cell(strong, d.Name), p.cell(healthStyle(d.Health), health), p.cell(plain, portStates(d)),
			p.runCell(d.Run), p.contractsCell(d.Contracts), p.cell(plain, notified(d)), p.cell(plain, fullest(d)),
		)
	}
	p.table(t)
}

// portStates counts the ports by state.
func portStates(d *api.Device) string {
	var states []string
	count := make(map[string]int)
	for _, port := range d.Ports {
		if count[port.State] == 0 {
			states = append(states, port.State)
		}
		count[port.State]++
	}
	if len(d.Ports) == 1 {
		return states[0]
	}
	for i, dev := range states {
		states[i] = fmt.Sprintf("%d %s", count[dev], dev)
	}
	return strings.Join(states, ", ")
}

func (p *page) runCell(r *api.Run) []span {
	if r == nil {
		return p.cell(faint, "none")
	}
	return p.cell(outcomeStyle(r.Outcome), string(r.Outcome))
}

func (p *page) contractsCell(c *api.Contracts) []span {
	switch {
	case c == nil:
		return p.cell(faint, "not judged")
	case c.PutOff != nil && c.Run == nil:
		return p.cell(faint, "put off")
	case unexpected(c) > 0:
		return p.cell(odd, fmt.Sprintf("%d violated", unexpected(c)))
	default:
		return p.cell(plain, fmt.Sprintf("%d hold", c.Holds))
	}
}

// notified returns how long an event takes, by the way that is nearest to what
// programs do.
func notified(d *api.Device) string {
	for _, path := range state.LatencyPaths() {
		for _, l := range d.Latencies {
			if l.Path == path && l.Mode == state.ModeAny && l.Samples > 0 {
				return duration(l.P50)
			}
		}
	}
	return ""
}

// fullest returns the type of object that is nearest to its limit.
func fullest(d *api.Device) string {
	if d.Resources == nil {
		return ""
	}
	words, most := "", 0.0
	for _, t := range d.Resources.Types {
		if t.Limit == nil {
			continue
		}
		if full := part(t.Objects, *t.Limit); full > most {
			words, most = t.Type+" "+percent(t.Objects, *t.Limit), full
		}
	}
	return words
}
