package terminal

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const (
	// maxTop limits the messages on top. Further ones are with their devices.
	maxTop = 20
	// maxNames limits the devices that are named for one finding.
	maxNames = 6
	// maxMessage limits a message, in characters.
	maxMessage = 320
)

//go:embed report.tmpl
var reportTemplate string

// End is the result of an audit.
type End struct {
	// Status is the exit status. Findings of severity FailOn or worse make it other than 0.
	Status int
	FailOn string
	// Within limits how long the audit may take. Zero means no limit.
	Within time.Duration
}

// Write writes a report: what is wrong and what to do, then the devices, and the verdict last.
// For one device it has everything; for several, it has what they share once, and for each
// what is not as it should be. The error is that of w.
func Write(w io.Writer, s *api.Status, end End, screen Screen) error {
	return write(w, "report", newReport(s, end), screen)
}

// WriteBrief writes a line about each device, the worst first, and the verdict. The error is
// that of w.
func WriteBrief(w io.Writer, s *api.Status, end End, screen Screen) error {
	return write(w, "brief", report{Status: s, End: end}, screen)
}

// WritePaths writes a table of paths, and for each that does not work, the evidence and what to do.
// The error is that of w.
func WritePaths(w io.Writer, rows []api.PathRow, screen Screen) error {
	return write(w, "paths", rows, screen)
}

func write(w io.Writer, name string, r any, screen Screen) error {
	t, err := template.New("report").Funcs(functions(screen)).Parse(reportTemplate)
	if err != nil {
		return fmt.Errorf("template of the report: %w", err)
	}
	for _, one := range t.Templates() {
		guard(one.Root)
	}
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, name, r); err != nil {
		return fmt.Errorf("make the report: %w", err)
	}
	_, err = io.WriteString(w, screen.lay(b.String()))
	return err
}

type report struct {
	*api.Status
	End End
	// Top are the worst findings of all devices.
	Top []advice
	// Further counts the findings that are not on top.
	Further string
	Each    []deviceReport
}

// advice is what is wrong, and what to do. Subjects and messages alternate in Said.
type advice struct {
	Severity health.Severity
	Action   string
	Remedy   health.Remedy
	Said     []string
}

type deviceReport struct {
	*api.Device
	Status *api.Status
	// Below are the findings that are not on top.
	Below []advice
	// Complete is true if the top, and the line about the device, say everything.
	Complete bool
}

func newReport(s *api.Status, end End) report {
	r := report{Status: s, End: end}
	top := make(map[health.Place]bool)
	lines, below := 0, 0
	for i := range s.Issues {
		issue := &s.Issues[i]
		a := advice{Severity: issue.Severity, Action: issue.Action, Remedy: issue.Remedy}
		if issue.For != "" {
			a.Action = fmt.Sprintf("(here for %s) %s", issue.For, a.Action)
		}
		for _, t := range s.Together(issue.Places) {
			if t.Finding == nil || lines == maxTop {
				continue
			}
			lines++
			var devices []string
			for _, at := range t.Places {
				devices = append(devices, s.Devices[at.Device].Name)
				top[at] = true
			}
			subject := fmt.Sprintf("%s: %s (%s)%s", text.Join(devices, ", ", maxNames), t.Subject, issue.Kind, since(s, t.Since))
			a.Said = append(a.Said, subject, message(t.Finding))
		}
		if len(a.Said) > 0 {
			r.Top = append(r.Top, a)
		}
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		each := deviceReport{Device: d, Status: s}
		for n := range d.Findings {
			if f := &d.Findings[n]; f.Accepted == nil && !top[health.Place{Device: i, Finding: n}] {
				below++
				each.Below = append(each.Below, advice{f.Severity, f.Action, f.Remedy, []string{fmt.Sprintf("%s (%s)%s", f.Subject, f.Kind, since(s, f.Since)), message(f)}})
			}
		}
		each.Complete = len(d.Findings) > 0 && len(each.Below) == 0 && len(d.StuckChildren()) == 0
		r.Each = append(r.Each, each)
	}
	if below > 0 {
		r.Further = fmt.Sprintf("And %s below, with %s.", text.Plural(below, "further finding"), text.Either(len(s.Devices), "the device", "their devices"))
	}
	return r
}

func message(f *health.Finding) string {
	if len(f.Consequences) == 0 {
		return f.Message
	}
	return f.Message + " Same root cause: " + api.Consequences(f, maxNames) + "."
}

func since(s *api.Status, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", " + text.Since(s.Generated, t)
}

// When returns when the report was made, and by which exporter.
func (r report) When() string {
	return text.JoinWords(", ", text.Moment(r.Generated), strings.TrimSpace("rdma_exporter "+r.Exporter)) + "."
}

