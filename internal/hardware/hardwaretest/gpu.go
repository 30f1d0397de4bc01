package hardwaretest

import (
	"fmt"
	"strings"
	"testing"
)

// Config is the configuration space of a bridge whose ACS has a control word.
func Config(control byte) string {
	space := []byte(strings.Repeat("\x00", 0x160))
	copy(space[0x100:], "\x01\x00\x82\x14")         // AER, and the next is at 0x148
	copy(space[0x148:], "\x0d\x00\x01\x00\x5f\x00") // ACS, the last
	space[0x14e] = control
	return string(space)
}

// H100 lays out a host like a DGX H100, with more lines over it. Eight ConnectX-7 and H100, each
// pair behind a switch of its own, are on two NUMA nodes. Addresses, classes, distances and BARs
// are those of public listings of lspci and nvidia-smi topo -m; the bridges were written by hand.
func H100(t testing.TB, lines string) (root string) {
	t.Helper()
	root = t.TempDir()
	tree := `
@ proc
sys/kernel/osrelease: 5.15.0-1042-nvidia
driver/nvidia/version: NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  535.104.05  Release Build
@ sys
module/nvidia_peermem/
kernel/iommu_groups/
bus/pci/devices/0000:03:00.0/class: 0x030000
bus/pci/devices/0000:03:00.0/vendor: 0x1a03
`
	for i, bus := range []int{0x18, 0x40, 0x4f, 0x5e, 0x9a, 0xc0, 0xce, 0xdc} {
		ports := fmt.Sprintf("devices/pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/0000:%02x:", bus-3, bus-3, bus-2, bus-1)
		adapter, gpu := fmt.Sprintf("0000:%02x:00.0", bus), fmt.Sprintf("0000:%02x:00.0", bus+3)
		tree += fmt.Sprintf(`
@ sys/class/infiniband/mlx5_%[1]d
device -> ../../../%[3]s00.0/%[4]s
ports/1/state: 4: ACTIVE
@ sys/%[3]s00.0
config: %[6]s
%[4]s/class: 0x020700
%[4]s/vendor: 0x15b3
%[4]s/numa_node: %[2]d
%[4]s/driver -> ../../../../../../../bus/pci/drivers/mlx5_core
@ sys/%[3]s02.0
config: %[6]s
%[5]s/class: 0x030200
%[5]s/vendor: 0x10de
%[5]s/device: 0x2330
%[5]s/numa_node: %[2]d
%[5]s/driver -> ../../../../../../../bus/pci/drivers/nvidia
%[5]s/resource: 0x00000000e0000000 0x00000000e0ffffff 0x0000000000040200\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000023000000000 0x0000024fffffffff 0x000000000014220c
@ sys/bus/pci/devices
%[4]s -> ../../../%[3]s00.0/%[4]s
%[5]s -> ../../../%[3]s02.0/%[5]s
`, i, i/4, ports, adapter, gpu, Config(0))
	}
	Lay(t, root, tree+lines)
	return root
}
