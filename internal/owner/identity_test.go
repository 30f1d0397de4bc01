package owner_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"rdma_exporter/internal/owner"
)

// TestIdentifyContainers verifies each container's cgroup in each form of /proc/PID/cgroup.
func TestIdentifyContainers(t *testing.T) {
	status := fixture(t, "proc/status")
	for _, file := range []string{"v2", "v1", "v1-without-rdma", "v1-rdma-not-joined", "hybrid", "hybrid-v2-not-joined", "hybrid-v2-at-root"} {
		t.Run(file, func(t *testing.T) {
			h := newHost(t)
			r := h.reader()
			for _, c := range containers() {
				if c.path == "" {
					continue // the kernel writes no empty path
				}
				h.process(4242, map[string]string{"comm": "ib_write_bw\n", "status": status, "cgroup": placed(t, file, c.path)})
				got, err := r.Identify(4242)
				want := owner.Identity{
					PID: 4242, Comm: "ib_write_bw", Cgroup: c.path,
					ContainerID: c.containerID, PodUID: c.pod,
				}
				switch {
				case file == "v1-rdma-not-joined":
					want.Cgroup = "/"
				case file == "hybrid-v2-not-joined" && c.containerID == "" && c.pod == "":
					want.Cgroup = "/system.slice/containerd.service"
				}
				if err != nil || got != want {
					t.Errorf("%s:\n got %+v, %v\nwant %+v", c.name, got, err, want)
				}
			}
		})
	}
}

func TestIdentifyCgroup(t *testing.T) {
	tests := []struct{ name, cgroup, want string }{
		{"no hierarchy mounted", "", ""},
		{"colon in a name", "0::/a:b:c\n", "/a:b:c"},
		{"other namespace", "0::/../../system.slice/ssh.service\n", "/../../system.slice/ssh.service"},
		{"no UTF-8", "0::/a\xff\xfeb\n", "/a\uFFFDb"},
		{"rdma before all", "3:cpu:/docker/" + id1 + "\n2:misc,rdma:/hpc\n1:name=systemd:/system.slice/x.service\n0::/v2\n", "/hpc"},
		{"version 2 before 1", "3:memory:/memory\n1:name=systemd:/systemd\n0::/v2\n", "/v2"},
		{"systemd before pids", "3:pids:/pids\n2:memory:/memory\n1:name=systemd:/systemd\n0::/\n", "/systemd"},
		{"pids before memory", "4:memory:/memory\n3:pids:/pids\n1:name=systemd:/\n", "/pids"},
		{"none of these", "4:freezer:/ice\n3:cpu:/heat\n", "/ice"},
		{"other before the root", "3:memory:/\n2:cpu:/heat\n1:name=systemd:/\n0::/\n", "/heat"},
		{"root everywhere", "2:cpu:/\n1:name=systemd:/\n0::/\n", "/"},
		{"no last line break", "0::/x", "/x"},
	}
	for _, tt := range tests {
		got, err := identify(t, map[string]string{"cgroup": tt.cgroup})
		if err != nil || got.Cgroup != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.name, got.Cgroup, err, tt.want)
		}
	}
}

func TestIdentifyComm(t *testing.T) {
	for comm, want := range map[string]string{
		"ib_send_lat\n":    "ib_send_lat",
		"\n":               "",
		"two words \n":     "two words ",
		"line\nbreak\n":    "line\nbreak",
		"\xff\xfe bytes\n": "\uFFFD bytes",
		"(sd-pam)\n":       "(sd-pam)",
	} {
		got, err := identify(t, map[string]string{"comm": comm})
		if err != nil || got.Comm != want {
			t.Errorf("%q: got %q, %v, want %q", comm, got.Comm, err, want)
		}
	}
}

