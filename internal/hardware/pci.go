package hardware

import (
	"path/filepath"
	"strconv"
	"strings"

	"rdma_exporter/internal/state"
)

const (
	// maxVFs is above the 65535 virtual functions that the specification allows.
	maxVFs = 1 << 16
	// maxNodes is above the number of NUMA nodes that Linux supports.
	maxNodes = 1 << 11
	// maxDepth limits the bridges on the way to the root of the bus.
	maxDepth = 64
)

// isPCI reports whether a name is the address of a PCI function, such as 0000:3b:00.0.
func isPCI(name string) bool {
	domain, rest, ok := strings.Cut(name, ":")
	if !ok || len(domain) < 4 || len(domain) > 8 || len(rest) != len("3b:00.0") || rest[2] != ':' || rest[5] != '.' {
		return false
	}
	for _, part := range []string{domain, rest[:2], rest[3:5], rest[6:]} {
		if _, err := strconv.ParseUint(part, 16, 32); err != nil {
			return false
		}
	}
	return true
}

// slot returns the address of a device in a slot, which is that of its function without the last
// part.
func slot(path string) string {
	address, _, _ := strings.Cut(filepath.Base(path), ".")
	return address
}

func (d *device) adapter() state.Adapter {
	a := state.Adapter{
		NUMANode: -1, BoardID: d.text(filepath.Join(d.dir, "board_id")), Model: d.text(filepath.Join(d.dir, "hca_type")),
	}
	if d.function == "" {
		return a
	}
	a.PCI = filepath.Base(d.function)
	a.NUMANode = d.node(d.function)
	a.DriverVersion = d.text(filepath.Join(d.function, "driver/module/version"))
	physical := d.role(&a)
	a.Slot = d.findSlot(physical)
	if link, ok := d.pciLink(physical); ok {
		a.Link = &link
		a.Bottleneck = d.bottleneck(physical, link)
	}
	a.AER = d.aer()
	return a
}

func (d *device) node(function string) int {
	if node, ok := d.int(filepath.Join(function, "numa_node")); ok && node >= 0 && node < maxNodes {
		return node
	}
	return -1
}

// role sets the role of the function in SR-IOV, and returns the directory of its physical
// function.
func (d *device) role(a *state.Adapter) (physical string) {
	if target, err := d.resolve(filepath.Join(d.function, "physfn")); err == nil && isPCI(filepath.Base(target)) {
		a.Role, a.Parent = "vf", filepath.Base(target)
		return target
	}
	if d.subfunction {
		a.Role, a.Parent = "sf", a.PCI
		return d.function
	}
	if most, ok := d.int(filepath.Join(d.function, "sriov_totalvfs")); ok && most > 0 {
		a.Role = "pf"
		if n, ok := d.int(filepath.Join(d.function, "sriov_numvfs")); ok && n > 0 && n < maxVFs {
			a.VFs = n
		}
	}
	return d.function
}

// findSlot returns the name of the slot of a function. An adapter with a switch on its board has
// the slot of the nearest bridge.
func (d *device) findSlot(function string) string {
	root := filepath.Join(d.Sysfs, "bus/pci/slots")
	names, err := d.list(root, maxEntries)
	if err != nil || len(names) == 0 {
		return ""
	}
	slots := map[string]string{}
	for _, name := range names {
		if address := d.text(filepath.Join(root, name, "address")); slots[address] == "" {
			slots[address] = clean(name)
		}
	}
	for dir, n := function, 0; isPCI(filepath.Base(dir)) && n < maxDepth; dir, n = filepath.Dir(dir), n+1 {
		if name := slots[slot(dir)]; name != "" {
			return name
		}
	}
	return ""
}

func (d *device) pciLink(function string) (link state.PCILink, ok bool) {
	link.Address = filepath.Base(function)
	link.Speed = d.speed(filepath.Join(function, "current_link_speed"))
	link.MaxSpeed = d.speed(filepath.Join(function, "max_link_speed"))
	link.Width = d.width(filepath.Join(function, "current_link_width"))
	link.MaxWidth = d.width(filepath.Join(function, "max_link_width"))
	return link, link.Speed > 0 && link.Width > 0
}

// speed reads a speed such as "16.0 GT/s PCIe", in transfers per second. Zero means unknown.
func (d *device) speed(path string) float64 {
	number, _, ok := strings.Cut(d.text(path), " GT/s")
	giga, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(giga > 0 && giga < 1e4) {
		return 0
	}
	return giga * 1e9
}

// width reads a number of lanes. Zero means unknown, for which the kernel has 0 and 255.
func (d *device) width(path string) int {
	if n, ok := d.int(path); ok && n > 0 && n <= 64 {
		return n
	}
	return 0
}

// bottleneck returns the slowest link between a function and the root of the bus, if it is slower
// than the function's own. It is named by the end nearer to the function.
func (d *device) bottleneck(function string, own state.PCILink) *state.PCILink {
	var slowest *state.PCILink
	least := own.Speed * float64(own.Width)
	for dir, n := filepath.Dir(function), 0; isPCI(filepath.Base(dir)) && n < maxDepth; dir, n = filepath.Dir(dir), n+1 {
		link, ok := d.pciLink(dir)
		if all := link.Speed * float64(link.Width); ok && all < least {
			slowest, least = &link, all
		}
	}
	return slowest
}

// aer reads the errors that the bus counted for the function. Nil means that it counts none.
func (d *device) aer() *state.AER {
	var a state.AER
	var counted bool
	for name, total := range map[string]*uint64{"correctable": &a.Correctable, "nonfatal": &a.Nonfatal, "fatal": &a.Fatal} {
		content, _ := d.file(filepath.Join(d.function, "aer_dev_"+name))
		for line := range strings.Lines(content) {
			what, count, ok := strings.Cut(strings.TrimSpace(line), " ")
			if !ok || !strings.HasPrefix(what, "TOTAL_ERR_") {
				continue
			}
			if n, err := strconv.ParseUint(strings.TrimSpace(count), 10, 64); err == nil {
				*total, counted = n, true
			}
		}
	}
	if !counted {
		return nil
	}
	return &a
}
