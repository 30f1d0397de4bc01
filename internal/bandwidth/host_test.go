package bandwidth_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/bandwidth"
	"rdma_exporter/internal/hardware"
	"rdma_exporter/internal/hardware/hardwaretest"
	"rdma_exporter/internal/health/gpudirect"
	"rdma_exporter/internal/state"
)

// adapterDir is the directory of an adapter of a host like a DGX H100: below a root port, and an
// upstream and a downstream port of a switch.
func adapterDir(i int) string {
	bus := []int{0x18, 0x40, 0x4f, 0x5e, 0x9a, 0xc0, 0xce, 0xdc}[i]
	return fmt.Sprintf("sys/devices/pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/0000:%02x:00.0/0000:%02x:00.0", bus-3, bus-3, bus-2, bus-1, bus)
}

// express is the configuration space of an adapter: a capability of another kind, then PCI Express,
// whose Device Control has relaxed ordering, 256 bytes of payload and reads of 4096, or other bits.
func express(control string) string {
	space := []byte(strings.Repeat("\x00", 256))
	space[0x34] = 0x40
	copy(space[0x40:], "\x11\x60")
	copy(space[0x60:], "\x10\x00\x02\x00\xe2\x8f\x2c\x10"+control)
	return string(space)
}

// link has the files of a link as it was trained. All are made for 16 lanes of 32 GT/s.
func link(dir, speed string, width int) string {
	return fmt.Sprintf("@ %s\ncurrent_link_speed: %s GT/s PCIe\ncurrent_link_width: %d\nmax_link_speed: 32.0 GT/s PCIe\nmax_link_width: 16\n", dir, speed, width)
}

// h100 lays out the host, with what public listings of lspci and sysfs have of its ConnectX-7, and
// more lines over it.
func h100(t *testing.T, more string) (root string) {
	t.Helper()
	lines := ""
	for i := range 8 {
		lines += fmt.Sprintf("@ sys/class/infiniband/mlx5_%d\nboard_id: MT_0000000838\nhca_type: MT4129\nports/1/rate: 400 Gb/sec (4X NDR)\n", i)
		for dir := adapterDir(i); strings.Contains(filepath.Base(dir), "."); dir = filepath.Dir(dir) {
			lines += link(dir, "32.0", 16)
		}
		lines += "@ " + adapterDir(i) + "\nconfig: " + express("\x30\x50") + "\n"
	}
	return hardwaretest.H100(t, lines+more)
}

// acs turns ACS on in the downstream ports of each switch, as Linux does with an IOMMU.
func acs() (lines string) {
	for i := range 8 {
		port := strings.TrimSuffix(filepath.Dir(adapterDir(i)), "00.0")
		lines += fmt.Sprintf("@\n%[1]s00.0/config: %[2]s\n%[1]s02.0/config: %[2]s\n", port, hardwaretest.Config(0x1d))
	}
	return lines
}

// groups puts each adapter into an IOMMU group of a mode.
func groups(mode string) (lines string) {
	for i := range 8 {
		lines += fmt.Sprintf("@\n%s/iommu_group -> ../../../../../../kernel/iommu_groups/%[2]d\nsys/kernel/iommu_groups/%[2]d/type: %s\n", adapterDir(i), i, mode)
	}
	return lines
}

