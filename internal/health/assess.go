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
func most(kind Kind) int {
	if kind == FindingContract {
		return maxContract
	}
	return maxPerKind
}

// Assess judges what is known of a device, and returns nil while nothing is known
// that could be judged. Of a device that is not present, only children that do not
// end are judged, and with Config.Once that it has vanished: all else is of the past.
//
// Findings have the worst first, and are else in the order of Kinds, those of one kind
// with the largest first. Of each kind there are at most 12, of contracts 32, and of
// all together 64; the last then says how many are left out.
//
// The state is neither kept nor changed, nor is the past. Assess can be called by any
// number of goroutines at once. It copes with any state and any configuration.
func Assess(dev *state.DeviceState, c Config, past Past) []Finding {
	if dev == nil {
		return nil
	}
	a := assessor{t: &c, catalogue: entries(), remembered: past.of(dev.Name)}
	return a.assess(dev)
}

// assess is Assess by what the assessor has already.
func (a *assessor) assess(dev *state.DeviceState) []Finding {
	a.state, a.device, a.downRoots = dev, word(dev.Name), make(map[int]string)
	c := a.t
	vanished := c.Once && !dev.Present
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
		a.unusable()
		a.aborted()
		a.probes()
		a.notification()
		a.unexplained()
		a.contracts()
		a.ports()
		a.hardware()
		a.slowVectors()
		a.nearLimit()
		a.exhaustion()
		a.cgroups()
		a.memlock()
		a.growing()
		a.ownerless()
		a.leaked()
		a.undestroyed()
		a.queuePairs()
		a.unfillable()
		a.incomplete()
	}
	return a.sorted()
}

// assessor collects the findings of one device.
type assessor struct {
	state *state.DeviceState
	t     *Config
	// catalogue has what is to be said of each kind of finding.
	catalogue []Entry
	// device is the name of the device, printable.
	device string
	remembered
	// unplugged tells that no port of the whole host is active.
	unplugged bool
	// downRoots are the roots of the findings that ports are not active, by port.
	downRoots map[int]string
	// resources and inventory are those of state, or empty.
	resources *state.Resources
	inventory *state.Inventory
	found     []found
	// wrongNow tells that events or completions of the last run are among them.
	wrongNow bool
}

// found is a finding with what puts it in order.
type found struct {
	Finding
	// size compares it with others of the same kind and severity.
	size float64
	// root is what it comes of, if others can come of the same; empty otherwise.
	root string
}

// observation is what is found, without what the catalogue says of it.
type observation struct {
	kind  Kind
	entry string // The case of the catalogue's entry; mostly empty.
	// severity is empty for the only one that the entry has.
	severity Severity
	// harm is empty for the one that goes with the severity, or the only one there is.
	harm    Harm
	subject string
	message string
	// evidence is empty if the message has it all.
	evidence string
	meaning  string // Empty for that of the entry.
	size     float64
	// run tells that it is how a run ended, which a device that cannot be used explains,
	// and root is what several findings can come of; empty for none that is known.
	run  bool
	root string
	// replace has what the words in braces of the action stand for, beside the
	// device, as strings.NewReplacer takes it.
	replace []string
}

// add adds a finding.
func (a *assessor) add(o observation) {
	f := Finding{Kind: o.kind, Subject: cmp.Or(o.subject, "unknown"), Message: o.message, Evidence: o.evidence}
	for _, e := range a.catalogue {
		if e.Kind == o.kind && e.Case == o.entry {
			f.Severity = cmp.Or(o.severity, e.Severities[0])
			f.Harm = cmp.Or(o.harm, e.harmOf(f.Severity))
			f.Meaning = cmp.Or(o.meaning, e.Meaning)
			// One pass, so that what is put in is not searched again.
			f.Action = strings.NewReplacer(append([]string{"docs/", a.t.DocsURL + "docs/", "{device}", text.Quoted(a.device)}, o.replace...)...).Replace(e.Action)
		}
	}
	root := o.root
	if o.run && a.down() {
		root = rootDevice
	}
	a.found = append(a.found, found{Finding: f, size: o.size, root: root})
}

// sorted returns the findings in order, and no more than there may be.
func (a *assessor) sorted() []Finding {
	kinds := Kinds()
	slices.SortStableFunc(a.found, func(x, y found) int {
		return cmp.Or(
			byHarm(x.Harm, y.Harm, x.Severity, y.Severity),
			cmp.Compare(slices.Index(kinds, x.Kind), slices.Index(kinds, y.Kind)),
			cmp.Compare(y.size, x.size),
		)
	})
	total := make(map[Kind]int)
	for _, f := range a.found {
		total[f.Kind]++
	}
	told := make(map[Kind]int)
	findings := []found{}
	for _, f := range a.found {
		told[f.Kind]++
		switch n := told[f.Kind]; {
		case n > most(f.Kind):
			continue
		case n == most(f.Kind):
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

// leaveOut makes a finding say how many others are left out after it.
func leaveOut(f *Finding, more int) {
	if more > 0 {
		f.Message = fmt.Sprintf("%s %d more, none of them worse, are not shown.", f.Message, more)
		f.about = cmp.Or(f.about, f.Subject)
		f.Subject = fmt.Sprintf("%s and %d more", f.Subject, more)
	}
}
