package owner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRDMAController reads the controller where each layout mounts it, with the file that shows it.
func TestRDMAController(t *testing.T) {
	const scope = "/kubepods.slice/kubepods-pod" + uid1_ + ".slice/crio-" + id1 + ".scope"
	uses := []CgroupUse{
		{Device: "mlx5_0", Resource: "hca_handle", Current: 2, Limit: -1},
		{Device: "mlx5_0", Resource: "hca_object", Current: 1873, Limit: 2000},
		{Device: "mlx5_1", Resource: "hca_handle", Current: 0, Limit: -1},
		{Device: "mlx5_1", Resource: "hca_object", Current: 0, Limit: -1},
		{Device: "rxe0", Resource: "hca_handle", Current: 1, Limit: 4},
		{Device: "rxe0", Resource: "hca_object", Current: 6, Limit: -1},
	}
	for name, layout := range map[string]struct{ mount, witness string }{
		"v1":     {"rdma", "rdma/cgroup.procs"},
		"v2":     {"", "cgroup.controllers"},
		"hybrid": {"unified", "unified/cgroup.controllers"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.write(filepath.Join(h.cgroup, layout.witness), "rdma\n")
			// Files outside of the hierarchy, which no name may lead to.
			h.controller("../outside", "secret hca_handle=1\n", "secret hca_handle=1\n")
			h.controller(layout.mount+scope, fixture(t, "rdma/rdma.current"), fixture(t, "rdma/rdma.max"))
			// The controller is not enabled for this one.
			h.write(filepath.Join(h.cgroup, layout.mount, "system.slice/cgroup.procs"), "1\n")
			h.symlink("../../outside", filepath.Join(h.cgroup, layout.mount, "link"))
			r := h.reader()

			for _, path := range []string{scope, "/" + scope, scope + "/", "/system.slice/.." + scope} {
				gives(t, path, uses)(r.RDMAController(path))
			}
			for _, path := range []string{
				"", "/", "/system.slice", "/system.slice/ssh.service", scope + " (deleted)", "/a\uFFFDb",
			} {
				gives[[]CgroupUse](t, path, nil)(r.RDMAController(path))
			}
			for _, path := range []string{
				"/..", "/../outside", "/../../outside", "/kubepods.slice/../../outside", "//../outside", "/../rdma" + scope,
			} {
				fails[[]CgroupUse](t, path, ErrOutside)(r.RDMAController(path))
			}
			for _, path := range []string{"system.slice", "/link", "/a\x00b"} {
				refuses[[]CgroupUse](t, path, "")(r.RDMAController(path))
			}
		})
	}
}

func TestRDMAControllerAbsent(t *testing.T) {
	h := newHost(t)
	r := h.reader()
	gives[[]CgroupUse](t, "nothing mounted", nil)(r.RDMAController("/a"))
	if err := os.RemoveAll(h.cgroup); err != nil {
		t.Fatal(err)
	}
	gives[[]CgroupUse](t, "nothing there", nil)(r.RDMAController("/a"))
}

// TestRDMAControllerOneHierarchy verifies that a cgroup of the same name in another hierarchy is not
// read.
func TestRDMAControllerOneHierarchy(t *testing.T) {
	h := newHost(t)
	h.write(filepath.Join(h.cgroup, "unified/cgroup.controllers"), "")
	h.controller("rdma/a", "rxe0 hca_handle=3 \n", "")
	h.controller("unified/a", "rxe0 hca_handle=4 \n", "")
	h.controller("unified/b", "rxe0 hca_handle=4 \n", "")
	r := h.reader()
	gives(t, "/a", []CgroupUse{{Device: "rxe0", Resource: "hca_handle", Current: 3, Limit: -1}})(r.RDMAController("/a"))
	gives[[]CgroupUse](t, "/b", nil)(r.RDMAController("/b"))
}

func TestRDMAControllerFiles(t *testing.T) {
	const absent = "\x00"
	for name, tt := range map[string]struct {
		current, limits string
		want            []CgroupUse
		says            string
	}{
		"no devices": {},
		"only in use": {
			current: "a hca_handle=1 \n",
			want:    []CgroupUse{{Device: "a", Resource: "hca_handle", Current: 1, Limit: -1}},
		},
		"only allowed": {
			limits: "a hca_object=7 \nb hca_object=max \n",
			want: []CgroupUse{
				{Device: "a", Resource: "hca_object", Limit: 7}, {Device: "b", Resource: "hca_object", Limit: -1},
			},
		},
		"different devices": {
			current: "b hca_handle=1 \n", limits: "a hca_handle=0",
			want: []CgroupUse{
				{Device: "a", Resource: "hca_handle"}, {Device: "b", Resource: "hca_handle", Current: 1, Limit: -1},
			},
		},
		"largest count": {
			current: "a hca_object=max \n", limits: "a hca_object=max \n",
			want: []CgroupUse{{Device: "a", Resource: "hca_object", Current: 2147483647, Limit: -1}},
		},
		"unknown resource": {
			current: "a hca_qp=2 \n", limits: "a hca_qp=4 \n",
			want: []CgroupUse{{Device: "a", Resource: "hca_qp", Current: 2, Limit: 4}},
		},
		"no UTF-8": {
			current: "a\xff hca_object=1 \n", limits: "a\xff hca_object=3 \n",
			want: []CgroupUse{{Device: "a\uFFFD", Resource: "hca_object", Current: 1, Limit: 3}},
		},
		"removed meanwhile": {current: "a hca_handle=1\n", limits: absent},
		"device only":       {current: "a\n", says: "rdma.current"},
		"empty line":        {limits: "\n", says: "rdma.max"},
		"no equals sign":    {current: "a hca_handle\n", says: "hca_handle"},
		"no resource":       {current: "a =1\n", says: "=1"},
		"no number":         {limits: "a hca_handle=\n", says: "rdma.max"},
		"negative":          {current: "a hca_handle=-1\n", says: "-1"},
		"too large":         {current: "a hca_handle=9223372036854775808\n", says: "9223372036854775808"},
		"twice":             {current: "a hca_handle=1\na hca_handle=2\n", says: "twice"},
		"too long":          {current: strings.Repeat("a", 1<<20+1), says: "longer"},
		"one file only":     {current: absent, limits: "a hca_handle=1\n", says: "rdma.current"},
		"other file only":   {current: "a hca_handle=1\n", limits: absent, says: "rdma.max"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.write(filepath.Join(h.cgroup, "cgroup.controllers"), "rdma\n")
			if name != "removed meanwhile" {
				h.write(filepath.Join(h.cgroup, "a/cgroup.procs"), "")
			}
			for file, content := range map[string]string{"rdma.current": tt.current, "rdma.max": tt.limits} {
				if content != absent {
					h.write(filepath.Join(h.cgroup, "a", file), content)
				}
			}
			if got, err := h.reader().RDMAController("/a"); tt.says != "" {
				refuses[[]CgroupUse](t, "/a", tt.says)(got, err)
			} else {
				gives(t, "/a", tt.want)(got, err)
			}
		})
	}
}
