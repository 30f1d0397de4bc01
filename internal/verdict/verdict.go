// Package verdict says in one line whether a host is fit for jobs, to Slurm, node-problem-detector and scripts.
package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// The statuses, which are exit statuses too. node-problem-detector reads them in the same way.
const (
	OK = iota
	// Bad means that a finding counts.
	Bad
	// Unknown means that nothing could be judged.
	Unknown
)

// The kinds that are not those of findings.
const (
	KindUnreachable = "exporter_unreachable"
	KindRefused     = "exporter_refused"
	KindNoAudit     = "no_audit"
	kindNoDevice    = "no_device"
	kindFewDevices  = "too_few_devices"
	kindFewPorts    = "too_few_ports"
	kindNotProbed   = "not_probed"
	kindStale       = "stale"
	kindRunFailed   = "run_failed"
	kindTooNew      = "too_new"
)

// Verdict is the answer.
type Verdict struct {
	Status int    `json:"status"`
	Line   string `json:"line"`
	// Kind is that of the worst finding that counts, or a word for what is missing or unknown. Empty if all is well.
	Kind string `json:"kind,omitempty"`
	// Device and Port are where it is. Empty and 0 if it has no single place.
	Device string        `json:"device,omitempty"`
	Port   int           `json:"port,omitempty"`
	Remedy health.Remedy `json:"remedy"`
	// Since is when it was seen first. Zero means unknown.
	Since time.Time `json:"since,omitzero"`
	// GoodSince is when the last finding that counted ended. Zero if there is one, or none is remembered.
	GoodSince time.Time `json:"good_since,omitzero"`
}

// Of returns the verdict on a host at a moment. It accepts any host, and nil.
func Of(h *health.Host, o Options, now time.Time) Verdict {
	j := judge{Options: o, host: cmp.Or(h, new(health.Host)), now: now}
	j.count()
	j.standing()
	slices.SortStableFunc(j.faults, byHarm)
	for i := range j.faults {
		if f := &j.faults[i]; now.Sub(f.Since) >= o.For {
			return j.bad(f, j.detail(f))
		}
	}
	held, good := j.over()
	if held != nil {
		v := j.bad(held, "held until steady")
		v.GoodSince = good
		return v
	}
	if kind, detail, remedy := j.unknown(); kind != "" {
		return Verdict{Status: Unknown, Line: Line(kind, "", detail, remedy), Kind: kind, Remedy: remedy}
	}
	line := prefix + "ok: " + j.ofPorts() + ", " + text.Plural(j.devices, "device")
	return Verdict{Line: line, Remedy: health.RemedyNone, GoodSince: good}
}

// Valid reports whether the verdict could be one of Of.
func (v *Verdict) Valid() bool { return v.Status >= OK && v.Status <= Unknown && IsLine(v.Line) }

// fault is a finding that counts once it has existed for long enough.
type fault struct {
	health.Finding
	device string
	port   int
}

func byHarm(a, b fault) int {
	index := func(f fault) []int {
		// What is missing altogether has no harm in the past, and comes first among the kinds.
		return []int{slices.Index(health.Harms(), f.Harm), slices.Index(state.Severities(), f.Severity), slices.Index(health.Kinds(), f.Kind)}
	}
	return cmp.Or(slices.Compare(index(a), index(b)), cmp.Compare(a.device, b.device), cmp.Compare(a.port, b.port), cmp.Compare(a.Subject, b.Subject))
}

type judge struct {
	Options
	host *health.Host
	now  time.Time
	// devices are present, known were once or are expected, and ports and active are those of the present ones.
	devices, known, ports, active int
	faults                        []fault
}

