package simulated

import (
	"fmt"
	"slices"
	"time"

	"rdma_exporter/verbs"
)

type channel struct {
	object
	events []pendingEvent // in the order in which they come
}

// pendingEvent is an event that was not returned yet.
type pendingEvent struct {
	from *cq // whose event it is: that acknowledges it, and takes it along when destroyed
	says verbs.CQEvent
	late time.Duration // by how much a fault delays it
	due  time.Time     // when it comes
}

func (d *device) CreateCompChannel() (verbs.CompChannel, error) {
	c := &channel{object: object{kind: kindChannel, dev: d}}
	return create[verbs.CompChannel](&d.object, verbs.CreateCompChannel, Call{}, c, func(int) *failure {
		if f := d.admit(&c.object, 0, &d.object); f != nil {
			return f
		}
		d.channels = append(d.channels, c)
		return nil
	})
}

// GetEvent implements verbs.CompChannel (ibv_get_cq_event). The verb is called only once
// there is an event. If the verb fails, the event stays in the channel.
func (c *channel) GetEvent(timeout time.Duration) (verbs.CQEvent, error) {
	if err := c.use(); err != nil {
		return verbs.CQEvent{}, err
	}
	e, ok, err := c.event(time.Now().Add(timeout), c.dev.hardware.call)
	if err == nil && !ok {
		err = fmt.Errorf("completion channel of %s: no event within %s: %w", c.dev.name, timeout, verbs.ErrTimeout)
	}
	return e.says, err
}

// event waits until the deadline for an event. If there is one, it calls the verb by way of
// call, and takes the event unless that fails.
func (c *channel) event(deadline time.Time, call caller) (e pendingEvent, ok bool, err error) {
	next := deadline
	if len(c.events) > 0 && c.events[0].due.Before(next) {
		next = c.events[0].due
	}
	time.Sleep(time.Until(next)) // events come only within verbs
	if len(c.events) == 0 || c.events[0].due.After(time.Now()) {
		return e, false, nil
	}
	err = call(verbs.GetCQEvent, Call{}, func(int) *failure {
		e, c.events = c.events[0], c.events[1:]
		e.from.unacked++
		return nil
	})
	return e, err == nil, err
}

func (c *channel) add(e pendingEvent) {
	e.due = time.Now().Add(e.late)
	c.events = append(c.events, e)
	slices.SortStableFunc(c.events, func(a, b pendingEvent) int { return a.due.Compare(b.due) })
}

func (c *channel) Close() error {
	return c.destroy(verbs.DestroyCompChannel, func() {
		c.dev.channels = slices.DeleteFunc(c.dev.channels, func(o *channel) bool { return o == c })
		c.events = nil
	})
}
