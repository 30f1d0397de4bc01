package simulated

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/verbs"
)

type mr struct {
	object
	pd     *pd
	access verbs.Access
	buf    []byte // from mmap; nil after Close
	addr   uint64
	key    uint32
}

// RegMR implements verbs.PD (ibv_reg_mr). The simulated verb checks size and access. The
// memory is the host's: if it has none, the error matches syscall.ENOMEM.
func (p *pd) RegMR(size int, access verbs.Access, _ ...int) (verbs.MR, error) {
	if err := p.use(); err != nil {
		return nil, err
	}
	hw := p.dev.hardware
	if size <= 0 {
		return nil, p.invalid(verbs.RegMR, "a buffer of %d bytes", size)
	}
	if limit := hw.attr.Limits.MaxMRSize; uint64(size) > limit {
		return nil, p.invalid(verbs.RegMR, "a buffer of %d bytes is above max_mr_size %d", size, limit)
	}
	// Mapped like the memory of real regions, so that its use after Close shows here, too.
	buf, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, &verbs.Error{Verb: verbs.RegMR, Device: hw.name, Errno: syscall.ENOMEM, Detail: fmt.Errorf("map the buffer: %w", err)}
	}
	m := &mr{
		object: object{kind: kindMR, dev: p.dev}, pd: p, access: access,
		buf: buf[:size:size], addr: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(buf)))),
	}
	err = hw.call(verbs.RegMR, Call{Length: size}, func(int) *failure {
		pinned := wholePages(size)
		for _, m := range hw.mrs {
			pinned += wholePages(len(m.buf))
		}
		if limit := hw.profile.Registration.Memlock; limit > 0 && pinned > limit {
			return &failure{errno: syscall.ENOMEM} // the kernel gives no reason either
		}
		if f := hw.admit(&m.object, 0, &p.dev.object, &p.object); f != nil {
			return f
		}
		hw.lastKey++
		m.key = hw.lastKey<<8 | 1 // never 0, and unlike an index
		hw.mrs[m.key] = m
		return nil
	})
	if err != nil {
		_ = unix.Munmap(buf) // the error that matters is the verb's
		return nil, err
	}
	return m, nil
}

func (m *mr) Bytes() []byte { return m.buf }

func (m *mr) SGE(offset, length int) verbs.SGE {
	part := m.Bytes()[offset : offset+length]
	return verbs.SGE{Addr: m.addr + uint64(offset), Length: uint32(len(part)), LKey: m.key, RKey: m.key}
}

func (m *mr) Close() error {
	if m.closed {
		return nil
	}
	if err := m.destroy(verbs.DeregMR, func() { delete(m.dev.mrs, m.key) }); err != nil {
		return err
	}
	buf := m.buf
	m.buf = nil
	if err := unix.Munmap(buf[:cap(buf)]); err != nil {
		return fmt.Errorf("unmap the buffer of a memory region of %s: %w", m.dev.name, err)
	}
	return nil
}

// within returns the memory of an element, which must be in the region.
func (m *mr) within(s verbs.SGE) ([]byte, bool) {
	offset := s.Addr - m.addr
	if s.Addr < m.addr || offset > uint64(len(m.buf)) || uint64(s.Length) > uint64(len(m.buf))-offset {
		return nil, false
	}
	return m.buf[offset : offset+uint64(s.Length)], true
}

// local returns the memory of a scatter/gather element, if its key and its range are right
// for work of a protection domain.
func (h *hardware) local(p *pd, s verbs.SGE, access verbs.Access) ([]byte, bool) {
	if m, ok := h.mrs[s.LKey]; ok && s.Length > 0 && m.pd == p && m.access&access == access {
		return m.within(s)
	}
	return nil, s.Length == 0
}

// inline returns the memory of an element of inline data, whose key does not count. The
// simulation reads registered memory only.
func (h *hardware) inline(s verbs.SGE) ([]byte, bool) {
	for _, m := range h.mrs {
		if b, ok := m.within(s); ok {
			return b, true
		}
	}
	return nil, s.Length == 0
}

func wholePages(size int) int64 {
	page := int64(os.Getpagesize())
	return (int64(size) + page - 1) / page * page
}