func (j *judge) count() {
	j.known = max(len(j.host.Devices), j.Devices)
	for _, d := range j.host.Devices {
		if !d.State.Present {
			continue
		}
		j.devices++
		var states []string
		if last, hardware := d.State.Last, d.State.Hardware; last != nil && last.Info != nil {
			for _, p := range last.Info.Ports {
				states = append(states, p.State)
			}
		} else if hardware != nil && hardware.Latest != nil {
			for _, p := range hardware.Latest.Ports {
				states = append(states, p.State)
			}
		}
		j.ports += len(states)
		for _, s := range states {
			if s == "active" || s == "active_defer" {
				j.active++
			}
		}
	}
}

// standing collects what counts now.
func (j *judge) standing() {
	for _, d := range j.host.Devices {
		explained := false
		for i := range d.Findings {
			explained = explained || d.Findings[i].Severity != health.SeverityInfo
			j.add(d.State.Name, d.Findings[i])
		}
		f := health.Finding{Severity: health.SeverityWarning, Harm: health.HarmDegradation, Remedy: health.RemedyExporter}
		switch is, _ := d.At(j.now); {
		case explained || is == health.OK:
			continue
		case is != health.Unknown:
			f.Kind, f.Severity, f.Remedy, f.Reason = kindRunFailed, health.Severity(is), health.RemedyDriver, "the last probe run failed"
		case d.State.Last == nil:
			f.Kind, f.Reason = kindNotProbed, "no probe run yet"
		default:
			f.Kind, f.Reason = kindStale, "no recent probe run"
		}
		j.add(d.State.Name, f)
	}
	for _, f := range j.host.Findings {
		j.add("", f)
	}
	if s := j.host.Snapshot; s == nil || !s.Ready || s.DiscoveryError != "" {
		return
	}
	none := health.Finding{Kind: kindFewDevices, Severity: health.SeverityCritical, Harm: health.HarmOutage, Remedy: health.RemedyDriver}
	if j.devices == 0 {
		none.Kind = kindNoDevice
	}
	if p := j.host.Problem; p != nil && p.Kind == health.ProblemNoDevices && j.Devices != 0 {
		none.Since = p.Since
		j.add("", none)
	} else if j.Devices > j.devices {
		j.fewer(none, j.Devices, j.devices, health.FindingVanished)
	}
	if j.ActivePorts > j.active {
		none.Kind, none.Remedy = kindFewPorts, health.RemedyNetwork
		j.fewer(none, j.ActivePorts, j.ports, health.FindingPortDown, health.FindingVanished)
	}
}

func (j *judge) add(device string, f health.Finding) {
	if j.counts(&f) {
		j.faults = append(j.faults, j.fault(device, f))
	}
}

// fewer adds that there are fewer than expected of what the host has: as the finding that says which, if there is one.
func (j *judge) fewer(f health.Finding, expected, all int, causes ...health.Kind) {
	var found []fault
	for _, d := range j.host.Devices {
		for _, f := range d.Findings {
			for _, f := range append([]health.Finding{f}, f.Consequences...) {
				if slices.Contains(causes, f.Kind) {
					found = append(found, j.fault(d.State.Name, f))
				}
			}
		}
	}
	if len(found) == 0 {
		j.faults = append(j.faults, j.fault("", f))
		return
	}
	// As many may be down for as long as they want.
	slices.SortStableFunc(found, func(a, b fault) int { return a.Since.Compare(b.Since) })
	since := found[min(max(all-expected, 0), len(found)-1)].Since
	slices.SortStableFunc(found, byHarm)
	found[0].Severity, found[0].Harm, found[0].Since = f.Severity, f.Harm, since
	j.faults = append(j.faults, found[0])
}

