package restrack

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
)

// NetnsMode returns how the RDMA subsystem treats network namespaces (RDMA_NLDEV_CMD_SYS_GET,
// from Linux 5.2 on; rdma-system(8)): shared, where each shows all devices, or exclusive,
// where each has its own. The error of an older kernel matches [ErrNotSupported].
func (c *Conn) NetnsMode(ctx context.Context) (mode string, err error) {
	err = c.exchange(ctx, request{command: commandSystem}, func(data []byte) (err error) {
		mode, err = netnsMode(data)
		return err
	})
	var answer answerError
	if errors.As(err, &answer) {
		err = fmt.Errorf("%s: %w", commandName(commandSystem), answer.errno)
		if answer.errno == syscall.EINVAL || answer.errno == syscall.EOPNOTSUPP {
			err = fmt.Errorf("%s: %w: %w", commandName(commandSystem), ErrNotSupported, answer.errno)
		}
	}
	return mode, err
}

// netnsMode decodes the payload of the reply to SYS_GET: shared, exclusive, or
// unknown_<number>.
func netnsMode(data []byte) (mode string, err error) {
	for a, err := range attributes(data) {
		if err != nil {
			return "", err
		}
		if a.kind != attrNetnsMode {
			continue
		}
		number, err := a.uint8()
		if err != nil {
			return "", err
		}
		switch number {
		case 0:
			mode = "exclusive"
		case 1:
			mode = "shared"
		default:
			mode = "unknown_" + strconv.Itoa(int(number))
		}
	}
	if mode == "" {
		return "", fmt.Errorf("no attribute %s", attributeName(attrNetnsMode))
	}
	return mode, nil
}
