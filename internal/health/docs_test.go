package health_test

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/health/paths"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
)

func thresholdKeys() []string {
	var keys []string
	for f := range reflect.TypeFor[health.Config]().Fields() {
		if key := f.Tag.Get("yaml"); key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}

// TestCatalogue verifies that every kind is there, in order, and that each entry is complete.
func TestCatalogue(t *testing.T) {
	keys := make(map[string]bool)
	var kinds []health.Kind
	cases := make(map[[2]string]bool)
	for _, e := range health.Catalogue() {
		id := [2]string{string(e.Kind), e.Case}
		if cases[id] {
			t.Errorf("%v is there twice", id)
		}
		cases[id], kinds = true, append(kinds, e.Kind)
		for _, text := range []string{e.Found, e.Meaning, e.Action} {
			if text == "" || strings.Contains(text, "\n") || !strings.HasSuffix(text, ".") {
				t.Errorf("%v: the text is not whole: %q", id, text)
			}
		}
		if !slices.ContainsFunc(remedies(), func(r [3]string) bool { return r[0] == string(e.Remedy) }) {
			t.Errorf("%v: the remedy is %q", id, e.Remedy)
		}
		if e.Reason == "" || strings.ContainsAny(e.Reason, "\n.") {
			t.Errorf("%v: the reason is no clause: %q", id, e.Reason)
		}
		if len(e.Severities) == 0 || !slices.IsSortedFunc(e.Severities, inOrder(state.Severities())) {
			t.Errorf("%v: severities %v", id, e.Severities)
		}
		if len(e.Harms) == 0 || !slices.IsSortedFunc(e.Harms, inOrder(health.Harms())) {
			t.Errorf("%v: harms %v", id, e.Harms)
		}
		if e.Threshold != "" {
			keys[e.Threshold] = true
		}
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(kinds))); len(unique) != len(health.Kinds()) {
		t.Errorf("the entries of a kind do not follow each other: %v", kinds)
	}
	for _, severity := range state.Severities() {
		if !cases[[2]string{string(health.FindingContract), string(severity)}] {
			t.Errorf("contracts of severity %s have no entry", severity)
		}
	}
	for _, reason := range state.IncompleteReasons() {
		if !cases[[2]string{string(health.FindingIncomplete), string(reason)}] {
			t.Errorf("the reason %s has no entry", reason)
		}
	}
	if got, want := slices.Sorted(maps.Keys(keys)), slices.Sorted(slices.Values(thresholdKeys())); !slices.Equal(got, want) {
		t.Errorf("the entries name the thresholds %v, want %v", got, want)
	}
}

