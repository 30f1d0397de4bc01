package simulated

import (
	"slices"

	"rdma_exporter/verbs"
)

// countedCompletionFault is a fault with the number of completions, events or armings that
// it saw.
type countedCompletionFault struct {
	CompletionFault
	seen   int
	status verbs.WCStatus
}

func pathOf(status verbs.WCStatus) string {
	if status == verbs.WCWRFlushErr {
		return "flush"
	}
	return "loopback"
}

func (h *hardware) failing(path string, names ...string) (acting []*countedCompletionFault) {
	for _, f := range h.completionFaults {
		if slices.Contains(names, f.Fault) && (f.Path == "" || f.Path == path) && counts(&f.seen, f.After, f.Times) {
			acting = append(acting, f)
		}
	}
	return acting
}

// completed makes faults act on a completion. It reports whether the completion is lost.
func (h *hardware) completed(q *cq, wc *verbs.WC) (lost bool) {
	for _, f := range h.failing(pathOf(wc.Status), "lose_completion", "never_complete", "fail_completion") {
		switch f.Fault {
		case "lose_completion":
			lost = true
		case "never_complete":
			q.mute = true
		default:
			// Of an unsuccessful completion nothing else is valid.
			*wc = verbs.WC{ID: wc.ID, Status: f.status, QPNum: wc.QPNum}
		}
	}
	return lost
}

func (h *hardware) notify(q *cq, path string) {
	to, e := h.event(q, h.channels)
	if to == nil {
		return
	}
	for _, f := range h.failing(path, "drop_event", "delay_event", "misdirect_event", "misname_event") {
		switch f.Fault {
		case "drop_event":
			to = nil
		case "delay_event":
			e.late += f.Delay
		case "misdirect_event":
			if to != nil {
				to = newestOther(h.channels, to, func(*channel) bool { return true })
			}
		default:
			other := newestOther(h.cqs, q, func(*cq) bool { return true })
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
	for range h.failing("", "spurious_event") {
		to, e := h.event(q, h.channels)
		to.add(e)
	}
}

// newestOther returns the newest other object of the same device context that suits, or nil.
func newestOther[T interface {
	comparable
	base() *object
}](all []T, than T, suits func(T) bool) (none T) {
	for _, o := range slices.Backward(all) {
		if o != than && o.base().dev == than.base().dev && suits(o) {
			return o
		}
	}
	return none
}
