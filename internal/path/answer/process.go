package answer

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/child"
)

// process is a Child that is a process of the operating system.
type process struct {
	child.Process
	*os.File
}

// discard takes what no child should write to its standard output.
type discard struct{ io.Writer }

func (discard) Close() error { return nil }

// StartProcess starts a process, whose end of the connection is [child.ExtraFD].
func StartProcess(c child.Command) (Child, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	own := os.NewFile(uintptr(pair[0]), "child")
	c.Extra = os.NewFile(uintptr(pair[1]), "parent")
	p := process{child.Start(c, discard{io.Discard}), own}
	go func() { // It ends with the process, for which the Responder waits.
		<-p.Done()
		_, _ = own.Close(), c.Extra.Close()
	}()
	return p, nil
}
