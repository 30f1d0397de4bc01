package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
)

// TestVanishedStays verifies which devices stay in the snapshot when they vanish, until they return.
func TestVanishedStays(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		transient bool
		adapter   state.Adapter
		stays     bool
	}{
		{"a physical function", false, state.Adapter{Role: "pf", NetnsMode: "shared"}, true},
		{"never read", false, state.Adapter{}, true},
		{"a virtual function, by sysfs", true, state.Adapter{}, false},
		{"a virtual function, by its reading", false, state.Adapter{Role: "vf"}, false},
		{"a subfunction", false, state.Adapter{Role: "sf"}, false},
		{"may have moved to a pod", false, state.Adapter{Role: "pf", NetnsMode: "exclusive"}, false},
	} {
		subtest(t, tc.name, func(t *testing.T) {
			hardware := func(devices []string, _ int) script {
				return telling(time.Second, state.Hardware{Device: devices[0], Identity: tc.adapter})
			}
			b := benchOf(t, children{next: always(scriptOK(0)), hardware: hardware}, func(c *Config) {
				c.Transient = func(string) bool { return tc.transient }
			}, "a")
			b.after(time.Minute)
			b.host(nil)
			b.after(24 * time.Hour)
			if all := b.Snapshot().Devices; tc.stays != (len(all) == 1 && !all[0].Present && !all[0].Vanished.IsZero()) || !tc.stays && len(all) > 0 {
				t.Errorf("got %+v", all)
			}
			wantEqual(t, "said", b.logs(fmt.Sprint("transient=", !tc.stays)), 1)
			b.host(nil, "a")
			if d := stateOf(t, b.after(time.Minute), "a"); !d.Present || !d.Vanished.IsZero() || len(b.Snapshot().Devices) != 1 {
				t.Errorf("after it returned: %+v", d)
			}
		})
	}
}

// TestRenamed verifies that a device whose node GUID appears under another name has not vanished.
func TestRenamed(t *testing.T) {
	t.Parallel()
	const guid, none = "0002:c903:0001:0001", "0000:0000:0000:0000"
	for _, tc := range []struct {
		name, guid    string
		before, after []string
		left          string
	}{
		{"renamed", guid, []string{"a"}, []string{"b"}, "[b]"},
		{"no GUID", none, []string{"a"}, []string{"b"}, "[a b]"},
		{"two of the same GUID, and one vanished", guid, []string{"a", "b"}, []string{"b"}, "[a b]"},
	} {
		subtest(t, tc.name, func(t *testing.T) {
			report := lines(wire.Line{Device: &state.Device{Transport: "InfiniBand", NodeGUID: tc.guid}}, wire.Line{End: &wire.End{}})
			b := newBench(t, always(script{output: report}), nil, tc.before...)
			b.after(time.Minute)
			b.host(nil, tc.after...)
			b.after(10 * time.Minute)
			var left []string
			for _, d := range b.Snapshot().Devices {
				left = append(left, d.Name)
			}
			wantEqual(t, "left", fmt.Sprint(left), tc.left)
		})
	}
}

// TestVanishedAreBounded verifies that the devices that vanished last are kept.
func TestVanishedAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, always(scriptOK(0)), nil)
		for n := range maxVanished + 8 {
			b.host(nil, fmt.Sprint("d", n))
			b.after(10 * time.Second)
		}
		b.host(nil)
		s := b.after(10 * time.Second)
		if len(s.Devices) != maxVanished || stateOf(t, s, fmt.Sprint("d", maxVanished+7)).Present || strings.Contains(strings.Join(allNames(s), " "), "d7 ") {
			t.Errorf("%d devices are kept: %v", len(s.Devices), allNames(s))
		}
	})
}

func TestSysfsTransient(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	transient := SysfsTransient(root)
	add := func(name, dir string, links ...string) {
		function := filepath.Join(root, "devices", dir)
		device := filepath.Join(root, "class", "infiniband", name)
		for _, folder := range []string{function, device} {
			running.Check(t, os.MkdirAll(folder, 0o700))
		}
		for _, link := range append([]string{filepath.Join(device, "device")}, links...) {
			target := function
			if filepath.Base(link) == "physfn" {
				target = "../0000:3b:00.0"
			}
			running.Check(t, os.Symlink(target, link))
		}
	}
	add("pf", "0000:3b:00.0")
	add("vf", "0000:3b:00.2", filepath.Join(root, "devices", "0000:3b:00.2", "physfn"))
	add("sf", "0000:3b:00.0/mlx5_core.sf.4")
	for name, want := range map[string]bool{"pf": false, "vf": true, "sf": true, "rxe0": false, "../x": false} {
		if got := transient(name); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
