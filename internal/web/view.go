package web

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const (
	// openDevices is how many devices are shown in full without being asked for, and
	// how many in trouble.
	openDevices = 4
	// maxTroubles and maxPlaces are how many kinds of trouble are listed at the top, and
	// on how many devices each.
	maxTroubles, maxPlaces = 24, 12
)

// pageView is what the page shows.
type pageView struct {
	clock
	documents
	Status *api.Status
	Style  template.CSS
	// Title is that of the window, Verdict the answer at one look, and Counts what it
	// is made of.
	Title, Verdict, Counts string
	Troubles               []trouble
	// MoreTroubles is in how many cases there is trouble that is left out.
	MoreTroubles int
	Devices      []deviceView
	// The paths are relative, so that a proxy may serve the page somewhere else.
	MetricsPath, APIPath, HealthyPath, ReadyPath string
}

// trouble is what is wrong in one way, on one device or on several.
type trouble struct {
	Severity api.Severity
	Harm     api.Harm
	Kind     api.Kind
	Meaning  string
	Action   string
	// For is the device that the action names, if it is of several.
	For    string
	Places []place
	// MorePlaces is how many are left out.
	MorePlaces int
}

// place is where trouble is: on one device, or on several of which the same is said.
type place struct {
	clock
	Devices          []named
	Subject, Message string
	// Since is the earliest of them.
	Since time.Time
	// Beneath says what else was found of the same root; empty for nothing.
	Beneath string
}

// named is a device, and the id of its part of the page.
type named struct{ Device, Anchor string }

// same tells whether two places differ in their devices alone.
func (p *place) same(other *place) bool {
	return p.Subject == other.Subject && p.Message == other.Message && p.Beneath == other.Beneath
}

// deviceView is what the page shows of a device.
type deviceView struct {
	clock
	documents
	*api.Device
	// Found and Accepted are its findings: those that are not accepted, and those that are.
	Found, Accepted []api.Finding
	// Anchor is the id of its part of the page.
	Anchor string
	// Open tells that it is shown without being asked for.
	Open         bool
	Runs         []runView
	Sizes        []sizesView
	SizesSummary string
	Axis         axis
	Vectors      *vectorsView
	Violated     []api.Contract
	Skipped      []api.Contract
	Holding      []api.Contract
	Types        []typeView
	// Adapter is which adapter it is, and where in the host, Links its ports as the kernel
	// tells of them, and Counted what they counted; nil if there is nothing to tell.
	Adapter []fact
	Links   []linkView
	Counted *countersView
}

// runView is a run with what was run.
type runView struct {
	What string
	*api.Run
	// None says why there is no run.
	None string
	// PutOff is why one that is due waits; nil if none does.
	PutOff *api.Light
}

// typeView is a type of object with its picture.
type typeView struct {
	api.Type
	// Level is the class of what a finding says of its headroom.
	Level string
	Bar   template.HTML
}

// viewOf returns the view of a status.
func viewOf(s *api.Status, metricsPath string) *pageView {
	v := &pageView{
		clock: clock{s.Generated}, documents: documents{s.DocsURL}, Status: s,
		Style:       template.CSS(pageCSS),
		MetricsPath: relative(metricsPath), APIPath: relative(apiPath()),
		HealthyPath: relative(healthyPath), ReadyPath: relative(readyPath),
	}
	counts := make(map[api.Health]int)
	anchors := make(map[string]bool)
	for i := range s.Devices {
		d := &s.Devices[i]
		counts[d.Health]++
		anchor := anchorOf(d.Name, i)
		if anchors[anchor] {
			anchor = anchorOf("", i)
		}
		anchors[anchor] = true
		v.Devices = append(v.Devices, viewOfDevice(d, v.clock, v.documents, anchor))
	}
	troubled := counts[api.HealthWarning] + counts[api.HealthCritical]
	for i := range v.Devices {
		h := v.Devices[i].Health
		v.Devices[i].Open = len(v.Devices) <= openDevices ||
			troubled <= openDevices && (h == api.HealthWarning || h == api.HealthCritical)
	}
	v.addTroubles()
	v.Verdict = verdictOf(s, troubled, counts[api.HealthUnknown])
	v.Counts = countsOf(s, counts)
	v.Title = strings.TrimPrefix(fmt.Sprintf("%s: %s", s.Host, s.Health), ": ") + " – rdma_exporter"
	return v
}

// relative returns a path of the exporter as seen from its page.
func relative(path string) string { return "./" + strings.TrimPrefix(path, "/") }

// anchorOf returns the id of a device's part of the page: one that follows from its
// name, so that it can be linked to, or, if the name has signs that an id should not,
// from its place.
func anchorOf(name string, i int) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.", r)
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return fmt.Sprintf("device.%d", i)
	}
	return "device-" + name
}

