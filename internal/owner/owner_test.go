package owner_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/internal/owner"
)

func TestNewRefuses(t *testing.T) {
	h := newHost(t)
	h.write(filepath.Join(h.proc, "file"), "")
	if err := os.Mkdir(filepath.Join(h.proc, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	withoutRights(t, func() {
		for _, root := range []string{"absent", "file", "closed"} {
			if r, err := owner.New(filepath.Join(h.proc, root), h.cgroup); err == nil || r != nil {
				t.Errorf("%s: got %v, %v", root, r, err)
			}
		}
	})
}

func TestSeesAllPIDs(t *testing.T) {
	for target, want := range map[string]string{
		"pid:[4026531836]": "true", "pid:[4026532617]": "false", "pid:[4026531837]": "false",
		"net:[4026531836]": "error", "pid:[4026531836": "error", "pid:[]": "error", "pid:[-1]": "error", "absent": "error",
	} {
		h := newHost(t)
		h.write(filepath.Join(h.proc, "self/ns/x"), "")
		if target != "absent" {
			if err := os.Symlink(target, filepath.Join(h.proc, "self/ns/pid")); err != nil {
				t.Fatal(err)
			}
		}
		got, err := h.reader().SeesAllPIDs()
		if err != nil && (want != "error" || got) || err == nil && fmt.Sprint(got) != want {
			t.Errorf("%s: got %v, %v, want %s", target, got, err, want)
		}
	}
}

func TestProcess(t *testing.T) {
	status := fixture(t, "proc/status")
	h := newHost(t)
	h.process(4242, map[string]string{"status": status})
	h.process(4245, map[string]string{"status": fixture(t, "proc/status-thread")})
	h.process(4300, map[string]string{"comm": "dying\n"})
	r := h.reader()
	for _, thread := range []int{4242, 4245} {
		if got, err := r.Process(thread); err != nil || got != 4242 {
			t.Errorf("thread %d: got %d, %v", thread, got, err)
		}
	}
	for _, thread := range []int{4300, 4301, 0, -1} {
		if got, err := r.Process(thread); !errors.Is(err, owner.ErrGone) || got != 0 {
			t.Errorf("thread %d: got %d, %v, want ErrGone", thread, got, err)
		}
	}
	for name, status := range map[string]string{
		"missing":   strings.Replace(status, "Tgid:\t4242\n", "", 1),
		"zero":      strings.Replace(status, "Tgid:\t4242\n", "Tgid:\t0\n", 1),
		"no number": strings.Replace(status, "Tgid:\t4242\n", "Tgid:\tx\n", 1),
		"twice":     status + "Tgid:\t9\n",
		"empty":     "",
	} {
		h.process(5000, map[string]string{"status": status})
		if got, err := r.Process(5000); err == nil || errors.Is(err, owner.ErrGone) || got != 0 {
			t.Errorf("%s: got %d, %v, want an error", name, got, err)
		}
	}
}

func TestParent(t *testing.T) {
	status := fixture(t, "proc/status")
	h := newHost(t)
	h.process(4242, map[string]string{"status": status})
	h.process(4243, map[string]string{"status": strings.Replace(status, "PPid:\t4100\n", "PPid:\t0\n", 1)})
	h.process(4244, map[string]string{"status": strings.Replace(status, "PPid:\t4100\n", "", 1)})
	r := h.reader()
	for pid, want := range map[int]int{4242: 4100, 4243: 0} {
		if got, err := r.Parent(pid); err != nil || got != want {
			t.Errorf("process %d: got %d, %v, want %d", pid, got, err, want)
		}
	}
	if got, err := r.Parent(4244); err == nil || errors.Is(err, owner.ErrGone) || got != 0 {
		t.Errorf("without a parent: got %d, %v, want an error", got, err)
	}
	if got, err := r.Parent(4245); !errors.Is(err, owner.ErrGone) || got != 0 {
		t.Errorf("of nobody: got %d, %v, want ErrGone", got, err)
	}
}
