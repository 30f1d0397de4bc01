package health

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// NothingToDo is the headline of a healthy device.
const NothingToDo = "No action needed."

// At returns the health of the device at a moment, and a headline of a sentence or two: its worst finding, or that no
// action is needed, followed by what is accepted, what could not be probed and which runs are old. The headline may
// contain words from outside.
func (d *Device) At(now time.Time) (health Health, headline string) {
	health, headline = d.unhealthy()
	switch {
	case health != "":
		return health, headline
	case !d.State.Present:
		return Unknown, "The device is gone."
	case d.State.OutOfTime != nil:
		var names []string
		for _, kind := range d.State.OutOfTime.Kinds {
			names = append(names, map[state.Kind]string{
				state.KindProbe: "the probes", state.KindContract: "the contracts",
				state.KindInventory: "the inventory", state.KindHardware: "the hardware",
			}[kind])
		}
		return Unknown, "Not audited in time: " + strings.Join(names, ", ") + "."
	case d.State.Last == nil:
		return Unknown, "Not probed yet."
	case d.Stale(state.KindProbe, now):
		return Unknown, fmt.Sprintf("Out of date: the last probe run started %s; the exporter's log may say why.", text.Ago(now, d.State.Last.Started))
	}
	return OK, NothingToDo + d.gaps(now)
}

// Stale reports whether the last run of a kind is overdue for replacement. It is false if there was no such run.
func (d *Device) Stale(kind state.Kind, now time.Time) bool {
	after, ages := d.staleAfter[kind]
	run := d.last(kind)
	return ages && run != nil && now.Sub(run.Started) > after
}

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

// unhealthy returns the health and headline of an unhealthy device, at any time. Empty if it is healthy.
func (d *Device) unhealthy() (health Health, headline string) {
	explained := false
	for _, f := range d.Findings {
		if f.Severity != SeverityInfo && f.Accepted == nil {
			return Health(f.Severity), headlineOf(f.Message)
		}
		explained = explained || f.Severity != SeverityInfo
	}
	stuck, run := d.State.Stuck, d.State.Last
	if r := d.State.Resources; stuck == nil && r != nil {
		stuck = r.Stuck
	}
	switch {
	case explained:
		return "", ""
	case stuck != nil:
		return Critical, fmt.Sprintf("Process %d was killed but has not ended.", stuck.PID)
	case run != nil && run.Outcome != state.OutcomeOK:
		ended := map[state.Outcome]string{
			state.OutcomeFailed: "failed", state.OutcomeCrashed: "crashed", state.OutcomeTimeout: "timed out",
		}[run.Outcome]
		ended = cmp.Or(ended, fmt.Sprintf("ended with %q", word(string(run.Outcome))))
		return Warning, strings.TrimSpace("The last probe run " + ended + ". " + run.Error)
	default:
		return "", ""
	}
}

// headlineOf returns a message, or its first sentence if it is long.
func headlineOf(message string) string {
	if utf8.RuneCountInString(message) > 120 {
		// A lower-case letter may follow an abbreviation.
		if end := regexp.MustCompile(`\. \p{Lu}`).FindStringIndex(message); end != nil {
			return message[:end[0]+1]
		}
	}
	return message
}

// gaps returns sentences about what is accepted or not known of a healthy device.
func (d *Device) gaps(now time.Time) string {
	var gaps string
	accepted := slices.DeleteFunc(slices.Clone(d.Findings), func(f Finding) bool { return f.Accepted == nil })
	if len(accepted) > 0 {
		gaps += " Accepted: " + text.Plural(len(accepted), "finding") + "."
	}
	var skipped, old []string
	for _, p := range d.State.Probes() {
		if p.Status == state.StatusSkipped {
			skipped = append(skipped, p.Name)
		}
	}
	gaps += around(" Could not be probed: ", strings.Join(skipped, ", "), ".")
	if reduced := d.State.Last.Reduced; reduced != nil {
		gaps += " Left alone for now: " + reduced.Detail + "."
	}
	for _, kind := range []state.Kind{state.KindContract, state.KindInventory} {
		if d.Stale(kind, now) {
			old = append(old, fmt.Sprintf("the %s run, started %s", kind, text.Ago(now, d.last(kind).Started)))
		}
	}
	return gaps + around(" Out of date: ", strings.Join(old, ", and "), ".")
}
