package api

import (
	"cmp"
	"slices"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// simulatedProvider is the provider whose devices exist only to try the exporter.
const simulatedProvider = "simulated"

// Options are what a status says beside what is known of the devices.
type Options struct {
	// Now is when the status is made.
	Now time.Time
	// Version is that of the exporter, and Host the name of the host, if it is known.
	Version, Host string
	// StaleAfter is how old the last run of each kind may be before it counts as
	// stale. For kinds that it lacks, no age is too much.
	StaleAfter map[state.Kind]time.Duration
}

// Of returns the status of a snapshot, which may be nil while nothing is known. It
// keeps and changes nothing of the snapshot, and copes with any.
func Of(s *state.Snapshot, o Options) *Status {
	if s == nil {
		s = &state.Snapshot{}
		return of(s, &o, problemNotListed())
	}
	return of(s, &o, problemOf(s))
}

func of(s *state.Snapshot, o *Options, problem *Problem) *Status {
	status := &Status{
		Version:   Version,
		Generated: moment(o.Now),
		Exporter:  text.Clean(o.Version),
		Host:      text.Clean(o.Host),
		Provider:  text.Clean(s.Provider),
		Simulated: s.Provider == simulatedProvider,
		Ready:     s.Ready,
		Health:    HealthOK,
		Problem:   problem,
		Devices:   make([]Device, 0, len(s.Devices)),
	}
	if problem != nil {
		status.Health = problem.Health
	}
	counts := make(map[state.Severity]int)
	for i := range cut(s.Devices) {
		d := deviceOf(&s.Devices[i], o)
		for n := range d.Findings {
			counts[d.Findings[n].Severity]++
		}
		status.Health = worse(status.Health, d.Health)
		status.Devices = append(status.Devices, d)
	}
	slices.SortStableFunc(status.Devices, func(a, b Device) int { return cmp.Compare(a.Name, b.Name) })
	for _, severity := range state.Severities() {
		status.FindingCounts = append(status.FindingCounts, SeverityCount{Severity: severity, Count: counts[severity]})
	}
	return status
}

// worse returns the worse of two healths.
func worse(a, b Health) Health {
	if slices.Index(Healths(), b) > slices.Index(Healths(), a) {
		return b
	}
	return a
}

// moment returns a time as a status tells it: in UTC, and zero if no RFC 3339 can
// tell it.
func moment(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}
