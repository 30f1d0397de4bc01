package owner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestIdentifyContainers verifies each container's cgroup in each form of /proc/PID/cgroup.
func TestIdentifyContainers(t *testing.T) {
	status := fixture(t, "proc/status")
	for _, file := range []string{
		"v2", "v1", "v1-without-rdma", "v1-rdma-not-joined", "hybrid", "hybrid-v2-not-joined", "hybrid-v2-at-root",
	} {
		h := newHost(t)
		r := h.reader()
		for _, c := range containers() {
			if c.path == "" {
				continue // the kernel writes no empty path
			}
			cgroup := strings.ReplaceAll(fixture(t, "cgroup/"+file), "PATH", c.path)
			h.process(4242, map[string]string{"comm": "ib_write_bw\n", "status": status, "cgroup": cgroup})
			want := Identity{PID: 4242, Comm: "ib_write_bw", Cgroup: c.path, ContainerID: c.containerID, PodUID: c.pod}
			switch {
			case file == "v1-rdma-not-joined":
				want.Cgroup = "/"
			case file == "hybrid-v2-not-joined" && c.containerID == "" && c.pod == "":
				want.Cgroup = "/system.slice/containerd.service"
			}
			gives(t, file+": "+c.name, want)(r.Identify(4242))
		}
	}
}

func TestIdentify(t *testing.T) {
	path := func(cgroup, want string) (map[string]string, Identity) {
		return map[string]string{"cgroup": cgroup}, Identity{PID: 7, Comm: "x", Cgroup: want}
	}
	check := func(files map[string]string, want Identity) {
		t.Helper()
		gives(t, files, want)(identify(t, files))
	}
	check(path("", "")) // no hierarchy is mounted
	check(path("0::/a:b:c\n", "/a:b:c"))
	check(path("0::/../../system.slice/ssh.service\n", "/../../system.slice/ssh.service"))
	check(path("0::/a\xff\xfeb\n", "/a\uFFFDb"))
	check(path("0::/x", "/x"))
	// The order of hierarchies: rdma, version 2, systemd, pids, memory, others. The root comes last.
	check(path("3:cpu:/cpu\n2:misc,rdma:/hpc\n1:name=systemd:/system.slice/x.service\n0::/v2\n", "/hpc"))
	check(path("3:memory:/memory\n1:name=systemd:/systemd\n0::/v2\n", "/v2"))
	check(path("3:pids:/pids\n2:memory:/memory\n1:name=systemd:/systemd\n0::/\n", "/systemd"))
	check(path("4:memory:/memory\n3:pids:/pids\n1:name=systemd:/\n", "/pids"))
	check(path("4:freezer:/ice\n3:cpu:/heat\n", "/ice"))
	check(path("3:memory:/\n2:cpu:/heat\n1:name=systemd:/\n0::/\n", "/heat"))
	check(path("2:cpu:/\n1:name=systemd:/\n0::/\n", "/"))
	// A job may be in another hierarchy than the path to show.
	job := "9:memory:/slurm/uid_1000/job_4711/step_0/task_0\n1:name=systemd:/system.slice/slurmd.service\n"
	check(map[string]string{"cgroup": job}, Identity{PID: 7, Comm: "x", Cgroup: "/system.slice/slurmd.service", SlurmJobID: "4711"})
	for comm, want := range map[string]string{
		"\n": "", "two words \n": "two words ", "line\nbreak\n": "line\nbreak", "\xff\xfe bytes\n": "\uFFFD bytes",
		"(sd-pam)\n": "(sd-pam)",
	} {
		check(map[string]string{"comm": comm}, Identity{PID: 7, Comm: want, Cgroup: "/"})
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
		if got.Started != want || (err == nil) != (want != 0) || errors.Is(err, ErrGone) {
			t.Errorf("%q: got %+v, %v", stat, got, err)
		}
	}
}

func TestIdentifyRefuses(t *testing.T) {
	for _, cgroup := range []string{
		"nonsense\n", "0:", "0::/a\n\n", "x::/a\n", "-1:pids:/a\n", "0::\n", "0::a\n",
		"0:pids:/a\n", // two versions
		"4::/a\n",     // no controller
		"0::/" + strings.Repeat("a", 1<<20) + "\n",
	} {
		refuses[Identity](t, cgroup[:min(len(cgroup), 20)], "")(identify(t, map[string]string{"cgroup": cgroup}))
	}
	if _, err := identify(t, map[string]string{"comm": ""}); err == nil || errors.Is(err, ErrGone) {
		t.Errorf("an empty comm: %v", err)
	}
}

func TestIdentifyMissing(t *testing.T) {
	h := newHost(t)
	h.process(1, map[string]string{"comm": "x\n", "status": fixture(t, "proc/status")})
	// These have lost their files, as processes that end.
	h.process(2, map[string]string{"comm": "x\n"})
	h.process(3, map[string]string{"environ": "A=b\x00"})
	r := h.reader()
	gives(t, "a kernel without cgroups", Identity{PID: 1, Comm: "x"})(r.Identify(1))
	for _, pid := range []int{2, 3, 4, 0, -1, 1 << 40} {
		_, err := r.Identify(pid)
		fails[struct{}](t, pid, ErrGone)(struct{}{}, err)
	}
}

func TestMissingRights(t *testing.T) {
	status, limits := fixture(t, "proc/status"), fixture(t, "proc/limits")
	h := newHost(t)
	for pid := range 6 {
		h.process(pid+1, map[string]string{"comm": "x\n", "status": status, "limits": limits, "cgroup": "0::/a\n"})
	}
	h.write(filepath.Join(h.cgroup, "cgroup.controllers"), "rdma\n")
	h.controller("a", "a hca_handle=1\n", "a hca_handle=1\n")
	for _, path := range []string{
		filepath.Join(h.cgroup, "a/rdma.max"), h.file(1, "comm"), h.file(2, "cgroup"), h.file(3, "comm"), h.file(3, "cgroup"),
		h.file(4, ""), h.file(5, "status"), h.file(6, "limits"),
	} {
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(h.file(4, ""), 0o755) })
	r := h.reader()
	withoutRights(func() {
		fails[[]CgroupUse](t, "/a", fs.ErrPermission)(r.RDMAController("/a"))
		for _, want := range []Identity{{PID: 1, Cgroup: "/a"}, {PID: 2, Comm: "x"}, {PID: 5, Comm: "x", Cgroup: "/a"}} {
			gives(t, want.PID, want)(r.Identify(want.PID))
		}
		for pid, calls := range map[int]string{
			3: "Identify", 4: "Identify Process Memlock", 5: "Process Memlock", 6: "Memlock",
		} {
			for call, err := range callAll(r, pid) {
				if strings.Contains(calls, call) && (!errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrGone)) {
					t.Errorf("%s(%d): got %v, want fs.ErrPermission", call, pid, err)
				}
			}
		}
	})
}