// Harmed reports whether any device has harm.
func (r report) Harmed() bool {
	return slices.ContainsFunc(r.Devices, func(d api.Device) bool { return harm(d) != "" })
}

// Hint says how to see everything.
func (r report) Hint() string {
	return fmt.Sprintf("For everything about a device: --device=%s, or --format=json.", r.Devices[0].Name)
}

// Headlined reports whether the headline says more than the findings.
func (d deviceReport) Headlined() bool {
	return len(d.Findings) == 0 || d.Health == health.OK || d.Health == health.Unknown
}

// Unhealthy reports whether an unhealthy device has more to show than the overview does.
func (d deviceReport) Unhealthy() bool {
	runs := []*state.Run{d.Last}
	if d.Contracts != nil {
		runs = append(runs, d.Contracts.Last)
	}
	if d.Resources != nil {
		runs = append(runs, d.Resources.Last)
	}
	failed := slices.ContainsFunc(runs, func(r *state.Run) bool { return r != nil && r.Outcome != state.OutcomeOK })
	return d.Health != health.OK && (failed || !d.Complete)
}

func counts(s *api.Status) string {
	all := 0
	for _, c := range s.FindingCounts {
		all += c.Count
	}
	devices := text.Plural(len(s.Devices), "device") + text.Around(" (", s.HealthCounts(), ")")
	return devices + ", " + text.JoinWords(": ", text.Plural(all, "finding"), s.FindingWords()) + "."
}

func verdict(s *api.Status, end End) string {
	words := ", " + text.JoinWords(": ", text.Plural(len(s.Devices), "device"), s.HealthCounts())
	if s.Problem != nil {
		words += fmt.Sprintf("; %s", s.Problem.Kind)
	}
	if len(s.Unexpected()) > 0 {
		words += "; the host is not as expected"
	}
	late := 0
	for i := range s.Devices {
		if s.Devices[i].OutOfTime != nil {
			late++
		}
	}
	if late > 0 {
		words += fmt.Sprintf("; %s not fully audited within %s", text.Plural(late, "device"), end.Within)
	}
	words += fmt.Sprintf("; exit status %d (--fail-on=%s).", end.Status, end.FailOn)
	if len(s.NotChecked) > 0 {
		words += " Not checked: " + strings.Join(s.NotChecked, ", ") + "."
	}
	return words
}

func harm(d api.Device) string {
	if len(d.Findings) == 0 || d.Findings[0].Harm == health.HarmNote || d.Findings[0].Accepted != nil {
		return ""
	}
	return string(d.Findings[0].Harm)
}

func brief(d api.Device) string {
	if d.Health != health.OK {
		more := 0
		for i := range d.Findings {
			if i > 0 && d.Findings[i].Severity != health.SeverityInfo && d.Findings[i].Accepted == nil {
				more++
			}
		}
		if more > 0 {
			return fmt.Sprintf("%s And %s.", d.Headline, text.Plural(more, "further finding"))
		}
		return d.Headline
	}
	var facts []string
	if n := len(d.Ports()); n > 0 {
		facts = append(facts, text.Either(n, "port ", "ports ")+portStates(d))
	}
	facts = append(facts, d.Summary()...)
	if rest := strings.TrimSpace(strings.TrimPrefix(d.Headline, health.NothingToDo)); rest != "" {
		facts = append(facts, rest)
	}
	return strings.Join(facts, ", ")
}

type sharedLine struct{ Label, Who, Text string }

// shared returns what each device is and gave, once for those on which it is the same.
func shared(s *api.Status) []sharedLine {
	var all []sharedLine
	for _, part := range []struct {
		label string
		of    func(*api.Device) string
	}{
		{"Devices", func(d *api.Device) string {
			if d.Info == nil {
				return ""
			}
			return identity(d.Info, false)
		}},
		{"Given", given},
		{"Known", func(d *api.Device) string { return known(s, d) }},
		{"Owners", ownedBy},
		{"Accepted", func(d *api.Device) string { return strings.Join(accepted(s, d), "; ") }},
	} {
		var names groups[string]
		for i := range s.Devices {
			if words := part.of(&s.Devices[i]); words != "" {
				names.add(words, s.Devices[i].Name)
			}
		}
		for i, words := range names.keys {
			line := sharedLine{Label: part.label, Who: text.Join(names.of[words], ", ", maxNames), Text: words}
			if i > 0 {
				line.Label = ""
			}
			if n := len(names.of[words]); n == len(s.Devices) {
				line.Who = fmt.Sprintf("all %d", n)
			}
			all = append(all, line)
		}
	}
	return all
}