// fault returns a finding with its port. What is expected and missing has its own name.
func (j *judge) fault(device string, f health.Finding) fault {
	at := fault{f, device, 0}
	at.Since = cmp.Or(f.Since, j.host.Began)
	switch what, _, _ := strings.Cut(f.Subject, " "); {
	case f.Kind == health.Kind(health.ProblemNoDevices), f.Kind == health.FindingUnexpected && what == "devices" && j.devices == 0:
		at.Kind = kindNoDevice
	case f.Kind == health.FindingUnexpected && what == "devices":
		at.Kind = kindFewDevices
	case f.Kind == health.FindingUnexpected && what == "active_ports":
		at.Kind = kindFewPorts
		for _, below := range f.Consequences {
			if below.Kind == health.FindingPortDown {
				at.Kind, at.Subject = below.Kind, below.Subject
			}
		}
	}
	if _, err := fmt.Sscanf(at.Subject, "port %d", &at.port); err != nil {
		_, _ = fmt.Sscanf(at.Subject, "ports %d", &at.port)
	}
	return at
}

// over returns the worst finding that counted until less than ClearAfter ago, and when the last one ended.
func (j *judge) over() (held *fault, good time.Time) {
	var all []fault
	for _, p := range j.host.Past {
		if p.LastSeen.Sub(cmp.Or(p.Since, j.host.Began)) >= j.For {
			all = append(all, j.fault(p.Device, p.Finding))
		}
	}
	slices.SortFunc(all, byHarm)
	devices, active := j.devices, j.active
	for i := range all {
		f := &all[i]
		recent := j.now.Sub(f.LastSeen) < j.ClearAfter
		counted := j.counts(&f.Finding)
		if recent && (f.Kind == health.FindingVanished || f.Kind == health.FindingPortDown) {
			active--
			if f.Kind == health.FindingVanished {
				devices--
			}
			counted = counted || active < j.ActivePorts || devices < j.Devices
		}
		if counted && f.LastSeen.After(good) {
			good = f.LastSeen
		}
		if counted && recent && held == nil {
			held = f
		}
	}
	if len(j.faults) > 0 {
		good = time.Time{}
	}
	return held, good
}

// unknown says why nothing could be judged. The kind is empty if something was.
func (j *judge) unknown() (kind, detail string, remedy health.Remedy) {
	s := j.host.Snapshot
	judged := slices.ContainsFunc(j.host.Devices, func(d *health.Device) bool { is, _ := d.At(j.now); return is != health.Unknown })
	switch {
	case s == nil:
		return string(health.ProblemNotListed), "no list of devices yet", health.RemedyNone
	case s.DiscoveryError != "":
		return string(health.ProblemDiscovery), "the devices cannot be listed", health.RemedyExporter
	case s.StartError != "":
		return string(health.ProblemStart), "no child process starts", health.RemedyExporter
	case !s.Ready:
		return kindNotProbed, "the first probe runs have not ended", health.RemedyNone
	case len(j.host.Devices) > 0 && !judged:
		return kindStale, "no device has a recent probe run", health.RemedyExporter
	case len(j.faults) > 0 && j.now.Sub(j.host.Began) < j.For:
		// Whether it is new, or older than the exporter, is not known.
		return kindTooNew, "the exporter has just started", health.RemedyNone
	}
	return "", "", ""
}

func (j *judge) bad(f *fault, detail string) Verdict {
	place := f.device
	if f.port > 0 {
		place = fmt.Sprintf("%s/%d", f.device, f.port)
	}
	return Verdict{
		Status: Bad, Line: Line(string(f.Kind), place, detail, f.Remedy), Kind: string(f.Kind),
		Device: text.Clean(f.device), Port: f.port, Remedy: f.Remedy, Since: f.Since,
	}
}

// detail has no numbers that change while the state does not.
func (j *judge) detail(f *fault) string {
	switch f.Kind {
	case health.FindingPortDown, kindFewPorts:
		return j.ofPorts()
	case health.FindingVanished, kindNoDevice, kindFewDevices:
		if j.known > 0 {
			return fmt.Sprintf("%d of %s", j.devices, text.Plural(j.known, "device"))
		}
		return "no RDMA device"
	}
	return f.Reason
}

func (j *judge) ofPorts() string {
	return fmt.Sprintf("%d of %s active", j.active, text.Plural(max(j.ports, j.ActivePorts), "port"))
}
