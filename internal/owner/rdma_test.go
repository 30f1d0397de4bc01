package owner_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/owner"
)

const scope = "/kubepods.slice/kubepods-pod" + uid1_ + ".slice/crio-" + id1 + ".scope"

// uses are those in the fixtures.
func uses() []owner.CgroupUse {
	return []owner.CgroupUse{
		{Device: "mlx5_0", Resource: "hca_handle", Current: 2, Limit: -1},
		{Device: "mlx5_0", Resource: "hca_object", Current: 1873, Limit: 2000},
		{Device: "mlx5_1", Resource: "hca_handle", Current: 0, Limit: -1},
		{Device: "mlx5_1", Resource: "hca_object", Current: 0, Limit: -1},
		{Device: "rxe0", Resource: "hca_handle", Current: 1, Limit: 4},
		{Device: "rxe0", Resource: "hca_object", Current: 6, Limit: -1},
	}
}

// layouts are the mount points of the controller below cgroupRoot, with the file that shows it.
func layouts() map[string]struct{ mount, witness string } {
	return map[string]struct{ mount, witness string }{
		"v1":     {"rdma", "rdma/cgroup.procs"},
		"v2":     {"", "cgroup.controllers"},
		"hybrid": {"unified", "unified/cgroup.controllers"},
	}
}

func TestRDMAController(t *testing.T) {
	for name, layout := range layouts() {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.write(filepath.Join(h.cgroup, layout.witness), "rdma\n")
			// A file outside of the hierarchy, which no name may lead to.
			h.write(filepath.Join(h.cgroup, "../outside/rdma.current"), "secret hca_handle=1\n")
			h.write(filepath.Join(h.cgroup, "../outside/rdma.max"), "secret hca_handle=1\n")
			cg := filepath.Join(h.cgroup, layout.mount)
			for _, file := range []string{"rdma.current", "rdma.max"} {
				h.write(filepath.Join(cg, scope, file), fixture(t, "rdma/"+file))
			}
			// The controller is not enabled for this one.
			h.write(filepath.Join(cg, "system.slice/cgroup.procs"), "1\n")
			if err := os.Symlink("../../outside", filepath.Join(cg, "link")); err != nil {
				t.Fatal(err)
			}
			r := h.reader()

			for _, path := range []string{scope, "/" + scope, scope + "/", "/system.slice/.." + scope} {
				got, err := r.RDMAController(path)
				if err != nil || !slices.Equal(got, uses()) {
					t.Errorf("%q:\n got %+v, %v\nwant %+v", path, got, err, uses())
				}
			}
			for _, path := range []string{"", "/", "/system.slice", "/system.slice/ssh.service", scope + " (deleted)", "/a\uFFFDb"} {
				if got, err := r.RDMAController(path); err != nil || len(got) != 0 {
					t.Errorf("%q: got %+v, %v, want nothing", path, got, err)
				}
			}
			for _, path := range []string{"/..", "/../outside", "/../../outside", "/kubepods.slice/../../outside", "//../outside", "/../rdma" + scope} {
				if got, err := r.RDMAController(path); !errors.Is(err, owner.ErrOutside) || got != nil {
					t.Errorf("%q: got %+v, %v, want ErrOutside", path, got, err)
				}
			}
			for _, path := range []string{"system.slice", "/link", "/a\x00b"} {
				if got, err := r.RDMAController(path); err == nil || got != nil {
					t.Errorf("%q: got %+v, want an error", path, got)
				}
			}
		})
	}
}

