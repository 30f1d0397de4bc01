package collector

import (
	"strconv"

	"rdma_exporter/internal/state"
)

// addContracts adds how a device keeps the contracts of the man pages.
func addContracts(b *builder, name string, c *state.Contracts) {
	for i := range c.Verdicts {
		v := &c.Verdicts[i]
		switch v.Verdict {
		case state.VerdictHolds:
			b.truth(contractViolated, false, name, v.Name, string(v.Severity), strconv.FormatBool(v.Known))
		case state.VerdictViolated:
			b.truth(contractViolated, true, name, v.Name, string(v.Severity), strconv.FormatBool(v.Known))
		case state.VerdictSkipped:
			b.gauge(contractSkipped, 1, name, v.Name, string(v.Reason))
		}
	}
	if c.Last != nil {
		addTime(b, contractLastRun, name, c.Last.Started)
		b.gauge(contractDuration, c.Last.Duration.Seconds(), name)
	}
}
