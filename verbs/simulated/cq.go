package simulated

import (
	"slices"
	"syscall"

	"rdma_exporter/verbs"
)

// cq implements verbs.CQ (struct ibv_cq).
type cq struct {
	object
	entries int
	context uint64
	channel *channel // may be nil

	// Guarded by the lock of the hardware. What was polled lies before head.
	queue   []completion
	head    int
	arming  arming
	unacked int
}

// completion is an entry of a CQ.
type completion struct {
	wc verbs.WC
	// retire, which may be nil, frees the slot that the work request has in its
	// queue.
	retire func()
}

// CreateCQ implements verbs.Device (ibv_create_cq).
func (d *device) CreateCQ(attr verbs.CQInitAttr) (verbs.CQ, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	q := &cq{object: newObject(kindCQ, d), context: attr.Context}
	parents := []*object{&d.object}
	if attr.Channel != nil {
		c, ok := attr.Channel.(*channel)
		if !ok || c.dev != d {
			return nil, d.invalid(verbs.CreateCQ, "the completion channel is not of this device")
		}
		q.channel = c
		parents = append(parents, &c.object)
	}
	done, err := useAll(parents...)
	if err != nil {
		return nil, err
	}
	defer done()
	err = d.hw.call(verbs.CreateCQ, func(short int) *failure {
		entries, f := d.hw.behaviour.cq(attr.Entries, attr.Vector)
		if f != nil {
			return f
		}
		q.entries = entries
		if short > 0 {
			q.entries = less(attr.Entries, short)
		}
		return d.hw.admit(&q.object, q.entries, parents...)
	})
	if err != nil {
		return nil, err
	}
	return q, nil
}

// Entries implements verbs.CQ.
func (q *cq) Entries() int { return q.entries }

// Context implements verbs.CQ.
func (q *cq) Context() uint64 { return q.context }

// Poll implements verbs.CQ (ibv_poll_cq).
func (q *cq) Poll(n int) ([]verbs.WC, error) {
	if err := q.use(); err != nil {
		return nil, err
	}
	defer q.done()
	if n <= 0 {
		return nil, q.invalid(verbs.PollCQ, "asked for %d completions", n)
	}
	var wcs []verbs.WC
	err := q.dev.hw.call(verbs.PollCQ, func(int) *failure {
		wcs = make([]verbs.WC, 0, min(n, len(q.queue)-q.head))
		for len(wcs) < n && q.head < len(q.queue) {
			c := q.queue[q.head]
			q.queue[q.head] = completion{}
			q.head++
			if c.retire != nil {
				c.retire()
			}
			wcs = append(wcs, c.wc)
		}
		if q.head == len(q.queue) {
			q.queue, q.head = q.queue[:0], 0
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return wcs, nil
}

// ReqNotify implements verbs.CQ (ibv_req_notify_cq).
func (q *cq) ReqNotify(solicitedOnly bool) error {
	if err := q.use(); err != nil {
		return err
	}
	defer q.done()
	hw := q.dev.hw
	return hw.call(verbs.ReqNotifyCQ, func(int) *failure {
		q.arming = hw.behaviour.arms(q.arming, solicitedOnly)
		return nil
	})
}

// AckEvents implements verbs.CQ (ibv_ack_cq_events).
func (q *cq) AckEvents(n int) error {
	if err := q.use(); err != nil {
		return err
	}
	defer q.done()
	hw := q.dev.hw
	hw.mu.Lock()
	unacked := q.unacked
	if n < 0 || n > unacked {
		hw.mu.Unlock()
		return q.invalid(verbs.AckCQEvents, "%d events, of which %d are not acknowledged", n, unacked)
	}
	// Taken before the verb, so that another call cannot acknowledge them, too.
	q.unacked -= n
	hw.mu.Unlock()
	err := hw.call(verbs.AckCQEvents, nil)
	if err != nil {
		hw.mu.Lock()
		q.unacked += n
		hw.mu.Unlock()
	}
	return err
}

// Close implements verbs.CQ (ibv_destroy_cq). Events of the CQ that GetEvent has
// not returned are dropped.
func (q *cq) Close() error {
	q.life.Lock()
	defer q.life.Unlock()
	hw := q.dev.hw
	hw.mu.Lock()
	f := q.unacknowledged()
	hw.mu.Unlock()
	if f != nil {
		return f.of(verbs.DestroyCQ, hw.name)
	}
	return q.destroyLocked(verbs.DestroyCQ, ending{
		// GetEvent, which uses the channel only, may have returned one meanwhile.
		refused: q.unacknowledged,
		gone: func() {
			if q.channel != nil {
				q.channel.events = slices.DeleteFunc(q.channel.events, func(e pendingEvent) bool { return e.from == q })
			}
			q.queue, q.head = nil, 0
		},
	})
}

// unacknowledged is why ibv_destroy_cq would wait, for ever, if it would. The
// lock of the hardware is held.
func (q *cq) unacknowledged() *failure {
	if q.unacked == 0 {
		return nil
	}
	return fail(syscall.EBUSY, "%d %w", q.unacked, verbs.ErrUnacknowledged)
}

// complete adds a completion, or drops it if the CQ is full. The lock of the
// hardware is held.
func (q *cq) complete(c completion, solicited bool) {
	if len(q.queue)-q.head >= q.entries {
		if c.retire != nil {
			c.retire()
		}
		return
	}
	q.queue = append(q.queue, c)
	hw := q.dev.hw
	var notify bool
	notify, q.arming = hw.behaviour.notifies(q.arming, solicited, c.wc.Status)
	if !notify {
		return
	}
	if to, says := hw.behaviour.event(q); to != nil {
		to.add(pendingEvent{from: q, says: says})
	}
}
