package hardware

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"rdma_exporter/internal/state"
)

// GPUs are the accelerators of a host. The first reading that needs them finds them for all.
type GPUs struct {
	once sync.Once
	all  []state.GPU
	dirs []string // in sysfs, without symbolic links
}

// find reads only what the kernel has in memory, so that it cannot hang for all readings.
func (g *GPUs) find(d *device) {
	const maxGPUs = 64
	root := filepath.Join(d.Sysfs, "bus/pci/devices")
	names, _ := d.list(root, maxEntries)
	for _, name := range names {
		dir := filepath.Join(root, name)
		class := d.text(filepath.Join(dir, "class"))
		// 0x0300 is VGA, 0x0302 a 3D controller, 0x0380 older ones of AMD. BMCs have displays too.
		display := strings.HasPrefix(class, "0x03")
		if !isPCI(name) || len(g.all) == maxGPUs || !display && !strings.HasPrefix(class, "0x1200") {
			continue
		}
		vendor := d.text(filepath.Join(dir, "vendor"))
		target, err := d.resolve(dir)
		if err != nil || display && vendor != "0x10de" && vendor != "0x1002" || d.link(filepath.Join(dir, "physfn")) != "" {
			continue
		}
		gpu := state.GPU{PCI: name, Driver: d.link(filepath.Join(dir, "driver")), NUMANode: d.node(dir), BAR: d.bar(dir)}
		g.all, g.dirs = append(g.all, gpu), append(g.dirs, target)
	}
}

// bar returns the size of the largest BAR in memory. Zero means unknown.
func (d *device) bar(dir string) (largest int64) {
	const bars, memory, limit = 6, 0x200, 1 << 48 // IORESOURCE_MEM
	content, _ := d.file(filepath.Join(dir, "resource"))
	for n, line := range strings.Split(content, "\n") {
		var first, last, flags uint64
		fields, _ := fmt.Sscanf(line, "0x%x 0x%x 0x%x", &first, &last, &flags)
		if n < bars && fields == 3 && flags&memory != 0 && last > first && last-first < limit {
			largest = max(largest, int64(last-first+1))
		}
	}
	return largest
}

// readGPUs reads how the adapter reaches the accelerators of the host, if there are any.
func (d *device) readGPUs(h *state.Hardware) {
	if d.GPUs == nil || d.function == "" {
		return
	}
	d.GPUs.once.Do(func() { d.GPUs.find(d) })
	if len(d.GPUs.all) == 0 {
		return
	}
	h.IOMMU, h.GPUs = d.iommu(), slices.Clone(d.GPUs.all)
	memory := map[string]string{"nvidia": d.nvidiaMemory(h.Driver), "amdgpu": "amdgpu"}
	for i := range h.GPUs {
		gpu := &h.GPUs[i]
		name, bridges := distance(d.function, d.GPUs.dirs[i], h.Identity.NUMANode == gpu.NUMANode)
		gpu.Distance, gpu.Memory = name, memory[gpu.Driver]
		if gpu.SharesSwitch() {
			gpu.ACS = "direct"
		}
		for _, dir := range bridges {
			acs, err := d.capability(dir, capACS, true)
			if acs != nil && acs[6]&redirects != 0 {
				gpu.ACS, gpu.Redirecting = "redirect", append(gpu.Redirecting, filepath.Base(dir))
			} else if err != nil && gpu.ACS == "direct" {
				gpu.ACS = ""
			}
		}
	}
}

// distance compares the directories of two functions, and returns those of bridges above only one.
func distance(a, b string, sameNode bool) (name string, bridges []string) {
	x, y, shared := strings.Split(a, "/"), strings.Split(b, "/"), 0
	for shared < min(len(x), len(y))-1 && x[shared] == y[shared] {
		shared++
	}
	for _, path := range [][]string{x, y} {
		for n := shared + 1; n < len(path); n++ {
			bridges = append(bridges, strings.Join(path[:n], "/"))
		}
	}
	switch top := x[max(shared, 1)-1]; {
	case isPCI(top) && len(bridges) == 0:
		return "PIX", nil
	case isPCI(top):
		return "PXB", bridges
	case strings.HasPrefix(top, "pci"):
		return "PHB", nil
	case sameNode:
		return "NODE", nil
	}
	return "SYS", nil
}

func (d *device) iommu() string {
	group := filepath.Join(d.function, "iommu_group")
	mode := d.text(filepath.Join(group, "type"))
	if slices.Contains([]string{"identity", "DMA", "DMA-FQ", "unmanaged", "blocked"}, mode) {
		return mode
	}
	if _, err := d.list(filepath.Join(d.Sysfs, "kernel/iommu_groups"), 1); err != nil || d.link(group) != "" {
		return ""
	}
	return "none"
}

// nvidiaMemory returns what lets an adapter with a driver register memory of NVIDIA's GPUs.
func (d *device) nvidiaMemory(driver string) string {
	modules, err := d.list(filepath.Join(d.Sysfs, "module"), maxEntries)
	for _, name := range []string{"nvidia_peermem", "nv_peer_mem"} {
		if slices.Contains(modules, name) {
			return name
		}
	}
	var major, minor int
	release := d.text(filepath.Join(d.Procfs, "sys/kernel/osrelease"))
	_, odd := fmt.Sscanf(release, "%d.%d", &major, &minor)
	version := d.text(filepath.Join(d.Procfs, "driver/nvidia/version"))
	recent := major > 5 || major == 5 && minor >= 12 // ib_umem_dmabuf_get
	open := strings.Contains(version, "Open Kernel Module")
	if recent && open {
		return "dma-buf"
	}
	// Kernels such as 4.18.0-553.el8 have parts of newer ones, and no number says which.
	old := odd == nil && !recent && !strings.Contains(release, ".el")
	// Drivers of other adapters, such as efa, may have a way of their own.
	if err == nil && driver == "mlx5_core" && (old || !open && strings.HasPrefix(version, "NVRM")) {
		return "none"
	}
	return ""
}