// verdictOf answers whether there is anything to be done.
func verdictOf(s *api.Status, troubled, unknown int) string {
	devices := text.Plural(len(s.Devices), "device")
	switch {
	case s.Problem != nil && troubled == 0:
		return s.Problem.Message
	case s.Health == api.HealthOK:
		return "All is well. No action needed"
	case s.Health == api.HealthUnknown:
		return fmt.Sprintf("%d of %s not probed yet, or not recently", unknown, devices)
	case len(s.Devices) == 1:
		return "The device needs attention"
	case troubled == 1:
		return fmt.Sprintf("1 of %s needs attention", devices)
	default:
		return fmt.Sprintf("%d of %s need attention", troubled, devices)
	}
}

// countsOf returns how many devices and findings there are, in words; nothing without
// devices.
func countsOf(s *api.Status, healths map[api.Health]int) string {
	var of, findings []string
	for _, h := range slices.Backward(api.Healths()) {
		if n := healths[h]; n > 0 {
			of = append(of, fmt.Sprintf("%d %s", n, h))
		}
	}
	if len(of) == 0 {
		return ""
	}
	words := text.Plural(len(s.Devices), "device") + ": " + strings.Join(of, ", ")
	accepted := 0
	for _, c := range s.FindingCounts {
		if c.Count > 0 {
			findings = append(findings, fmt.Sprintf("%d %s", c.Count, c.Severity))
		}
		accepted += c.Accepted
	}
	if accepted > 0 {
		findings = append(findings, fmt.Sprintf("%d accepted", accepted))
	}
	if len(findings) > 0 {
		words += ". Findings: " + strings.Join(findings, ", ")
	}
	return words + "."
}

// addTroubles adds what is wrong. What is only worth knowing stands with the devices.
func (v *pageView) addTroubles() {
	for _, of := range v.Status.Troubles {
		if of.Severity == api.SeverityInfo {
			continue
		}
		if len(v.Troubles) == maxTroubles {
			v.MoreTroubles += len(of.Places)
			continue
		}
		t := trouble{Severity: of.Severity, Harm: of.Harm, Kind: of.Kind, For: of.For, MorePlaces: max(0, len(of.Places)-maxPlaces)}
		for i, p := range of.Places[:len(of.Places)-t.MorePlaces] {
			d := &v.Devices[p.Device]
			f := api.Finding{
				Message: d.Headline, Action: "See the run in the device's section of this page, and the exporter's log.",
			}
			if p.Finding >= 0 {
				f = d.Findings[p.Finding]
			}
			if i == 0 {
				t.Meaning, t.Action = f.Meaning, f.Action
			}
			on := place{Devices: []named{{d.Name, d.Anchor}}, Subject: f.Subject, Message: brief(f.Message), Since: f.Since, Beneath: f.Beneath(maxPlaces), clock: v.clock}
			if n := slices.IndexFunc(t.Places, func(p place) bool { return p.same(&on) }); n >= 0 {
				with := &t.Places[n]
				with.Devices = append(with.Devices, on.Devices...)
				if on.Since.Before(with.Since) {
					with.Since = on.Since
				}
				continue
			}
			t.Places = append(t.Places, on)
		}
		v.Troubles = append(v.Troubles, t)
	}
}

// viewOfDevice returns the view of a device.
func viewOfDevice(d *api.Device, c clock, docs documents, anchor string) deviceView {
	v := deviceView{clock: c, documents: docs, Device: d, Anchor: anchor, Axis: axisOf(d.Latencies), Vectors: vectorsOf(d)}
	for _, f := range d.Findings {
		if f.Accepted == nil {
			v.Found = append(v.Found, f)
		} else {
			v.Accepted = append(v.Accepted, f)
		}
	}
	v.Sizes, v.SizesSummary = sizesOf(d.Sizes)
	if h := d.Hardware; h != nil {
		v.Adapter, v.Links, v.Counted = adapterOf(h), linksOf(h), countersOf(h)
	}
	v.Runs = []runView{
		{What: "Probes", Run: d.Run, None: "not run yet"},
		{What: "Contract run", None: "not run yet, or switched off"},
		{What: "Inventory", None: "not run yet, or switched off"},
	}
	if d.Contracts != nil {
		v.Runs[1].Run, v.Runs[1].PutOff = d.Contracts.Run, d.Contracts.PutOff
		for _, one := range d.Contracts.Verdicts {
			switch one.Verdict {
			case state.VerdictViolated:
				if one.Known {
					continue
				}
				v.Violated = append(v.Violated, one)
			case state.VerdictSkipped:
				v.Skipped = append(v.Skipped, one)
			default:
				v.Holding = append(v.Holding, one)
			}
		}
	}
	if d.Resources != nil {
		v.Runs[2].Run = d.Resources.Run
		for _, t := range d.Resources.Types {
			v.Types = append(v.Types, typeOf(t, v.Found))
		}
	}
	return v
}

