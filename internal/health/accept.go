package health

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Acceptance is why a finding is accepted: it is shown, and is no trouble.
type Acceptance struct {
	Reason string
	// Until is the last moment at which it holds; zero if it holds for good.
	Until time.Time
}

// Accept says which findings are accepted, and why: an item of the key accept of the
// configuration file.
type Accept struct {
	Finding Kind `yaml:"finding"`
	// Contract is the contract whose violation is accepted; empty for all.
	Contract string `yaml:"contract"`
	// Device is a regular expression of the whole names of devices; empty for all.
	Device string `yaml:"device"`
	Reason string `yaml:"reason"`
	// Until is the last day on which it holds, in UTC, as 2026-12-31; empty if it holds
	// for good.
	Until string `yaml:"until"`
	// Subject is what an accepted finding is about; empty for anything.
	Subject string `yaml:"-"`
}

const (
	// maxAccepts is the most that may be accepted, and maxReason the most characters of
	// a reason.
	maxAccepts, maxReason = 256, 500
	dateLayout            = "2006-01-02"
)

// AcceptableKinds returns the kinds of finding that can be accepted: those of devices.
func AcceptableKinds() []Kind {
	return slices.DeleteFunc(Kinds(), func(k Kind) bool { return k == FindingAcceptanceUnused })
}

// ValidateAccepts returns an error, in one line, that names each item of the key accept
// that cannot be used, and what is wrong with it; nil if all can.
func ValidateAccepts(all []Accept) error {
	var wrong []string
	if len(all) > maxAccepts {
		wrong = append(wrong, fmt.Sprintf("accept has %d items: use no more than %d", len(all), maxAccepts))
	}
	for i := range all[:min(len(all), maxAccepts)] {
		for _, s := range all[i].flaws() {
			wrong = append(wrong, fmt.Sprintf("accept[%d]%s", i, s))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return errors.New(strings.Join(wrong, "; "))
}

// flaws returns what is wrong with an item.
func (a *Accept) flaws() []string {
	var wrong []string
	switch {
	case a.Finding == "":
		wrong = append(wrong, ".finding is missing: name a kind of finding; docs/reference/findings.md lists them")
	case !slices.Contains(AcceptableKinds(), a.Finding):
		wrong = append(wrong, fmt.Sprintf(".finding is %q: there is no such finding of a device; docs/reference/findings.md lists them", a.Finding))
	}
	if a.Contract != "" && a.Finding != FindingContract {
		wrong = append(wrong, fmt.Sprintf(".contract is %q: it goes with finding %s only", a.Contract, FindingContract))
	}
	if _, err := wholeName(a.Device); err != nil {
		wrong = append(wrong, fmt.Sprintf(".device is %q: %s", a.Device, strings.TrimPrefix(err.Error(), "error parsing regexp: ")))
	}
	switch {
	case strings.TrimSpace(a.Reason) == "":
		wrong = append(wrong, ".reason is missing: say why this is accepted")
	case utf8.RuneCountInString(a.Reason) > maxReason:
		wrong = append(wrong, fmt.Sprintf(".reason is too long: use no more than %d characters", maxReason))
	}
	if _, err := a.until(); err != nil {
		wrong = append(wrong, fmt.Sprintf(".until is %q: use a day such as 2026-12-31", a.Until))
	}
	return wrong
}

// wholeName returns an expression that matches whole names only.
func wholeName(expression string) (*regexp.Regexp, error) {
	if expression == "" {
		expression = ".*"
	}
	// By itself first, so that no bracket of it ends the one around it.
	if _, err := regexp.Compile(expression); err != nil {
		return nil, err
	}
	return regexp.Compile("^(?s:" + expression + ")$")
}

// until returns the last moment at which it holds; zero if it holds for good.
func (a *Accept) until() (time.Time, error) {
	if a.Until == "" {
		return time.Time{}, nil
	}
	day, err := time.Parse(dateLayout, a.Until)
	if err != nil {
		return time.Time{}, err
	}
	return day.AddDate(0, 0, 1).Add(-time.Second), nil
}

// String returns what is accepted.
func (a *Accept) String() string {
	s := string(a.Finding)
	if subject := cmp.Or(a.Contract, a.Subject); subject != "" {
		s += "/" + subject
	}
	if a.Device != "" {
		s += " on " + a.Device
	}
	return word(s)
}

// acceptance is an Accept that is ready to be used.
type acceptance struct {
	Accept
	given   Acceptance
	devices *regexp.Regexp
	// matched is when it last matched a finding; zero if it never did.
	matched time.Time
}

// acceptancesOf returns those of a configuration, which must be valid: what is not is
// left out.
func acceptancesOf(all []Accept) []*acceptance {
	var ready []*acceptance
	for _, a := range all {
		devices, err := wholeName(a.Device)
		until, wrong := a.until()
		if err == nil && wrong == nil {
			ready = append(ready, &acceptance{Accept: a, given: Acceptance{Reason: a.Reason, Until: until}, devices: devices})
		}
	}
	return ready
}

// expired tells whether it holds no more at a moment.
func (a *acceptance) expired(now time.Time) bool {
	return !a.given.Until.IsZero() && now.After(a.given.Until)
}

// covers tells whether a finding of a device is one that it is about.
func (a *acceptance) covers(device string, f *Finding) bool {
	subject := cmp.Or(a.Contract, a.Subject)
	return a.Finding == f.Kind && (subject == "" || subject == cmp.Or(f.about, f.Subject)) && a.devices.MatchString(device)
}

// accept marks the findings of a device that are accepted at a moment, and puts them last.
func (j *Judge) accept(device string, findings []Finding, now time.Time) {
	for i := range findings {
		for _, a := range j.acceptances {
			if !a.expired(now) && a.covers(device, &findings[i]) {
				findings[i].Accepted = &a.given
				break
			}
		}
	}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		switch {
		case a.Accepted == nil && b.Accepted != nil:
			return -1
		case a.Accepted != nil && b.Accepted == nil:
			return 1
		default:
			return 0
		}
	})
}

