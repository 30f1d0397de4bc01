package hardware_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/hardware"
	"rdma_exporter/internal/hardware/hardwaretest"
	"rdma_exporter/internal/state"
)

func withGPUs(t *testing.T, root, device string, gpus *hardware.GPUs) state.Hardware {
	t.Helper()
	o := options(root, device)
	o.GPUs = gpus
	h := hardware.Read(t.Context(), o)
	told(t, h)
	same(t, "", h.Failure)
	return h
}

// TestMatrix verifies that each adapter has one GPU behind its switch, four on its node and the
// others beyond, and that readings may share what they found.
func TestMatrix(t *testing.T) {
	t.Parallel()
	root, gpus := hardwaretest.H100(t, ""), new(hardware.GPUs)
	for i := range 8 {
		h := withGPUs(t, root, fmt.Sprint("mlx5_", i), gpus)
		has(t, 8, len(h.GPUs))
		same(t, i/4, h.Identity.NUMANode)
		for n, g := range h.GPUs {
			want := state.GPU{PCI: g.PCI, Driver: "nvidia", NUMANode: n / 4, BAR: 128 << 30, Memory: "nvidia_peermem", Distance: "SYS"}
			if i/4 == n/4 {
				want.Distance = "NODE"
			}
			if i == n {
				want.Distance, want.ACS = "PXB", "direct"
			}
			same(t, want, g, h.Device)
		}
	}
}

