package ceiling

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"rdma_exporter/internal/text"
)

// Registration tells what it was that refused memory of a size to be registered, and says
// so in a line. The kernel pins whole pages, says ENOMEM if those that the process would
// have then are more than its RLIMIT_MEMLOCK, and EPERM if that is 0 (ib_umem_get).
// Where that is not the reason, it is Refusal that tells.
func Registration(err error, size int64, m Memory, l Limits) (End, string) {
	refused := errors.Is(err, syscall.ENOMEM) || errors.Is(err, os.ErrPermission)
	if refused && l.Memlock >= 0 && l.Pinned+size > l.Memlock {
		return EndMemlock, fmt.Sprintf("%s; %s would be in place for the process, which may have %s (RLIMIT_MEMLOCK)", err, text.Bytes(l.Pinned+size), text.Bytes(l.Memlock))
	}
	l.Memlock = -1
	return Refusal(err, MR, m, l)
}
