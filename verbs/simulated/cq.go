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
	mute    bool // by a fault: nothing completes any more
}

// completion is an entry of a CQ.
type completion struct {
	wc verbs.WC
	// retire, which may be nil, frees the slot that the work request has in its
	// queue.
	retire func()
}

func (c completion) leave() {
	if c.retire != nil {
		c.retire()
	}
}

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
	return create[verbs.CQ](&d.object, Call{GID: -1}, verb, q, func(short int) *failure {
		var f *failure
		if q.entries, q.room, f = d.hw.behaviour.cq(attr.Entries, attr.Vector, q.fields); f != nil {
			return f
		}
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
}

func (q *cq) Entries() int { return q.entries }

func (q *cq) Resize(entries int) error {
	hw := q.dev.hw
	return q.call(verbs.ResizeCQ, func(short int) *failure {
		waiting := q.queue[q.head:]
		reported, room, f := hw.behaviour.resize(entries, len(waiting))
		if f != nil {
			return f
		}
		if q.entries = reported; !hw.behaviour.breaks(cqResizeAtLeastRequested) {
			q.room = room
		}
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

func (q *cq) Context() uint64 { return q.context }

func (q *cq) Poll(n int) ([]verbs.WC, error) {
	_, verb := q.fields.CQVerbs()
	if err := q.use(); err != nil {
		return nil, err
	}
	if n <= 0 {
		return nil, q.invalid(verb, "asked for %d completions", n)
	}
	var wcs []verbs.WC
	err := q.dev.hw.call(verb, func(int) *failure {
		wcs = make([]verbs.WC, 0, min(n, len(q.queue)-q.head))
		for len(wcs) < n {
			wc, ok := q.next()
			if !ok {
				break
			}
			wcs = append(wcs, wc)
		}
		if q.fields != 0 && q.dev.hw.behaviour.breaks(cqExBatchKeepsCompletions) {
			wcs = everySecondLost(wcs)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return wcs, nil
}

// everySecondLost returns what is left of a batch if every second ibv_next_poll skips a
// completion.
func everySecondLost(wcs []verbs.WC) []verbs.WC {
	var left []verbs.WC
	for i, wc := range wcs {
		if i%3 != 2 {
			left = append(left, wc)
		}
	}
	return left
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

func (q *cq) ReqNotify(solicitedOnly bool) error {
	return q.call(verbs.ReqNotifyCQ, func(int) *failure {
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
	var notify bool
	if notify, q.arming = hw.behaviour.notifies(q.arming, solicited, c.wc.Status); notify {
		hw.notify(q, path)
	}
}
