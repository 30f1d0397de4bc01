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
	OK      = iota
	Bad     // A finding counts.
	Unknown // Nothing could be judged.
)

// The kinds that are not those of findings.
const (
	KindUnreachable health.Kind = "exporter_unreachable"
	KindRefused     health.Kind = "exporter_refused"
	KindNoAudit     health.Kind = "no_audit"
	kindNoDevice    health.Kind = "no_device"
	kindFewDevices  health.Kind = "too_few_devices"
	kindFewPorts    health.Kind = "too_few_ports"
	kindNotProbed   health.Kind = "not_probed"
	kindTooNew      health.Kind = "too_new"
)

// Verdict is the answer.
type Verdict struct {
	Status int    `json:"status"`
	Line   string `json:"line"`
	// Kind is that of the worst finding that counts, or a word for what is missing or unknown. Empty if all is well.
	Kind health.Kind `json:"kind,omitempty"`
	// Device and Port are where it is. Empty and 0 if it has no single place.
	Device string        `json:"device,omitempty"`
	Port   int           `json:"port,omitempty"`
	Remedy health.Remedy `json:"remedy"`
	// Since is when it was seen first. Zero means unknown.
	Since time.Time `json:"since,omitzero"`
	// GoodSince is when the last finding that counted ended. Zero if there is one, or none is remembered.
	GoodSince time.Time `json:"good_since,omitzero"`
}

// Valid reports whether the verdict could be one of Of.
func (v *Verdict) Valid() bool {
	said, remedy, _ := strings.Cut(v.Line, do)
	return v.Status >= OK && v.Status <= Unknown && len(v.Line) <= maxLine && strings.HasPrefix(v.Line, prefix) && plain(said+remedy) == said+remedy
}

// Of returns the verdict on a host at a moment. It accepts any host, and nil.
func Of(h *health.Host, o Options, now time.Time) Verdict {
	j := judge{Options: o, host: cmp.Or(h, new(health.Host)), now: now, kinds: health.Kinds()}
	j.collect()
	slices.SortStableFunc(j.faults, j.byHarm)
	for i := range j.faults {
		if f := &j.faults[i]; now.Sub(f.Since) >= o.For {
			return j.bad(f, j.detail(f), time.Time{})
		}
	}
	held, good := j.over()
	if held != nil {
		return j.bad(held, "held until steady", good)
	}
	if kind, detail, remedy := j.unknown(); kind != "" {
		return Verdict{Status: Unknown, Line: Line(kind, "", detail, remedy), Kind: kind, Remedy: remedy}
	}
	return Verdict{Line: prefix + "ok: " + j.ofPorts() + ", " + text.Plural(j.devices, "device"), Remedy: health.RemedyNone, GoodSince: good}
}

// fault is a finding that counts once it has existed for long enough.
type fault struct {
	health.Finding
	device string
	counts bool
}

func (j *judge) byHarm(a, b fault) int {
	// Missing devices and ports are no kind of finding, and come first among those as harmful.
	index := func(f fault) []int {
		return []int{slices.Index(health.Harms(), f.Harm), slices.Index(state.Severities(), f.Severity), slices.Index(j.kinds, f.Kind)}
	}
	return cmp.Or(slices.Compare(index(a), index(b)), cmp.Compare(a.device, b.device), cmp.Compare(a.Subject, b.Subject))
}

type judge struct {
	Options
	host  *health.Host
	now   time.Time
	kinds []health.Kind
	// devices are present, and ports and active are theirs.
	devices, ports, active int
	faults                 []fault
}

// collect counts devices and ports, and collects what counts now.
func (j *judge) collect() {
	for _, d := range j.host.Devices {
		if d.State.Present {
			ports := slices.Clone(d.State.Ports())
			j.devices, j.ports = j.devices+1, j.ports+len(ports)
			j.active += len(slices.DeleteFunc(ports, func(p state.Port) bool { return !state.IsActive(p.State) }))
		}
		explained := false
		for _, f := range d.Findings {
			explained = explained || f.Severity != health.SeverityInfo
			j.add(d.State.Name, f)
		}
		if is, _ := d.At(j.now); is != health.OK && !explained {
			severity := map[bool]health.Severity{true: health.SeverityCritical, false: health.SeverityWarning}[is == health.Critical]
			j.add(d.State.Name, health.Finding{Kind: kindNotProbed, Severity: severity, Harm: health.HarmDegradation, Remedy: health.RemedyExporter, Reason: "no good probe run"})
		}
	}
	for _, f := range j.host.Findings {
		j.add("", f)
	}
	s, p := j.host.Snapshot, j.host.Problem
	if s == nil || !s.Ready || s.DiscoveryError != "" {
		return
	}
	vanished := func(d *health.Device) bool { return !d.State.Vanished.IsZero() }
	none := (p != nil && p.Kind == health.ProblemNoDevices || j.devices == 0 && slices.ContainsFunc(j.host.Devices, vanished)) &&
		j.Devices != 0 && *cmp.Or(j.host.ExpectedDevices, new(-1)) != 0
	if none || j.Devices > j.devices {
		j.fewer(kindFewDevices, health.RemedyDriver, health.FindingVanished)
	}
	if j.ActivePorts > j.active {
		j.fewer(kindFewPorts, health.RemedyNetwork, health.FindingPortDown, health.FindingVanished)
	}
}

