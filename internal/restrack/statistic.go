package restrack

import (
	"context"
	"fmt"
	"syscall"
)

// Counter is one of a port's counters, as the driver names it.
type Counter struct {
	Name  string
	Value uint64
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
	return counters, nil
}

// statistic decodes the payload of the reply to STAT_GET for a port. A counter without name
// or value is left out.
func statistic(data []byte) ([]Counter, error) {
	var counters []Counter
	err := entries(data, attrCounters, attrCounter, func(row []byte) error {
		var counter Counter
		has := false
		for a, err := range attributes(row) {
			if err != nil {
				return err
			}
			switch a.kind {
			case attrCounterName:
				counter.Name = string(a.text())
			case attrCounterValue:
				if counter.Value, err = a.uint64(); err != nil {
					return err
				}
				has = true
			}
		}
		if has && counter.Name != "" {
			counters = append(counters, counter)
		}
		return nil
	})
	return counters, err
}
