package probe

import "golang.org/x/sys/unix"

// lockedMemoryLimit returns the limit on the memory that this process may lock,
// in bytes, and false if it has none: processes with CAP_IPC_LOCK are exempt.
func lockedMemoryLimit() (limit uint64, ok bool) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if unix.Capget(&header, &caps[0]) == nil && caps[0].Effective&(1<<unix.CAP_IPC_LOCK) != 0 {
		return 0, false
	}
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l) != nil || l.Cur == unix.RLIM_INFINITY {
		return 0, false
	}
	return l.Cur, true
}
