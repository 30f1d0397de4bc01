package health

import "rdma_exporter/internal/state"

// The root causes that several findings can share.
const (
	rootDevice    = "device" // The device cannot be opened, hangs, or crashes its users.
	rootContracts = "contracts"
	rootInventory = "inventory"
	rootHardware  = "hardware"
	rootPort      = "port " // Followed by the case and severity of the port_down finding.
	rootBusy      = "busy"  // An object counts as in use.
	rootMemlock   = "memlock"
)

// down reports whether the last probe run failed altogether or has not ended. Other failures of runs then have the
// same root cause.
func (a *assessor) down() bool {
	run := a.state.Last
	switch {
	case a.state.Stuck != nil, a.config.Once && !a.state.Present:
		return true
	case run == nil:
		return false
	default:
		return run.Outcome == state.OutcomeTimeout || run.Outcome == state.OutcomeCrashed || isUnusable(run)
	}
}

// rooted moves findings below the first finding with the same root cause. The findings must be sorted.
func rooted(all []found) []Finding {
	findings := []Finding{}
	roots := make(map[string]int)
	for _, f := range all {
		i, ok := roots[f.root]
		if ok && f.root != "" {
			findings[i].Consequences = append(findings[i].Consequences, f.Finding)
			continue
		}
		roots[f.root] = len(findings)
		findings = append(findings, f.Finding)
	}
	return findings
}