// TestHost verifies that each problem of a host is one finding of each adapter that has it, with its
// reason, and that a problem of GPU-direct alone is none of the memory's.
func TestHost(t *testing.T) {
	t.Parallel()
	all := func(finding string) (list []string) {
		for i := range 8 {
			list = append(list, fmt.Sprintf("mlx5_%d %s", i, finding))
		}
		return list
	}
	config := func(i int, control string) string {
		return "@ " + adapterDir(i) + "\nconfig: " + express(control) + "\n"
	}
	above := func(i int) string { return filepath.Dir(filepath.Dir(adapterDir(i))) }
	for _, tc := range []struct {
		name, lines string
		slow        map[int]float64 // Gb/s of adapters. Others move 392.
		far         float64         // of what they move, with the other node's memory
		want, gpus  []string
	}{
		{"as delivered", "", nil, 0.97, nil, nil},
		{"a link with half its lanes", link(adapterDir(3), "32.0", 8), map[int]float64{3: 228}, 1, []string{"mlx5_3 bandwidth_low link 0000:5e:00.0 has 32 of 32 GT/s and 8 of 16 lanes"}, nil},
		{"a slow link of a switch", link(above(5), "8.0", 16), map[int]float64{5: 112}, 1, []string{"mlx5_5 bandwidth_low link 0000:be:00.0 has 8 of 32 GT/s"}, nil},
		{"a narrow link that carries enough", link(adapterDir(3), "16.0", 16) + "@ sys/class/infiniband/mlx5_3\nports/1/rate: 200 Gb/sec (2X NDR)\n", map[int]float64{3: 196}, 1, nil, nil},
		{"small reads", config(1, "\x30\x00"), map[int]float64{1: 170}, 1, []string{"mlx5_1 bandwidth_low max_read_request 128 bytes"}, nil},
		{"ACS", acs(), nil, 0.97, nil, all("gpudirect_slow acs")},
		{
			"ACS and the IOMMU", acs() + groups("DMA-FQ"),
			map[int]float64{2: 250, 6: 240},
			1,
			[]string{"mlx5_2 bandwidth_low iommu DMA-FQ", "mlx5_6 bandwidth_low iommu DMA-FQ"},
			slices.Sorted(slices.Values(append(all("gpudirect_slow acs"), all("gpudirect_slow iommu")...))),
		},
		{"ACS and strict ordering", acs() + groups("identity") + config(7, "\x20\x50"), map[int]float64{7: 205}, 1, []string{"mlx5_7 bandwidth_low relaxed_ordering off"}, all("gpudirect_slow acs")},
		{"ACS and no other reason", acs(), map[int]float64{0: 300}, 1, []string{"mlx5_0 bandwidth_low acs_redirect redirects"}, all("gpudirect_slow acs")},
		{"strict ordering with far memory", config(4, "\x20\x50"), nil, 0.5, append(append(all("numa_asymmetric unknown")[:4], "mlx5_4 numa_asymmetric relaxed_ordering off"), all("numa_asymmetric unknown")[5:]...), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			root := h100(t, tc.lines)
			var measured []state.Bandwidth
			var gpus []string
			for i, name := range hardwaretest.Devices(t, root) {
				sysfs := filepath.Join(root, "sys")
				h := hardware.Read(t.Context(), hardware.Options{Sysfs: sysfs, Procfs: filepath.Join(root, "proc"), Device: name, GPUs: new(hardware.GPUs)})
				gpudirect.Problems(&h, func(kind, entry, _, _ string, _ bool) { gpus = append(gpus, name+" "+kind+" "+entry) })
				b := state.Bandwidth{Device: name, Hardware: &h, PCI: hardware.PathToMemory(t.Context(), sysfs, h.Identity.PCI)}
				for node := range 2 {
					rate := cmp.Or(tc.slow[i], 392) * 1e9 / 8
					if node != h.Identity.NUMANode {
						rate *= tc.far
					}
					b.Cells = append(b.Cells, state.BandwidthCell{Port: 1, Node: node, Operation: "write", Size: 1 << 20, QPs: 1, BytesPerSecond: rate})
				}
				measured = append(measured, b)
			}
			found := bandwidth.Evaluate(measured)
			if len(found) != len(tc.want) || !slices.Equal(gpus, tc.gpus) {
				t.Fatalf("%+v, want %q, and of GPU-direct %q, want %q", found, tc.want, gpus, tc.gpus)
			}
			for i, f := range found {
				want, detail, _ := strings.Cut(tc.want[i], " "+f.Reason)
				if want != f.Device+" "+f.Kind || !strings.Contains(f.Detail, strings.TrimSpace(detail)) {
					t.Errorf("%+v, want %q", f, tc.want[i])
				}
			}
		})
	}
}
