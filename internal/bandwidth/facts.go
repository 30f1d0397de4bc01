package bandwidth

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"rdma_exporter/internal/state"
)

// node is a NUMA node with memory.
type node struct {
	number int
	cpus   []int
}

func nodesOf(sysfs string) (nodes []node, err error) {
	dir := filepath.Join(sysfs, "devices/system/node")
	for _, n := range readList(filepath.Join(dir, "has_normal_memory")) {
		nodes = append(nodes, node{n, readList(filepath.Join(dir, fmt.Sprintf("node%d/cpulist", n)))})
	}
	if len(nodes) == 0 {
		err = fmt.Errorf("%s names no NUMA node with memory", dir)
	}
	return nodes, err
}

// readList reads a list of the kernel, such as 0-3,8. It is empty if it cannot be read.
func readList(path string) (list []int) {
	content, _ := os.ReadFile(path)
	for part := range strings.SplitSeq(string(content), ",") {
		from, to := 0, 0
		if n, _ := fmt.Sscanf(part, "%d-%d", &from, &to); n == 0 {
			continue
		} else if n == 1 {
			to = from
		}
		for ; from >= 0 && from <= to && from < 1<<16; from++ {
			list = append(list, from)
		}
	}
	return list
}

// readPath reads the configuration of a PCI function and of the bridges above it. Only root can
// read more than its first 64 bytes.
func readPath(sysfs, function string) (p state.PCIPath) {
	dir, err := filepath.EvalSymlinks(filepath.Join(sysfs, "bus/pci/devices", function))
	if function == "" || err != nil {
		return p
	}
	group, _ := os.ReadFile(filepath.Join(dir, "iommu_group/type"))
	p.IOMMU = strings.TrimSpace(string(group))
	c := config(dir)
	at := int(c[0x34])
	for n := 0; n < 48 && at != 0 && c[at] != 0x10; n++ {
		at = int(c[at+1])
	}
	if control := binary.LittleEndian.Uint16(c[at+8:]); at != 0 { // PCI Express: Device Control
		p.MaxPayload, p.MaxReadRequest, p.RelaxedOrdering = 128<<(control>>5&7), 128<<(control>>12&7), new(control&(1<<4) != 0)
	}
	for dir = filepath.Dir(dir); strings.Contains(filepath.Base(dir), "."); dir = filepath.Dir(dir) {
		c, at = config(dir), 0x100
		for n := 0; n < 64 && c[at] != 0x0d && at != 0; n++ {
			at = int(binary.LittleEndian.Uint16(c[at+2:]) >> 4)
		}
		if at != 0 { // Access Control Services: request and completion redirect
			p.ACSRedirect = new(c[at+6]&0x0c != 0 || p.ACSRedirect != nil && *p.ACSRedirect)
		}
	}
	return p
}

// config returns the configuration of a function, and zeros, which end its lists.
func config(dir string) []byte {
	c, _ := os.ReadFile(filepath.Join(dir, "config"))
	return append(c, make([]byte, 4200)...)
}
