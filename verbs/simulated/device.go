package simulated

import (
	"cmp"
	"fmt"
	"slices"
	"syscall"
	"time"

	"rdma_exporter/verbs"
)

type device struct {
	object
	*hardware

	spent  verbs.Memory // by all objects so far
	events []verbs.AsyncEvent
}

func (d *device) Transport() verbs.Transport {
	if d.closed {
		return verbs.TransportUnknown
	}
	return d.transport
}

func (d *device) CompletionVectors() int {
	if d.closed {
		return 0
	}
	return d.profile.CompletionVectors
}

// QPTypes implements verbs.Device. A type of one driver is unknown to devices that do not
// list it.
func (d *device) QPTypes() []verbs.QPType {
	return slices.Compact(slices.Sorted(slices.Values(append(verbs.QPTypes(), d.types...))))
}

func (d *device) Query() (verbs.DeviceAttr, error) {
	return query(&d.object, verbs.QueryDevice, Call{}, func(int) (verbs.DeviceAttr, *failure) { return d.attr, nil })
}

func (d *device) QueryExtended() (verbs.ExtendedAttr, error) {
	return query(&d.object, verbs.QueryDeviceEx, Call{}, func(int) (verbs.ExtendedAttr, *failure) {
		return d.profile.Extended, nil
	})
}

func (d *device) QueryPort(number int) (verbs.PortAttr, error) {
	return query(&d.object, verbs.QueryPort, Call{Port: number}, func(int) (verbs.PortAttr, *failure) {
		p, ok := d.port(number)
		if !ok {
			return verbs.PortAttr{}, fail(syscall.EINVAL, "there is no port %d", number)
		}
		return p, nil
	})
}

func (d *device) GIDTable() ([]verbs.GIDEntry, error) {
	return query(&d.object, verbs.QueryGIDTable, Call{}, func(int) ([]verbs.GIDEntry, *failure) {
		return slices.Clone(d.gids), nil
	})
}

func (d *device) PKey(number, index int) (verbs.PKey, error) {
	return query(&d.object, verbs.QueryPKey, Call{Port: number}, func(int) (verbs.PKey, *failure) {
		p, ok := d.port(number)
		if !ok || index < 0 || index >= p.PKeys {
			return 0, fail(syscall.EINVAL, "there is no partition key %d of a port %d", index, number)
		}
		return d.pkey(number, index), nil
	})
}

func (d *device) Bandwidth(r verbs.BandwidthRun) (verbs.BandwidthResult, error) {
	if err := d.use(); err != nil || d.profile.Bandwidth == 0 {
		return verbs.BandwidthResult{}, cmp.Or(err, error(&verbs.Error{Verb: verbs.PostSend, Device: d.name, Errno: syscall.EOPNOTSUPP}))
	}
	return r.Simulate(d.profile.Bandwidth), nil
}

func (d *device) Cost(create func()) (verbs.Memory, error) {
	if err := d.use(); err != nil {
		return verbs.Memory{}, err
	}
	before := d.spent
	create()
	return verbs.Memory{Virtual: d.spent.Virtual - before.Virtual, Locked: d.spent.Locked - before.Locked}, nil
}

// AsyncEvent implements verbs.Device (ibv_get_async_event, ibv_ack_async_event). The verbs
// are called only if there is an event. If one of them fails, the event stays.
func (d *device) AsyncEvent(timeout time.Duration) (e verbs.AsyncEvent, err error) {
	if err := d.use(); err != nil {
		return e, err
	}
	if len(d.events) == 0 {
		time.Sleep(timeout) // events come only within verbs
		return e, fmt.Errorf("no asynchronous event of %s within %s: %w", d.name, timeout, verbs.ErrTimeout)
	}
	if err := d.object.call(verbs.GetAsyncEvent, Call{}, nil); err != nil {
		return e, err
	}
	err = d.object.call(verbs.AckAsyncEvent, Call{}, func(int) *failure {
		e, d.events = d.events[0], d.events[1:]
		return nil
	})
	return e, err
}

func (d *device) Close() error {
	// The exporter finds out without the verb that a device is in use.
	if f := d.refusesDestroy(&d.object); f != nil && !d.closed {
		return f.of(verbs.CloseDevice, d.name)
	}
	return d.destroy(verbs.CloseDevice, func() {})
}
