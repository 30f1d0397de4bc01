package probe

import (
	"golang.org/x/sys/unix"

	"rdma_exporter/verbs"
)

// lockedMemoryLimit returns the limit on the memory that this process may lock,
// in bytes, and false if it has none.
func lockedMemoryLimit() (limit uint64, ok bool) {
	var l unix.Rlimit
	if verbs.LocksFreely() || unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l) != nil || l.Cur == unix.RLIM_INFINITY {
		return 0, false
	}
	return l.Cur, true
}