// unused finds the acceptances that match nothing any more: those that have expired,
// and those that match nothing on a host of which all is known.
func (j *Judge) unused(h *Host, now time.Time) []Finding {
	var found []Finding
	for _, a := range j.acceptances {
		matches := slices.ContainsFunc(h.Devices, func(d *Device) bool {
			return slices.ContainsFunc(d.Findings, func(f Finding) bool {
				return a.covers(d.State.Name, &f) ||
					slices.ContainsFunc(f.Consequences, func(c Finding) bool { return a.covers(d.State.Name, &c) })
			})
		})
		if matches {
			a.matched = now
		}
		// What comes and goes is not gone.
		gone := a.matched.IsZero() || now.Sub(a.matched) >= findingGone
		switch {
		case a.expired(now):
			found = append(found, a.finding(caseExpired, fmt.Sprintf("This acceptance expired on %s and no longer applies. Its reason was: %s", text.Date(a.given.Until), prose(a.Reason))))
		case !matches && gone && h.judged(a.Finding):
			found = append(found, a.finding(caseUnused, "No finding of any device matches this acceptance. Its reason is: "+prose(a.Reason)))
		}
	}
	return found
}

// finding returns what is found about an acceptance.
func (a *acceptance) finding(entry, message string) Finding {
	f := Finding{Kind: FindingAcceptanceUnused, Severity: SeverityInfo, Harm: HarmNote, Subject: a.String(), Message: message}
	for _, e := range acceptanceEntries() {
		if e.Case == entry {
			f.Meaning, f.Action = e.Meaning, e.Action
		}
	}
	return f
}

// judged tells whether enough is known of each device to say that there is no finding of
// a kind.
func (h *Host) judged(kind Kind) bool {
	return h.Snapshot != nil && h.Snapshot.Ready && h.Snapshot.DiscoveryError == "" &&
		!slices.ContainsFunc(h.Devices, func(d *Device) bool { return !d.judged(kind) })
}

// judged tells whether enough is known of a device to say that there is no finding of a
// kind. Of one that is gone, all is.
func (d *Device) judged(kind Kind) bool {
	if !d.State.Present {
		return true
	}
	if d.Findings == nil {
		return false
	}
	run := state.KindProbe
	switch kind {
	case FindingContract:
		run = state.KindContract
	case FindingLeaked, FindingOrphaned, FindingNearLimit, FindingCgroupNearLimit, FindingMemlock,
		FindingQPError, FindingCQUnfillable, FindingIncomplete, FindingPIDsInvisible:
		run = state.KindInventory
	case FindingFlapping, FindingUnreadable:
		h := d.State.Hardware
		return h != nil && (h.Latest != nil || h.Failures > 0)
	case FindingSlowPort, FindingBusErrors, FindingSlowBus, FindingTogether, FindingIsolated,
		FindingRefused, FindingSaturated, FindingUnaddressed:
		return readNow(d.State.Hardware) != nil
	}
	return d.last(run) != nil
}

// The cases of FindingAcceptanceUnused.
const (
	caseUnused  = "unused"
	caseExpired = "expired"
)

// acceptanceEntries are the kinds of finding about what is accepted.
func acceptanceEntries() []Entry {
	return []Entry{
		{
			Kind: FindingAcceptanceUnused, Case: caseUnused, Severities: []Severity{SeverityInfo}, Harms: []Harm{HarmNote},
			Found:   "All devices were judged, and an item of `accept` in the configuration file, or an `--accept` flag, matches no finding; or has not for 10 minutes. It concerns the host, not a device.",
			Meaning: "The accepted trouble is over, or the item does not match what it was meant to. If the trouble comes back unnoticed, nobody is alerted.",
			Action:  "Remove the item and reload the configuration file, or correct its finding, contract or device.",
		},
		{
			Kind: FindingAcceptanceUnused, Case: caseExpired, Severities: []Severity{SeverityInfo}, Harms: []Harm{HarmNote},
			Found:   "An item of `accept` in the configuration file has passed its `until` day. It concerns the host, not a device.",
			Meaning: "What it accepted counts as trouble again, if it is still there.",
			Action:  "Remove the item, or give it a later day if it is still acceptable, and reload the configuration file.",
		},
	}
}
