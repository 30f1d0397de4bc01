package status

import (
	"cmp"
	"slices"

	"rdma_exporter/report"
)

// contractsOf returns how a device keeps the contracts; nil if that is not known.
func contractsOf(c *report.Contracts, o *Options) *Contracts {
	if c == nil {
		return nil
	}
	contracts := &Contracts{Run: runOf(c.Last, report.KindContract, o), Verdicts: make([]Contract, 0, len(c.Verdicts))}
	for i := range cut(c.Verdicts) {
		v := &c.Verdicts[i]
		switch v.Verdict {
		case report.VerdictHolds:
			contracts.Holds++
		case report.VerdictViolated:
			contracts.Violated++
		case report.VerdictSkipped:
			contracts.Skipped++
		default:
			continue
		}
		contracts.Verdicts = append(contracts.Verdicts, Contract{
			Name: Clean(v.Name), Severity: severityOf(v.Severity), Verdict: v.Verdict, Reason: report.SkipReason(Clean(string(v.Reason))),
			Asked: Clean(v.Asked), Expected: Clean(v.Expected), Observed: Clean(v.Observed),
			Consequence: Clean(v.Consequence), Remedy: Clean(v.Remedy), Judged: moment(v.Judged),
		})
	}
	slices.SortStableFunc(contracts.Verdicts, func(a, b Contract) int {
		order := []report.Verdict{report.VerdictViolated, report.VerdictSkipped, report.VerdictHolds}
		rank := cmp.Compare(slices.Index(order, a.Verdict), slices.Index(order, b.Verdict))
		if a.Verdict == report.VerdictViolated {
			return cmp.Or(rank, bySeverity(a.Severity, b.Severity))
		}
		return rank
	})
	return contracts
}
