package verbs

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// LocksFreely reports whether this process may lock more memory than RLIMIT_MEMLOCK says: it
// has CAP_IPC_LOCK (capabilities(7)), and not only in a user namespace of its own, which is
// not what the kernel asks for (ib_umem_get).
func LocksFreely() bool {
	var (
		header = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		caps   [2]unix.CapUserData
	)
	if unix.Capget(&header, &caps[0]) != nil || caps[0].Effective&(1<<unix.CAP_IPC_LOCK) == 0 {
		return false
	}
	ids, err := os.ReadFile("/proc/self/uid_map")
	// Only the first namespace has all numbers, each for itself.
	return err != nil || strings.Join(strings.Fields(string(ids)), " ") == "0 0 4294967295"
}
