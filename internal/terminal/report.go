package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const (
	// maxOnTop is the most findings that are told at the top. Further ones are told
	// with their devices.
	maxOnTop = 20
	// maxNames is the most devices that are named of those with the same finding.
	maxNames = 6
)

// End is what comes of an audit.
type End struct {
	// Status is the exit status, and FailOn the least severity that makes it other than 0.
	Status int
	FailOn string
	// Within is how long the audit might take; 0 for as long as it took.
	Within time.Duration
}

// Write writes a status to w at once: what is wrong and what to do on top, then the
// devices, and what comes of it last. The error is that of w.
func Write(w io.Writer, s *api.Status, end End, screen Screen) error {
	p := &page{screen: screen}
	p.report(s)
	p.blank()
	p.line(p.verdict(s, end)...) // whole, for those who take the last line
	_, err := io.WriteString(w, p.buf.String())
	return err
}

// report writes everything. Of one device all is told; of several, what they share is
// told once, and of each what is not as it should be.
func (p *page) report(s *api.Status) {
	p.title(s)
	told := p.findings(s)
	p.ofHost(s)
	if len(s.Devices) == 1 {
		p.device(s, 0, told)
		return
	}
	if len(s.Devices) == 0 {
		return
	}
	p.overview(s)
	p.shared(s)
	for i := range s.Devices {
		if d := &s.Devices[i]; d.Health != api.HealthOK && !isTold(i, d, told) {
			p.inShort(s, i, told)
		}
	}
	p.blank()
	p.wrap(0, 0, p.of(faint, fmt.Sprintf("For everything about a device: --device=%s, or --format=json.", s.Devices[0].Name)))
}

// isTold tells that nothing is wrong with a device but what is told at the top, and in the
// line about it.
func isTold(place int, d *api.Device, top told) bool {
	whole := len(d.Findings) > 0 && len(d.Stuck) == 0
	for i := range d.Findings {
		whole = whole && (d.Findings[i].Accepted != nil || top[api.Place{Device: place, Finding: i}])
	}
	runs := []*api.Run{d.Run}
	if d.Contracts != nil {
		runs = append(runs, d.Contracts.Run)
	}
	if d.Resources != nil {
		runs = append(runs, d.Resources.Run)
	}
	return whole && !slices.ContainsFunc(runs, func(r *api.Run) bool { return r != nil && r.Outcome != state.OutcomeOK })
}

// title says how everything is in one look.
func (p *page) title(s *api.Status) {
	host := ""
	if s.Host != "" {
		host = " of " + s.Host
	}
	p.wrap(0, 2, p.of(strong, "RDMA devices"+host+": "), p.of(healthStyle(s.Health), strings.ToUpper(string(s.Health))))

	line := text.Plural(len(s.Devices), "device")
	if counts := healths(s); counts != "" {
		line += " (" + counts + ")"
	}
	all, accepted := 0, 0
	var parts []string
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
		p.wrap(0, 2, p.of(odd, "Simulated devices: nothing here was measured on hardware."))
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
type said struct {
	subject, message string
	// places are where just that is wrong, and like where it differs in the message.
	places, like []api.Place
}

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
		p.advice(severityStyle(f.Severity), strings.ToUpper(string(f.Severity)), f.Action, said{subject: fmt.Sprintf("%s (%s)", f.Subject, f.Kind), message: f.Message})
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

// told tells of findings at the top whether they were told with their message. Of the
// others, which are the like of one that was, what they mean and what to do was told.
type told map[api.Place]bool

// findings writes the worst findings of all devices, and returns which those are.
// What is the same on several devices is told once.
func (p *page) findings(s *api.Status) told {
	top := make(told)
	total, messages, left := 0, 0, maxOnTop
	for i := range s.Devices {
		for n := range s.Devices[i].Findings {
			if s.Devices[i].Findings[n].Accepted == nil {
				total++
			}
		}
	}
	for i := range s.Troubles {
		t := &s.Troubles[i]
		all := together(s, t)
		all = all[:min(len(all), left)]
		left -= len(all)
		if len(all) == 0 {
			continue
		}
		for _, what := range all {
			for _, place := range what.like {
				top[place] = false
			}
			for _, place := range what.places {
				top[place] = true
				messages++
			}
		}
		action := s.Devices[t.Places[0].Device].Findings[t.Places[0].Finding].Action
		if t.For != "" {
			action = fmt.Sprintf("(here for %s) %s", t.For, action)
		}
		p.blank()
		p.advice(severityStyle(t.Severity), strings.ToUpper(string(t.Severity)), action, all...)
	}
	if more := total - messages; more > 0 {
		p.blank()
		p.wrap(0, 2, p.of(strong, fmt.Sprintf("And %s below, with %s.", text.Plural(more, "further finding"), text.Either(len(s.Devices), "the device", "their devices"))))
	}
	return top
}

// together returns what the findings of trouble say, that of the same thing on several
// devices once, with the devices that it is said of. Trouble without findings has none.
func together(s *api.Status, t *api.Trouble) []said {
	var all []said
	known := make(map[string]int)
	for _, place := range t.Places {
		if place.Finding < 0 {
			continue
		}
		f := &s.Devices[place.Device].Findings[place.Finding]
		i, ok := known[f.Subject]
		if !ok {
			i = len(all)
			known[f.Subject] = i
			all = append(all, said{subject: f.Subject, message: f.Message + beneath(f)})
		}
		if f.Message+beneath(f) == all[i].message {
			all[i].places = append(all[i].places, place)
		} else {
			all[i].like = append(all[i].like, place)
		}
	}
	for i := range all {
		var devices []string
		var first *api.Finding
		for _, place := range append(all[i].places, all[i].like...) {
			devices = append(devices, s.Devices[place.Device].Name)
			f := &s.Devices[place.Device].Findings[place.Finding]
			if first == nil || f.Since.Before(first.Since) {
				first = f
			}
		}
		if len(all[i].like) > 0 {
			all[i].message = fmt.Sprintf("(here on %s) %s", devices[0], all[i].message)
		}
		all[i].subject = fmt.Sprintf("%s: %s (%s)%s", text.Join(devices, ", ", maxNames), all[i].subject, t.Kind, since(s, first))
	}
	return all
}

// beneath names what else was found of the same root, as an addition to a message.
func beneath(f *api.Finding) string {
	if len(f.Consequences) == 0 {
		return ""
	}
	return " Same root cause: " + f.Beneath(maxNames) + "."
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
		notified := ""
		if seconds, measured := d.Notified(); measured {
			notified = duration(seconds)
		}
		t.add(
			p.cell(strong, d.Name), p.cell(healthStyle(d.Health), health), p.cell(plain, portStates(d)),
			p.runCell(d.Run), p.contractsCell(d.Contracts), p.cell(plain, notified), p.cell(plain, fullest(d)),
		)
	}
	p.table(t)
}

