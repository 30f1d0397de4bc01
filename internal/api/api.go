// Package api is the envelope of the JSON status: the types of internal/state and
// internal/health with what belongs to the moment at which they are shown. The status page
// and the terminal report show the same values.
//
// Within a version, fields are added and never renamed, removed or given another meaning.
// Times are RFC 3339, and fields that end in _ns are nanoseconds. Text from devices, drivers
// and processes has no control characters and is valid UTF-8. Renderers must escape it.
//
// docs/reference/status-page.md is generated from the comments of the types.
package api

import (
	"slices"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const (
	// Version is the version of the JSON's types.
	Version = 2
	// Path is the URL path of the JSON.
	Path = "/api/v2/status"
	// OldPath is the URL path of version 1.
	OldPath = "/api/v1/status"
	// VerdictPath is the URL path of the verdict.
	VerdictPath = "/api/v1/verdict"
)

// Status is the state of the host at one moment.
type Status struct {
	Version int `json:"version"`
	// Generated is when the status was made.
	Generated time.Time `json:"generated"`
	Exporter  string    `json:"exporter_version"`
	// Host is the name of the host; empty if it is not known.
	Host string `json:"host,omitempty"`
	// DocsURL precedes paths of documents; empty if it is not configured.
	DocsURL string `json:"docs_url,omitempty"`
	// Provider is the source of the devices: libibverbs or simulated.
	Provider string `json:"provider"`
	// Simulated is true if the devices exist only to try the exporter.
	Simulated bool `json:"simulated"`
	// Ready is true once each device found at the start has been probed.
	Ready bool `json:"ready"`
	// Health is the worst of the host and of all devices.
	Health health.Health `json:"health"`
	// Maintenance is announced work on the host; absent if none.
	Maintenance *Maintenance `json:"maintenance,omitempty"`
	// Problem is what is wrong with the host itself; absent if nothing is.
	Problem *health.Problem `json:"problem,omitempty"`
	// Findings are about the host itself: what is not as expected, and then what concerns the exporter's setup.
	Findings []health.Finding `json:"findings,omitempty"`
	// FindingCounts count the findings of all devices, and those of the host that change its health, each severity once.
	FindingCounts []SeverityCount `json:"finding_counts"`
	// Issues are what is wrong on one device or on several, the worst first.
	Issues []health.Issue `json:"issues"`
	// NotChecked is what a quick audit leaves out.
	NotChecked []string `json:"not_checked,omitempty"`
	// Devices have the worst first.
	Devices []Device `json:"devices"`
}

// Maintenance is announced work on the host. It changes no health.
type Maintenance struct {
	Until time.Time `json:"until"`
	// Reason is empty if none was given.
	Reason string `json:"reason,omitempty"`
}

// String returns the maintenance in a sentence.
func (m *Maintenance) String() string {
	return "Under maintenance until " + text.Moment(m.Until) + text.Around(" (", m.Reason, ")") + "."
}

// SeverityCount counts the findings of one severity.
type SeverityCount struct {
	Severity health.Severity `json:"severity"`
	// Count excludes accepted findings.
	Count    int `json:"count"`
	Accepted int `json:"accepted,omitempty"`
}

// Device is the state of a device with its evaluation.
type Device struct {
	*state.DeviceState
	Health health.Health `json:"health"`
	// Headline is the worst finding in a sentence or two, or that no action is needed.
	Headline string `json:"headline"`
	// Stale are the kinds of run whose last run is older than it should be.
	Stale []state.Kind `json:"stale,omitempty"`
	*health.Device
}

// Options are what a status says besides the state of the devices.
type Options struct {
	// Now is when the status is made.
	Now time.Time
	// Version is the version of the exporter. Host is the name of the host, if known.
	Version, Host string
	// Maintenance is that of the host. Nil means none.
	Maintenance *Maintenance
}

// New returns the status of an evaluated host. It shares memory with the host: callers must
// not modify it.
func New(h *health.Host, o Options) *Status {
	s := &Status{
		Version: Version, Generated: o.Now.UTC(), Exporter: o.Version, Host: text.Clean(o.Host), DocsURL: h.DocsURL,
		Health: h.At(o.Now), Maintenance: o.Maintenance, Problem: h.Problem, Findings: h.Findings, Issues: h.Issues,
		Devices: make([]Device, 0, len(h.Devices)),
	}
	if s.Issues == nil {
		s.Issues = []health.Issue{}
	}
	if h.Snapshot != nil {
		s.Provider, s.Simulated, s.Ready = h.Snapshot.Provider, h.Snapshot.Simulated(), h.Snapshot.Ready
	}
	counted := s.Unexpected()
	for _, of := range h.Devices {
		d := Device{DeviceState: &of.State, Device: of}
		d.Health, d.Headline = of.At(o.Now)
		for _, kind := range state.Kinds() {
			if of.Stale(kind, o.Now) {
				d.Stale = append(d.Stale, kind)
			}
		}
		counted = append(counted, of.Findings...)
		s.Devices = append(s.Devices, d)
	}
	for _, severity := range state.Severities() {
		c := SeverityCount{Severity: severity}
		for i := range counted {
			if f := &counted[i]; f.Severity == severity && f.Accepted == nil {
				c.Count++
			} else if f.Severity == severity {
				c.Accepted++
			}
		}
		s.FindingCounts = append(s.FindingCounts, c)
	}
	return s
}

// Unexpected returns the findings of the host that change its health.
func (s *Status) Unexpected() []health.Finding {
	return slices.DeleteFunc(slices.Clone(s.Findings), func(f health.Finding) bool { return !f.Counts() })
}
