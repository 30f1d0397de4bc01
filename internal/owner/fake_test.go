package owner_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/owner"
)

// A host is a fake /proc and /sys/fs/cgroup.
type host struct {
	t            *testing.T
	proc, cgroup string
}

func newHost(t *testing.T) host {
	t.Helper()
	dir := t.TempDir()
	h := host{t, filepath.Join(dir, "proc"), filepath.Join(dir, "cgroup")}
	// The directories must be open to the test of missing rights.
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755), os.Mkdir(h.proc, 0o755), os.Mkdir(h.cgroup, 0o755)); err != nil {
		t.Fatal(err)
	}
	return h
}

// write writes a file, with the directories that lead to it.
func (h host) write(path, content string) {
	h.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		h.t.Fatal(err)
	}
}

// process makes the files of a process, by name.
func (h host) process(pid int, files map[string]string) {
	h.t.Helper()
	for name, content := range files {
		h.write(h.file(pid, name), content)
	}
}

func (h host) file(pid int, name string) string {
	return filepath.Join(h.proc, strconv.Itoa(pid), name)
}

func (h host) reader() *owner.Reader {
	h.t.Helper()
	r, err := owner.New(h.proc, h.cgroup)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// identify identifies a process with these files, and with usual ones for the rest.
func identify(t *testing.T, files map[string]string) (owner.Identity, error) {
	t.Helper()
	h := newHost(t)
	h.process(7, map[string]string{"comm": "x\n", "status": fixture(t, "proc/status"), "cgroup": "0::/\n"})
	h.process(7, files)
	return h.reader().Identify(7)
}

// fixture returns a file of testdata.
func fixture(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// placed returns a file /proc/PID/cgroup of testdata for a process at a path.
func placed(t *testing.T, file, path string) string {
	t.Helper()
	return strings.ReplaceAll(fixture(t, "cgroup/"+file), "PATH", path)
}

// withoutRights runs f in a thread without rights, even if the tests run as root.
func withoutRights(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread is never unlocked, and so ends with its rights.
		runtime.LockOSThread()
		// A change of the fsuid from 0 takes CAP_DAC_OVERRIDE along, see capabilities(7).
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0)
		f()
	}()
	<-done
}
