package health

import "rdma_exporter/internal/state"

// What several findings can come of.
const (
	// rootDevice: the device as a whole, which cannot be opened, hangs, or crashes who
	// uses it.
	rootDevice = "device"
	// rootContracts: what ended the contract run, time after time.
	rootContracts = "contracts"
	// rootInventory: what keeps the kernel's tables from being read.
	rootInventory = "inventory"
	// rootHardware: what keeps the hardware from being read.
	rootHardware = "hardware"
	// rootPort: why ports are not active, followed by which of the findings about that it is.
	rootPort = "port "
	// rootBusy: an object that is said to be in use.
	rootBusy = "busy"
	// rootMemlock: the memory that the exporter may have in place.
	rootMemlock = "memlock"
)

// down tells that the last run of the probes got nowhere, or has not ended: what else
// went wrong with runs comes of the same.
func (a *assessor) down() bool {
	run := a.state.Last
	switch {
	case a.state.Stuck != nil, a.t.Once && !a.state.Present:
		return true
	case run == nil:
		return false
	default:
		return run.Outcome == state.OutcomeTimeout || run.Outcome == state.OutcomeCrashed || isUnusable(run)
	}
}

// rooted returns findings with what came of the same root under the first of them. They
// are in order: what is about more of the device comes first.
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
