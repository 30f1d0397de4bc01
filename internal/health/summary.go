package health

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// NothingToDo is the headline of a healthy device.
const NothingToDo = "No action needed."

// summary is the health of a device with its headline.
type summary struct {
	health   Health
	headline string
}

// At returns the health of the device at a moment, and a headline of a sentence or two: its worst finding, or that no
// action is needed, followed by what is accepted, what could not be probed and which runs are old. The headline may
// contain words from outside.
func (d *Device) At(now time.Time) (health Health, headline string) {
	switch {
	case d.fixed != summary{}:
		return d.fixed.health, d.fixed.headline
	case !d.State.Present:
		return Unknown, "The device is gone."
	case d.State.OutOfTime != nil:
		return Unknown, "Not audited in time: " + kindNames(d.State.OutOfTime.Kinds) + "."
	case d.State.Last == nil:
		return Unknown, "Not probed yet."
	case d.Stale(state.KindProbe, now):
		return Unknown, fmt.Sprintf("Out of date: the last probe run started %s; the exporter's log may say why.", text.Ago(now, d.State.Last.Started))
	}
	return OK, strings.Join(append([]string{NothingToDo}, d.gaps(now)...), " ")
}

func kindNames(kinds []state.Kind) string {
	var names []string
	for _, kind := range kinds {
		names = append(names, map[state.Kind]string{
			state.KindProbe: "the probes", state.KindContract: "the contracts", state.KindInventory: "the inventory",
			state.KindHardware: "the hardware",
		}[kind])
	}
	return strings.Join(names, ", ")
}

// Stale reports whether the last run of a kind is overdue for replacement. It is false if there was none.
func (d *Device) Stale(kind state.Kind, now time.Time) bool {
	after, ages := d.staleAfter[kind]
	run := d.last(kind)
	return ages && run != nil && now.Sub(run.Started) > after
}

// last returns the last run of a kind, or nil.
func (d *Device) last(kind state.Kind) *state.Run {
	switch {
	case kind == state.KindProbe:
		return d.State.Last
	case kind == state.KindContract && d.State.Contracts != nil:
		return d.State.Contracts.Last
	case kind == state.KindInventory && d.State.Resources != nil:
		return d.State.Resources.Last
	default:
		return nil
	}
}

// unhealthy returns the summary of an unhealthy device, which does not depend on the time. Zero if it is healthy.
func (d *Device) unhealthy() summary {
	explained := false
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.Severity == SeverityInfo {
			continue
		}
		if f.Accepted == nil {
			return summary{Health(f.Severity), headlineOf(f)}
		}
		explained = true
	}
	if explained {
		return summary{}
	}
	stuck, run := d.State.Stuck, d.State.Last
	if r := d.State.Resources; stuck == nil && r != nil {
		stuck = r.Stuck
	}
	switch {
	case stuck != nil:
		return summary{Critical, fmt.Sprintf("Process %d was killed but has not ended.", stuck.PID)}
	case run != nil && run.Outcome != state.OutcomeOK:
		return summary{Warning, strings.TrimSpace("The last probe run " + outcomeText(run.Outcome) + ". " + run.Error)}
	}
	return summary{}
}

// headlineOf returns the message of a finding, or its first sentence if the message is long.
func headlineOf(f *Finding) string {
	const long = 120
	if utf8.RuneCountInString(f.Message) <= long {
		return f.Message
	}
	for end := range f.Message {
		// A lower-case letter may follow an abbreviation.
		if rest, ends := strings.CutPrefix(f.Message[end:], ". "); ends {
			if next, _ := utf8.DecodeRuneInString(rest); unicode.IsUpper(next) {
				return f.Message[:end+1]
			}
		}
	}
	return f.Message
}

func outcomeText(o state.Outcome) string {
	switch o {
	case state.OutcomeFailed, state.OutcomeCrashed:
		return string(o)
	case state.OutcomeTimeout:
		return "timed out"
	default:
		return fmt.Sprintf("ended with %q", word(string(o)))
	}
}

// gaps returns sentences about what is accepted or not known of a healthy device.
func (d *Device) gaps(now time.Time) []string {
	var gaps, skipped, old []string
	accepted := 0
	for i := range d.Findings {
		if d.Findings[i].Accepted != nil {
			accepted++
		}
	}
	if accepted > 0 {
		gaps = append(gaps, "Accepted: "+text.Plural(accepted, "finding")+".")
	}
	for _, p := range d.State.Probes() {
		if p.Status == state.StatusSkipped {
			skipped = append(skipped, p.Name)
		}
	}
	if len(skipped) > 0 {
		gaps = append(gaps, "Could not be probed: "+strings.Join(skipped, ", ")+".")
	}
	if reduced := d.State.Last.Reduced; reduced != nil {
		gaps = append(gaps, "Left alone for now: "+reduced.Detail+".")
	}
	for _, kind := range []state.Kind{state.KindContract, state.KindInventory} {
		if d.Stale(kind, now) {
			old = append(old, fmt.Sprintf("the %s run, started %s", kind, text.Ago(now, d.last(kind).Started)))
		}
	}
	if len(old) > 0 {
		gaps = append(gaps, "Out of date: "+strings.Join(old, ", and ")+".")
	}
	return gaps
}
