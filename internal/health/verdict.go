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

// NothingToDo is the headline of a device of which there is nothing else to say.
const NothingToDo = "No action needed."

// verdict sums up how a device is, in a word and in a sentence.
type verdict struct {
	health   Health
	headline string
}

// At returns how the device is at a moment, in a word, and in a sentence or two: what
// its worst finding found, or that no action is needed, and then what is
// accepted, what could not be probed and which runs are old. The sentences may have words from outside.
func (d *Device) At(now time.Time) (health Health, headline string) {
	switch {
	case d.trouble != verdict{}:
		return d.trouble.health, d.trouble.headline
	case !d.State.Present:
		return Unknown, "The device is gone."
	case d.State.OutOfTime != nil:
		return Unknown, "Not audited in time: " + kindNames(d.State.OutOfTime.Kinds) + "."
	case d.State.Last == nil:
		return Unknown, "Not probed yet."
	case d.Stale(state.KindProbe, now):
		return Unknown, fmt.Sprintf("Out of date: the last run of the probes started %s; the exporter's log may say why.", text.Ago(now, d.State.Last.Started))
	}
	return OK, strings.Join(append([]string{NothingToDo}, d.gaps(now)...), " ")
}

// kindNames names kinds of run.
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

// Stale tells whether the last run of a kind is older at a moment than it should be:
// there ought to have been another one since. One that never was is not.
func (d *Device) Stale(kind state.Kind, now time.Time) bool {
	after, ages := d.staleAfter[kind]
	run := d.last(kind)
	return ages && run != nil && now.Sub(run.Started) > after
}

// last returns the last run of a kind; nil for none.
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

// inTrouble returns how the device is if it is in trouble, whatever the time; zero if
// not.
func (d *Device) inTrouble() verdict {
	explained := false
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.Severity == SeverityInfo {
			continue
		}
		if f.Accepted == nil {
			return verdict{Health(f.Severity), headlineOf(f)}
		}
		explained = true
	}
	if explained {
		return verdict{}
	}
	stuck, run := d.State.Stuck, d.State.Last
	if r := d.State.Resources; stuck == nil && r != nil {
		stuck = r.Stuck
	}
	switch {
	case stuck != nil:
		return verdict{Critical, fmt.Sprintf("Process %d was killed but has not ended.", stuck.PID)}
	case run != nil && run.Outcome != state.OutcomeOK:
		return verdict{Warning, strings.TrimSpace("The last run of the probes " + ended(run.Outcome) + ". " + run.Error)}
	}
	return verdict{}
}

// headlineOf returns what a finding found, in a sentence: of what is long, all beyond the
// first is left out.
func headlineOf(f *Finding) string {
	const long = 120
	if utf8.RuneCountInString(f.Message) <= long {
		return f.Message
	}
	for end := range f.Message {
		// What goes on with a small letter may be after an abbreviation.
		if rest, ends := strings.CutPrefix(f.Message[end:], ". "); ends {
			if next, _ := utf8.DecodeRuneInString(rest); unicode.IsUpper(next) {
				return f.Message[:end+1]
			}
		}
	}
	return f.Message
}

// ended says how a run ended that was not ok.
func ended(o state.Outcome) string {
	switch o {
	case state.OutcomeFailed, state.OutcomeCrashed:
		return string(o)
	case state.OutcomeTimeout:
		return "timed out"
	default:
		return fmt.Sprintf("ended with %q", word(string(o)))
	}
}

// gaps returns what is accepted or not known of a device that is ok otherwise, in
// sentences.
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
	for i := range d.State.Last.Probes {
		if p := &d.State.Last.Probes[i]; p.Status == state.StatusSkipped {
			skipped = append(skipped, p.Name)
		}
	}
	if len(skipped) > 0 {
		gaps = append(gaps, "Could not be probed: "+strings.Join(skipped, ", ")+".")
	}
	if light := d.State.Last.Light; light != nil {
		gaps = append(gaps, "Left alone for now: "+light.Detail+".")
	}
	if d.Stale(state.KindContract, now) {
		old = append(old, "the contract run, started "+text.Ago(now, d.last(state.KindContract).Started))
	}
	if d.Stale(state.KindInventory, now) {
		old = append(old, "the inventory, started "+text.Ago(now, d.last(state.KindInventory).Started))
	}
	if len(old) > 0 {
		gaps = append(gaps, "Out of date: "+strings.Join(old, ", and ")+".")
	}
	return gaps
}
