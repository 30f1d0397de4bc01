package running

import (
	"net"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Refusing returns host and port of an address at which connections are refused until the test
// ends.
func Refusing(t testing.TB) string {
	t.Helper()
	fd := Must(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
	t.Cleanup(func() { _ = unix.Close(fd) })
	// What is bound and does not listen keeps its port from others.
	Check(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	bound := Must(unix.Getsockname(fd))(t)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(bound.(*unix.SockaddrInet4).Port))
}
