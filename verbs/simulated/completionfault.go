package simulated

import (
	"slices"

	"rdma_exporter/verbs"
)

// The names of the faults of completions and of their events.
const (
	// FaultDropEvent has an event not come.
	FaultDropEvent = "drop_event"
	// FaultDelayEvent has an event come later, by CompletionFault.Delay.
	FaultDelayEvent = "delay_event"
	// FaultMisdirectEvent has an event come on the newest other completion channel
	// of the opened device. If there is none, it does not come.
	FaultMisdirectEvent = "misdirect_event"
	// FaultMisnameEvent has an event name the newest other CQ of the opened device,
	// with its context. If there is none, the event does not come.
	FaultMisnameEvent = "misname_event"
	// FaultSpuriousEvent has an event come as soon as the CQ is armed. It does not
	// use up the arming: the event of the next completion comes as well.
	FaultSpuriousEvent = "spurious_event"
	// FaultLoseCompletion has a completion not come, while its event does.
	FaultLoseCompletion = "lose_completion"
	// FaultNeverComplete has a completion not come, nor its event, nor any further
	// ones of that CQ.
	FaultNeverComplete = "never_complete"
	// FaultFailCompletion has a completion come with CompletionFault.Status. The QP
	// stays as it is.
	FaultFailCompletion = "fail_completion"
)

// The paths of completions.
const (
	// PathFlush is that of the work requests of a QP that are flushed.
	PathFlush = "flush"
	// PathLoopback is that of all others.
	PathLoopback = "loopback"
)

// completionFaultNames returns the names of the faults.
func completionFaultNames() []string {
	return []string{
		FaultDropEvent, FaultDelayEvent, FaultMisdirectEvent, FaultMisnameEvent, FaultSpuriousEvent,
		FaultLoseCompletion, FaultNeverComplete, FaultFailCompletion,
	}
}

// pathNames returns the names of the paths.
func pathNames() []string { return []string{PathLoopback, PathFlush} }

// pathOf returns the path of a completion.
func pathOf(status verbs.WCStatus) string {
	if status == verbs.WCWRFlushErr {
		return PathFlush
	}
	return PathLoopback
}

// failedStatuses returns the names of the statuses that are none of success.
func failedStatuses() []string { return named(verbs.WCSuccess+1, verbs.WCGeneralErr) }

// completionFaults counts the completions, events and armings of one device and
// says which of them are faulty.
type completionFaults []*countedCompletionFault

type countedCompletionFault struct {
	CompletionFault
	counter
	status verbs.WCStatus
}

func newCompletionFaults(list []CompletionFault) completionFaults {
	var f completionFaults
	for _, fault := range list {
		f = append(f, &countedCompletionFault{
			CompletionFault: fault, counter: counter{after: fault.After, times: fault.Times},
			status: value(fault.Status, verbs.WCSuccess, verbs.WCGeneralErr),
		})
	}
	return f
}

// next counts what the named faults act on, and returns those that do so now, in
// their order. An arming has no path.
func (f completionFaults) next(path string, names ...string) []*countedCompletionFault {
	var acting []*countedCompletionFault
	for _, c := range f {
		if slices.Contains(names, c.Fault) && (c.Path == "" || c.Path == path) && c.next() {
			acting = append(acting, c)
		}
	}
	return acting
}

// completed lets faults act on a completion of a CQ. It reports whether the
// completion is lost.
func (h *hardware) completed(q *cq, wc *verbs.WC) (lost bool) {
	for _, c := range h.completionFaults.next(pathOf(wc.Status), FaultLoseCompletion, FaultNeverComplete, FaultFailCompletion) {
		switch c.Fault {
		case FaultLoseCompletion:
			lost = true
		case FaultNeverComplete:
			q.mute = true
		case FaultFailCompletion:
			// Of an unsuccessful completion nothing else is valid.
			*wc = verbs.WC{ID: wc.ID, Status: c.status, QPNum: wc.QPNum}
		}
	}
	return lost
}

// notify raises an event for a completion of a CQ on a path.
func (h *hardware) notify(q *cq, path string) {
	to, says := h.behaviour.event(q, h.channels)
	if to == nil {
		return
	}
	e := pendingEvent{from: q, says: says}
	for _, c := range h.completionFaults.next(path, FaultDropEvent, FaultDelayEvent, FaultMisdirectEvent, FaultMisnameEvent) {
		switch c.Fault {
		case FaultDropEvent:
			to = nil
		case FaultDelayEvent:
			e.late += c.Delay
		case FaultMisdirectEvent:
			if to != nil {
				to = newestOther(h.channels, to, func(*channel) bool { return true })
			}
		case FaultMisnameEvent:
			other := h.newestOtherCQ(q)
			if other == nil {
				to = nil
			} else {
				e.from, e.says = other, verbs.CQEvent{CQ: other, Context: other.context}
			}
		}
	}
	if to != nil {
		to.add(e)
	}
}

// armed raises the events that come with no completion once a CQ is armed.
func (h *hardware) armed(q *cq) {
	if q.channel == nil {
		return
	}
	for range h.completionFaults.next("", FaultSpuriousEvent) {
		to, says := h.behaviour.event(q, h.channels)
		to.add(pendingEvent{from: q, says: says})
	}
}

// newestOtherCQ returns the newest CQ of the same opening of the device, but not
// the one given; nil if there is none.
func (h *hardware) newestOtherCQ(than *cq) *cq {
	for _, c := range slices.Backward(h.cqs) {
		if c != than && c.dev == than.dev {
			return c
		}
	}
	return nil
}
