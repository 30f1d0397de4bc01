package gpudirect_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/internal/hardware"
	"rdma_exporter/internal/hardware/hardwaretest"
	"rdma_exporter/internal/health/gpudirect"
)

// TestProblems verifies that each problem is reported once, of the adapters that have it, and that
// nothing is a warning unless a switch is shared.
func TestProblems(t *testing.T) {
	t.Parallel()
	const (
		port      = "sys/devices/pci0000:3d/0000:3d:01.0/0000:3e:00.0/0000:3f:0"
		second    = "0000:43:00.0"
		small     = "gpudirect_slow bar false: The largest BAR is smaller than 1 GiB: GPU " + second + "."
		translate = "gpudirect_slow iommu false: The IOMMU translates what goes between the adapter and GPU " + second + ", although they share a switch."
		redirect  = "gpudirect_slow acs true: ACS sends what goes between the adapter and GPU " + second + " through the CPU, although they share a switch. Bridges that redirect: 0000:3f:00.0, 0000:3f:02.0."
		without   = "gpudirect_unavailable  %v: The adapter cannot register memory of GPU 0000:1b:00.0, " + second + ", 0000:52:00.0, 0000:61:00.0, 0000:9d:00.0, 0000:c3:00.0, 0000:d1:00.0, 0000:df:00.0: the kernel has neither a peer memory module nor dma-buf for it."
		old       = "sys/module/\nproc/sys/kernel/osrelease: 4.18.0\n"
		moved     = "@ sys/class/infiniband\nmlx5_1/device -> ../../../devices/pci0000:01/0000:01:00.0\n@ sys/devices/pci0000:01/0000:01:00.0\ndriver -> ../../mlx5_core"
	)
	acs := port + "0.0/config: " + hardwaretest.Config(0x1d) + "\n" + port + "2.0/config: " + hardwaretest.Config(0x1d) + "\n"
	group := port + "0.0/0000:40:00.0/iommu_group -> ../../../../../../kernel/iommu_groups/7\nsys/kernel/iommu_groups/7/type: "
	for _, tc := range []struct{ name, lines, others, one string }{
		{"as delivered", "", "", ""},
		{"ACS on one switch", acs, "", redirect},
		{"ACS for a virtual machine", acs + port + "2.0/" + second + "/driver -> ../vfio-pci\n" + group + "DMA", "", ""},
		{"IOMMU translates", group + "DMA", "", translate},
		{"IOMMU passes through", group + "identity", "", ""},
		{"both", acs + group + "DMA-FQ", "", redirect + "\n" + translate},
		{"a small BAR", port + "2.0/" + second + "/resource: 0xc0000000 0xcfffffff 0x200", small, small},
		{"no peer memory", old, fmt.Sprintf(without, true), fmt.Sprintf(without, true)},
		{"no switch that is shared", old + moved, fmt.Sprintf(without, true), fmt.Sprintf(without, false)},
		{"all unknown", "sys/module: x\nsys/kernel/iommu_groups: x\n" + port + "0.0/config: x\n" + port + "2.0/" + second + "/resource: x", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			root, gpus := hardwaretest.H100(t, "@\n"+tc.lines), new(hardware.GPUs)
			for _, device := range hardwaretest.Devices(t, root) {
				h := hardware.Read(t.Context(), hardware.Options{Sysfs: filepath.Join(root, "sys"), Procfs: filepath.Join(root, "proc"), Device: device, GPUs: gpus})
				var got []string
				gpudirect.Problems(&h, func(kind, entry, _, message string, warning bool) {
					got = append(got, fmt.Sprintf("%s %s %v: %s", kind, entry, warning, message))
				})
				want := tc.others
				if device == "mlx5_1" {
					want = tc.one
				}
				if all := strings.Join(got, "\n"); all != want {
					t.Errorf("%s: got %q instead of %q", device, all, want)
				}
			}
		})
	}
}
