package health

import (
	"cmp"
	"fmt"
	"slices"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// registrations adds a finding for each limit that refused memory which every program needs.
func (a *assessor) registrations(p *state.Probe) {
	for _, by := range state.AllRefusedBy() {
		var kinds []string
		var first *state.Registration
		for i := range p.Registrations {
			if r := &p.Registrations[i]; r.Result == state.MemoryRefused && refuser(r) == by {
				kinds = append(kinds, word(string(r.Memory)))
				first = cmp.Or(first, r)
			}
		}
		// The exporter's own limit says little about programs, unless it allows nothing.
		if first == nil || by == state.RefusedByMemlock && first.Memory != state.MemoryPage {
			continue
		}
		o := observation{
			kind: FindingProbeFailed, entry: caseRegistration + string(by), harm: HarmFailure, severity: SeverityCritical,
			subject: "memory", run: true, root: rootOfMemory(first),
			message: fmt.Sprintf("Memory could not be registered (%s): %s.", text.Join(kinds, ", ", maxFew), reason(first.Detail)),
		}
		if by == state.RefusedByMemlock {
			o.harm, o.severity = HarmDegradation, SeverityWarning
		}
		a.add(o)
	}
}

func rootOfMemory(r *state.Registration) string {
	if refuser(r) == state.RefusedByMemlock {
		return rootMemlock
	}
	return rootOf(&state.Failure{Verb: "ibv_reg_mr", Errno: r.Errno})
}

func (a *assessor) rootOfPage() string {
	for _, p := range a.last.Probes {
		for _, r := range p.Registrations {
			if r.Memory == state.MemoryPage && r.Result == state.MemoryRefused {
				return rootOfMemory(&r)
			}
		}
	}
	return ""
}

// refuser returns what refused memory. An unknown cause counts as the device.
func refuser(r *state.Registration) state.RefusedBy {
	if slices.Contains(state.AllRefusedBy(), r.By) {
		return r.By
	}
	return state.RefusedByDevice
}

func registered(p *state.Probe, f *state.Failure) bool {
	return f.Errno != "" && slices.ContainsFunc(p.Registrations, func(r state.Registration) bool {
		return r.Result == state.MemoryRefused && string(r.Memory) == f.Subject.Object && r.Errno == f.Errno
	})
}