func (j *judge) add(device string, f health.Finding) {
	if at := j.fault(device, f); at.counts {
		j.faults = append(j.faults, at)
	}
}

// fewer adds that there is less than expected: as the finding that says what is missing, if there is one. Of several,
// it is the first of those that were not missing from the start.
func (j *judge) fewer(kind health.Kind, remedy health.Remedy, causes ...health.Kind) {
	worst := j.fault("", health.Finding{Kind: kind, Remedy: remedy})
	for _, d := range j.host.Devices {
		for _, top := range d.Findings {
			for _, f := range append(top.Consequences[:len(top.Consequences):len(top.Consequences)], top) {
				f.Since = cmp.Or(f.Since, top.Since) // Only the cause has a time.
				at, info := j.fault(d.State.Name, f), f.Severity == health.SeverityInfo
				first := worst.device == "" || worst.Severity == health.SeverityInfo && !info ||
					(worst.Severity == health.SeverityInfo) == info && at.Since.Before(worst.Since)
				if slices.Contains(causes, f.Kind) && first {
					worst = at
				}
			}
		}
	}
	worst.Severity, worst.Harm = health.SeverityCritical, health.HarmOutage
	j.faults = append(j.faults, worst)
}

// fault returns a finding with its port. What is expected and missing has its own name.
func (j *judge) fault(device string, f health.Finding) fault {
	at := fault{f, device, j.counts(&f)}
	at.Since = cmp.Or(f.Since, j.host.Began)
	switch f.Rule {
	case "devices":
		at.Kind = kindFewDevices
	case "active_ports":
		at.Kind = kindFewPorts
		for _, below := range f.Consequences {
			if below.Kind == health.FindingPortDown {
				at.Kind, at.Subject, at.Port = below.Kind, below.Subject, below.Port
			}
		}
	}
	if at.Kind == kindFewDevices && j.devices == 0 {
		at.Kind = kindNoDevice
	}
	return at
}

// over returns the worst finding that counted until less than ClearAfter ago, and when the last one ended.
func (j *judge) over() (held *fault, good time.Time) {
	var all []fault
	for _, p := range j.host.Past {
		if f := j.fault(p.Device, p.Finding); f.LastSeen.Sub(f.Since) >= j.For {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, j.byHarm)
	devices, active := j.devices, j.active
	for i := range all {
		f := &all[i]
		recent, counted := j.now.Sub(f.LastSeen) < j.ClearAfter, f.counts
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
func (j *judge) unknown() (kind health.Kind, detail string, remedy health.Remedy) {
	s, p := j.host.Snapshot, j.host.Problem
	unjudged := func(d *health.Device) bool { is, _ := d.At(j.now); return is == health.Unknown && d.State.Present }
	switch {
	case p != nil && p.Kind == health.ProblemDiscovery:
		return "discovery", "the devices cannot be listed", health.RemedyExporter
	case p != nil && p.Kind == health.ProblemStart:
		return "cannot_start", "no child process starts", health.RemedyExporter
	case s == nil || !s.Ready:
		return kindNotProbed, "the first probe runs have not ended", health.RemedyNone
	case slices.ContainsFunc(j.host.Devices, unjudged):
		return kindNotProbed, "a device has no recent probe run", health.RemedyExporter
	case len(j.faults) > 0 && j.now.Sub(j.host.Began) < j.For:
		// Whether it is new, or older than the exporter, is not known.
		return kindTooNew, "the exporter has just started", health.RemedyNone
	}
	return "", "", ""
}

func (j *judge) bad(f *fault, detail string, good time.Time) Verdict {
	place := f.device
	if f.Port > 0 {
		place = fmt.Sprintf("%s/%d", f.device, f.Port)
	}
	return Verdict{
		Status: Bad, Line: Line(f.Kind, place, detail, f.Remedy), Kind: f.Kind,
		Device: text.Clean(f.device), Port: f.Port, Remedy: f.Remedy, Since: f.Since, GoodSince: good,
	}
}

// detail has no numbers that change while the state does not.
func (j *judge) detail(f *fault) string {
	switch f.Kind {
	case health.FindingPortDown, kindFewPorts:
		return j.ofPorts()
	case health.FindingVanished, kindNoDevice, kindFewDevices:
		known := max(len(j.host.Devices), j.Devices, *cmp.Or(j.host.ExpectedDevices, new(-1)))
		return fmt.Sprintf("%d of %s", j.devices, text.Plural(max(known, 1), "device"))
	}
	return f.Reason
}

func (j *judge) ofPorts() string {
	return fmt.Sprintf("%d of %s active", j.active, text.Plural(max(j.ports, j.ActivePorts), "port"))
}
