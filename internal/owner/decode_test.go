package owner

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzDecodeCgroups(f *testing.F) {
	for _, name := range []string{"v1", "v1-rdma-not-joined", "v2", "hybrid", "hybrid-v2-at-root"} {
		f.Add([]byte(strings.ReplaceAll(fixture(f, "cgroup/"+name), "PATH", "/docker/"+strings.Repeat("0a", 32))))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		hs, err := decodeCgroups(data)
		if err != nil {
			if hs != nil {
				t.Errorf("%d lines and the error %v", len(hs), err)
			}
			return
		}
		// Each line is one hierarchy, and none is lost or made up.
		if lines := strings.Count(strings.TrimSuffix(string(data), "\n")+"\n", "\n"); len(data) > 0 && lines != len(hs) {
			t.Errorf("%d lines are %d hierarchies", lines, len(hs))
		}
		placed := order(hs)
		if len(placed) != len(hs) {
			t.Errorf("%d of %d hierarchies in order", len(placed), len(hs))
		}
		if path := pathOf(placed); (len(hs) > 0) != strings.HasPrefix(path, "/") || !strings.Contains(string(data), path) {
			t.Errorf("%q has the path %q", data, path)
		}
		if id, _ := containerOf(placed); id != "" && !strings.Contains(string(data), id) {
			t.Errorf("%q has no container %q", data, id)
		}
	})
}

func FuzzDecodeController(f *testing.F) {
	f.Add([]byte("mlx5_0 hca_handle=2 hca_object=2000 \n"), []byte("mlx5_0 hca_handle=max hca_object=max \n"))
	f.Add([]byte("a hca_handle=1\nb hca_handle=max"), []byte("b hca_handle=0\nc x=9\n"))
	f.Add([]byte(""), []byte("a\xff b=1"))
	f.Fuzz(func(t *testing.T, current, limits []byte) {
		uses, err := mergeUses(current, limits)
		if err != nil {
			if uses != nil {
				t.Errorf("%d uses and the error %v", len(uses), err)
			}
			return
		}
		for i, u := range uses {
			if u.Device == "" || u.Resource == "" || u.Current < 0 || u.Limit < -1 {
				t.Errorf("%+v", u)
			}
			if !utf8.ValidString(u.Device) || !utf8.ValidString(u.Resource) {
				t.Errorf("%+v is no UTF-8", u)
			}
			if i > 0 && (uses[i-1].Device > u.Device || uses[i-1].Device == u.Device && uses[i-1].Resource >= u.Resource) {
				t.Errorf("%+v comes after %+v", u, uses[i-1])
			}
		}
	})
}

func FuzzDecodeStatus(f *testing.F) {
	for _, name := range []string{"status", "status-kernel", "status-thread", "status-zombie"} {
		f.Add([]byte(fixture(f, "proc/"+name)))
	}
	f.Add([]byte("Name:\tx\\nVmPin:\t9 kB\nVmPin:\t1 kB\nVmLck:\t9007199254740991 kB\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, found, err := lockedMemory(data)
		if err != nil && (found || m != (Memlock{})) || !found && m != (Memlock{}) {
			t.Errorf("%+v, %t and the error %v", m, found, err)
		}
		if m.Pinned < 0 || m.Locked < 0 || m.Pinned%1024 != 0 || m.Locked%1024 != 0 {
			t.Errorf("%+v is in no kB", m)
		}
		// A value is what stands behind the one line that begins with its key.
		for _, key := range []string{"Tgid", "VmPin"} {
			value, found, err := statusField(data, key)
			lines := 0
			for line := range strings.Lines(string(data)) {
				if strings.HasPrefix(line, key+":") {
					lines++
				}
			}
			if found != (lines == 1) || (err != nil) != (lines > 1) || err != nil && value != "" ||
				!strings.Contains(string(data), value) {
				t.Errorf("%s on %d lines is %q, %t, %v", key, lines, value, found, err)
			}
		}
	})
}

func FuzzDecodeLimits(f *testing.F) {
	for _, name := range []string{"limits", "limits-unlimited"} {
		f.Add([]byte(fixture(f, "proc/"+name)))
	}
	f.Add([]byte("Max locked memory 18446744073709551615 0 bytes"))
	f.Fuzz(func(t *testing.T, data []byte) {
		limit, err := memlockLimit(data)
		if limit < -1 || err != nil && limit != 0 {
			t.Errorf("%d and the error %v", limit, err)
		}
		if err == nil && !strings.Contains(string(data), "Max locked memory ") {
			t.Errorf("%d was made up", limit)
		}
		if limit == -1 && !strings.Contains(string(data), "unlimited") {
			t.Errorf("unlimited was made up")
		}
		if 0 < limit && limit < math.MaxInt64 && !strings.Contains(string(data), strconv.FormatInt(limit, 10)) {
			t.Errorf("%d was made up", limit)
		}
	})
}
