package simulated

import (
	"fmt"
	"math"
	"os"
	"syscall"

	"rdma_exporter/verbs"
)

// Registration says which memory can be registered on a device. The zero value is a
// process that may pin any amount, a host without huge pages and a device that takes no
// dma-buf.
type Registration struct {
	// Memlock is how many bytes the regions of a process may have together, as
	// RLIMIT_MEMLOCK has it: more is ENOMEM. 0 is no limit.
	Memlock int64 `yaml:"memlock_bytes,omitempty"`
	// HugePages is how many huge pages of 2 MiB the host has free.
	HugePages int `yaml:"huge_pages,omitempty"`
	// DMABuf is whether the device takes a dma-buf; if it does not, ibv_reg_dmabuf_mr
	// fails with EOPNOTSUPP.
	DMABuf bool `yaml:"dmabuf,omitempty"`
}

// lengthOfMR is the name that the size of a memory region has in a condition.
const lengthOfMR = "length"

func (v *validator) registration(at path, r Registration) {
	v.within(at.to("memlock_bytes"), int(r.Memlock), 0, math.MaxInt)
	v.within(at.to("huge_pages"), r.HugePages, 0, math.MaxInt32)
}

// RegMRBackedBy implements verbs.PD (ibv_reg_mr, ibv_reg_dmabuf_mr). The memory is that of
// RegMR, whatever it is said to be made of.
func (p *pd) RegMRBackedBy(b verbs.Backing, size int, access verbs.Access) (verbs.MR, error) {
	if err := p.use(); err != nil {
		return nil, err
	}
	unit := map[verbs.Backing]int{
		verbs.BackingPages: 1, verbs.BackingHugePages: verbs.HugePageSize, verbs.BackingDMABuf: os.Getpagesize(),
	}[b]
	if unit == 0 || size <= 0 || size%unit != 0 {
		return nil, p.invalid(b.Verb(), "a buffer of %d bytes in units of %d", size, unit)
	}
	if free := p.dev.hw.behaviour.profile.Registration.HugePages; b == verbs.BackingHugePages && free <= size/unit {
		return nil, fmt.Errorf("%w: %d huge pages of 2 MiB are free, and one is left alone", verbs.ErrNoBacking, free)
	}
	return p.register(b.Verb(), size, access)
}

// registers tells why the device does not register a buffer.
func (h *hardware) registers(v verbs.Verb, size int) *failure {
	r := h.behaviour.profile.Registration
	if v == verbs.RegDMABufMR && !r.DMABuf {
		return fail(syscall.EOPNOTSUPP, "the device takes no dma-buf")
	}
	if r.Memlock == 0 {
		return nil
	}
	pinned := wholePages(size)
	for _, m := range h.mrs {
		pinned += wholePages(len(m.buf))
	}
	if pinned > r.Memlock {
		return &failure{errno: syscall.ENOMEM} // The kernel does not say why, either.
	}
	return nil
}

// wholePages rounds a size up to whole pages.
func wholePages(size int) int64 {
	page := int64(os.Getpagesize())
	return (int64(size) + page - 1) / page * page
}
