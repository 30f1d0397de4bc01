package collector

import (
	"strconv"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

func declareContract(t *table) {
	t.about("Contracts")
	t.of(Contracts)
	t.gauge("rdma_contract_verdicts", "contracts",
		"Contracts by latest verdict. Absent before the first one.", "device", "verdict")
	t.gauge("rdma_contract_violated", "1 or 0",
		"1 if the device breaks the contract by the latest verdict, 0 if it broke it once but keeps it now. Absent if it always kept the contract, or if the contract was not checked. known=\"true\" needs no action: it is a known driver erratum, or accepted.", "device", "contract", "severity", "known")
	t.gauge("rdma_contract_skipped", "always 1",
		"A contract that could not be checked although the device offers what it is about, and why.", "device", "contract", "reason")
	t.counter("rdma_contract_runs_total", "runs",
		"Finished contract runs.", "device", "outcome")
	t.counter("rdma_contract_aborts_total", "runs",
		"Contract runs cut short, by the verb they were in (none if in none).", "device", "outcome", "verb")
	t.gauge("rdma_contract_last_run_timestamp_seconds", "seconds since 1970",
		"Start of the last finished contract run.", "device")
	t.gauge("rdma_contract_duration_seconds", "seconds",
		"Duration of the last contract run, from the start of its child process to its end or until it was abandoned.", "device")
}

func addContracts(b *builder, name string, c *state.Contracts, findings []health.Finding) {
	counts := make(map[string]int)
	accepted := make(map[string]bool)
	for i := range findings {
		if f := &findings[i]; f.Kind == health.FindingContract && f.Accepted != nil {
			accepted[f.Subject] = true
		}
	}
	for i := range c.Verdicts {
		v := &c.Verdicts[i]
		switch v.Verdict {
		case state.VerdictHolds, state.VerdictViolated:
			violated, expected := v.Verdict == state.VerdictViolated, v.Known || accepted[v.Name]
			switch {
			case !violated:
				counts["kept"]++
			case expected:
				counts["known"]++
			default:
				counts["violated"]++
			}
			// It may have been violated in another way before.
			for _, known := range []bool{false, true} {
				b.sparse("rdma_contract_violated", number(violated && expected == known), name, v.Name, string(v.Severity), strconv.FormatBool(known))
			}
		case state.VerdictSkipped:
			counts["skipped"]++
			// What a device does not offer is counted, and in the JSON.
			if v.Reason != state.SkipNotSupported {
				b.gauge("rdma_contract_skipped", 1, name, v.Name, string(v.Reason))
			}
		}
	}
	if len(c.Verdicts) > 0 {
		for _, verdict := range []string{"kept", "violated", "known", "skipped"} {
			b.gauge("rdma_contract_verdicts", float64(counts[verdict]), name, verdict)
		}
	}
	if c.Last != nil {
		b.timestamp("rdma_contract_last_run_timestamp_seconds", c.Last.Started, name)
		b.gauge("rdma_contract_duration_seconds", c.Last.Duration.Seconds(), name)
	}
}
