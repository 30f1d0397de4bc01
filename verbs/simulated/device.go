package simulated

import (
	"slices"
	"syscall"

	"rdma_exporter/verbs"
)

// device implements verbs.Device (struct ibv_context): one opening of the
// hardware.
type device struct {
	object
	hw *hardware

	spent  verbs.Memory // by all objects so far
	events []verbs.AsyncEvent
}

// Name implements verbs.Device.
func (d *device) Name() string { return d.hw.name }

// Transport implements verbs.Device (enum ibv_transport_type of struct
// ibv_device). A closed device's is unknown.
func (d *device) Transport() verbs.Transport {
	if d.use() != nil {
		return verbs.TransportUnknown
	}
	return d.hw.behaviour.transport
}

// CompletionVectors implements verbs.Device (num_comp_vectors). A closed device
// has none.
func (d *device) CompletionVectors() int {
	if d.use() != nil {
		return 0
	}
	return d.hw.behaviour.profile.CompletionVectors
}

// QPTypes implements verbs.Device.
func (d *device) QPTypes() []verbs.QPType { return d.hw.behaviour.qpTypes() }

// Query implements verbs.Device (ibv_query_device).
func (d *device) Query() (verbs.DeviceAttr, error) {
	if err := d.use(); err != nil {
		return verbs.DeviceAttr{}, err
	}
	if err := d.hw.call(verbs.QueryDevice, nil); err != nil {
		return verbs.DeviceAttr{}, err
	}
	return d.hw.behaviour.attr, nil
}

// QueryExtended implements verbs.Device (ibv_query_device_ex).
func (d *device) QueryExtended() (verbs.ExtendedAttr, error) {
	if err := d.use(); err != nil {
		return verbs.ExtendedAttr{}, err
	}
	if err := d.hw.call(verbs.QueryDeviceEx, nil); err != nil {
		return verbs.ExtendedAttr{}, err
	}
	p := &d.hw.behaviour.profile
	return verbs.ExtendedAttr{
		TimestampMask: p.Extended.TimestampMask, CoreClock: p.Extended.CoreClock,
		RawPacketCaps: p.Extended.RawPacketCaps, MaxDMSize: p.Extended.MaxDMSize,
		Moderation: verbs.Moderation(p.CQModeration),
	}, nil
}

// QueryPort implements verbs.Device (ibv_query_port).
func (d *device) QueryPort(number int) (verbs.PortAttr, error) {
	if err := d.use(); err != nil {
		return verbs.PortAttr{}, err
	}
	var attr verbs.PortAttr
	err := d.hw.callOn(facts{port: number}, verbs.QueryPort, func(int) *failure {
		p, ok := d.hw.behaviour.port(number)
		if !ok {
			return fail(syscall.EINVAL, "there is no port %d", number)
		}
		attr = p.attr
		return nil
	})
	return attr, err
}

// GIDTable implements verbs.Device (ibv_query_gid_table).
func (d *device) GIDTable() ([]verbs.GIDEntry, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	if err := d.hw.call(verbs.QueryGIDTable, nil); err != nil {
		return nil, err
	}
	return slices.Clone(d.hw.behaviour.gids), nil
}

// PKey implements verbs.Device (ibv_query_pkey).
func (d *device) PKey(number, index int) (verbs.PKey, error) {
	if err := d.use(); err != nil {
		return 0, err
	}
	var key verbs.PKey
	err := d.hw.callOn(facts{port: number}, verbs.QueryPKey, func(int) *failure {
		p, ok := d.hw.behaviour.port(number)
		if !ok || index < 0 || index >= p.attr.PKeys {
			return fail(syscall.EINVAL, "there is no partition key %d of a port %d", index, number)
		}
		key = p.pkey(index)
		return nil
	})
	return key, err
}

// Cost implements verbs.Device with what the profile says of the objects that are
// created meanwhile.
func (d *device) Cost(create func()) (verbs.Memory, error) {
	if err := d.use(); err != nil {
		return verbs.Memory{}, err
	}
	before := d.spent
	create()
	return verbs.Memory{Virtual: d.spent.Virtual - before.Virtual, Locked: d.spent.Locked - before.Locked}, nil
}

// Close implements verbs.Device (ibv_close_device).
func (d *device) Close() error {
	if d.closed {
		return nil
	}
	if f := d.hw.behaviour.refusesDestroy(&d.object); f != nil {
		return f.of(verbs.CloseDevice, d.hw.name)
	}
	defer d.hw.debt.settle()
	return d.destroy(verbs.CloseDevice, func() {})
}