// TestIdentifyStarted verifies that the name of a process cannot change its start.
func TestIdentifyStarted(t *testing.T) {
	const numbers = " S 1 4242 4242 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1024 25 18446744073709551615 0"
	for stat, want := range map[string]uint64{
		"7 (x)" + numbers + "\n":                              987654,
		"7 (x) S (1) y)" + numbers + "\n":                     987654,
		"7 (two\nlines )" + numbers + "\n":                    987654,
		"7 (x) S 1 4242\n":                                    0,
		"nonsense\n":                                          0,
		"7 (x)" + strings.Replace(numbers, "987654", "-1", 1): 0,
	} {
		got, err := identify(t, map[string]string{"stat": stat})
		if got.Started != want || (err == nil) != (want != 0) || errors.Is(err, owner.ErrGone) {
			t.Errorf("%q: got %+v, %v", stat, got, err)
		}
	}
}

func TestIdentifyRefuses(t *testing.T) {
	for name, cgroup := range map[string]string{
		"no fields":       "nonsense\n",
		"cut off":         "0:",
		"empty line":      "0::/a\n\n",
		"no number":       "x::/a\n",
		"negative number": "-1:pids:/a\n",
		"no path":         "0::\n",
		"relative path":   "0::a\n",
		"two versions":    "0:pids:/a\n",
		"no controller":   "4::/a\n",
		"too long":        "0::/" + strings.Repeat("a", 1<<20) + "\n",
	} {
		got, err := identify(t, map[string]string{"cgroup": cgroup})
		if err == nil || errors.Is(err, owner.ErrGone) || got != (owner.Identity{}) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	if _, err := identify(t, map[string]string{"comm": ""}); err == nil || errors.Is(err, owner.ErrGone) {
		t.Errorf("an empty comm: %v", err)
	}
}

func TestIdentifyMissing(t *testing.T) {
	status := fixture(t, "proc/status")
	h := newHost(t)
	h.process(1, map[string]string{"comm": "x\n", "status": status})
	h.process(2, map[string]string{"comm": "x\n"})
	h.process(3, map[string]string{"environ": "A=b\x00"})
	r := h.reader()

	got, err := r.Identify(1)
	if want := (owner.Identity{PID: 1, Comm: "x"}); err != nil || got != want {
		t.Errorf("a kernel without cgroups: got %+v, %v, want %+v", got, err, want)
	}
	// 2 and 3 have lost their files, as processes that end.
	for _, pid := range []int{2, 3, 4, 0, -1, 1 << 40} {
		if _, err := r.Identify(pid); !errors.Is(err, owner.ErrGone) || errors.Is(err, fs.ErrPermission) {
			t.Errorf("process %d: got %v, want ErrGone", pid, err)
		}
	}
}

func TestMissingRights(t *testing.T) {
	status := fixture(t, "proc/status")
	limits := fixture(t, "proc/limits")
	h := newHost(t)
	for pid := range 6 {
		h.process(pid+1, map[string]string{"comm": "x\n", "status": status, "limits": limits, "cgroup": "0::/a\n"})
	}
	for _, path := range []string{
		h.file(1, "comm"), h.file(2, "cgroup"), h.file(3, "comm"), h.file(3, "cgroup"), h.file(4, ""), h.file(5, "status"), h.file(6, "limits"),
	} {
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(h.file(4, ""), 0o755) })
	r := h.reader()
	forbidden := func(call string, pid int, err error) {
		if !errors.Is(err, fs.ErrPermission) || errors.Is(err, owner.ErrGone) {
			t.Errorf("%s(%d): got %v, want fs.ErrPermission", call, pid, err)
		}
	}

	withoutRights(t, func() {
		for _, want := range []owner.Identity{{PID: 1, Cgroup: "/a"}, {PID: 2, Comm: "x"}, {PID: 5, Comm: "x", Cgroup: "/a"}} {
			if got, err := r.Identify(want.PID); err != nil || got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		}
		for _, pid := range []int{3, 4} {
			_, err := r.Identify(pid)
			forbidden("Identify", pid, err)
		}
		for _, pid := range []int{4, 5} {
			_, err := r.Process(pid)
			forbidden("Process", pid, err)
		}
		for _, pid := range []int{4, 5, 6} {
			_, err := r.Memlock(pid)
			forbidden("Memlock", pid, err)
		}
	})
}
