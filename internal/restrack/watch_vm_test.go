//go:build vm

package restrack

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/test/running"
)

// TestDeviceWatch verifies that a user without privileges hears of devices that appear and vanish
// from Linux 6.12 on, and that an older kernel is recognised.
func TestDeviceWatch(t *testing.T) {
	var events atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // The thread has another user, and ends with this function.
		const nobody = 65534
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			ended <- errno
			return
		}
		ended <- Watch(ctx, func() { events.Add(1) })
	}()
	var name unix.Utsname
	running.Check(t, unix.Uname(&name))
	var major, minor int
	running.Must(fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor))(t)
	if major < 6 || major == 6 && minor < 12 {
		if err := <-ended; !errors.Is(err, ErrNotSupported) {
			t.Error(err)
		}
		return
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the watch ended with %v", err)
		}
	})
	running.Command(t, "ip", "link", "add", "mon0", "type", "veth", "peer", "name", "mon1")
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "mon0").Run() })
	cycle := func() {
		running.Command(t, "rdma", "link", "add", "rxe7", "type", "rxe", "netdev", "mon0")
		running.Command(t, "rdma", "link", "delete", "rxe7")
	}
	running.Eventually(t, "the watch has begun", func() bool {
		cycle()
		return events.Load() > 0
	})
	// A cycle has three events: the device, its network device, and the end of the device. Two of
	// the last cycle may still come.
	const cycles, each = 3, 3
	before := events.Load()
	for range cycles {
		cycle()
	}
	running.Eventually(t, "each event", func() bool { return events.Load() >= before+cycles*each })
}
