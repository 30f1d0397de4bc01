package api

import (
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Options are what a status says beside what is known of the devices.
type Options struct {
	// Now is when the status is made.
	Now time.Time
	// Version is that of the exporter, and Host the name of the host, if it is known.
	Version, Host string
}

// Of returns the status of a judged host. It keeps and changes nothing of it, and copes
// with any.
func Of(h *health.Host, o Options) *Status {
	s := h.Snapshot
	if s == nil {
		s = new(state.Snapshot)
	}
	status := &Status{
		Version:   Version,
		Generated: moment(o.Now),
		Exporter:  text.Clean(o.Version),
		Host:      text.Clean(o.Host),
		DocsURL:   text.Clean(h.DocsURL),
		Provider:  text.Clean(s.Provider),
		Simulated: s.Simulated(),
		Ready:     s.Ready,
		Health:    h.At(o.Now),
		Devices:   make([]Device, 0, len(h.Devices)),
		Troubles:  make([]Trouble, 0, len(h.Troubles)),
	}
	if p := h.Problem; p != nil {
		status.Problem = &Problem{Kind: p.Kind, Health: p.Health, Message: text.Clean(p.Message), Action: text.Clean(p.Action)}
	}
	if len(h.Findings) > 0 {
		status.Findings = findingsOf(h.Findings)
	}
	counts, accepted := make(map[health.Severity]int), make(map[health.Severity]int)
	for _, of := range cut(h.Devices) {
		d := deviceOf(of, &o)
		for n := range d.Findings {
			of := counts
			if d.Findings[n].Accepted != nil {
				of = accepted
			}
			of[d.Findings[n].Severity]++
		}
		status.Devices = append(status.Devices, d)
	}
	for _, severity := range health.Severities() {
		status.FindingCounts = append(status.FindingCounts, SeverityCount{Severity: severity, Count: counts[severity], Accepted: accepted[severity]})
	}
	for i := range cut(h.Troubles) {
		status.Troubles = append(status.Troubles, status.troubleOf(&h.Troubles[i]))
	}
	return status
}

// troubleOf returns trouble on the devices of the status.
func (s *Status) troubleOf(t *health.Trouble) Trouble {
	trouble := Trouble{Severity: t.Severity, Harm: t.Harm, Kind: health.Kind(text.Clean(string(t.Kind))), Places: make([]Place, 0, len(t.Places))}
	if t.For >= 0 && t.For < len(s.Devices) {
		trouble.For = s.Devices[t.For].Name
	}
	for _, p := range cut(t.Places) {
		if p.Device < len(s.Devices) && p.Finding < len(s.Devices[p.Device].Findings) {
			trouble.Places = append(trouble.Places, Place(p))
		}
	}
	return trouble
}

// moment returns a time as a status tells it: in UTC, and zero if no RFC 3339 can
// tell it.
func moment(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}
