package simulated

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// crash ends the process by SIGABRT, as the C library's abort does. It does not
// return.
func crash() {
	// The crash is wanted: no core file of it should be left behind.
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	defaultAbort()
	_ = unix.Kill(unix.Getpid(), syscall.SIGABRT)
	hang() // until the signal arrives
}
