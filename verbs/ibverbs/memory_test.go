//go:build cgo && linux

package ibverbs

import (
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"

	"rdma_exporter/test/running"
	"rdma_exporter/verbs"
)

// A Go program allocates between the calls, and its runtime maps tables for that: for
// finalizers, for example. They are no cost of a call.
func TestMeter(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const size = 172032
	var kept []*[4]int
	wrong := 0
	const times = 5_000
	for range times {
		m := running.Must(newMeter())(t)
		for range 50 {
			p := new([4]int)
			runtime.SetFinalizer(p, func(*[4]int) {})
			kept = append(kept, p)
		}
		var mapped uintptr
		var errno syscall.Errno
		m.measure(func() {
			mapped, _, errno = syscall.RawSyscall6(syscall.SYS_MMAP, 0, size, syscall.PROT_READ, syscall.MAP_ANON|syscall.MAP_PRIVATE, ^uintptr(0), 0)
		})
		if errno != 0 {
			t.Fatal(errno)
		}
		got := running.Must(m.cost())(t)
		if got != (verbs.Memory{Virtual: size}) {
			wrong++
			t.Logf("%d bytes cost %+v", size, got)
		}
		if _, _, errno := syscall.RawSyscall(syscall.SYS_MUNMAP, mapped, size, 0); errno != 0 {
			t.Fatal(errno)
		}
		m.close()
	}
	runtime.KeepAlive(kept)
	// A thread that the runtime starts meanwhile costs address space, too. The
	// exporter starts as many as it needs before it measures anything.
	if wrong > times/1000 {
		t.Errorf("%d of %d calls cost something else than they took", wrong, times)
	}
}

func TestMeterSum(t *testing.T) {
	m := running.Must(newMeter())(t)
	defer m.close()
	if got, err := m.cost(); err != nil || got != (verbs.Memory{}) {
		t.Errorf("nothing costs %+v, %v", got, err)
	}
	take := func(size int) {
		m.measure(func() {
			b := running.Must(syscall.Mmap(-1, 0, size, syscall.PROT_READ, syscall.MAP_ANON|syscall.MAP_PRIVATE))(t)
			t.Cleanup(func() { _ = syscall.Munmap(b) })
		})
	}
	take(1 << 30)
	take(1 << 30)
	if got, err := m.cost(); err != nil || got.Virtual < 2<<30 || got.Virtual > 2<<30+1<<28 {
		t.Errorf("two times 1 GiB cost %+v, %v", got, err)
	}
}

// What cannot be read costs nothing, and is an error.
func TestMeterClosed(t *testing.T) {
	m := running.Must(newMeter())(t)
	m.measure(m.close)
	if got, err := m.cost(); !errors.Is(err, os.ErrClosed) || got != (verbs.Memory{}) {
		t.Errorf("it costs %+v, %v", got, err)
	}
}

func TestAddressSpace(t *testing.T) {
	page := uint64(syscall.Getpagesize())
	for _, test := range []struct {
		name, text string
		n          int
		err        error
		want       uint64
		wantErr    string
	}{
		{name: "whole", text: "309 100 50 5 0 70 0\n", n: -1, err: io.EOF, want: 309 * page},
		{name: "not read", text: "309 100 50 5 0 70 0\n", n: -1, err: syscall.EIO, wantErr: "read /proc/self/statm: input/output error"},
		{name: "of an error", text: "309 100 50 5 0 70 0\n", n: -1, err: syscall.EBADF, wantErr: "read /proc/self/statm: bad file descriptor"},
		{name: "empty", err: io.EOF, wantErr: `/proc/self/statm says "", which does not begin with a number of pages or is cut short`},
		{name: "cut short", text: "309 100 50 5 0 70 0\n", n: 3, wantErr: `/proc/self/statm says "309", which does not begin with a number of pages or is cut short`},
		{name: "no number", text: "- 100\n", n: -1, wantErr: `/proc/self/statm says "- 100\n", which does not begin with a number of pages or is cut short`},
		{name: "too large", text: "281474976710656 0\n", n: -1, wantErr: `/proc/self/statm says "281474976710656 0\n", which does not begin with a number of pages or is cut short`},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := test.n
			if n < 0 {
				n = len(test.text)
			}
			got, err := addressSpace([]byte(test.text), n, test.err)
			if test.wantErr == "" && err != nil || test.wantErr != "" && (err == nil || err.Error() != test.wantErr) {
				t.Errorf("the error is %v, want %q", err, test.wantErr)
			}
			if got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
