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

	// Guarded by the lock of the hardware.
	events []pendingEvent
	wake   chan struct{} // closed, and replaced, when an event is added
}

// pendingEvent is an event that was not returned yet.
type pendingEvent struct {
	from *cq // whose event it is: that acknowledges it, and takes it along when destroyed
	says verbs.CQEvent
	late time.Duration // by how much a fault delayed it
}

// CreateCompChannel implements verbs.Device (ibv_create_comp_channel).
func (d *device) CreateCompChannel() (verbs.CompChannel, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	defer d.done()
	c := &channel{object: newObject(kindChannel, d), wake: make(chan struct{})}
	err := d.hw.call(verbs.CreateCompChannel, func(int) *failure {
		if f := d.hw.admit(&c.object, 0, &d.object); f != nil {
			return f
		}
		d.hw.channels = append(d.hw.channels, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// GetEvent implements verbs.CompChannel (ibv_get_cq_event). The verb is called,
// and the tracer told, only once there is an event. If the verb fails, the event
// stays in the channel.
func (c *channel) GetEvent(timeout time.Duration) (verbs.CQEvent, error) {
	if err := c.use(); err != nil {
		return verbs.CQEvent{}, err
	}
	defer c.done()
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
// by way of call.
func (c *channel) event(deadline time.Time, call caller) (e pendingEvent, ok bool, err error) {
	hw := c.dev.hw
	for {
		hw.mu.Lock()
		if len(c.events) > 0 {
			// The event is taken before the verb, so that the verb, which may take
			// its time, cannot find it gone.
			e := c.events[0]
			c.events = c.events[1:]
			e.from.unacked++
			hw.mu.Unlock()
			return e, true, c.take(e, call)
		}
		wake := c.wake
		hw.mu.Unlock()
		left := time.Until(deadline)
		if left <= 0 {
			return pendingEvent{}, false, nil
		}
		timer := time.NewTimer(left)
		select {
		case <-wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// take calls the verb for an event that was taken. If it fails, the event is put
// back.
func (c *channel) take(e pendingEvent, call caller) error {
	err := call(verbs.GetCQEvent, nil)
	if err != nil {
		hw := c.dev.hw
		hw.mu.Lock()
		defer hw.mu.Unlock()
		e.from.unacked--
		c.events = slices.Insert(c.events, 0, e)
		c.awake()
	}
	return err
}

// add adds an event. The lock of the hardware is held.
func (c *channel) add(e pendingEvent) {
	c.events = append(c.events, e)
	c.awake()
}

// awake wakes whoever waits. The lock of the hardware is held.
func (c *channel) awake() {
	close(c.wake)
	c.wake = make(chan struct{})
}

// Close implements verbs.CompChannel (ibv_destroy_comp_channel). It waits for a
// GetEvent that is under way.
func (c *channel) Close() error {
	hw := c.dev.hw
	return c.destroy(verbs.DestroyCompChannel, ending{gone: func() {
		hw.channels = slices.DeleteFunc(hw.channels, func(o *channel) bool { return o == c })
		c.events = nil
	}})
}
