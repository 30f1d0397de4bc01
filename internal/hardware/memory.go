package hardware

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
)

// NUMANodes returns the CPUs of each NUMA node with memory. Some nodes have no CPU. It is empty if
// sysfs names no node.
func NUMANodes(ctx context.Context, sysfs string) map[int][]int {
	r, dir, nodes := reader{ctx: ctx}, filepath.Join(sysfs, "devices/system/node"), make(map[int][]int)
	list := func(name string) []int {
		content, _ := r.file(filepath.Join(dir, name))
		return slices.Sorted(maps.Keys(parseCPUs(strings.TrimSpace(content))))
	}
	for _, n := range list("has_normal_memory") {
		nodes[n] = list(fmt.Sprintf("node%d/cpulist", n))
	}
	return nodes
}

// The capabilities that are read.
const (
	capExpress, capACS = 0x10, 0x0d
	redirects          = 0x0c // requests and completions, in the control of ACS
)

// PathToMemory reads how data passes from a PCI function to memory. Only root can read more than
// the mode of the IOMMU.
func PathToMemory(ctx context.Context, sysfs, function string) (p state.PCIPath) {
	d := device{reader: reader{ctx: ctx}, Options: Options{Sysfs: sysfs}}
	var err error
	if d.function, err = d.resolve(filepath.Join(sysfs, "bus/pci/devices", function)); err != nil || !isPCI(function) {
		return p
	}
	p.IOMMU = d.iommu()
	if c, err := d.capability(d.function, capExpress, false); err == nil && c != nil {
		control := binary.LittleEndian.Uint16(c[8:])
		p.MaxPayload, p.MaxReadRequest, p.RelaxedOrdering = 128<<(control>>5&7), 128<<(control>>12&7), new(control&(1<<4) != 0)
	}
	for dir, n := filepath.Dir(d.function), 0; isPCI(filepath.Base(dir)) && n < maxDepth; dir, n = filepath.Dir(dir), n+1 {
		if c, err := d.capability(dir, capACS, true); err == nil && c != nil {
			p.ACSRedirect = new(c[6]&redirects != 0 || p.ACSRedirect != nil && *p.ACSRedirect)
		}
	}
	return p
}

// capability returns the first bytes of a capability of a function. Nil means that it has none. It
// reads as little as possible, since the kernel asks the function for each word. Without
// CAP_SYS_ADMIN the configuration space ends before the first capability.
func (r *reader) capability(function string, id uint16, extended bool) ([]byte, error) {
	const pointer, first, firstExtended, most = 0x34, 0x40, 0x100, 64
	f, done, err := r.open(filepath.Join(function, "config"))
	if err != nil {
		return nil, err
	}
	defer done()
	at, b := int64(firstExtended), make([]byte, 12)
	if !extended {
		if _, err := f.ReadAt(b[:1], pointer); err != nil {
			return nil, err
		}
		at = int64(b[0] &^ 3)
	}
	for n := 0; at >= first && n < most; n++ {
		if _, err := f.ReadAt(b, at); err != nil {
			return nil, err
		}
		header := binary.LittleEndian.Uint32(b)
		own, next := uint16(header), int64(header>>20)
		if !extended {
			own, next = uint16(b[0]), int64(b[1])
		}
		if own == id {
			return b, nil
		}
		at = next &^ 3
	}
	if at != 0 {
		return nil, errors.New("not a list of capabilities")
	}
	return nil, nil
}