func TestGPUDirect(t *testing.T) {
	t.Parallel()
	const (
		port    = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0"
		gpu     = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:1b:00.0"
		devices = "sys/bus/pci/devices/0000:"
		grouped = port + "/0000:18:00.0/iommu_group -> ../../../../../../kernel/iommu_groups/7\n"
		mode    = "sys/kernel/iommu_groups/7/type: "
		version = "proc/driver/nvidia/version: "
		release = "proc/sys/kernel/osrelease: "
		is      = "none nvidia_peermem PXB direct 137438953472"
	)
	without := strings.ReplaceAll(is, "nvidia_peermem", "%s")
	bar := func(resource string) string { return gpu + "/resource: " + resource }
	huge := strings.Repeat("x", 70<<10)
	for _, tc := range []struct{ name, lines, want string }{
		{"as delivered", "", is},
		{"ACS on one port", port + "/config: " + hardwaretest.Config(0x1d), "none nvidia_peermem PXB redirect 137438953472 0000:17:00.0"},
		{"only completions", port + "/config: " + hardwaretest.Config(8), "none nvidia_peermem PXB redirect 137438953472 0000:17:00.0"},
		{"source validation redirects nothing", port + "/config: " + hardwaretest.Config(0x11), is},
		{"ACS on one port, unknown on the other", port + "/config: " + hardwaretest.Config(4) + "\n" + gpu + "/../config: x", "none nvidia_peermem PXB redirect 137438953472 0000:17:00.0"},
		{"no root", port + "/config: " + hardwaretest.Config(0x1d)[:64], "none nvidia_peermem PXB  137438953472"},
		{"a bridge that does not answer", port + "/config: " + strings.Repeat("\xff", 4095), "none nvidia_peermem PXB  137438953472"},
		{"a list without an end", port + "/config: " + strings.Repeat("\x10", 4095), "none nvidia_peermem PXB  137438953472"},
		{"a list that leads out", port + "/config: " + strings.Repeat("\x01", 4095), "none nvidia_peermem PXB  137438953472"},
		{"no capabilities", port + "/config: " + strings.Repeat("\x00", 4095), is},
		{"no configuration space", port + "/config/", "none nvidia_peermem PXB  137438953472"},
		{"IOMMU translates", grouped + mode + "DMA-FQ", strings.Replace(is, "none", "DMA-FQ", 1)},
		{"IOMMU does not", grouped + mode + "identity", strings.Replace(is, "none", "identity", 1)},
		{"odd IOMMU", grouped + mode + "x", strings.Replace(is, "none", "", 1)},
		{"huge IOMMU", grouped + mode + huge, strings.Replace(is, "none", "", 1)},
		{"groups that cannot be listed", "sys/kernel/iommu_groups: x", strings.Replace(is, "none", "", 1)},
		{"an old module", "REMOVE\nsys/module/nv_peer_mem/", fmt.Sprintf(without, "nv_peer_mem")},
		{"dma-buf", "REMOVE\n", fmt.Sprintf(without, "dma-buf")},
		{"an old kernel", "REMOVE\n" + release + "5.11.22", fmt.Sprintf(without, "none")},
		{"a kernel with backports", "REMOVE\n" + release + "4.18.0-553.el8_10.x86_64", fmt.Sprintf(without, "")},
		{"a closed driver on one", "REMOVE\n" + release + "4.18.0-553.el8_10.x86_64\n" + version + "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05", fmt.Sprintf(without, "none")},
		{"a closed driver", "REMOVE\n" + version + "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05", fmt.Sprintf(without, "none")},
		{"an odd kernel", "REMOVE\n" + release + "x", fmt.Sprintf(without, "")},
		{"an odd driver", "REMOVE\n" + version + "x", fmt.Sprintf(without, "")},
		{"modules that cannot be listed", "sys/module: x\n" + release + "5.11.22", fmt.Sprintf(without, "")},
		{"another adapter", "REMOVE\n" + release + "5.11.22\n" + port + "/0000:18:00.0/driver -> ../drivers/efa", fmt.Sprintf(without, "")},
		{"another GPU", gpu + "/driver -> ../drivers/amdgpu", fmt.Sprintf(without, "amdgpu")},
		{"a GPU without a driver", gpu + "/driver: x", fmt.Sprintf(without, "")},
		{"a small BAR", bar(`0xc0000000 0xcfffffff 0x14220c\n0xe000 0x80000000e000 0x40101`), "none nvidia_peermem PXB direct 268435456"},
		{"a ROM is no BAR", bar(`0xc0000000 0xcfffffff 0x14220c` + strings.Repeat(`\n0x0 0x0 0x0`, 5) + `\n0x0 0xffffffffff 0x200`), "none nvidia_peermem PXB direct 268435456"},
		{"BARs of all memory", bar(`0x0 0xffffffffffffff 0x200\n0x1 0x0 0x200`), "none nvidia_peermem PXB direct 0"},
		{"huge BARs", bar("0xc0000000 0xcfffffff 0x14220c" + huge), "none nvidia_peermem PXB direct 0"},
		{"the same bridge", devices + "1b:00.0 -> ../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:1b:00.0\n" + port + "/0000:1b:00.0/class: 0x120000", "none  PIX direct 0"},
		{"the same host bridge", devices + "1b:00.0 -> ../../../devices/pci0000:15/0000:15:02.0/0000:1b:00.0\nsys/devices/pci0000:15/0000:15:02.0/0000:1b:00.0/class: 0x120000", "none  PHB  0"},
		{"a virtual function", gpu + "/physfn -> ../0000:1c:00.0", "no GPU none"},
		{"no GPU at all", "@ sys/bus/pci/devices\n/\n0000:03:00.0/class: 0x030000\n0000:03:00.0/vendor: 0x1a03", "no GPU"},
		{"another display", gpu + "/vendor: 0x1a03", "no GPU none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := withGPUs(t, hardwaretest.H100(t, "@\n"+strings.Replace(tc.lines, "REMOVE\n", "sys/module/\n", 1)), "mlx5_0", new(hardware.GPUs))
			got := strings.TrimSpace("no GPU " + h.IOMMU)
			if i := slices.IndexFunc(h.GPUs, func(g state.GPU) bool { return g.PCI == "0000:1b:00.0" }); i >= 0 {
				g := h.GPUs[i]
				got = strings.TrimSpace(fmt.Sprint(h.IOMMU, " ", g.Memory, " ", g.Distance, " ", g.ACS, " ", g.BAR, " ", strings.Join(g.Redirecting, ",")))
			}
			same(t, strings.TrimSpace(tc.want), got)
		})
	}
}
