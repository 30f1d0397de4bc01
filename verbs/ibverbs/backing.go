//go:build cgo && linux

package ibverbs

// #include "shim.h"
// #include "shim_dmabuf.h"
import "C"

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/verbs"
)

// RegMRBackedBy implements verbs.PD (ibv_reg_mr, ibv_reg_dmabuf_mr).
func (p *pd) RegMRBackedBy(b verbs.Backing, size int, access verbs.Access) (verbs.MR, error) {
	if err := p.use(); err != nil {
		return nil, err
	}
	unit := map[verbs.Backing]int{
		verbs.BackingPages: 1, verbs.BackingHugePages: verbs.HugePageSize, verbs.BackingDMABuf: os.Getpagesize(),
	}[b]
	if unit == 0 || size <= 0 || size%unit != 0 {
		return nil, p.dev.invalid(b.Verb(), "a buffer of %d bytes in units of %d", size, unit)
	}
	if b == verbs.BackingDMABuf {
		return p.regDMABuf(size, access)
	}
	// All pages are there before the clock starts.
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_POPULATE
	if b == verbs.BackingHugePages {
		if err := spareHugePages(size / verbs.HugePageSize); err != nil {
			return nil, err
		}
		flags |= unix.MAP_HUGETLB | unix.MAP_HUGE_2MB
	}
	mapping, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, fmt.Errorf("%w: map %d bytes: %w", verbs.ErrNoBacking, size, err)
	}
	return p.register(verbs.RegMR, mapping, size, func(m **C.struct_ibv_mr, ns *C.int64_t) C.int {
		return C.shim_reg_mr(p.ptr, unsafe.Pointer(&mapping[0]), C.size_t(size), C.int(access), m, ns)
	})
}

// regDMABuf registers a dma-buf. The region keeps it alive without its descriptor.
func (p *pd) regDMABuf(size int, access verbs.Access) (verbs.MR, error) {
	fd, err := newDMABuf(size)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	mapping, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%w: map a dma-buf of %d bytes: %w", verbs.ErrNoBacking, size, err)
	}
	return p.register(verbs.RegDMABufMR, mapping, size, func(m **C.struct_ibv_mr, ns *C.int64_t) C.int {
		return C.shim_reg_dmabuf_mr(p.ptr, C.size_t(size), C.uint64_t(uintptr(unsafe.Pointer(&mapping[0]))), C.int(fd), C.int(access), m, ns)
	})
}

// hugePages is where the kernel tells of its pool of huge pages.
const hugePages = "/sys/kernel/mm/hugepages/hugepages-2048kB"

// spared is how many huge pages are left alone, for programs that take some meanwhile.
const spared = 16

// spareHugePages returns an error unless the pool has so many pages that nobody has or was
// promised, and those that are spared.
func spareHugePages(n int) error {
	var count [2]int
	for i, name := range []string{"free_hugepages", "resv_hugepages"} {
		b, err := os.ReadFile(filepath.Join(hugePages, name))
		if err == nil {
			count[i], err = strconv.Atoi(string(bytes.TrimSpace(b)))
		}
		if err != nil {
			return fmt.Errorf("%w: read the pool of huge pages of 2 MiB: %w", verbs.ErrNoBacking, err)
		}
	}
	if free := count[0] - count[1]; free < n+spared {
		return fmt.Errorf("%w: %d huge pages of 2 MiB are free, and %d are left alone", verbs.ErrNoBacking, max(free, 0), spared)
	}
	return nil
}

// newDMABuf returns the descriptor of a new dma-buf of the host's memory.
func newDMABuf(size int) (int, error) {
	fd, first := fromUdmabuf(size)
	if first == nil {
		return fd, nil
	}
	fd, second := fromHeap(size)
	if second == nil {
		return fd, nil
	}
	return -1, fmt.Errorf("%w: no dma-buf: %w; %w", verbs.ErrNoBacking, first, second)
}

// fromUdmabuf makes a dma-buf of a file in memory.
func fromUdmabuf(size int) (int, error) {
	const device = "/dev/udmabuf"
	udmabuf, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return -1, err
	}
	defer func() { _ = udmabuf.Close() }()
	memfd, err := unix.MemfdCreate("rdma_exporter", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, fmt.Errorf("make a file in memory: %w", err)
	}
	defer func() { _ = unix.Close(memfd) }()
	if err := unix.Ftruncate(memfd, int64(size)); err != nil {
		return -1, fmt.Errorf("give a file in memory %d bytes: %w", size, err)
	}
	if _, err := unix.FcntlInt(uintptr(memfd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		return -1, fmt.Errorf("seal a file in memory: %w", err)
	}
	var fd C.int
	if errno := C.shim_udmabuf(C.int(udmabuf.Fd()), C.int(memfd), C.uint64_t(size), &fd); errno != 0 {
		return -1, fmt.Errorf("ask %s: %w", device, syscall.Errno(errno))
	}
	return int(fd), nil
}

// fromHeap takes a dma-buf of the heap of the system's memory.
func fromHeap(size int) (int, error) {
	const device = "/dev/dma_heap/system"
	heap, err := os.Open(device)
	if err != nil {
		return -1, err
	}
	defer func() { _ = heap.Close() }()
	var fd C.int
	if errno := C.shim_dma_heap(C.int(heap.Fd()), C.uint64_t(size), &fd); errno != 0 {
		return -1, fmt.Errorf("ask %s: %w", device, syscall.Errno(errno))
	}
	return int(fd), nil
}
