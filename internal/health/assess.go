package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/health/bandwidth"
	"rdma_exporter/internal/health/expect"
	"rdma_exporter/internal/health/paths"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const (
	// maxPerKind limits the findings of one kind, so that no kind displaces the others. There are more contracts,
	// and each has a meaning of its own.
	maxPerKind  = 12
	maxContract = 32
)

// The root causes that several findings can share.
const (
	rootDevice    = "device" // The device cannot be opened, hangs, or crashes its users.
	rootContracts = "contracts"
	rootInventory = "inventory"
	rootHardware  = "hardware"
	rootPort      = "port " // Followed by the case and severity of the port_down finding.
	rootBusy      = "busy"  // An object counts as in use.
	rootMemlock   = "memlock"
)

// An assessor finds the findings of one device. It modifies neither state nor configuration.
type assessor struct {
	state  *state.DeviceState
	config *Config
	deviceHistory
	// unplugged is true if no port of the host is active.
	unplugged bool
	// host has all devices of the host.
	host []state.DeviceState
	// differences are those from what is expected.
	differences []expect.Difference

	device string // The printable name.
	// These are parts of state, or empty if state has none.
	info      *state.Device
	last      *state.Run
	contract  *state.Contracts
	resources *state.Resources
	inventory *state.Inventory
	// portRoots are the root causes of the port_down findings by port.
	portRoots map[int]string
	found     []found
	// wrongNow is true if events or completions went wrong in the last run, not only in an earlier one.
	wrongNow bool
}

// assess returns the findings of the device, the worst first and then in the order of Kinds. It returns nil while too
// little is known. A device that is not present only has findings about stuck children and that it vanished.
//
// There are at most 12 findings of a kind, 32 of contracts. The last one says how many were left out.
func (a *assessor) assess() []Finding {
	dev := a.state
	vanished := !dev.Vanished.IsZero()
	a.contract = cmp.Or(dev.Contracts, new(state.Contracts))
	if dev.Resources == nil && !vanished && dev.Last == nil && dev.Stuck == nil && a.contract.Last == nil && a.differences == nil {
		return nil
	}
	a.device, a.portRoots = text.Name(dev.Name), make(map[int]string)
	a.info, a.last = cmp.Or(dev.Info, new(state.Device)), cmp.Or(dev.Last, new(state.Run))
	a.resources = cmp.Or(dev.Resources, new(state.Resources))
	a.inventory = cmp.Or(a.resources.Inventory, new(state.Inventory))
	a.stuck()
	if vanished {
		a.add(observation{
			kind: FindingVanished, subject: "the device", run: true,
			message: fmt.Sprintf("The device was there until %s, and is gone.", text.Moment(dev.Vanished)),
		})
	}
	if dev.Present {
		for _, find := range []func(){
			a.unusable, a.aborted, a.probes, a.notification, a.unexplained, a.contracts, a.ports, a.hardware, a.slowVectors,
			a.nearLimit, a.exhaustion, a.cgroups, a.memlock, a.growing, a.ownerless, a.leaked, a.undestroyed,
			a.queuePairs, a.oversizedCQs, a.incomplete, a.unexpected, a.paths,
		} {
			find()
		}
		bandwidth.Problems(dev, a.host, a.problem)
	}
	return a.sorted()
}

// paths adds findings about paths to peers. Without an active port there is none.
func (a *assessor) paths() {
	root := ""
	if ports := lastPorts(a.state); len(ports) > 0 && !slices.ContainsFunc(ports, isActive) {
		root = a.portRoots[ports[0].Number]
	}
	for _, f := range paths.Of(a.state, a.host) {
		a.add(observation{
			kind: map[bool]Kind{true: FindingPathSlow, false: FindingPathFailed}[f.Slow], entry: f.Case, severity: f.Severity, subject: f.Subject,
			message: f.Message, reason: f.Reason, verb: f.Verb, errno: f.Errno, run: f.Case == "device", root: root, replace: []string{"{remedy}", f.Action},
		})
	}
}

// problem adds a finding of a room of its own.
func (a *assessor) problem(kind, entry, subject, message string, warning bool) {
	a.add(observation{kind: Kind(kind), entry: entry, severity: warningIf(warning), subject: subject, message: message})
}