// shared writes what each device is and was given, once for those of which it is the same.
func (p *page) shared(s *api.Status) {
	devices := s.Devices
	p.blank()
	for _, part := range []struct {
		label string
		of    func(*api.Device) string
	}{
		{"Devices", isWhat},
		{"Given", givenWhat},
		{"Known", func(d *api.Device) string { return knownOf(s, d) }},
		{"Owners", ownedBy},
		{"Accepted", func(d *api.Device) string { return strings.Join(acceptedOf(s, d), "; ") }},
	} {
		var texts []string
		names := make(map[string][]string)
		for i := range devices {
			text := part.of(&devices[i])
			if text == "" {
				continue
			}
			if names[text] == nil {
				texts = append(texts, text)
			}
			names[text] = append(names[text], devices[i].Name)
		}
		for i, words := range texts {
			who := text.Join(names[words], ", ", maxNames)
			if n := len(names[words]); n == len(devices) {
				who = fmt.Sprintf("all %d", n)
			}
			p.labelled(ownersLabel(part.label, i), p.of(strong, who), p.of(plain, ": "+words))
		}
	}
}

// isWhat says what a device is, but for what is its own.
func isWhat(d *api.Device) string {
	if d.Identity == nil {
		return ""
	}
	of := *d.Identity
	of.NodeGUID = ""
	return identityText(&of)
}

// knownOf names what is known of the driver of a device.
func knownOf(s *api.Status, d *api.Device) string {
	var names []string
	for _, k := range d.Known {
		if k.Verdict == state.VerdictViolated && !slices.Contains(names, k.Contract) {
			names = append(names, k.Contract)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "breaks " + strings.Join(names, ", ") + ", as its driver is known to (" + s.DocsURL + "docs/reference/contracts.md)"
}

// ownedBy says what there is on a device, and who has most of it.
func ownedBy(d *api.Device) string {
	if d.Resources == nil {
		return ""
	}
	var counts []string
	for _, t := range d.Resources.Types {
		if t.User > 0 {
			counts = append(counts, text.Number(t.User)+" "+t.Type)
		}
	}
	if len(counts) == 0 {
		return ""
	}
	words := strings.Join(counts, ", ") + " of programs"
	if len(d.Resources.Owners) > 0 {
		o := &d.Resources.Owners[0]
		words += fmt.Sprintf("; first pid %d", o.PID)
		if o.Comm != "" {
			words += " (" + o.Comm + ")"
		}
		if more := len(d.Resources.Owners) - 1; more > 0 {
			words += fmt.Sprintf(" and %d more", more)
		}
	}
	return words
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
