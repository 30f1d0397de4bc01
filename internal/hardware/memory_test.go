package hardware_test

import (
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/internal/hardware"
	"rdma_exporter/internal/hardware/hardwaretest"
	"rdma_exporter/internal/state"
)

// space is a configuration space of 256 bytes with some at these places. The first capability is at 0x40.
func space(at map[int]string) string {
	all := []byte(strings.Repeat("\x00", 256))
	all[0x34] = 0x40
	for place, bytes := range at {
		copy(all[place:], bytes)
	}
	return string(all)
}

// TestPathToMemory verifies that facts come from the right capabilities, and that odd ones give none.
func TestPathToMemory(t *testing.T) {
	t.Parallel()
	const (
		function = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0"
		express  = "\x10\x00\x02\x00\x00\x00\x00\x00\x30\x50" // Device Control: 256 and 4096 bytes, relaxed ordering
	)
	yes, no := true, false
	config := func(bytes string) string { return function + "/config: " + bytes }
	facts := state.PCIPath{MaxPayload: 256, MaxReadRequest: 4096, RelaxedOrdering: &yes, ACSRedirect: &no, IOMMU: "none"}
	unknown := state.PCIPath{ACSRedirect: &no, IOMMU: "none"}
	redirected := facts
	redirected.ACSRedirect = &yes
	for _, tc := range []struct {
		name, lines string
		want        state.PCIPath
	}{
		{"first", config(space(map[int]string{0x40: express})), facts},
		{"second", config(space(map[int]string{0x40: "\x11\x63", 0x60: express})), facts},
		{"ACS of one bridge", config(space(map[int]string{0x40: express})) + "\n" + filepath.Dir(filepath.Dir(function)) + "/config: " + hardwaretest.Config(0x1d), redirected},
		{"no root", config(space(map[int]string{0x40: express})[:64]), unknown},
		{"no capabilities", config(space(map[int]string{0x34: "\x00"})), unknown},
		{"no express", config(space(map[int]string{0x40: "\x11\x00\x00\x00\x00\x00\x00\x00\x30\x50"})), unknown},
		{"a cycle", config(space(map[int]string{0x40: "\x11\x60", 0x60: "\x05\x40\x00\x00\x00\x00\x00\x00\x30\x50"})), unknown},
		{"into the header", config(space(map[int]string{0x10: express, 0x40: "\x11\x10"})), unknown},
		{"over the end", config(space(map[int]string{0x40: "\x11\xf8", 0xf8: express[:8]})), unknown},
		{"does not answer", config(strings.Repeat("\xff", 4096)), unknown},
		{"no configuration space", function + "/config/", unknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			sysfs := filepath.Join(hardwaretest.H100(t, "@\n"+tc.lines), "sys")
			same(t, tc.want, hardware.PathToMemory(t.Context(), sysfs, "0000:18:00.0"))
			same(t, state.PCIPath{}, hardware.PathToMemory(t.Context(), sysfs, ""))
		})
	}
}

func TestNUMANodes(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]map[int][]int{
		"has_normal_memory: 0,2\nnode0/cpulist: 0-3,8\nnode2/cpulist: \nnode1/cpulist: 4-7": {0: {0, 1, 2, 3, 8}, 2: nil},
		"has_normal_memory: 0-1\nnode0/cpulist: 0-1":                                        {0: {0, 1}, 1: nil},
		"has_normal_memory/":                                 {},
		"has_normal_memory: 0-99999999":                      {},
		"has_normal_memory: 0" + strings.Repeat(" ", 70<<10): {},
	} {
		root := t.TempDir()
		hardwaretest.Lay(t, root, "@ devices/system/node\n"+lines)
		same(t, want, hardware.NUMANodes(t.Context(), root), lines[:min(len(lines), 60)])
	}
}
