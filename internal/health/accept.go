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

	"rdma_exporter/internal/health/expect"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Acceptance says why a finding does not count as a problem.
type Acceptance struct {
	Reason string `json:"reason"`
	// Until is the last moment at which it holds. Zero means permanently.
	Until time.Time `json:"until,omitzero"`
}

// Accept is an item of the key accept in the configuration file.
type Accept struct {
	Finding Kind `yaml:"finding"`
	// Contract restricts the item to one contract. Empty means all.
	Contract string `yaml:"contract"`
	// Device is an anchored regular expression for device names. Empty means all.
	Device string `yaml:"device"`
	Reason string `yaml:"reason"`
	// Until is the last day in UTC on which the item holds, as in 2026-12-31. Empty means permanently.
	Until string `yaml:"until"`
	// Subject restricts the item to one subject. Empty means all.
	Subject string `yaml:"-"`
}

const (
	maxAccepts = 256
	maxReason  = 500 // Characters.
)

// AcceptableKinds returns the kinds of finding that can be accepted, which are those of devices.
func AcceptableKinds() []Kind {
	return slices.DeleteFunc(Kinds(), func(k Kind) bool { return k == FindingAcceptanceUnused || k == FindingNetnsBlind })
}

// ValidateAccepts returns an error of one line that describes each invalid item.
func ValidateAccepts(all []Accept) error {
	if len(all) > maxAccepts {
		return fmt.Errorf("accept has %d items: use no more than %d", len(all), maxAccepts)
	}
	var wrong []string
	for i := range all {
		for _, s := range all[i].flaws() {
			wrong = append(wrong, fmt.Sprintf("accept[%d]%s", i, s))
		}
	}
	if wrong == nil {
		return nil
	}
	return errors.New(strings.Join(wrong, "; "))
}

func (a *Accept) flaws() (wrong []string) {
	flaw := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	switch {
	case a.Finding == "":
		flaw(".finding is missing: name a kind of finding; docs/reference/findings.md lists them")
	case !slices.Contains(AcceptableKinds(), a.Finding):
		flaw(".finding is %q: there is no such finding of a device; docs/reference/findings.md lists them", a.Finding)
	}
	if a.Contract != "" && a.Finding != FindingContract {
		flaw(".contract is %q: it goes with finding %s only", a.Contract, FindingContract)
	}
	if _, err := expect.Names(a.Device); err != nil {
		flaw(".device is %q: %v", a.Device, err)
	}
	switch {
	case strings.TrimSpace(a.Reason) == "":
		flaw(".reason is missing: say why this is accepted")
	case utf8.RuneCountInString(a.Reason) > maxReason:
		flaw(".reason is too long: use no more than %d characters", maxReason)
	}
	if _, err := a.until(); err != nil {
		flaw(".until is %q: use a day such as 2026-12-31", a.Until)
	}
	return wrong
}

func (a *Accept) until() (time.Time, error) {
	if a.Until == "" {
		return time.Time{}, nil
	}
	day, err := time.Parse(time.DateOnly, a.Until)
	return day.AddDate(0, 0, 1).Add(-time.Second), err
}

// String returns what is accepted.
func (a *Accept) String() string {
	return text.Name(string(a.Finding) + text.Around("/", cmp.Or(a.Contract, a.Subject), "") + text.Around(" on ", a.Device, ""))
}

type acceptance struct {
	Accept
	applied Acceptance
	devices *regexp.Regexp
	// matched is when it last matched a finding. Zero means never.
	matched time.Time
}

func acceptancesOf(all []Accept) []*acceptance {
	var ready []*acceptance
	for _, a := range all {
		devices, err := expect.Names(a.Device)
		until, wrong := a.until()
		if err == nil && wrong == nil {
			ready = append(ready, &acceptance{Accept: a, applied: Acceptance{Reason: a.Reason, Until: until}, devices: devices})
		}
	}
	return ready
}

func (a *acceptance) expired(now time.Time) bool {
	return !a.applied.Until.IsZero() && now.After(a.applied.Until)
}

