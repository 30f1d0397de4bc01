package simulated

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"rdma_exporter/verbs"
)

// device implements verbs.Device (struct ibv_context).
type device struct {
	object
	hw *hardware

	spent  verbs.Memory // by all objects so far
	events []verbs.AsyncEvent
}

func (d *device) Name() string { return d.hw.name }

func (d *device) Transport() verbs.Transport {
	if d.closed {
		return verbs.TransportUnknown
	}
	return d.hw.behaviour.transport
}

func (d *device) CompletionVectors() int {
	if d.closed {
		return 0
	}
	return d.hw.behaviour.profile.CompletionVectors
}

func (d *device) QPTypes() []verbs.QPType { return d.hw.behaviour.qpTypes() }

func (d *device) Query() (verbs.DeviceAttr, error) {
	return query(&d.object, Call{GID: -1}, verbs.QueryDevice, func(int) (verbs.DeviceAttr, *failure) {
		return d.hw.behaviour.attr, nil
	})
}

func (d *device) QueryExtended() (verbs.ExtendedAttr, error) {
	return query(&d.object, Call{GID: -1}, verbs.QueryDeviceEx, func(int) (verbs.ExtendedAttr, *failure) {
		e := d.hw.behaviour.profile.Extended
		return verbs.ExtendedAttr{TimestampMask: e.TimestampMask, CoreClock: e.CoreClock, RawPacketCaps: e.RawPacketCaps, MaxDMSize: e.MaxDMSize}, nil
	})
}

func (d *device) QueryPort(number int) (verbs.PortAttr, error) {
	return query(&d.object, Call{Port: number, GID: -1}, verbs.QueryPort, func(int) (verbs.PortAttr, *failure) {
		p, ok := d.hw.behaviour.port(number)
		if !ok {
			return verbs.PortAttr{}, fail(syscall.EINVAL, "there is no port %d", number)
		}
		return p.attr, nil
	})
}

func (d *device) GIDTable() ([]verbs.GIDEntry, error) {
	return query(&d.object, Call{GID: -1}, verbs.QueryGIDTable, func(int) ([]verbs.GIDEntry, *failure) {
		return slices.Clone(d.hw.behaviour.gids), nil
	})
}

func (d *device) PKey(number, index int) (verbs.PKey, error) {
	return query(&d.object, Call{Port: number, GID: -1}, verbs.QueryPKey, func(int) (verbs.PKey, *failure) {
		p, ok := d.hw.behaviour.port(number)
		if !ok || index < 0 || index >= p.attr.PKeys {
			return 0, fail(syscall.EINVAL, "there is no partition key %d of a port %d", index, number)
		}
		return p.pkey(index), nil
	})
}

// Cost implements verbs.Device with the costs of the profile.
func (d *device) Cost(create func()) (verbs.Memory, error) {
	if err := d.use(); err != nil {
		return verbs.Memory{}, err
	}
	before := d.spent
	create()
	return verbs.Memory{Virtual: d.spent.Virtual - before.Virtual, Locked: d.spent.Locked - before.Locked}, nil
}

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

// AsyncEvent implements verbs.Device (ibv_get_async_event, ibv_ack_async_event). The verbs
// are called only if there is an event. If one of them fails, the event stays.
func (d *device) AsyncEvent(timeout time.Duration) (e verbs.AsyncEvent, err error) {
	if err := d.use(); err != nil {
		return e, err
	}
	if len(d.events) == 0 && timeout > 0 {
		time.Sleep(timeout) // events come only within verbs
	}
	if len(d.events) == 0 {
		return e, fmt.Errorf("no asynchronous event of %s within %s: %w", d.hw.name, timeout, verbs.ErrTimeout)
	}
	if err := d.call(verbs.GetAsyncEvent, nil); err != nil {
		return e, err
	}
	err = d.call(verbs.AckAsyncEvent, func(int) *failure {
		e, d.events = d.events[0], d.events[1:]
		return nil
	})
	return e, err
}

func (d *device) Close() error {
	if d.closed {
		return nil
	}
	if f := d.hw.behaviour.refusesDestroy(&d.object); f != nil {
		return f.of(verbs.CloseDevice, d.hw.name)
	}
	return d.destroy(verbs.CloseDevice, func() {})
}
