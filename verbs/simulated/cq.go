package simulated

import (
	"slices"
	"syscall"

	"rdma_exporter/verbs"
)

// cq implements verbs.CQ (struct ibv_cq).
type cq struct {
	object
	entries int // as the device says
	room    int // as it is
	context uint64
	vector  int
	channel *channel // may be nil
	fields  verbs.WCFields

	// What was polled lies before head.
	queue   []completion
	head    int
	arming  arming
	unacked int
	// moderation is that of now, and moderated tells that there was one at any time.
	moderation verbs.Moderation
	moderated  bool
	mute       bool // by a fault: nothing completes any more
}

// completion is an entry of a CQ.
type completion struct {
	wc verbs.WC
	// retire, which may be nil, frees the slot that the work request has in its
	// queue.
	retire func()
}

// leave has the completion leave its CQ.
func (c completion) leave() {
	if c.retire != nil {
		c.retire()
	}
}

// CreateCQ implements verbs.Device (ibv_create_cq, ibv_create_cq_ex).
func (d *device) CreateCQ(attr verbs.CQInitAttr) (verbs.CQ, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	q := &cq{object: object{kind: kindCQ, dev: d}, context: attr.Context, vector: attr.Vector, fields: attr.Fields}
	verb, _ := q.fields.CQVerbs()
	parents := []*object{&d.object}
	if attr.Channel != nil {
		c, ok := attr.Channel.(*channel)
		if !ok || c.dev != d {
			return nil, d.invalid(verb, "the completion channel is not of this device")
		}
		q.channel = c
		parents = append(parents, &c.object)
	}
	if err := useAll(parents...); err != nil {
		return nil, err
	}
	err := d.hw.callOn(q.facts(), verb, func(short int) *failure {
		size, f := d.hw.behaviour.cq(attr.Entries, attr.Vector, q.fields)
		if f != nil {
			return f
		}
		q.entries, q.room = size.created, size.real
		if short > 0 {
			q.entries = less(attr.Entries, short)
			q.room = q.entries
		}
		if f := d.hw.admit(&q.object, q.room, parents...); f != nil {
			return f
		}
		d.hw.cqs = append(d.hw.cqs, q)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return q, nil
}

// Entries implements verbs.CQ.
func (q *cq) Entries() int { return q.entries }

// Moderate implements verbs.CQ (ibv_modify_cq). As there is no time between completions,
// an event that may be put off comes at once; measured, it is late by the period.
func (q *cq) Moderate(m verbs.Moderation) error {
	if err := q.use(); err != nil {
		return err
	}
	hw := q.dev.hw
	return hw.callOn(q.facts(), verbs.ModifyCQ, func(int) *failure {
		if f := hw.behaviour.moderates(m); f != nil {
			return f
		}
		q.moderation, q.moderated = m, q.moderated || m != verbs.Moderation{}
		return nil
	})
}

// Resize implements verbs.CQ (ibv_resize_cq).
func (q *cq) Resize(entries int) error {
	if err := q.use(); err != nil {
		return err
	}
	hw := q.dev.hw
	return hw.callOn(q.facts(), verbs.ResizeCQ, func(short int) *failure {
		waiting := q.queue[q.head:]
		size, f := hw.behaviour.resize(entries, len(waiting))
		if f != nil {
			return f
		}
		q.entries, q.room = size.created, size.real
		if short > 0 {
			q.entries = less(entries, short)
			q.room = max(q.entries, len(waiting))
		}
		if len(waiting) > 0 && hw.behaviour.breaks(cqResizeKeepsCompletions) {
			waiting[0].leave()
			q.queue[q.head] = completion{}
			q.head++
		}
		return nil
	})
}

// Context implements verbs.CQ.
func (q *cq) Context() uint64 { return q.context }

// Poll implements verbs.CQ (ibv_poll_cq, ibv_start_poll).
func (q *cq) Poll(n int) ([]verbs.WC, error) {
	_, verb := q.fields.CQVerbs()
	if err := q.use(); err != nil {
		return nil, err
	}
	if n <= 0 {
		return nil, q.invalid(verb, "asked for %d completions", n)
	}
	var wcs []verbs.WC
	err := q.dev.hw.callOn(q.facts(), verb, func(int) *failure {
		wcs = make([]verbs.WC, 0, min(n, len(q.queue)-q.head))
		for len(wcs) < n {
			wc, ok := q.next()
			if !ok {
				break
			}
			wcs = append(wcs, wc)
		}
		if last := len(wcs) - 1; q.fields != 0 && last >= 0 && len(wcs) < n && q.dev.hw.behaviour.breaks(cqExBatchKeepsCompletions) {
			q.queue = append(q.queue, completion{wc: wcs[last]})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return wcs, nil
}

// next takes the oldest completion, if there is one.
func (q *cq) next() (verbs.WC, bool) {
	if q.head == len(q.queue) {
		return verbs.WC{}, false
	}
	c := q.queue[q.head]
	q.queue[q.head] = completion{}
	q.head++
	if q.head == len(q.queue) {
		q.queue, q.head = q.queue[:0], 0
	}
	c.leave()
	return c.wc, true
}

// ReqNotify implements verbs.CQ (ibv_req_notify_cq).
func (q *cq) ReqNotify(solicitedOnly bool) error {
	if err := q.use(); err != nil {
		return err
	}
	return q.dev.hw.callOn(q.asking(solicitedOnly), verbs.ReqNotifyCQ, func(int) *failure {
		q.arm(solicitedOnly)
		return nil
	})
}

// arm is the effect of ibv_req_notify_cq.
func (q *cq) arm(solicitedOnly bool) {
	hw := q.dev.hw
	q.arming = hw.behaviour.arms(q.arming, solicitedOnly)
	hw.armed(q)
}

// AckEvents implements verbs.CQ (ibv_ack_cq_events).
func (q *cq) AckEvents(n int) error {
	if err := q.use(); err != nil {
		return err
	}
	if n < 0 || n > q.unacked {
		return q.invalid(verbs.AckCQEvents, "%d events, of which %d are not acknowledged", n, q.unacked)
	}
	return q.dev.hw.call(verbs.AckCQEvents, func(int) *failure {
		q.unacked -= n
		return nil
	})
}

// Close implements verbs.CQ (ibv_destroy_cq). Events of the CQ that GetEvent has
// not returned are dropped.
func (q *cq) Close() error {
	hw := q.dev.hw
	if !q.closed && q.unacked > 0 { // ibv_destroy_cq would wait, for ever
		return fail(syscall.EBUSY, "%d %w", q.unacked, verbs.ErrUnacknowledged).of(verbs.DestroyCQ, hw.name)
	}
	return q.destroy(verbs.DestroyCQ, func() {
		for _, c := range hw.channels { // an event may have gone astray
			c.events = slices.DeleteFunc(c.events, func(e pendingEvent) bool { return e.from == q })
		}
		hw.cqs = slices.DeleteFunc(hw.cqs, func(o *cq) bool { return o == q })
		q.queue, q.head = nil, 0
	})
}

// complete adds a completion, or drops it if there is no room.
func (q *cq) complete(c completion, solicited bool) {
	if q.closed || q.mute || len(q.queue)-q.head >= q.room {
		c.leave()
		return
	}
	hw, path := q.dev.hw, pathOf(c.wc.Status)
	if q.fields&verbs.WCTimestamp != 0 && c.wc.Status == verbs.WCSuccess {
		c.wc.Timestamp = hw.behaviour.timestamp()
	}
	lost := hw.completed(q, &c.wc)
	if lost || q.mute {
		c.leave()
	} else {
		q.queue = append(q.queue, c)
	}
	if q.mute {
		return
	}
	if q.moderated && hw.behaviour.breaks(cqModerationNotifies) {
		return
	}
	var notify bool
	if notify, q.arming = hw.behaviour.notifies(q.arming, solicited, c.wc.Status); notify {
		hw.notify(q, path)
	}
}
