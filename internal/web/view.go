package web

import (
	"cmp"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const (
	// openDevices limits the devices, and the unhealthy devices, that are shown open.
	openDevices = 4
	// maxIssues and maxPlaces limit the issues on top, and the devices of each.
	maxIssues, maxPlaces = 24, 12
)

type pageView struct {
	clock
	documents
	Status *api.Status
	Style  template.CSS
	// Title is the title of the window. Verdict is the answer at one look, and Counts its parts.
	Title, Verdict, Counts string
	Issues                 []issue
	// MoreIssues counts the places of issues that are left out.
	MoreIssues int
	Devices    []deviceView
	// The paths are relative, so that a proxy may serve the page somewhere else.
	MetricsPath, APIPath, HealthyPath, ReadyPath string
}

// issue is what is wrong in one way, on one device or on several.
type issue struct {
	*health.Issue
	On []place
	// MorePlaces counts the places that are left out.
	MorePlaces int
}

// place is one device with an issue, or several with the same message.
type place struct {
	api.Together
	Devices []named
	// Beneath names the findings with the same root cause.
	Beneath string
}

type named struct{ Device, Anchor string }

type deviceView struct {
	clock
	documents
	*api.Device
	// Found and Accepted are its findings.
	Found, Accepted []health.Finding
	// Anchor is the id of its part of the page.
	Anchor string
	// Open is true if it is shown open.
	Open         bool
	Runs         []runView
	Sizes        []sizesView
	SizesSummary string
	Measured     []state.Latency
	Axis         axis
	// Adapter describes the adapter, Links its ports, and Counted its counters.
	Adapter []api.Fact
	Links   []api.Link
	Counted *api.Counters
}

type runView struct {
	What string
	*state.Run
	Stale bool
	// None says why there is no run.
	None string
	// PutOff is why a run that is due waits; nil if none does.
	PutOff *state.Reduced
}

func viewOf(s *api.Status, metricsPath string) *pageView {
	v := &pageView{
		clock: clock{s.Generated}, documents: documents{s.DocsURL}, Status: s,
		Style:       template.CSS(pageCSS),
		MetricsPath: relative(metricsPath), APIPath: relative(api.Path),
		HealthyPath: relative(healthyPath), ReadyPath: relative(readyPath),
	}
	counts := make(map[health.Health]int)
	for i := range s.Devices {
		d := &s.Devices[i]
		counts[d.Health]++
		v.Devices = append(v.Devices, viewOfDevice(d, v.clock, v.documents, anchorOf(d.Name, i)))
	}
	troubled := counts[health.Warning] + counts[health.Critical]
	for i := range v.Devices {
		h := v.Devices[i].Health
		v.Devices[i].Open = len(v.Devices) <= openDevices ||
			troubled <= openDevices && (h == health.Warning || h == health.Critical)
	}
	v.addIssues()
	v.Verdict = verdictOf(s, troubled, counts[health.Unknown])
	v.Counts = countsOf(s)
	v.Title = strings.TrimPrefix(fmt.Sprintf("%s: %s", s.Host, s.Health), ": ") + " – rdma_exporter"
	return v
}

func relative(path string) string { return "./" + strings.TrimPrefix(path, "/") }

// anchorOf returns the id of a device's part of the page. It follows from the name, so that
// people can link to it, or from the position if the name has unusual characters.
func anchorOf(name string, i int) string {
	if regexp.MustCompile(`^[\w.-]+$`).MatchString(name) {
		return "device-" + name
	}
	return fmt.Sprintf("device.%d", i)
}

func verdictOf(s *api.Status, troubled, unknown int) string {
	devices := text.Plural(len(s.Devices), "device")
	switch {
	case s.Problem != nil && troubled == 0:
		return s.Problem.Message
	case len(s.Unexpected()) > 0 && troubled == 0:
		return "The host is not as expected"
	case s.Health == health.OK:
		return "All is well. No action needed"
	case s.Health == health.Unknown:
		return fmt.Sprintf("%d of %s not probed yet, or not recently", unknown, devices)
	case len(s.Devices) == 1:
		return "The device needs attention"
	case troubled == 1:
		return fmt.Sprintf("1 of %s needs attention", devices)
	default:
		return fmt.Sprintf("%d of %s need attention", troubled, devices)
	}
}

func countsOf(s *api.Status) string {
	if len(s.Devices) == 0 {
		return ""
	}
	return text.Plural(len(s.Devices), "device") + ": " + s.HealthCounts() + text.Around(". Findings: ", s.FindingWords(), "") + "."
}

// addIssues adds the issues but those of severity info.
func (v *pageView) addIssues() {
	for i := range v.Status.Issues {
		of := &v.Status.Issues[i]
		if of.Severity == health.SeverityInfo {
			continue
		}
		if len(v.Issues) == maxIssues {
			v.MoreIssues += len(of.Places)
			continue
		}
		one := issue{Issue: of, MorePlaces: max(0, len(of.Places)-maxPlaces)}
		for _, t := range v.Status.Together(of.Places[:len(of.Places)-one.MorePlaces]) {
			t.Message = brief(t.Message)
			on := place{Together: t}
			for _, p := range t.Places {
				on.Devices = append(on.Devices, named{v.Devices[p.Device].Name, v.Devices[p.Device].Anchor})
			}
			if t.Finding != nil {
				on.Beneath = api.Consequences(t.Finding, maxPlaces)
			}
			one.On = append(one.On, on)
		}
		v.Issues = append(v.Issues, one)
	}
}

func viewOfDevice(d *api.Device, c clock, docs documents, anchor string) deviceView {
	v := deviceView{clock: c, documents: docs, Device: d, Anchor: anchor, Measured: d.Latencies()}
	v.Axis = axisOf(v.Measured)
	for _, f := range d.Findings {
		if f.Accepted == nil {
			v.Found = append(v.Found, f)
		} else {
			v.Accepted = append(v.Accepted, f)
		}
	}
	v.Sizes, v.SizesSummary = sizesOf(d.Sizes())
	if h := d.Hardware; h != nil && h.Latest != nil {
		v.Adapter, v.Links, v.Counted = api.Adapter(h.Latest), api.Links(h), api.CountersOf(h)
	}
	stale := func(kind state.Kind) bool { return slices.Contains(d.Stale, kind) }
	contracts, resources := cmp.Or(d.Contracts, new(state.Contracts)), cmp.Or(d.Resources, new(state.Resources))
	const off = "not run yet, or switched off"
	v.Runs = []runView{
		{What: "Probes", Run: d.Last, Stale: stale(state.KindProbe), None: "not run yet"},
		{What: "Contract run", Run: contracts.Last, PutOff: contracts.PutOff, Stale: stale(state.KindContract), None: off},
		{What: "Inventory", Run: resources.Last, Stale: stale(state.KindInventory), None: off},
	}
	return v
}

// Level returns the class of the headroom of a type of object, by its finding.
func (v deviceView) Level(kind string) string {
	for _, f := range v.Found {
		if f.Kind == health.FindingNearLimit && f.Subject == kind {
			return badgeStyleOf(string(f.Severity)).class
		}
	}
	return "usual"
}

// Quiet reports whether the device is healthy and its headline says no more.
func (v deviceView) Quiet() bool { return v.Health == health.OK && v.Headline == health.NothingToDo }

// Summary is the headline, or facts about a quiet device.
func (v deviceView) Summary() string {
	if facts := v.Device.Summary(); v.Quiet() && len(facts) > 0 {
		return strings.Join(facts, ", ")
	}
	return brief(v.Headline)
}

// ContractSummary returns whether the device keeps the contracts. It is good only if a recent
// run checked some.
func (v deviceView) ContractSummary() template.HTML {
	c, accepted := v.Contracts, 0
	for _, f := range v.Accepted {
		if f.Kind == health.FindingContract {
			accepted++
		}
	}
	violated := len(c.With(state.VerdictViolated)) - accepted
	words, like := "none violated", health.Unknown
	switch {
	case violated > 0 && accepted > 0:
		words, like = fmt.Sprintf("%d violated, %d more accepted", violated, accepted), health.Critical
	case violated > 0:
		words, like = fmt.Sprintf("%d violated", violated), health.Critical
	case accepted > 0:
		words = fmt.Sprintf("%d violated, as accepted", accepted)
	case c.Last == nil:
		words = "none known to be violated yet"
	case c.Last.Outcome != state.OutcomeOK:
		words = "none known to be violated: the last contract run was not ok"
	case len(c.With(state.VerdictHolds)) == 0:
		words = "none could be checked"
	case slices.Contains(v.Stale, state.KindContract):
		words = "none known to be violated: the last contract run is old"
	case c.KnownViolated() > 0:
		words, like = "none violated except as the driver is known to", health.OK
	default:
		like = health.OK
	}
	return badgeLike(words, string(like))
}

// Rest describes the objects of user programs without a named owner, if it has any.
func (v deviceView) Rest() string {
	var others, unowned []state.TypeCount
	for _, u := range v.Usage() {
		if u.Others > 0 {
			others = append(others, state.TypeCount{Type: u.Type, Objects: u.Others})
		}
		if u.Unowned > 0 {
			unowned = append(unowned, state.TypeCount{Type: u.Type, Objects: u.Unowned})
		}
	}
	var words []string
	if len(others) > 0 {
		words = append(words, "Smaller owners have "+api.Counts(others)+".")
	}
	if len(unowned) > 0 {
		words = append(words, "The kernel names no process for "+api.Counts(unowned)+".")
	}
	return strings.Join(words, " ")
}
