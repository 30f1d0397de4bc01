package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// ownerless adds a finding for objects of dead processes. If the exporter does not see all processes, it reports
// that instead.
func (a *assessor) ownerless() {
	ownerless := a.inventory.Ownerless
	if !a.inventory.PIDsVisible {
		// Their owners may merely be invisible.
		ownerless = slices.Concat(ownerless, a.inventory.Untraced)
	}
	if a.inventory.PIDsVisible {
		// Objects leaked by exited children have no owner either.
		ownerless = slices.Clone(ownerless)
		for i := range ownerless {
			for _, l := range a.resources.Leaked {
				if l.Type == ownerless[i].Type {
					ownerless[i].Objects = max(ownerless[i].Objects-max(l.Objects, 0), 0)
				}
			}
		}
	}
	counts, objects := total(ownerless)
	if objects == 0 {
		return
	}
	most := slices.MaxFunc(counts, func(x, y state.TypeCount) int {
		return cmp.Or(cmp.Compare(x.Objects, y.Objects), strings.Compare(y.Type, x.Type))
	})
	replace := []string{"{show}", a.show(most.Type, 0)}
	if !a.inventory.PIDsVisible {
		a.add(observation{
			kind: FindingPIDsInvisible, subject: "owners",
			message: fmt.Sprintf("Owner unknown: %s (%s).", text.Objects(objects, ""), list(counts)),
			replace: replace,
		})
		return
	}
	since := a.resources.OrphanedSince
	age := a.resources.Taken.Sub(since)
	if since.IsZero() || age < a.config.OrphanAge {
		return
	}
	a.add(observation{
		kind: FindingOrphaned, subject: "user objects",
		message: fmt.Sprintf("Without a living owner: %s (%s). Inventories have found such objects since %s, for %s.", text.Objects(objects, ""), list(counts), text.Moment(since), text.Age(age)) + a.formerOwners(),
		replace: replace,
	})
}

// leaked adds one finding for all objects leaked by exited children of the exporter.
func (a *assessor) leaked() {
	var since time.Time
	var left []state.TypeCount
	for _, l := range a.resources.Leaked {
		left = append(left, state.TypeCount{Type: l.Type, Objects: l.Objects})
		if l.Objects > 0 && (since.IsZero() || l.Since.Before(since)) {
			since = l.Since
		}
	}
	counts, objects := total(left)
	if objects == 0 {
		return
	}
	severity, age := SeverityWarning, a.resources.Taken.Sub(since)
	if age >= a.config.OrphanAge {
		severity = SeverityCritical
	}
	var by []string
	for i := range a.resources.LeakedBy {
		b := &a.resources.LeakedBy[i]
		in := ""
		if b.Verb != "" {
			in = " in " + word(b.Verb)
		}
		by = append(by, fmt.Sprintf("the %s run of %s (%s%s)", word(string(b.Kind)), text.Moment(b.Started), word(string(b.Outcome)), in))
	}
	from := ""
	if len(by) > 0 {
		from = fmt.Sprintf(" They are from %s.", text.Join(by, ", ", maxFew))
	}
	a.add(observation{
		kind: FindingLeaked, severity: severity, subject: "the exporter's own objects",
		message: fmt.Sprintf("Left behind by ended children of the exporter: %s (%s). Inventories have found some since %s, for %s.",
			text.Objects(objects, ""), list(counts), text.Moment(since), text.Age(age)) + from,
		replace: []string{"{show}", a.show(counts[0].Type, 0)},
	})
}

func (a *assessor) undestroyed() {
	type key struct{ kind, errno string }
	type refusals struct {
		key
		probes, contracts, attempts int
	}
	var all []refusals
	index := make(map[key]int)
	take := func(u *state.Undestroyed) *refusals {
		k := key{u.Type, u.Errno}
		i, ok := index[k]
		if !ok {
			i = len(all)
			index[k] = i
			all = append(all, refusals{key: k})
		}
		all[i].attempts = max(all[i].attempts, u.Attempts)
		return &all[i]
	}
	if run := a.state.Last; run != nil {
		for i := range run.Undestroyed {
			take(&run.Undestroyed[i]).probes++
		}
	}
	if c := a.state.Contracts; c != nil && c.Last != nil {
		for i := range c.Last.Undestroyed {
			take(&c.Last.Undestroyed[i]).contracts++
		}
	}
	// An object that cannot be destroyed blocks the destruction of those it uses.
	busy := map[string]string{"EBUSY": rootBusy}
	for _, r := range all {
		n, where := r.probes+r.contracts, "the probes"
		switch {
		case r.probes == 0:
			where = "the contract run"
		case r.contracts > 0:
			where = fmt.Sprintf("the probes (%d) and the contracts (%d)", r.probes, r.contracts)
		}
		kind, errno := word(r.kind), cmp.Or(word(r.errno), "no errno")
		a.add(observation{
			kind: FindingUndestroyed, subject: kind + " " + errno, size: float64(n), root: busy[r.errno],
			message: fmt.Sprintf("In the last run of %s the device refused to destroy %s: %s, tried up to %d times.",
				where, text.Objects(int64(n), r.kind), errno, r.attempts),
			replace: []string{"{type}", kind},
		})
	}
}

func (a *assessor) queuePairs() {
	var all, broken, sqe int64
	for _, q := range a.inventory.QueuePairs {
		all = sum(all, q.Objects)
		switch q.State {
		case "err":
			broken = sum(broken, q.Objects)
		case "sqe":
			sqe = sum(sqe, q.Objects)
		}
	}
	passing := max(a.inventory.TransientErrors, 0)
	failed := sum(broken, sqe) - passing
	if failed <= 0 || failed < a.config.QPErrors {
		return
	}
	states, dev := fmt.Sprintf("In the state err: %s", text.Objects(broken, "qp")), "ERR"
	switch {
	case broken == 0:
		states, dev = fmt.Sprintf("In the state sqe: %s", text.Objects(sqe, "qp")), "SQE"
	case sqe > 0:
		states += "; in the state sqe: " + text.Number(sqe)
	}
	message := fmt.Sprintf("%s; of %s in all.", states, text.Number(all))
	if passing > 0 {
		message += fmt.Sprintf(" %s of them do not count: the exporter breaks some on purpose, and processes that end leave some behind for a moment.", text.Number(passing))
	}
	a.add(observation{
		kind: FindingQPError, subject: "qp",
		message: message + " The inventory does not say which process has them.",
		replace: []string{"{show}", a.show("qp", 0, "state", dev)},
	})
}

// oversizedCQs adds a finding for completion queues that can never be filled.
func (a *assessor) oversizedCQs() {
	u := a.inventory.OversizedCQs
	if u == nil || u.Entries <= 0 || u.Entries < a.config.CQEntries {
		return
	}
	message := fmt.Sprintf("%s with %s entries together can never be filled by what uses them. The largest has %s", text.Objects(u.Objects, "cq"), text.Number(u.Entries), text.Number(u.Largest))
	if u.PID > 0 {
		message += fmt.Sprintf(", and belongs to %s", ownerName(u.PID, a.comm(u.PID)))
	}
	a.add(observation{
		kind: FindingCQUnfillable, subject: "cq", message: message + ".",
		replace: []string{"{show}", a.show("cq", u.PID)},
	})
}

// comm returns the command of an owner, or "".
func (a *assessor) comm(pid int) string {
	for i := range a.inventory.Owners {
		if o := &a.inventory.Owners[i]; o.PID == pid {
			return o.Comm
		}
	}
	return ""
}
