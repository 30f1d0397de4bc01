package restrack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/kernelsocket"
)

// groupNotify is RDMA_NL_GROUP_NOTIFY.
const groupNotify = 4

// Watch calls handle when an RDMA device appeared or vanishes, when a port got or lost its network
// device, and when the kernel dropped such events. Kernels later than 6.12 also report new names.
// There are no events for the state of a port. The kernel reports a removal before the device has
// left sysfs, and reports to the network namespace of the device alone: where all namespaces share
// the devices, that of the host.
//
// Watch returns the error of ctx when that is done. It returns earlier if the kernel refuses the
// socket or sends what cannot be decoded ([ErrMalformed]). The error matches [ErrNotSupported] if
// the kernel reports no such events, as before Linux 6.12, or has no RDMA devices yet.
func Watch(ctx context.Context, handle func()) error {
	return watch(ctx, "/sys", dial, func() (kernelsocket.Listener, error) {
		return kernelsocket.Dial(unix.NETLINK_RDMA, 1<<(groupNotify-1))
	}, handle)
}

func watch(
	ctx context.Context, sysfs string, dial func() (socket, error), join func() (kernelsocket.Listener, error), handle func(),
) error {
	// Without this folder, a socket of NETLINK_RDMA would make the kernel load ib_core.
	if _, err := os.Stat(filepath.Join(sysfs, "class/infiniband")); err != nil {
		return fmt.Errorf("watching devices: %w: %w", ErrNotSupported, err)
	}
	if err := notifies(ctx, dial); err != nil {
		return fmt.Errorf("watching devices: %w", err)
	}
	s, err := join()
	if err != nil {
		return fmt.Errorf("watching devices: opening a socket of NETLINK_RDMA: %w", err)
	}
	return fmt.Errorf("watching devices: %w", kernelsocket.Listen(ctx, s, func(m syscall.NetlinkMessage) error {
		if m.Header.Type == client<<10|commandMonitor {
			handle()
		}
		return nil
	}, handle))
}

// notifies returns nil if the kernel reports events. An older one may let a socket join the group.
func notifies(ctx context.Context, dial func() (socket, error)) error {
	conn, err := newConn(dial)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing was written
	var monitors bool
	err = conn.query(ctx, request{command: commandSystem, host: true}, func(data []byte) error {
		return attributes(data, func(ad *netlink.AttributeDecoder) {
			if ad.Type() == attrMonitorMode {
				monitors = ad.Uint8() != 0
			}
		})
	})
	if err == nil && !monitors {
		return fmt.Errorf("%w: no attribute SYS_ATTR_MONITOR_MODE", ErrNotSupported)
	}
	return err
}
