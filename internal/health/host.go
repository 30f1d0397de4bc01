package health

import (
	"slices"
	"time"

	"rdma_exporter/internal/state"
)

// Host is an evaluated snapshot. It is shared: callers must not modify it, nor what it points to.
type Host struct {
	// Snapshot is what was evaluated. Nil if nothing is known.
	Snapshot *state.Snapshot `json:"-"`
	// Problem is a problem of the host rather than of a device. Nil if there is no such problem.
	Problem *Problem `json:"problem,omitempty"`
	// Devices are the devices of the snapshot, the worst first, and then by name.
	Devices []*Device `json:"devices"`
	// Findings are those of the host itself: acceptances that match nothing any longer.
	Findings []Finding `json:"findings,omitempty"`
	// Issues group the findings of all devices, the worst first.
	Issues []Issue `json:"issues"`
	// DocsURL is prepended to the paths of documents. Empty if it is not known where they are.
	DocsURL string `json:"docs_url,omitempty"`
}

// Device is an evaluated device.
type Device struct {
	// State is what was evaluated.
	State state.DeviceState `json:"-"`
	// Findings have the worst first and the accepted ones last. Nil if too little is known to evaluate.
	Findings []Finding `json:"findings"`
	// Growth is how the objects on the device grow.
	Growth *Growth `json:"growth,omitempty"`
	// Exhausted are the types of which the device refused the exporter an object.
	Exhausted []Exhausted `json:"exhausted,omitempty"`
	// Leftover are contexts without an owner that left objects within the last day, the latest first.
	Leftover   []ContextHistory `json:"leftover,omitempty"`
	staleAfter map[state.Kind]time.Duration
}

// rank returns how bad a device is, independent of the time. The worst is 0. An unknown device ranks before a
// healthy one.
func (d *Device) rank() int {
	harm, severity := HarmNote, SeverityWarning
	health, _ := d.unhealthy()
	switch {
	case len(d.Findings) > 0 && d.Findings[0].Severity != SeverityInfo && d.Findings[0].Accepted == nil:
		harm, severity = d.Findings[0].Harm, d.Findings[0].Severity
	case health == Critical:
		harm, severity = HarmOutage, SeverityCritical
	case health == Warning:
		harm, severity = HarmDegradation, SeverityCritical
	case !d.State.Present || d.State.Last == nil || d.State.OutOfTime != nil:
		severity = SeverityCritical
	}
	return slices.Index(Harms(), harm)*len(Severities()) + slices.Index(Severities(), severity)
}

// At returns the worst health of the host and all devices at a moment.
func (h *Host) At(now time.Time) Health {
	worst := OK
	if h.Problem != nil {
		worst = h.Problem.Health
	}
	for _, d := range h.Devices {
		if health, _ := d.At(now); slices.Index(Healths(), health) > slices.Index(Healths(), worst) {
			worst = health
		}
	}
	return worst
}

// Fails reports whether a device is at least as bad as a severity. A device whose health is unknown counts as a
// warning. The host also fails if too few ports are active, or if a device was not probed in time.
func (h *Host) Fails(least Severity, now time.Time) bool {
	if h.Problem != nil && h.Problem.Kind == ProblemPorts {
		return true
	}
	for _, d := range h.Devices {
		if out := d.State.OutOfTime; out != nil && slices.Contains(out.Kinds, state.KindProbe) {
			return true
		}
		health, _ := d.At(now)
		if health == Unknown {
			health = Warning
		}
		if health != OK && bySeverity(Severity(health), least) <= 0 {
			return true
		}
	}
	return false
}

// Health summarises a device or a host.
type Health string

// The healths. Unknown means that the device has not been probed yet, or not recently, or is gone. Warning and
// Critical are the severity of the worst finding. Warning also means that the last run failed.
const (
	OK       Health = "ok"
	Unknown  Health = "unknown"
	Warning  Health = "warning"
	Critical Health = "critical"
)

// Healths returns every health, the best first.
func Healths() []Health { return []Health{OK, Unknown, Warning, Critical} }
