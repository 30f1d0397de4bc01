package restrack

import (
	"context"
	"fmt"
	"syscall"
)

// Netdev returns the name of a port's network device (RDMA_NLDEV_CMD_PORT_GET), as rdma
// link shows it; empty if it has none, or one of another network namespace than the
// caller's. The kernel asks the driver about the port meanwhile.
//
// The error matches EINVAL if there is no such port, and ENODEV if there is no such device.
func (c *Conn) Netdev(ctx context.Context, index uint32, port int) (name string, err error) {
	if port < 1 || port > maxPorts {
		return "", fmt.Errorf("%s of device %d: port %d: %w", commandName(commandPort), index, port, syscall.EINVAL)
	}
	r := request{command: commandPort, attributes: appendUint32(appendUint32(nil, attrDeviceIndex, index), attrPort, uint32(port))}
	err = c.exchange(ctx, r, func(data []byte) (err error) {
		name, err = netdev(data)
		return err
	})
	return name, c.explain(ctx, index, r, err)
}

// netdev decodes the payload of the reply to PORT_GET.
func netdev(data []byte) (name string, err error) {
	for a, err := range attributes(data) {
		if err != nil {
			return "", err
		}
		if a.kind == attrNetdevName {
			name = string(a.text())
		}
	}
	return name, nil
}