// down reports whether the last probe run failed altogether or has not ended, which explains other failures.
func (a *assessor) down() bool {
	return a.state.Stuck != nil || !a.state.Present || isUnusable(a.last) ||
		a.last.Outcome == state.OutcomeTimeout || a.last.Outcome == state.OutcomeCrashed
}

type found struct {
	Finding
	observation
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
	// reason defaults to that of the entry. rule and port are as in Finding.
	reason, verb, errno, rule string
	port                      int
	// size orders findings of the same kind and severity, the largest first.
	size float64
	// run is true if the finding is about a run, which an unusable device explains.
	run bool
	// root is the root cause. Empty if the finding shares it with no other.
	root string
	// replace has the values of the placeholders in the texts, as strings.NewReplacer takes them.
	replace []string
}

func (a *assessor) add(o observation) {
	e := entryOf(o.kind, o.entry)
	// One pass, so that inserted values are not searched again.
	replaced := strings.NewReplacer(append([]string{
		"docs/", a.config.DocsURL + "docs/", "{device}", text.Quoted(a.device),
		"{subject}", o.subject, "{in}", text.Around(" in ", text.Name(o.verb), ""), "{verb}", text.Name(o.verb),
	}, o.replace...)...)
	f := Finding{
		Kind: o.kind, Severity: cmp.Or(o.severity, e.Severities[0]), Subject: cmp.Or(o.subject, "unknown"), Port: o.port, Rule: o.rule,
		Reason: cmp.Or(o.reason, replaced.Replace(e.Reason)), Verb: text.Name(o.verb), Errno: text.Name(o.errno),
		Message: o.message, Evidence: o.evidence, Meaning: cmp.Or(o.meaning, e.Meaning), Action: replaced.Replace(e.Action), Remedy: e.Remedy,
	}
	f.Harm = cmp.Or(o.harm, e.harmOf(f.Severity))
	if o.run && a.down() {
		o.root = rootDevice
	}
	a.found = append(a.found, found{f, o})
}

// sorted returns the findings in order, within their limits. Those with the same root cause are below the first one.
func (a *assessor) sorted() []Finding {
	var kinds []Kind
	if len(a.found) > 1 { // The catalogue is long.
		kinds = Kinds()
	}
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
	findings, roots := []Finding{}, make(map[string]int)
	for _, f := range a.found {
		limit := maxPerKind
		if f.Kind == FindingContract {
			limit = maxContract
		}
		shown[f.Kind]++
		if more := total[f.Kind] - limit; shown[f.Kind] > limit {
			continue
		} else if shown[f.Kind] == limit && more > 0 {
			f.Message = fmt.Sprintf("%s %d more, none of them worse, are not shown.", f.Message, more)
			f.about, f.Subject = f.Subject, fmt.Sprintf("%s and %d more", f.Subject, more)
		}
		if i, ok := roots[f.root]; ok && f.root != "" {
			findings[i].Consequences = append(findings[i].Consequences, f.Finding)
			continue
		}
		roots[f.root] = len(findings)
		findings = append(findings, f.Finding)
	}
	return findings
}

// unexpected adds the differences from what is expected. They share the cause of what says why.
func (a *assessor) unexpected() {
	entries := map[string]string{"rate": "link", "mtu": "link", "roce_v2_ipv4": "link", "device": "devices", "firmware": "version", "driver": "version"}
	for _, d := range a.differences {
		o := observation{kind: FindingUnexpected, entry: cmp.Or(entries[d.Key], d.Key), subject: d.Subject, rule: d.Key, message: d.Message}
		switch {
		case d.Device == "":
		case len(d.Ports) > 0:
			o.root = a.portRoots[d.Ports[0]]
		case d.Unread:
			o.root, o.run = rootHardware, d.Key == "active_ports" || d.Key == "firmware"
		default:
			o.root = a.differs(d.Key)
		}
		a.add(o)
	}
}

// differs returns a root cause if there is a difference of a key. Empty otherwise.
func (a *assessor) differs(key string) string {
	if slices.ContainsFunc(a.differences, func(d expect.Difference) bool { return d.Key == key }) {
		return "expect " + key
	}
	return ""
}