func (a *acceptance) covers(device string, f *Finding) bool {
	subject := cmp.Or(a.Contract, a.Subject)
	return a.Finding == f.Kind && (subject == "" || subject == cmp.Or(f.about, f.Subject)) && a.devices.MatchString(device)
}

func (a *acceptance) matches(device string, findings []Finding) bool {
	covered := func(f Finding) bool { return a.covers(device, &f) }
	return slices.ContainsFunc(findings, func(f Finding) bool { return covered(f) || slices.ContainsFunc(f.Consequences, covered) })
}

func (e *Evaluator) accept(device string, findings []Finding, now time.Time) {
	rank := make(map[*Acceptance]int)
	for i := range findings {
		for _, a := range e.acceptances {
			if findings[i].Accepted == nil && !a.expired(now) && a.covers(device, &findings[i]) {
				findings[i].Accepted, rank[&a.applied] = &a.applied, 1
			}
		}
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(rank[a.Accepted], rank[b.Accepted]) })
}

func (e *Evaluator) unusedAcceptances(h *Host, now time.Time) []Finding {
	var all []Finding
	for _, a := range e.acceptances {
		f := Finding{Kind: FindingAcceptanceUnused, Severity: SeverityInfo, Harm: HarmNote, Subject: a.String()}
		var entry string
		matches := a.matches("", h.Findings) ||
			slices.ContainsFunc(h.Devices, func(d *Device) bool { return a.matches(d.State.Name, d.Findings) })
		if matches {
			a.matched = now
		}
		// A finding that was there recently may be flapping.
		absent := a.matched.IsZero() || now.Sub(a.matched) >= reappearWindow
		switch {
		case a.expired(now):
			entry = "expired"
			f.Message = fmt.Sprintf("This acceptance expired on %s and no longer applies. Its reason was: %s", text.Date(a.applied.Until), prose(a.Reason))
		case !matches && absent && h.evaluated(a.Finding):
			entry = "unused"
			f.Message = "No finding of any device matches this acceptance. Its reason is: " + prose(a.Reason)
		default:
			continue
		}
		e := entryOf(f.Kind, entry)
		f.Reason, f.Meaning, f.Action, f.Remedy = e.Reason, e.Meaning, e.Action, e.Remedy
		all = append(all, f)
	}
	return all
}

// evaluated reports whether enough is known of each device to rule out a finding of a kind.
func (h *Host) evaluated(kind Kind) bool {
	return h.Snapshot != nil && h.Snapshot.Ready && h.Snapshot.DiscoveryError == "" &&
		!slices.ContainsFunc(h.Devices, func(d *Device) bool { return !d.evaluated(kind) })
}

// evaluated reports whether findings of a kind would exist if there were a reason.
func (d *Device) evaluated(kind Kind) bool {
	if !d.State.Present || d.Findings == nil {
		return !d.State.Present
	}
	off := func(run state.Kind) bool { return slices.Contains(d.never, run) }
	switch kind {
	case FindingContract:
		return d.last(state.KindContract) != nil || off(state.KindContract)
	case FindingLeaked, FindingOrphaned, FindingNearLimit, FindingCgroupNearLimit, FindingMemlock,
		FindingQPError, FindingCQUnfillable, FindingIncomplete, FindingPIDsInvisible:
		return d.last(state.KindInventory) != nil || off(state.KindInventory)
	case FindingFlapping, FindingUnreadable:
		h := d.State.Hardware
		return h != nil && (h.Latest != nil || h.Failures > 0) || off(state.KindHardware)
	case FindingSlowPort, FindingCongested, FindingBusErrors, FindingSlowBus, FindingTogether, FindingIsolated,
		FindingRefused, FindingSaturated, FindingUnaddressed, FindingGPUUnavailable, FindingGPUSlow:
		return currentHardware(d.State.Hardware) != nil || off(state.KindHardware)
	case FindingBandwidthLow, FindingNUMAAsymmetric:
		return d.State.Bandwidth != nil && d.State.Bandwidth.Measured != nil || off(state.KindBandwidth)
	default:
		return d.last(state.KindProbe) != nil
	}
}
