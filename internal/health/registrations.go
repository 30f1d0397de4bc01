package health

import (
	"cmp"
	"fmt"
	"slices"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// caseRegistration is what the cases of FindingProbeFailed begin with that are about memory
// which was refused; what refused it follows.
const caseRegistration = "registration_"

// registrations finds that memory was refused to be registered that every program needs,
// apart for each that refused it.
func (a *assessor) registrations(p *state.Probe) {
	for _, by := range state.AllRefusedBy() {
		var kinds []string
		var first *state.Registration
		for i := range p.Registrations {
			if r := &p.Registrations[i]; needed(r) && refuser(r) == by {
				kinds = append(kinds, word(string(r.Memory)))
				first = cmp.Or(first, r)
			}
		}
		// What the limit of the exporter's own process allows says little of the programs,
		// unless it allows nothing.
		if first == nil || by == state.RefusedByMemlock && first.Memory != state.MemoryPage {
			continue
		}
		o := observation{
			kind: FindingProbeFailed, entry: caseRegistration + string(by), harm: HarmFailure, severity: SeverityCritical,
			subject: "memory", run: true, root: rootOfMemory(first),
			message: fmt.Sprintf("Memory could not be registered (%s): %s.", text.Join(kinds, ", ", maxFew), cmp.Or(prose(first.Detail), "no reason given")),
		}
		if by == state.RefusedByMemlock {
			o.harm, o.severity = HarmDegradation, SeverityWarning
		}
		a.add(o)
	}
}

// rootOfMemory returns what a registration that was refused shares with what else comes of
// that.
func rootOfMemory(r *state.Registration) string {
	if refuser(r) == state.RefusedByMemlock {
		return rootMemlock
	}
	return rootOf(&state.Failure{Verb: "ibv_reg_mr", Errno: r.Errno})
}

// rootOfPage is rootOfMemory of the page that the last run was refused; empty if it was not.
func (a *assessor) rootOfPage() string {
	for i := range a.state.Last.Probes {
		for j := range a.state.Last.Probes[i].Registrations {
			if r := &a.state.Last.Probes[i].Registrations[j]; r.Memory == state.MemoryPage && needed(r) {
				return rootOfMemory(r)
			}
		}
	}
	return ""
}

// needed tells whether memory was refused that a device must take.
func needed(r *state.Registration) bool {
	return r.Result == state.MemoryRefused && r.Memory != state.MemoryDMABuf
}

// refuser returns what refused memory; whatever is not known is of the device.
func refuser(r *state.Registration) state.RefusedBy {
	if slices.Contains(state.AllRefusedBy(), r.By) {
		return r.By
	}
	return state.RefusedByDevice
}

// registered tells whether a failure has a finding of its own as a registration that was refused.
func registered(p *state.Probe, f *state.Failure) bool {
	return f.Errno != "" && slices.ContainsFunc(p.Registrations, func(r state.Registration) bool {
		return needed(&r) && string(r.Memory) == f.Subject && r.Errno == f.Errno
	})
}
