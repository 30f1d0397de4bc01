package simulated

import (
	"fmt"
	"slices"
	"time"

	"rdma_exporter/verbs"
)

// channel implements verbs.CompChannel (struct ibv_comp_channel).
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
	return create[verbs.CompChannel](&d.object, Call{GID: -1}, verbs.CreateCompChannel, c, func(int) *failure {
		if f := d.hw.admit(&c.object, 0, &d.object); f != nil {
			return f
		}
		d.hw.channels = append(d.hw.channels, c)
		return nil
	})
}

// GetEvent implements verbs.CompChannel (ibv_get_cq_event). The verb is called,
// and the tracer told, only once there is an event. If the verb fails, the event
// stays in the channel.
func (c *channel) GetEvent(timeout time.Duration) (verbs.CQEvent, error) {
	if err := c.use(); err != nil {
		return verbs.CQEvent{}, err
	}
	hw := c.dev.hw
	e, ok, err := c.event(time.Now().Add(timeout), hw.call)
	if err != nil {
		return verbs.CQEvent{}, err
	}
	if !ok {
		return verbs.CQEvent{}, fmt.Errorf("completion channel of %s: no event within %s: %w", hw.name, timeout, verbs.ErrTimeout)
	}
	return e.says, nil
}

// event waits until the deadline for an event. If there is one, it calls the verb
// by way of call, and takes the event unless that fails.
func (c *channel) event(deadline time.Time, call caller) (e pendingEvent, ok bool, err error) {
	for {
		now, next := time.Now(), deadline
		if len(c.events) > 0 {
			if due := c.events[0].due; !due.After(now) {
				break
			} else if due.Before(next) {
				next = due
			}
		}
		if !now.Before(deadline) {
			return pendingEvent{}, false, nil
		}
		time.Sleep(next.Sub(now))
	}
	err = call(verbs.GetCQEvent, func(int) *failure {
		e, c.events = c.events[0], c.events[1:]
		e.from.unacked++
		return nil
	})
	return e, err == nil, err
}

// add adds an event.
func (c *channel) add(e pendingEvent) {
	e.due = time.Now().Add(e.late)
	at := len(c.events)
	for at > 0 && c.events[at-1].due.After(e.due) {
		at--
	}
	c.events = slices.Insert(c.events, at, e)
}

func (c *channel) Close() error {
	hw := c.dev.hw
	return c.destroy(verbs.DestroyCompChannel, func() {
		hw.channels = slices.DeleteFunc(hw.channels, func(o *channel) bool { return o == c })
		c.events = nil
	})
}
