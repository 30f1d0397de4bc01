package owner

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/test/running"
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
	err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755), os.Mkdir(h.proc, 0o755), os.Mkdir(h.cgroup, 0o755))
	if err != nil {
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

func (h host) process(pid int, files map[string]string) {
	h.t.Helper()
	for name, content := range files {
		h.write(h.file(pid, name), content)
	}
}

func (h host) file(pid int, name string) string {
	return filepath.Join(h.proc, strconv.Itoa(pid), name)
}

func (h host) controller(cgroup, current, limits string) {
	h.t.Helper()
	h.write(filepath.Join(h.cgroup, cgroup, "rdma.current"), current)
	h.write(filepath.Join(h.cgroup, cgroup, "rdma.max"), limits)
}

func (h host) symlink(target, path string) {
	h.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(target, path)); err != nil {
		h.t.Fatal(err)
	}
}

func (h host) reader() *Reader { return readerOf(h.t, h.proc, h.cgroup) }

func readerOf(t *testing.T, proc, cgroup string) *Reader {
	t.Helper()
	r := running.Must(New(proc, cgroup))(t)
	return r
}

// gives returns a check that a call returns this value and no error.
func gives[T any](t *testing.T, call any, want T) func(T, error) {
	return func(got T, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v:\n got %+v, %v\nwant %+v", call, got, err, want)
		}
	}
}

// fails returns a check that a call returns no value, and an error that matches target.
func fails[T any](t *testing.T, call any, target error) func(T, error) {
	return func(got T, err error) {
		t.Helper()
		if !errors.Is(err, target) || !errors.Is(target, ErrGone) && errors.Is(err, ErrGone) || !reflect.ValueOf(&got).Elem().IsZero() {
			t.Errorf("%v: got %+v, %v, want %v", call, got, err, target)
		}
	}
}

// refuses returns a check that a call returns no value, and an error with this text that is not
// ErrGone.
func refuses[T any](t *testing.T, call any, says string) func(T, error) {
	return func(got T, err error) {
		t.Helper()
		fails[T](t, call, err)(got, err)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: got %v, want an error that says %q", call, err, says)
		}
	}
}

// identify identifies a process with these files, and with usual ones for the rest.
func identify(t *testing.T, files map[string]string) (Identity, error) {
	t.Helper()
	h := newHost(t)
	h.process(7, map[string]string{"comm": "x\n", "status": fixture(t, "proc/status"), "cgroup": "0::/\n"})
	h.process(7, files)
	return h.reader().Identify(7)
}

func fixture(t testing.TB, name string) string {
	t.Helper()
	data := running.Must(os.ReadFile(filepath.Join("testdata", name)))(t)
	return string(data)
}

func change(t *testing.T, s, from, to string) string {
	t.Helper()
	if !strings.Contains(s, from) {
		t.Fatalf("the fixture has no %q", from)
	}
	return strings.Replace(s, from, to, 1)
}

// withoutRights runs f in a thread without rights, even if the tests run as root.
func withoutRights(f func()) {
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
