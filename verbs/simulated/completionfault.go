package simulated

import (
	"slices"

	"rdma_exporter/verbs"
)

// The faults of completions and of their events, which docs/reference/simulator.md describes.
const (
	FaultDropEvent      = "drop_event"
	FaultDelayEvent     = "delay_event"
	FaultMisdirectEvent = "misdirect_event"
	FaultMisnameEvent   = "misname_event"
	FaultSpuriousEvent  = "spurious_event"
	FaultLoseCompletion = "lose_completion"
	FaultNeverComplete  = "never_complete"
	FaultFailCompletion = "fail_completion"
)

// The paths of completions: PathFlush is that of flushed work requests, PathLoopback that of
// all others.
const (
	PathFlush    = "flush"
	PathLoopback = "loopback"
)

func completionFaultNames() []string {
	return []string{
		FaultDropEvent, FaultDelayEvent, FaultMisdirectEvent, FaultMisnameEvent, FaultSpuriousEvent,
		FaultLoseCompletion, FaultNeverComplete, FaultFailCompletion,
	}
}

func pathOf(status verbs.WCStatus) string {
	if status == verbs.WCWRFlushErr {
		return PathFlush
	}
	return PathLoopback
}

// completionFaults counts the completions, events and armings of one device and selects
// those that are faulty.
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

// next counts what the named faults act on, and returns the faults that act now.
func (f completionFaults) next(path string, names ...string) []*countedCompletionFault {
	var acting []*countedCompletionFault
	for _, c := range f {
		if slices.Contains(names, c.Fault) && (c.Path == "" || c.Path == path) && c.next() {
			acting = append(acting, c)
		}
	}
	return acting
}

// completed makes faults act on a completion of a CQ. It reports whether the completion is
// lost.
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