func TestRDMAControllerAbsent(t *testing.T) {
	h := newHost(t)
	r := h.reader()
	for _, name := range []string{"nothing mounted", "nothing there"} {
		if got, err := r.RDMAController("/a"); err != nil || len(got) != 0 {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		if err := os.RemoveAll(h.cgroup); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRDMAControllerOneHierarchy verifies that a cgroup of the same name in another hierarchy is not
// read.
func TestRDMAControllerOneHierarchy(t *testing.T) {
	h := newHost(t)
	h.write(filepath.Join(h.cgroup, "unified/cgroup.controllers"), "")
	for _, file := range []string{"rdma.current", "rdma.max"} {
		h.write(filepath.Join(h.cgroup, "rdma/a", file), "rxe0 hca_handle=3 \n")
		h.write(filepath.Join(h.cgroup, "unified/a", file), "rxe0 hca_handle=4 \n")
		h.write(filepath.Join(h.cgroup, "unified/b", file), "rxe0 hca_handle=4 \n")
	}
	r := h.reader()
	if got, err := r.RDMAController("/a"); err != nil || len(got) != 1 || got[0].Current != 3 {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := r.RDMAController("/b"); err != nil || len(got) != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRDMAControllerFiles(t *testing.T) {
	const absent = "\x00"
	tests := []struct {
		name, current, limits string
		want                  []owner.CgroupUse
		says                  string
	}{
		{name: "no devices"},
		{
			name: "only in use", current: "a hca_handle=1 \n",
			want: []owner.CgroupUse{{Device: "a", Resource: "hca_handle", Current: 1, Limit: -1}},
		},
		{
			name: "only allowed", current: "", limits: "a hca_object=7 \nb hca_object=max \n",
			want: []owner.CgroupUse{{Device: "a", Resource: "hca_object", Limit: 7}, {Device: "b", Resource: "hca_object", Limit: -1}},
		},
		{
			name: "different devices", current: "b hca_handle=1 \n", limits: "a hca_handle=0",
			want: []owner.CgroupUse{{Device: "a", Resource: "hca_handle"}, {Device: "b", Resource: "hca_handle", Current: 1, Limit: -1}},
		},
		{
			name: "largest count", current: "a hca_object=max \n", limits: "a hca_object=max \n",
			want: []owner.CgroupUse{{Device: "a", Resource: "hca_object", Current: 2147483647, Limit: -1}},
		},
		{
			name: "unknown resource", current: "a hca_object=1 hca_qp=2 \n", limits: "a hca_object=3 hca_qp=4 \n",
			want: []owner.CgroupUse{{Device: "a", Resource: "hca_object", Current: 1, Limit: 3}, {Device: "a", Resource: "hca_qp", Current: 2, Limit: 4}},
		},
		{
			name: "no UTF-8", current: "a\xff hca_object=1 \n", limits: "a\xff hca_object=3 \n",
			want: []owner.CgroupUse{{Device: "a\uFFFD", Resource: "hca_object", Current: 1, Limit: 3}},
		},
		{name: "device only", current: "a\n", says: "rdma.current"},
		{name: "empty line", limits: "\n", says: "rdma.max"},
		{name: "no equals sign", current: "a hca_handle\n", says: "hca_handle"},
		{name: "no resource", current: "a =1\n", says: "=1"},
		{name: "no number", limits: "a hca_handle=\n", says: "rdma.max"},
		{name: "negative", current: "a hca_handle=-1\n", says: "-1"},
		{name: "too large", current: "a hca_handle=9223372036854775808\n", says: "9223372036854775808"},
		{name: "twice", current: "a hca_handle=1\na hca_handle=2\n", says: "twice"},
		{name: "too long", current: strings.Repeat("a", 1<<20+1), says: "longer"},
		{name: "one file only", current: absent, limits: "a hca_handle=1\n", says: "rdma.current"},
		{name: "other file only", current: "a hca_handle=1\n", limits: absent, says: "rdma.max"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t)
			h.write(filepath.Join(h.cgroup, "cgroup.controllers"), "rdma\n")
			h.write(filepath.Join(h.cgroup, "a/cgroup.procs"), "")
			for file, content := range map[string]string{"rdma.current": tt.current, "rdma.max": tt.limits} {
				if content != absent {
					h.write(filepath.Join(h.cgroup, "a", file), content)
				}
			}
			got, err := h.reader().RDMAController("/a")
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) || got != nil {
					t.Errorf("got %+v, %v, want an error that says %q", got, err, tt.says)
				}
				return
			}
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
	t.Run("removed meanwhile", func(t *testing.T) {
		h := newHost(t)
		h.write(filepath.Join(h.cgroup, "cgroup.controllers"), "rdma\n")
		h.write(filepath.Join(h.cgroup, "a/rdma.current"), "a hca_handle=1\n")
		if got, err := h.reader().RDMAController("/a"); err != nil || len(got) != 0 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestRDMAControllerMissingRights(t *testing.T) {
	h := newHost(t)
	h.write(filepath.Join(h.cgroup, "cgroup.controllers"), "rdma\n")
	for _, file := range []string{"rdma.current", "rdma.max"} {
		h.write(filepath.Join(h.cgroup, "a", file), "a hca_handle=1\n")
	}
	if err := os.Chmod(filepath.Join(h.cgroup, "a/rdma.max"), 0); err != nil {
		t.Fatal(err)
	}
	r := h.reader()
	withoutRights(t, func() {
		if got, err := r.RDMAController("/a"); !errors.Is(err, fs.ErrPermission) || got != nil {
			t.Errorf("got %+v, %v, want fs.ErrPermission", got, err)
		}
	})
}
