package health

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// ownerless adds a finding for objects of dead processes. If the exporter does not see all processes, it reports
// that instead.
func (a *assessor) ownerless() {
	ownerless := slices.Clone(a.inventory.Ownerless)
	if !a.inventory.PIDsVisible {
		// Their owners may merely be invisible.
		counts, objects := state.Totals(append(ownerless, a.inventory.Untraced...))
		if objects > 0 {
			a.add(observation{
				kind: FindingPIDsInvisible, subject: "owners",
				message: fmt.Sprintf("Owner unknown: %s (%s).", text.Objects(objects, ""), list(counts)),
			})
		}
		return
	}
	// Objects leaked by exited children have no owner either.
	for i := range ownerless {
		for _, l := range a.resources.Leaked {
			if l.Type == ownerless[i].Type {
				ownerless[i].Objects = max(ownerless[i].Objects-max(l.Objects, 0), 0)
			}
		}
	}
	counts, objects := state.Totals(ownerless)
	since := a.resources.OrphanedSince
	age := a.resources.Taken.Sub(since)
	if objects == 0 || since.IsZero() || age < a.config.OrphanAge {
		return
	}
	a.add(observation{
		kind: FindingOrphaned, subject: "user objects",
		message: fmt.Sprintf("Without a living owner: %s (%s). Inventories have found such objects since %s, for %s.",
			text.Objects(objects, ""), list(counts), text.Moment(since), text.Age(age)) + a.formerOwners(),
		replace: []string{"{show}", a.show(slices.MinFunc(counts, state.TypeCount.CompareLargest).Type, 0)},
	})
}

func (a *assessor) leaked() {
	var since time.Time
	var left []state.TypeCount
	for _, l := range a.resources.Leaked {
		left = append(left, state.TypeCount{Type: l.Type, Objects: l.Objects})
		if l.Objects > 0 && (since.IsZero() || l.Since.Before(since)) {
			since = l.Since
		}
	}
	counts, objects := state.Totals(left)
	if objects == 0 {
		return
	}
	severity, age := SeverityWarning, a.resources.Taken.Sub(since)
	if age >= a.config.OrphanAge {
		severity = SeverityCritical
	}
	message := fmt.Sprintf("Left behind by ended children of the exporter: %s (%s). Inventories have found some since %s, for %s.",
		text.Objects(objects, ""), list(counts), text.Moment(since), text.Age(age))
	var by []string
	for _, b := range a.resources.LeakedBy {
		by = append(by, fmt.Sprintf("the %s run of %s (%s%s)", text.Name(string(b.Kind)), text.Moment(b.Started),
			text.Name(string(b.Outcome)), text.Around(" in ", text.Name(b.Verb), "")))
	}
	a.add(observation{
		kind: FindingLeaked, severity: severity, subject: "the exporter's own objects",
		message: message + text.Around(" They are from ", text.Join(by, ", ", maxFew), "."),
		replace: []string{"{show}", a.show(counts[0].Type, 0)},
	})
}

func (a *assessor) undestroyed() {
	probes, all := len(a.last.Undestroyed), a.last.Undestroyed
	if run := a.contract.Last; run != nil {
		all = slices.Concat(all, run.Undestroyed)
	}
	type refusals struct{ probes, contracts, attempts int }
	refused := make(map[state.Undestroyed]*refusals) // By type and errno.
	var keys []state.Undestroyed
	for i, u := range all {
		key := state.Undestroyed{Type: u.Type, Errno: u.Errno}
		if refused[key] == nil {
			keys, refused[key] = append(keys, key), new(refusals)
		}
		r := refused[key]
		if r.attempts = max(r.attempts, u.Attempts); i < probes {
			r.probes++
		} else {
			r.contracts++
		}
	}
	// An object that cannot be destroyed blocks the destruction of those it uses.
	busy := map[string]string{"EBUSY": rootBusy}
	for _, u := range keys {
		r := refused[u]
		n, where := r.probes+r.contracts, "the probes"
		switch {
		case r.probes == 0:
			where = "the contract run"
		case r.contracts > 0:
			where = fmt.Sprintf("the probes (%d) and the contracts (%d)", r.probes, r.contracts)
		}
		kind, errno := text.Name(u.Type), cmp.Or(text.Name(u.Errno), "no errno")
		a.add(observation{
			kind: FindingUndestroyed, subject: kind + " " + errno, size: float64(n), root: busy[u.Errno], errno: u.Errno,
			message: fmt.Sprintf("In the last run of %s the device refused to destroy %s: %s, tried up to %d times.",
				where, text.Objects(int64(n), u.Type), errno, r.attempts),
			replace: []string{"{type}", kind},
		})
	}
}

func (a *assessor) queuePairs() {
	var all int64
	in := make(map[string]int64)
	for _, q := range a.inventory.QueuePairs {
		all = state.Sum(all, q.Objects)
		in[q.State] = state.Sum(in[q.State], q.Objects)
	}
	passing := max(a.inventory.TransientErrors, 0)
	failed := state.Sum(in["err"], in["sqe"]) - passing
	if failed <= 0 || failed < a.config.QPErrors {
		return
	}
	message, filter := "In the state err: "+text.Objects(in["err"], "qp"), "ERR"
	switch {
	case in["err"] == 0:
		message, filter = "In the state sqe: "+text.Objects(in["sqe"], "qp"), "SQE"
	case in["sqe"] > 0:
		message += "; in the state sqe: " + text.Number(in["sqe"])
	}
	message += "; of " + text.Number(all) + " in all."
	if passing > 0 {
		message += fmt.Sprintf(" %s of them do not count: the exporter breaks some on purpose, and processes that end leave some behind for a moment.", text.Number(passing))
	}
	a.add(observation{
		kind: FindingQPError, subject: "qp", message: message + " The inventory does not say which process has them.",
		replace: []string{"{show}", a.show("qp", 0, "state", filter)},
	})
}

func (a *assessor) oversizedCQs() {
	u := a.inventory.OversizedCQs
	if u == nil || u.Entries <= 0 || u.Entries < a.config.CQEntries {
		return
	}
	message := fmt.Sprintf("%s with %s entries together can never be filled by what uses them. The largest has %s",
		text.Objects(u.Objects, "cq"), text.Number(u.Entries), text.Number(u.Largest))
	if u.PID > 0 {
		owner := cmp.Or(find(a.inventory.Owners, func(o *state.Owner) bool { return o.PID == u.PID }), new(state.Owner))
		message += ", and belongs to " + ownerName(u.PID, owner.Comm)
	}
	a.add(observation{
		kind: FindingCQUnfillable, subject: "cq", message: message + ".",
		replace: []string{"{show}", a.show("cq", u.PID)},
	})
}
