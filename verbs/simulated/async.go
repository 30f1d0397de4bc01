package simulated

import (
	"fmt"
	"time"

	"rdma_exporter/verbs"
)

// asyncEvents returns the events with which a device is opened.
func asyncEvents(types []string) []verbs.AsyncEvent {
	var events []verbs.AsyncEvent
	for _, name := range types {
		e := verbs.AsyncEvent{Type: value(name, verbs.EventCQErr, verbs.EventWQFatal)}
		if e.Type.OfPort() {
			e.Port = 1
		}
		events = append(events, e)
	}
	return events
}

func asyncEventTypes() []string { return named(verbs.EventCQErr, verbs.EventWQFatal) }

// AsyncEvent implements verbs.Device (ibv_get_async_event, ibv_ack_async_event). The verbs
// are called, and the tracer told, only once there is an event. If one of them fails, the
// event stays.
func (d *device) AsyncEvent(timeout time.Duration) (e verbs.AsyncEvent, err error) {
	if err := d.use(); err != nil {
		return e, err
	}
	if len(d.events) == 0 && timeout > 0 {
		time.Sleep(timeout) // nothing happens meanwhile: what happens does so within a verb
	}
	if len(d.events) == 0 {
		return e, fmt.Errorf("no asynchronous event of %s within %s: %w", d.hw.name, timeout, verbs.ErrTimeout)
	}
	if err := d.hw.call(verbs.GetAsyncEvent, nil); err != nil {
		return e, err
	}
	err = d.hw.call(verbs.AckAsyncEvent, func(int) *failure {
		e, d.events = d.events[0], d.events[1:]
		return nil
	})
	return e, err
}
