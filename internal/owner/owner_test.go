package owner

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNewRefuses(t *testing.T) {
	h := newHost(t)
	h.write(filepath.Join(h.proc, "file"), "")
	if err := os.Mkdir(filepath.Join(h.proc, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	withoutRights(func() {
		for _, root := range []string{"absent", "file", "closed"} {
			refuses[*Reader](t, root, "")(New(filepath.Join(h.proc, root), h.cgroup))
		}
	})
}

func TestSeesAllPIDs(t *testing.T) {
	for target, want := range map[string]bool{
		"pid:[4026531836]": true, "pid:[4026532617]": false, "pid:[4026531837]": false,
	} {
		h := newHost(t)
		h.symlink(target, filepath.Join(h.proc, "self/ns/pid"))
		gives(t, target, want)(h.reader().SeesAllPIDs())
	}
	refuses[bool](t, "absent", "")(newHost(t).reader().SeesAllPIDs())
	for _, target := range []string{"net:[4026531836]", "pid:[4026531836", "pid:[]", "pid:[-1]"} {
		h := newHost(t)
		h.symlink(target, filepath.Join(h.proc, "self/ns/pid"))
		refuses[bool](t, target, "")(h.reader().SeesAllPIDs())
	}
}

func TestProcess(t *testing.T) {
	const tgid, ppid = "Tgid:\t4242\n", "PPid:\t4100\n"
	status := fixture(t, "proc/status")
	h := newHost(t)
	h.process(4242, map[string]string{"status": status})
	h.process(4243, map[string]string{"status": change(t, status, ppid, "PPid:\t0\n")})
	h.process(4244, map[string]string{"status": change(t, status, ppid, "")})
	h.process(4245, map[string]string{"status": fixture(t, "proc/status-thread")})
	h.process(4300, map[string]string{"comm": "dying\n"})
	r := h.reader()
	gives(t, "process of 4242", 4242)(r.Process(4242))
	gives(t, "process of 4245", 4242)(r.Process(4245))
	gives(t, "parent of 4242", 4100)(r.Parent(4242))
	gives(t, "parent of 4243", 0)(r.Parent(4243))
	refuses[int](t, "parent of 4244", "")(r.Parent(4244))
	for _, thread := range []int{4300, 4301, 0, -1} {
		fails[int](t, thread, ErrGone)(r.Process(thread))
		fails[int](t, thread, ErrGone)(r.Parent(thread))
	}
	for name, status := range map[string]string{
		"missing":   change(t, status, tgid, ""),
		"zero":      change(t, status, tgid, "Tgid:\t0\n"),
		"no number": change(t, status, tgid, "Tgid:\tx\n"),
		"twice":     status + "Tgid:\t9\n",
		"empty":     "",
	} {
		h.process(5000, map[string]string{"status": status})
		refuses[int](t, name, "")(r.Process(5000))
	}
}
