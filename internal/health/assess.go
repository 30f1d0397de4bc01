package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const (
	// maxFindings is the most findings of a device.
	maxFindings = 64
	// maxPerKind is the most findings of one kind, so that no kind drives out the
	// others. There are more contracts than that, and each has a meaning of its own.
	maxPerKind  = 12
	maxContract = 32
)

// most returns the most findings of a kind.
func most(kind state.FindingKind) int {
	if kind == state.FindingContract {
		return maxContract
	}
	return maxPerKind
}

// Assess judges what is known of a device, and returns nil while nothing is known
// that could be judged. Of a device that is not present, only children that do not
// end are judged: all else is of the past.
//
// Findings have the worst first, and are else in the order of state.FindingKinds,
// those of one kind with the largest first. Of each kind there are at most 12, of
// contracts 32, and of all together 64; the last then says how many are left out.
//
// The state is neither kept nor changed. Assess can be called by any number of
// goroutines at once. It copes with any state and any thresholds.
func Assess(dev *state.DeviceState, t Thresholds) *state.Assessment {
	if dev == nil {
		return nil
	}
	a := assessor{state: dev, t: t, device: word(dev.Name)}
	resources := dev.Resources
	if resources == nil {
		if dev.Last == nil && dev.Stuck == nil && (dev.Contracts == nil || dev.Contracts.Last == nil) {
			return nil
		}
		resources = new(state.Resources)
	}
	a.resources, a.inventory = resources, resources.Inventory
	if a.inventory == nil {
		a.inventory = new(state.Inventory)
	}

	a.stuck()
	if dev.Present {
		a.unusable()
		a.aborted()
		a.probes()
		a.notification()
		a.unexplained()
		a.contracts()
		a.ports()
		a.slowVectors()
		a.nearLimit()
		a.cgroups()
		a.memlock()
		a.ownerless()
		a.leaked()
		a.undestroyed()
		a.queuePairs()
		a.unfillable()
		a.incomplete()
	}
	return &state.Assessment{Findings: a.sorted()}
}

// assessor collects the findings of one device.
type assessor struct {
	state *state.DeviceState
	t     Thresholds
	// device is the name of the device, printable.
	device string
	// resources and inventory are those of state, or empty.
	resources *state.Resources
	inventory *state.Inventory
	found     []found
	// wrongNow tells that events or completions of the last run are among them.
	wrongNow bool
}

// found is a finding with what puts it in order.
type found struct {
	state.Finding
	// size compares it with others of the same kind and severity.
	size float64
}

// observation is what is found, without what the catalogue says of it.
type observation struct {
	kind  state.FindingKind
	entry string // The case of the catalogue's entry; mostly empty.
	// severity is empty for the only one that the entry has.
	severity state.Severity
	subject  string
	message  string
	meaning  string // Empty for that of the entry.
	size     float64
	// replace has what the words in braces of the action stand for, beside the
	// device, as strings.NewReplacer takes it.
	replace []string
}

// add adds a finding.
func (a *assessor) add(o observation) {
	f := state.Finding{Kind: o.kind, Subject: cmp.Or(o.subject, "unknown"), Message: o.message}
	for _, e := range entries() {
		if e.Kind == o.kind && e.Case == o.entry {
			f.Severity = cmp.Or(o.severity, e.Severities[0])
			f.Meaning = cmp.Or(o.meaning, e.Meaning)
			// One pass, so that what is put in is not searched again.
			f.Action = strings.NewReplacer(append([]string{"{device}", text.Quoted(a.device)}, o.replace...)...).Replace(e.Action)
		}
	}
	a.found = append(a.found, found{Finding: f, size: o.size})
}

// sorted returns the findings in order, and no more than there may be.
func (a *assessor) sorted() []state.Finding {
	kinds, severities := state.FindingKinds(), state.Severities()
	slices.SortStableFunc(a.found, func(x, y found) int {
		return cmp.Or(
			cmp.Compare(slices.Index(severities, x.Severity), slices.Index(severities, y.Severity)),
			cmp.Compare(slices.Index(kinds, x.Kind), slices.Index(kinds, y.Kind)),
			cmp.Compare(y.size, x.size),
		)
	})
	total := make(map[state.FindingKind]int)
	for _, f := range a.found {
		total[f.Kind]++
	}
	told := make(map[state.FindingKind]int)
	findings := []state.Finding{}
	for _, f := range a.found {
		told[f.Kind]++
		switch n := told[f.Kind]; {
		case n > most(f.Kind):
			continue
		case n == most(f.Kind):
			leaveOut(&f.Finding, total[f.Kind]-n)
		}
		findings = append(findings, f.Finding)
	}
	if more := len(findings) - maxFindings; more > 0 {
		findings = findings[:maxFindings]
		leaveOut(&findings[maxFindings-1], more)
	}
	return findings
}

// leaveOut makes a finding say how many others are left out after it.
func leaveOut(f *state.Finding, more int) {
	if more > 0 {
		f.Message = fmt.Sprintf("%s And %d more, none of them worse, which are left out here.", f.Message, more)
		f.Subject = fmt.Sprintf("%s and %d more", f.Subject, more)
	}
}
