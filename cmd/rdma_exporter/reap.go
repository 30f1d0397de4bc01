package main

import (
	"context"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// patientTicks is how often an ended process is left to the supervisor, which reaps its children in
// a moment.
const patientTicks = 5

// reapOrphans reaps ended processes that the kernel has given to this one because their parents
// ended, until ctx is done. It returns at once unless this process is the first of its pid
// namespace, as in a container.
func reapOrphans(ctx context.Context) {
	if os.Getpid() != 1 {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for pid, ticks := 0, 0; ; ticks++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// The kernel names no other ended process before this one is reaped.
		if ended := endedChild(); ended != pid {
			pid, ticks = ended, 0
		}
		if pid != 0 && ticks >= patientTicks {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // Without success, it is seen again.
		}
	}
}

// endedChild returns the id of a child that has ended and was not reaped. Zero means that there is
// none.
func endedChild() int {
	var info struct {
		signo, errno, code, _ int32
		pid                   int32
		_                     [108]byte
	}
	// After an error, the id is zero.
	_ = unix.Waitid(unix.P_ALL, 0, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return int(info.pid)
}
