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
	maxFindings = 64 // Of a device.
	// maxPerKind limits the findings of one kind, so that no kind displaces the others. There are more contracts,
	// and each has a meaning of its own.
	maxPerKind  = 12
	maxContract = 32
)

func maxOf(kind Kind) int {
	if kind == FindingContract {
		return maxContract
	}
	return maxPerKind
}

// Assess returns the findings of a device, the worst first and then in the order of Kinds. It returns nil while too
// little is known. A device that is not present only has findings about stuck children and, with Config.Once, that
// it vanished.
//
// There are at most 12 findings of a kind, 32 of contracts and 64 in all. The last one says how many were left out.
//
// Assess accepts any state and configuration, modifies neither, and may be called concurrently.
func Assess(dev *state.DeviceState, c Config, history History) []Finding {
	if dev == nil {
		return nil
	}
	a := assessor{config: &c, catalogue: Catalogue(), deviceHistory: *history.of(dev, &c)}
	return a.assess(dev)
}

func (a *assessor) assess(dev *state.DeviceState) []Finding {
	a.state, a.device, a.portRoots = dev, word(dev.Name), make(map[int]string)
	vanished := a.config.Once && !dev.Present
	resources := dev.Resources
	if resources == nil {
		if !vanished && dev.Last == nil && dev.Stuck == nil && (dev.Contracts == nil || dev.Contracts.Last == nil) {
			return nil
		}
		resources = new(state.Resources)
	}
	a.resources, a.inventory = resources, resources.Inventory
	if a.inventory == nil {
		a.inventory = new(state.Inventory)
	}
	a.stuck()
	if vanished {
		a.vanished()
	}
	if dev.Present {
		for _, find := range []func(){
			a.unusable, a.aborted, a.probes, a.notification, a.unexplained, a.contracts, a.ports, a.hardware, a.slowVectors,
			a.nearLimit, a.exhaustion, a.cgroups, a.memlock, a.growing, a.ownerless, a.leaked, a.undestroyed,
			a.queuePairs, a.oversizedCQs, a.incomplete,
		} {
			find()
		}
	}
	return a.sorted()
}

// assessor collects the findings of one device.
type assessor struct {
	state     *state.DeviceState
	config    *Config
	catalogue []Entry
	device    string // The printable name.
	deviceHistory
	// unplugged is true if no port of the host is active.
	unplugged bool
	// portRoots are the root causes of the port_down findings by port.
	portRoots map[int]string
	// resources and inventory are those of state. They are never nil.
	resources *state.Resources
	inventory *state.Inventory
	found     []found
	// wrongNow is true if events or completions went wrong in the last run, not only in an earlier one.
	wrongNow bool
}

// found is a finding with its sort key and root cause.
type found struct {
	Finding
	// size orders findings of the same kind and severity, the largest first.
	size float64
	// root is the root cause. Empty if the finding shares it with no other.
	root string
}

// observation is a finding without the texts of the catalogue.
type observation struct {
	kind  Kind
	entry string // The case.
	// severity and harm default to those of the entry, and harm to that of the severity.
	severity Severity
	harm     Harm
	subject  string
	message  string
	evidence string
	meaning  string // Defaults to that of the entry.
	size     float64
	// run is true if the finding is about a run, which an unusable device explains.
	run  bool
	root string
	// replace has the values of the placeholders in the action, as strings.NewReplacer takes them.
	replace []string
}

func (a *assessor) add(o observation) {
	f := Finding{Kind: o.kind, Subject: cmp.Or(o.subject, "unknown"), Message: o.message, Evidence: o.evidence}
	for _, e := range a.catalogue {
		if e.Kind == o.kind && e.Case == o.entry {
			f.Severity = cmp.Or(o.severity, e.Severities[0])
			f.Harm = cmp.Or(o.harm, e.harmOf(f.Severity))
			f.Meaning = cmp.Or(o.meaning, e.Meaning)
			// One pass, so that inserted values are not searched again.
			f.Action = strings.NewReplacer(append([]string{"docs/", a.config.DocsURL + "docs/", "{device}", text.Quoted(a.device)}, o.replace...)...).Replace(e.Action)
		}
	}
	root := o.root
	if o.run && a.down() {
		root = rootDevice
	}
	a.found = append(a.found, found{Finding: f, size: o.size, root: root})
}

// sorted returns the findings in order, within their limits.
func (a *assessor) sorted() []Finding {
	kinds := kindsOf(a.catalogue)
	slices.SortStableFunc(a.found, func(x, y found) int {
		return cmp.Or(
			byHarm(x.Harm, y.Harm, x.Severity, y.Severity),
			cmp.Compare(slices.Index(kinds, x.Kind), slices.Index(kinds, y.Kind)),
			cmp.Compare(y.size, x.size),
		)
	})
	total, shown := make(map[Kind]int), make(map[Kind]int)
	for _, f := range a.found {
		total[f.Kind]++
	}
	findings := []found{}
	for _, f := range a.found {
		shown[f.Kind]++
		switch n := shown[f.Kind]; {
		case n > maxOf(f.Kind):
			continue
		case n == maxOf(f.Kind):
			leaveOut(&f.Finding, total[f.Kind]-n)
		}
		findings = append(findings, f)
	}
	if more := len(findings) - maxFindings; more > 0 {
		findings = findings[:maxFindings]
		leaveOut(&findings[maxFindings-1].Finding, more)
	}
	return rooted(findings)
}

// leaveOut adds to a finding how many others were left out after it.
func leaveOut(f *Finding, more int) {
	if more > 0 {
		f.Message = fmt.Sprintf("%s %d more, none of them worse, are not shown.", f.Message, more)
		f.about = cmp.Or(f.about, f.Subject)
		f.Subject = fmt.Sprintf("%s and %d more", f.Subject, more)
	}
}
