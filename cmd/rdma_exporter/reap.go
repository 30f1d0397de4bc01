package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reapOrphans reaps ended processes that the kernel has given to this one because their parents
// ended, until ctx is done. It returns at once unless this process is the first of its pid
// namespace, as in a container.
func reapOrphans(ctx context.Context) {
	if os.Getpid() != 1 {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var r reaper
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for r.reap() {
			}
		}
	}
}

// patientTicks is how often an ended process that may be a child of the exporter is left to the
// supervisor, which reaps its children in a moment.
const patientTicks = 10

// reaper has the process that it found last and left to the supervisor, and how often.
type reaper struct {
	pid   int32
	ticks int
}

// reap reaps one orphan, and reports whether it did.
func (r *reaper) reap() bool {
	var info struct {
		signo, errno, code, _ int32
		pid                   int32
		_                     [108]byte
	}
	err := unix.Waitid(unix.P_ALL, 0, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	if err != nil || info.pid == 0 {
		return false
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", info.pid))
	own, ownErr := os.ReadFile("/proc/self/comm")
	if err != nil || ownErr != nil {
		return false
	}
	// A child has first the name of this process, then that of selfPath, then its own.
	if slices.Contains([]string{string(own), path.Base(selfPath) + "\n", programName + "\n"}, string(name)) {
		if r.pid != info.pid {
			*r = reaper{pid: info.pid}
		}
		// The kernel names no other ended process before this one is reaped.
		if r.ticks++; r.ticks < patientTicks {
			return false
		}
	}
	_, err = unix.Wait4(int(info.pid), nil, unix.WNOHANG, nil)
	return err == nil
}
