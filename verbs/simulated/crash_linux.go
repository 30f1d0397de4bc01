package simulated

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// defaultAbort gives SIGABRT its default action. The handler of Go's runtime
// would print all goroutines and exit with status 2, which is no signal's death.
func defaultAbort() {
	var dfl [8]uint64 // struct sigaction with SIG_DFL, an empty mask and no flags
	const sigsetSize = 8
	_, _, _ = unix.Syscall6(unix.SYS_RT_SIGACTION, uintptr(syscall.SIGABRT), uintptr(unsafe.Pointer(&dfl)), 0, sigsetSize, 0, 0)
}
