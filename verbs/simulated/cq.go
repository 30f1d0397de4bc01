package simulated

import (
	"slices"
	"syscall"
	"time"

	"rdma_exporter/verbs"
)

type cq struct {
	object
	entries int // as the device says
	room    int // as it is
	context uint64
	vector  int
	channel *channel // may be nil
	fields  verbs.WCFields

	queue   []completion
	arming  arming
	unacked int
	mute    bool // by a fault: nothing completes any more
}

// completion is an entry of a CQ.
type completion struct {
	wc verbs.WC
	// sender is the QP whose send queue has a slot for it, unless the QP was reset since.
	// It is nil for receives.
	sender *qp
	resets int
}

func (d *device) CreateCQ(attr verbs.CQInitAttr) (verbs.CQ, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	verb, _ := attr.Fields.CQVerbs()
	parents := []*object{&d.object}
	ch, ok := own[*channel](d, attr.Channel, &parents)
	if !ok {
		return nil, d.invalid(verb, "the completion channel is not of this device")
	}
	q := &cq{object: object{kind: kindCQ, dev: d}, channel: ch, context: attr.Context, vector: attr.Vector, fields: attr.Fields}
	if err := use(parents...); err != nil {
		return nil, err
	}
	return create[verbs.CQ](&d.object, verb, Call{}, q, func(short int) *failure {
		var f *failure
		if q.entries, q.room, f = d.cq(attr.Entries, attr.Vector, q.fields); f != nil {
			return f
		}
		if short > 0 {
			q.entries = less(attr.Entries, short)
			q.room = q.entries
		}
		if f := d.admit(&q.object, q.room, parents...); f != nil {
			return f
		}
		d.cqs = append(d.cqs, q)
		return nil
	})
}

func (q *cq) Entries() int { return q.entries }

func (q *cq) Resize(entries int) error {
	return q.call(verbs.ResizeCQ, Call{}, func(short int) *failure {
		waiting := len(q.queue)
		if entries >= 1 && entries < waiting && !q.dev.breaks("cq_resize_too_small_refused") {
			return fail(syscall.EINVAL, "cqe %d is below the %d completions in the CQ", entries, waiting)
		}
		reported, room, f := q.dev.entries(entries, waiting, "")
		if f != nil {
			return f
		}
		if q.entries = reported; !q.dev.breaks("cq_resize_at_least_requested") {
			q.room = room
		}
		if short > 0 {
			q.entries = less(entries, short)
			q.room = max(q.entries, waiting)
		}
		if q.dev.breaks("cq_resize_keeps_completions") {
			q.next()
		}
		return nil
	})
}

func (q *cq) Context() uint64 { return q.context }

func (q *cq) Poll(n int) ([]verbs.WC, error) {
	_, verb := q.fields.CQVerbs()
	if err := q.use(); err != nil {
		return nil, err
	}
	if n <= 0 {
		return nil, q.invalid(verb, "asked for %d completions", n)
	}
	wcs := make([]verbs.WC, 0, min(n, len(q.queue)))
	err := q.call(verb, Call{}, func(int) *failure {
		for len(wcs) < n && len(q.queue) > 0 {
			wc, _ := q.next()
			wcs = append(wcs, wc)
		}
		if q.fields != 0 && q.dev.breaks("cq_ex_batch_keeps_completions") {
			seen := 0 // every second ibv_next_poll skips a completion
			wcs = slices.DeleteFunc(wcs, func(verbs.WC) bool { seen++; return seen%3 == 0 })
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return wcs, nil
}

func (q *cq) next() (verbs.WC, bool) {
	if len(q.queue) == 0 {
		return verbs.WC{}, false
	}
	c := q.queue[0]
	q.queue = q.queue[1:]
	return c.wc, true
}

func (q *cq) ReqNotify(solicitedOnly bool) error {
	return q.call(verbs.ReqNotifyCQ, Call{}, func(int) *failure {
		q.arm(solicitedOnly)
		return nil
	})
}

func (q *cq) arm(solicitedOnly bool) {
	next := arming{now: forAny, ever: true}
	if solicitedOnly { // a request for less does not weaken one for any completion
		next.now = max(q.arming.now, forSolicited)
	}
	q.arming = next
	q.dev.armed(q)
}

func (q *cq) AckEvents(n int) error {
	if err := q.use(); err != nil {
		return err
	}
	if n < 0 || n > q.unacked {
		return q.invalid(verbs.AckCQEvents, "%d events, of which %d are not acknowledged", n, q.unacked)
	}
	return q.call(verbs.AckCQEvents, Call{}, func(int) *failure {
		q.unacked -= n
		return nil
	})
}

// Close implements verbs.CQ (ibv_destroy_cq). Events of the CQ that GetEvent has not returned
// are dropped.
func (q *cq) Close() error {
	hw := q.dev.hardware
	if !q.closed && q.unacked > 0 { // ibv_destroy_cq would wait, for ever
		return fail(syscall.EBUSY, "%d %w", q.unacked, verbs.ErrUnacknowledged).of(verbs.DestroyCQ, hw.name)
	}
	return q.destroy(verbs.DestroyCQ, func() {
		for _, c := range hw.channels { // an event may have gone astray
			c.events = slices.DeleteFunc(c.events, func(e pendingEvent) bool { return e.from == q })
		}
		hw.cqs = slices.DeleteFunc(hw.cqs, func(o *cq) bool { return o == q })
		q.queue = nil
	})
}

func (q *cq) complete(c completion, solicited bool) {
	if q.closed || q.mute || len(q.queue) >= q.room {
		return
	}
	hw, path := q.dev.hardware, pathOf(c.wc.Status)
	if q.fields&verbs.WCTimestamp != 0 && c.wc.Status == verbs.WCSuccess {
		c.wc.Timestamp = uint64(time.Now().UnixNano()) & hw.profile.Extended.TimestampMask // by the clock of the device
	}
	lost := hw.completed(q, &c.wc)
	if q.mute {
		return
	}
	if !lost {
		q.queue = append(q.queue, c)
	}
	var notify bool
	if notify, q.arming = hw.notifies(q.arming, solicited, c.wc.Status); notify {
		hw.notify(q, path)
	}
}
