package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

func (a *assessor) stuck() {
	find := func(s *state.Stuck, whose, root string) {
		if s == nil {
			return
		}
		a.add(observation{
			kind: FindingStuck, subject: fmt.Sprintf("pid %d", s.PID),
			message: fmt.Sprintf("A process of the exporter (%s), pid %d, was killed and has not ended since %s%s.", whose, s.PID, text.Moment(s.Since), text.Around(", in ", text.Name(s.Verb), "")),
			replace: []string{"{pid}", fmt.Sprint(s.PID)}, run: true, root: root, verb: s.Verb,
		})
	}
	find(a.state.Stuck, "probes or contract run", rootDevice)
	find(a.resources.Stuck, "inventory", rootInventory)
	if h := a.state.Hardware; h != nil {
		find(h.Stuck, "hardware reading", rootHardware)
	}
}

func (a *assessor) incompleteFor(reason state.IncompleteReason) {
	var types, sized, details []string
	var size float64
	for _, n := range a.inventory.Incomplete {
		// There is at most one of each type.
		if n.Reason != reason || len(types) == len(state.ResourceTypes()) {
			continue
		}
		objects, name := a.inventory.Count(n.Type), text.Name(n.Type)
		size += float64(objects)
		types = append(types, name)
		if n.Detail != "" {
			details = append(details, name+": "+text.Name(n.Detail))
		}
		if objects > 0 {
			name = text.Objects(objects, n.Type)
		}
		sized = append(sized, name)
	}
	if len(types) == 0 {
		return
	}
	message := "Not read one by one: "
	if reason == state.IncompleteInterrupted {
		message = "Read while changing: "
	}
	a.add(observation{
		kind: FindingIncomplete, entry: string(reason), size: size, subject: strings.Join(types, ", "),
		message: message + strings.Join(sized, ", ") + text.Around(" (", strings.Join(details, "; "), ")") + ".",
		replace: []string{"{show}", a.show(types[0], 0)},
	})
}

// fresh reports whether the inventory is that of the last inventory run.
func (a *assessor) fresh() bool {
	return a.resources.Inventory != nil && a.resources.Last != nil && a.resources.Taken.Equal(a.resources.Last.Started)
}

// onlyCounted reports whether the last inventory run failed before it listed any objects.
func (a *assessor) onlyCounted() bool {
	return a.fresh() && a.resources.Last.Outcome != state.OutcomeOK &&
		!slices.ContainsFunc(state.ResourceTypes(), a.inventory.Enumerated)
}

// incomplete adds a finding for each reason, or for a last inventory run that failed without one.
func (a *assessor) incomplete() {
	for _, reason := range state.IncompleteReasons() {
		if !a.onlyCounted() {
			a.incompleteFor(reason)
		}
	}
	last := a.resources.Last
	if last == nil || last.Outcome == state.OutcomeOK || a.fresh() && len(a.inventory.Incomplete) > 0 && !a.onlyCounted() {
		return
	}
	message := fmt.Sprintf("The inventory started at %s ended with outcome %s%s", text.Moment(last.Started),
		cmp.Or(text.Name(string(last.Outcome)), "unknown"), text.Around(": ", text.Name(last.Error), ""))
	switch {
	case a.onlyCounted():
		message += ". It only counted the objects."
	case a.fresh():
		message += ". It still produced an inventory."
	case a.resources.Inventory != nil:
		message += fmt.Sprintf(". The objects shown are from %s.", text.Moment(a.resources.Taken))
	default:
		message += ". The objects on the device are not known."
	}
	a.add(observation{
		kind: FindingIncomplete, entry: "run", subject: "the inventory", message: message,
		run: last.Outcome == state.OutcomeTimeout, root: rootInventory,
	})
}
