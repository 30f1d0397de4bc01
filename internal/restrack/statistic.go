package restrack

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// Counter is one of a port's counters, as the driver names it.
type Counter struct {
	Name  string
	Value uint64
	// Optional tells that the counter counts only because somebody switched it on, as
	// with rdma statistic set. Those that are off are not listed.
	Optional bool
}

// Statistic reads the counters that the driver keeps of a port (RDMA_NLDEV_CMD_STAT_GET,
// from Linux 5.2 on), which are those of hw_counters in sysfs, in the driver's order. It
// switches nothing on. The kernel asks the driver for all of them at once, and answers in
// one message, which bounds their number.
//
// The error matches EINVAL and [ErrNotSupported] if the kernel does not know the command,
// if the driver keeps no such counters, if there is no such port, and if the driver refuses
// with that errno; sysfs can tell more then. It matches ENODEV if there is no such device.
func (c *Conn) Statistic(ctx context.Context, index uint32, port int) ([]Counter, error) {
	if port < 1 || port > maxPorts {
		return nil, fmt.Errorf("STAT_GET of device %d: port %d: %w", index, port, syscall.EINVAL)
	}
	var counters []Counter
	attributes := appendUint32(appendUint32(nil, attrDeviceIndex, index), attrPort, uint32(port))
	r := request{command: commandStatistic, attributes: attributes}
	err := c.exchange(ctx, r, func(data []byte) (err error) {
		counters, err = statistic(data)
		return err
	})
	if err != nil {
		return nil, c.explain(ctx, index, r, err)
	}
	var optional map[string]bool
	// The driver is not asked for this.
	r = request{command: commandStatus, attributes: attributes}
	err = c.exchange(ctx, r, func(data []byte) (err error) {
		optional, err = status(data)
		return err
	})
	if err = c.explain(ctx, index, r, err); err != nil && !errors.Is(err, ErrNotSupported) {
		return nil, err
	}
	// Before Linux 5.16 there are no optional counters.
	for i := range counters {
		_, counters[i].Optional = optional[counters[i].Name]
	}
	return counters, nil
}

// statistic decodes the payload of the reply to STAT_GET for a port. A counter without name
// or value is left out, and none is Optional, which the reply does not tell.
func statistic(data []byte) ([]Counter, error) {
	var counters []Counter
	err := counterRows(data, attrCounterValue, attribute.uint64, func(name string, value uint64) {
		counters = append(counters, Counter{Name: name, Value: value})
	})
	return counters, err
}

// status decodes the payload of the reply to STAT_GET_STATUS: the counters that are
// optional, and whether each of them is on.
func status(data []byte) (map[string]bool, error) {
	optional := map[string]bool{}
	err := counterRows(data, attrCounterDynamic, attribute.uint8, func(name string, on uint8) { optional[name] = on != 0 })
	return optional, err
}

// counterRows calls visit with each row of a table of counters that has a name and a value
// of this kind.
func counterRows[T any](data []byte, kind uint16, value func(attribute) (T, error), visit func(name string, value T)) error {
	return entries(data, attrCounters, attrCounter, func(row []byte) error {
		var name string
		var of T
		has := false
		for a, err := range attributes(row) {
			if err != nil {
				return err
			}
			switch a.kind {
			case attrCounterName:
				name = string(a.text())
			case kind:
				if of, err = value(a); err != nil {
					return err
				}
				has = true
			}
		}
		if has && name != "" {
			visit(name, of)
		}
		return nil
	})
}