func TestEveryFinding(t *testing.T) {
	hidden := device(state.Inventory{Ownerless: []state.TypeCount{{Type: "qp", Objects: 1}}})
	failed := device(state.Inventory{}, state.Limit{Name: "max_qp", Value: 100})
	failed.Resources.Last.Outcome = state.OutcomeCrashed
	young := device(state.Inventory{})
	young.Resources.Leaked = []state.Leaked{{Type: "qp", Objects: 1, Since: taken()}}
	states := []*state.DeviceState{
		trouble(), hidden, failed, young,
		device(state.Inventory{Owners: []state.Owner{pinning(1, 99, 0, 100)}}),
	}
	states = append(states, worn()...)
	states = append(states, growing(2000, 10, 10), growing(1<<20, 10, 10))
	for _, reason := range state.IncompleteReasons() {
		states = append(states, device(state.Inventory{Incomplete: []state.Incomplete{{Type: "qp", Reason: reason}}}))
	}
	states = slices.Concat(states, ill(), asking(), []*state.DeviceState{slow()})
	refused := device(state.Inventory{}, state.Limit{Name: "max_srq", Value: 1000})
	refused.Last.Started, refused.Last.Refused = taken(), []state.Refused{{Type: "srq", Verb: "ibv_create_srq", Errno: "ENOMEM", Objects: 96}}
	states = append(states, refused)

	type key struct {
		kind     health.Kind
		severity health.Severity
		harm     health.Harm
		meaning  string
		action   string // Up to the first word in braces.
	}
	missing := make(map[key]bool)
	for _, e := range health.Catalogue() {
		action, _, _ := strings.Cut(e.Action, "{")
		for i, severity := range e.Severities {
			harms := e.Harms
			if len(harms) == len(e.Severities) {
				harms = harms[i : i+1]
			}
			for _, harm := range harms {
				missing[key{e.Kind, severity, harm, e.Meaning, action}] = true
			}
		}
	}
	known := maps.Clone(missing)
	var found []health.Finding
	accepting := health.Default()
	accepting.Now = func() time.Time { return time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC) }
	accepting.Accept = []health.Accept{{Finding: health.FindingStuck, Reason: "x"}, {Finding: health.FindingStuck, Reason: "x", Until: "2026-02-28"}}
	found = append(found, health.New(accepting, health.History{}).Evaluate(&state.Snapshot{Ready: true}).Findings...)
	found = append(found, congested(map[string]uint64{"rx_prio3_pause_duration": 100e6})...)
	found = append(found, congested(map[string]uint64{"rx_prio3_pause_duration": 10e6})...)
	found = append(found, hiddenPorts(func(h *state.HardwareState) { h.Latest.Ports[0].Ifindex, h.Latest.Ports[0].Counters = 0, nil })...)
	found = append(found, unexpected()...)
	states = append(states, &state.DeviceState{}, &state.DeviceState{Name: "gone", Vanished: taken()})
	for _, s := range states {
		found = append(found, health.Assess(s, once(), health.History{})...)
		found = append(found, health.Assess(s, health.Default(), health.History{
			Ports:     map[string][]int{"rxe0": {1, 2, 3}},
			BusErrors: map[string]health.BusErrors{"rxe0": {Grew: taken()}},
			Exhausted: map[string][]health.Exhausted{"rxe0": {
				{Type: "mr", Objects: 125000, At: taken(), Verb: "ibv_reg_mr", Errno: "ENOMEM"},
				{Type: "srq", Objects: 96, At: taken(), Verb: "ibv_create_srq", Errno: "ENOMEM"},
			}},
		})...)
	}
	numbers := regexp.MustCompile(`ports? \d+(, \d+)*|RoCE v2|IPv4|roce_v2_ipv4`)
	for _, f := range flat(found) {
		whole(t, f)
		// What differs between hosts and over time is in the message.
		if own := regexp.MustCompile(`\d|rxe|trainer|eth|/`).FindString(numbers.ReplaceAllString(f.Reason, "")); own != "" {
			t.Errorf("the reason has %q: %s", own, f.Reason)
		}
		ok := false
		for k := range known {
			if k.kind == f.Kind && k.severity == f.Severity && k.harm == f.Harm && k.meaning == f.Meaning && strings.HasPrefix(f.Action, k.action) {
				ok = true
				delete(missing, k)
			}
		}
		if !ok {
			t.Errorf("the catalogue does not have %+v", f)
		}
	}
	for k := range missing {
		t.Errorf("nothing has %+v", k)
	}
}

func whole(t *testing.T, f health.Finding) {
	t.Helper()
	for _, text := range []string{f.Subject, f.Reason, f.Message, f.Meaning, f.Action, string(f.Remedy)} {
		if text == "" {
			t.Errorf("not whole: %+v", f)
		}
	}
	if !slices.Contains(health.Kinds(), f.Kind) || !slices.Contains(state.Severities(), f.Severity) || !slices.Contains(health.Harms(), f.Harm) {
		t.Errorf("of no kind, severity or harm that there is: %+v", f)
	}
}

func TestPlaceholders(t *testing.T) {
	unused := placeholders()
	for _, e := range health.Catalogue() {
		rest := e.Reason + e.Action
		for name := range placeholders() {
			if strings.Contains(rest, name) {
				delete(unused, name)
				rest = strings.ReplaceAll(rest, name, "")
			}
		}
		if strings.ContainsAny(rest, "{}") {
			t.Errorf("%s %s: a word in braces is not known: %s", e.Kind, e.Case, rest)
		}
	}
	for name := range unused {
		t.Errorf("no text has %s", name)
	}
	for _, s := range slices.Concat(ill(), worn(), asking(), []*state.DeviceState{trouble()}) {
		for _, f := range flat(assess(s)) {
			if strings.ContainsAny(f.Reason+f.Action, "{}") {
				t.Errorf("not replaced: %s: %s", f.Reason, f.Action)
			}
		}
	}
}

func TestDocs(t *testing.T) {
	golden.Check(t, "../../docs/reference/findings.md", docs())
}

func placeholders() map[string]string {
	return map[string]string{
		"{device}":   "name of the device",
		"{subject}":  "what the finding is about, such as `port 1`",
		"{are}":      "`is` or `are`",
		"{verb}":     "name of the verb",
		"{in}":       "the verb that did not return, such as ` in ibv_create_qp`; empty if there is none",
		"{show}":     "the command that lists the objects, such as `rdma resource show qp link rxe0 pid 4711`",
		"{type}":     "type of object, as rdma(8) names it",
		"{pid}":      "process ID, as the exporter sees it",
		"{cgroup}":   "path of the cgroup, quoted for a shell where needed",
		"{resource}": "`hca_handle` or `hca_object`",
		"{contract}": "name of the contract",
		"{remedy}":   "what the [catalogue of contracts](contracts.md) says to do, or what helps against the result of a path",
	}
}

