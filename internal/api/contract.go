package api

import (
	"cmp"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// contractsOf returns how a device keeps the contracts; nil if that is not known.
func contractsOf(c *state.Contracts, runOf func(*state.Run, state.Kind) *Run) *Contracts {
	if c == nil {
		return nil
	}
	contracts := &Contracts{Run: runOf(c.Last, state.KindContract), PutOff: lightOf(c.PutOff), Verdicts: make([]Contract, 0, len(c.Verdicts))}
	for i := range cut(c.Verdicts) {
		v := &c.Verdicts[i]
		switch v.Verdict {
		case state.VerdictHolds:
			contracts.Holds++
		case state.VerdictViolated:
			contracts.Violated++
			if v.Known {
				contracts.KnownViolated++
			}
		case state.VerdictSkipped:
			contracts.Skipped++
		default:
			continue
		}
		contracts.Verdicts = append(contracts.Verdicts, Contract{
			Name: text.Clean(v.Name), Severity: severityOf(v.Severity), Verdict: v.Verdict, Reason: state.SkipReason(text.Clean(string(v.Reason))),
			Asked: text.Clean(v.Asked), Expected: text.Clean(v.Expected), Observed: text.Clean(v.Observed),
			Consequence: text.Clean(v.Consequence), Remedy: text.Clean(v.Remedy),
			Known: v.Known, Fact: text.Clean(v.Fact), Source: text.Clean(v.Source), Judged: moment(v.Judged),
		})
	}
	slices.SortStableFunc(contracts.Verdicts, func(a, b Contract) int {
		order := []state.Verdict{state.VerdictViolated, state.VerdictSkipped, state.VerdictHolds}
		rank := cmp.Compare(slices.Index(order, a.Verdict), slices.Index(order, b.Verdict))
		if a.Verdict == state.VerdictViolated {
			return cmp.Or(rank, byKnown(a.Known, b.Known), bySeverity(a.Severity, b.Severity))
		}
		return rank
	})
	return contracts
}

// byKnown compares whether two are known; one that is not comes first.
func byKnown(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// knownOf returns what is known of the driver of a device: of the contracts that were
// judged, the violated ones first, and of what the last run of the probes came short of.
func knownOf(s *state.DeviceState) []Known {
	var known []Known
	add := func(k Known) {
		if !slices.ContainsFunc(known, func(o Known) bool { return o.Contract == k.Contract && o.Fact == k.Fact }) {
			known = append(known, k)
		}
	}
	for _, verdict := range []state.Verdict{state.VerdictViolated, state.VerdictHolds} {
		if s.Contracts == nil {
			break
		}
		for i := range cut(s.Contracts.Verdicts) {
			if v := &s.Contracts.Verdicts[i]; v.Known && v.Verdict == verdict {
				add(Known{
					Contract: text.Clean(v.Name), Verdict: verdict, Observed: text.Clean(v.Observed),
					Fact: text.Clean(v.Fact), Remedy: text.Clean(v.Remedy), Source: text.Clean(v.Source),
				})
			}
		}
	}
	if s.Last == nil {
		return known
	}
	for i := range cut(s.Last.Probes) {
		p := &s.Last.Probes[i]
		for _, k := range cut(p.Known) {
			add(Known{
				Contract: text.Clean(k.Contract), Verdict: state.VerdictViolated, Observed: text.Clean(k.Subject + ": " + k.Message),
				Fact: text.Clean(k.Fact), Source: text.Clean(k.Source),
			})
		}
	}
	return cut(known)
}

// markKnown marks the sizes that are as they are because of what is known of the
// driver.
func (d *Device) markKnown() {
	breaks := func(contract string) bool {
		return slices.ContainsFunc(d.Known, func(k Known) bool {
			return k.Contract == contract && k.Verdict == state.VerdictViolated
		})
	}
	for i := range d.Sizes {
		s := &d.Sizes[i]
		kind, _, _ := strings.Cut(s.Object, "_")
		less, other := s.Actual < s.Requested, s.Queried != nil && *s.Queried != s.Actual
		s.Known = (less || other) && (!less || breaks(kind+"_at_least_requested")) && (!other || breaks(kind+"_reports_actual"))
	}
}
