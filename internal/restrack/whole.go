package restrack

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Whole reports whether the kernel that runs shows all objects of a device to
// everybody, as it does since Linux 5.5; see the comment of the package. One whose
// release cannot be read is taken for an older one.
func Whole() bool {
	var name unix.Utsname
	return unix.Uname(&name) == nil && whole(unix.ByteSliceToString(name.Release[:]))
}

// whole is Whole of a release, as uname -r tells it.
func whole(release string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return n == 2 && (major > 5 || major == 5 && minor >= 5)
}