func remedies() [][3]string {
	return [][3]string{
		{"none", "nothing", "nobody"},
		{"application", "a program on the host that holds too much or handles errors badly", "the owner of the job"},
		{"configuration", "a setting of the host or the container: rights, limits, addresses, interrupts", "the administrator of the host"},
		{"driver", "driver, firmware or rdma-core: load, reload or update it, or reset the device", "the administrator of the host, then the vendor"},
		{"reboot", "what hangs in the kernel, which only a restart of the host surely frees", "the administrator, or automation, once the node is drained"},
		{"hardware", "the adapter, its slot or riser: look at it and reseat it", "somebody at the machine"},
		{"network", "the link and what is behind it: cable, module, switch, subnet manager", "the network team"},
		{"exporter", "the exporter's settings, rights or place; the devices may be fine", "who runs the exporter"},
	}
}

func docs() string {
	var b strings.Builder
	b.WriteString(`# Findings

This page follows from the catalogue in ` + "`internal/health/catalogue.go`; `go test ./internal/health -update`" + ` rewrites it.

The exporter evaluates a device each time its state changes: the last probe, contract and inventory runs; all objects
that the kernel tracks; the limits of the device, of cgroups and on locked memory; and what the kernel shows of links,
counters, PCI bus, interrupts and addresses. ` + "`rdma_findings`" + ` counts findings by severity, and
` + "`rdma_finding_first_seen_timestamp_seconds`" + ` names each kind. ` + "`rdma_finding_info`" + ` has the reason of each: the clause
below, or the verb that failed and its errno, as in ` + "`ibv_open_device fails with EPERM`" + `. It has no names, counts or
times, so the same cause reads the same on all hosts, at all times.

Each problem is reported once. Findings with one root cause, such as everything that fails on a hung device, are listed
as consequences below the first. Metrics, headlines and the exit status of ` + "`audit`" + ` count them once. A finding about
a run shows the state at the time of that run.

With ` + "`--state.dir`" + `, first-seen times and the ports that have been active survive restarts. A finding that returns
within ten minutes is the same one. Known problems can be [accepted](configuration.md#what-is-accepted): they are shown
but not counted.

Severities: **critical**, something fails already or soon will, and will not recover by itself; **warning**, look at it
before it gets there; **info**, good to know.

Harms, worst first, which is also the order of findings, issues and devices: **outage**, the device is unusable: gone,
without an active port, hung, or out of objects; **failure**, some uses of it fail; **degradation**, it works, but slower,
with fewer ports, or near a limit; **quirk**, it breaks a promise, which harms only programs that rely on it; **note**,
no known harm.

A device has at most 12 findings of a kind (32 of contracts), the worst first; the last one says how many are not shown.
A vanished device only has findings about stuck child processes, and that it vanished.

Remedies, next to each finding's action, tell programs what has to be mended, and so who acts. They never say "replace
the machine": somebody has to look first.

| remedy | what has to be mended | who acts |
|---|---|---|
`)
	for _, r := range remedies() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r[0], r[1], r[2])
	}
	b.WriteString(`
| finding | severity | harm | remedy | threshold |
|---|---|---|---|---|
`)
	entries := health.Catalogue()
	for _, kind := range health.Kinds() {
		var severities []health.Severity
		var harms []health.Harm
		var remedies []health.Remedy
		threshold := ""
		for _, e := range entries {
			if e.Kind != kind {
				continue
			}
			severities, harms = append(severities, e.Severities...), append(harms, e.Harms...)
			if !slices.Contains(remedies, e.Remedy) {
				remedies = append(remedies, e.Remedy)
			}
			if e.Threshold != "" {
				threshold = fmt.Sprintf("[`%s`](#thresholds)", e.Threshold)
			}
		}
		severities = slices.Compact(slices.SortedFunc(slices.Values(severities), inOrder(state.Severities())))
		harms = slices.Compact(slices.SortedFunc(slices.Values(harms), inOrder(health.Harms())))
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s | %s |\n", kind, kind, joined(severities, ", "), joined(harms, ", "), joined(remedies, ", "), threshold)
	}

	b.WriteString("\nWords in braces stand for what was found:\n\n")
	placeholders := placeholders()
	for _, name := range slices.Sorted(maps.Keys(placeholders)) {
		fmt.Fprintf(&b, "- `%s`: %s\n", name, placeholders[name])
	}

	var last health.Kind
	for _, e := range entries {
		if e.Kind != last {
			last = e.Kind
			fmt.Fprintf(&b, "\n## %s\n", e.Kind)
		}
		if e.Case != "" {
			fmt.Fprintf(&b, "\n### %s: %s\n", e.Kind, e.Case)
		}
		fmt.Fprintf(&b, "- **%s; %s; %s:** %s %s\n- **What to do (%s):** %s\n",
			joined(e.Severities, " or "), joined(e.Harms, " or "), e.Reason, e.Found, e.Meaning, e.Remedy, e.Action)
		if e.Kind == health.FindingGrowing {
			b.WriteString("\nExamples, on a device that allows 10,000 queue pairs unless stated otherwise (checked by `TestGrowing`):\n\n| a program | found |\n|---|---|\n")
			for _, l := range lives() {
				fmt.Fprintf(&b, "| %s | %s |\n", l.does, l.want)
			}
			b.WriteString("\nThe history starts with the exporter, so after a restart this takes as long again.\n")
		}
		if e.Kind == health.FindingPathSlow {
			b.WriteString("\n| result of a path | reason | {remedy} |\n|---|---|---|\n")
			for _, r := range state.PathResults() {
				for _, f := range paths.Of(&state.DeviceState{Paths: []state.PathState{{Path: state.Path{Result: r}}}}, nil) {
					fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r, f.Reason, f.Action)
				}
			}
		}
	}

	d := health.Default()
	levels := func(l health.Levels) string {
		return fmt.Sprintf("`{warning: %v, critical: %v}`", l.Warning, l.Critical)
	}
	b.WriteString(`
## Thresholds

The key ` + "`findings`" + ` of the configuration file sets them.

| key | default | range | |
|---|---|---|---|
`)
	for _, row := range [][4]any{
		{"near_limit", levels(d.NearLimit), "above 0, up to 1", "fraction of the objects of one type that the device allows"},
		{"cgroup_near_limit", levels(d.CgroupNearLimit), "above 0, up to 1", "fraction of what the RDMA controller allows a cgroup on the device"},
		{"memlock_near_limit", levels(d.MemlockNearLimit), "above 0, up to 1", "fraction of the memory that a process may lock"},
		{"orphan_age", d.OrphanAge, "0s to 24h", "how long inventories must have found objects without an owner, or left behind by the exporter's children. The kernel takes a while to clean up after a process"},
		{"qp_errors", d.QPErrors, "from 1", "queue pairs in the state err or sqe"},
		{"cq_entries", d.CQEntries, "from 1", "total entries of completion queues that cannot be filled; the default is some 4 MiB"},
		{"port_flapping.downs", d.PortFlapping.Downs, fmt.Sprint("1 to ", state.MaxRecent), "how often a port must have gone down"},
		{"port_flapping.window", d.PortFlapping.Window, "above 0s, up to 24h", "within this time"},
		{"growing.objects", d.Growing.Objects, "from 1", "how many objects of a type an owner must have added"},
		{"growing.window", d.Growing.Window, "10m to 55m", "over at least this time"},
		{"growing.within", d.Growing.Within, "0s to 8760h", "a warning if the limit of the device is reached within this time"},
	} {
		line := fmt.Sprintf("| `%s` | %v | %s | %s |\n", row[0], row[1], row[2], row[3])
		b.WriteString(strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(line))
	}
	return b.String()
}

func joined[T ~string](all []T, separator string) string {
	var words []string
	for _, s := range all {
		words = append(words, string(s))
	}
	return strings.Join(words, separator)
}

func inOrder[T comparable](order []T) func(a, b T) int {
	return func(a, b T) int { return cmp.Compare(slices.Index(order, a), slices.Index(order, b)) }
}

func TestDocsURL(t *testing.T) {
	const document, url = "docs/reference/contracts.md", "https://git.example/docs/"
	c := health.Default()
	c.DocsURL = url
	named := make(map[health.Kind]bool)
	for _, s := range ill() {
		s.Name = "docs/reference/"
		linked := health.Assess(s, c, health.History{})
		for i, f := range assess(s) {
			named[f.Kind] = named[f.Kind] || strings.Contains(f.Action, document)
			if got, want := linked[i].Action, strings.ReplaceAll(f.Action, document, url+document); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
	for _, e := range health.Catalogue() {
		if strings.Contains(e.Found+e.Meaning, "docs/") || strings.Contains(e.Action, "docs/") && !named[e.Kind] {
			t.Errorf("%s, %s: a document is named where nothing was found", e.Kind, e.Case)
		}
	}
}