// typeOf returns the view of a type of object.
func typeOf(t api.Type, findings []api.Finding) typeView {
	v := typeView{Type: t, Level: "usual"}
	for _, f := range findings {
		if f.Kind == api.KindNearLimit && f.Subject == t.Type {
			v.Level = lookOf(string(f.Severity)).class
		}
	}
	if t.Limit != nil && *t.Limit > 0 {
		v.Bar = bar(t.Objects, *t.Limit, v.Level)
	}
	return v
}

// Quiet tells that there is nothing to be said of the device beyond its health.
func (v deviceView) Quiet() bool {
	return v.Health == api.HealthOK && v.Headline == api.NothingToDo
}

// Brief is the headline, and of a quiet device what is known of it instead.
func (v deviceView) Brief() string {
	if facts := v.Facts(); v.Quiet() && len(facts) > 0 {
		return strings.Join(facts, ", ")
	}
	return brief(v.Headline)
}

// Kept says at a glance whether the device keeps the contracts, of which it has
// verdicts. It is praised only if they were judged lately and any was.
func (v deviceView) Kept() template.HTML {
	c := v.Contracts
	accepted := 0
	for _, f := range v.Accepted {
		if f.Kind == api.KindContract {
			accepted++
		}
	}
	violated := c.Violated - c.KnownViolated - accepted
	switch {
	case violated > 0 && accepted > 0:
		return badgeLike(fmt.Sprintf("%d violated, %d more accepted", violated, accepted), string(api.HealthCritical))
	case violated > 0:
		return badgeLike(fmt.Sprintf("%d violated", violated), string(api.HealthCritical))
	case accepted > 0:
		return badgeLike(fmt.Sprintf("%d violated, as accepted", accepted), string(api.HealthUnknown))
	case c.Run == nil:
		return badgeLike("none known to be violated yet", string(api.HealthUnknown))
	case c.Run.Outcome != state.OutcomeOK:
		return badgeLike("none known to be violated: the last contract run was not ok", string(api.HealthUnknown))
	case c.Holds == 0:
		return badgeLike("none could be judged", string(api.HealthUnknown))
	case c.Run.Stale:
		return badgeLike("none known to be violated: the last contract run is old", string(api.HealthUnknown))
	case c.KnownViolated > 0:
		return badgeLike("none violated except as the driver is known to", string(api.HealthOK))
	default:
		return badgeLike("none violated", string(api.HealthOK))
	}
}

// Blind tells that the inventory was taken without sight of the processes of the host.
func (v deviceView) Blind() bool {
	r := v.Resources
	return r != nil && r.PIDsVisible != nil && !*r.PIDsVisible
}

// Outdated tells that what is known of objects is not of the last inventory.
func (v deviceView) Outdated() bool {
	r := v.Resources
	return r != nil && r.Run != nil && !r.Taken.IsZero() && !r.Taken.Equal(r.Run.Started)
}

// Growers are the types that grow, of all owners together, and the owners that grow
// fastest.
func (v deviceView) Growers() []api.Grower {
	var all []api.Grower
	for _, t := range v.Types {
		if t.Growth != nil {
			all = append(all, api.Grower{Type: t.Type.Type, Growth: *t.Growth})
		}
	}
	if v.Resources != nil {
		all = append(all, v.Resources.Growers...)
	}
	return all
}

// Rest says what is known of the objects of user programs that have none of the owners
// that are named; empty if there are none.
func (v deviceView) Rest() string {
	var others, unowned []string
	for _, t := range v.Types {
		if t.Others > 0 {
			others = append(others, text.Number(t.Others)+" "+t.Type.Type)
		}
		if t.Unowned > 0 {
			unowned = append(unowned, text.Number(t.Unowned)+" "+t.Type.Type)
		}
	}
	var words []string
	if len(others) > 0 {
		words = append(words, "Smaller owners have "+strings.Join(others, ", ")+".")
	}
	if len(unowned) > 0 {
		words = append(words, "Of "+strings.Join(unowned, ", ")+" the kernel names no process.")
	}
	return strings.Join(words, " ")
}

// Wrong says what went wrong in a measurement; empty if nothing did.
func (v deviceView) Wrong(l api.Latency) string {
	var words []string
	for _, w := range []struct {
		n         int
		one, more string
	}{
		{l.Missed, "event missed", "events missed"},
		{l.Spurious, "event without a completion", "events without a completion"},
		{l.Misdirected, "event misdirected", "events misdirected"},
		{l.Missing, "completion missing", "completions missing"},
		{l.Unsuccessful, "completion with a wrong status", "completions with a wrong status"},
	} {
		if w.n > 0 {
			words = append(words, text.Count(w.n, w.one, w.more))
		}
	}
	return strings.Join(words, ", ")
}
