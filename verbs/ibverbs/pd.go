//go:build cgo && linux

package ibverbs

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/verbs"
)

// pd implements verbs.PD (struct ibv_pd).
type pd struct {
	object
	ptr *C.struct_ibv_pd
}

// AllocPD implements verbs.Device (ibv_alloc_pd).
func (d *device) AllocPD() (verbs.PD, error) {
	p := &pd{object: object{kind: "protection domain", dev: d}}
	return create[verbs.PD](&d.object, verbs.AllocPD, p, func(ns *C.int64_t) C.int {
		return C.shim_alloc_pd(d.ctx, &p.ptr, ns)
	})
}

// Close implements verbs.PD (ibv_dealloc_pd).
func (p *pd) Close() error {
	return p.destroy(verbs.DeallocPD, nil, func(ns *C.int64_t) C.int {
		return C.shim_dealloc_pd(p.ptr, ns)
	})
}

// mr implements verbs.MR (struct ibv_mr).
type mr struct {
	object
	pd  *pd
	ptr *C.struct_ibv_mr
	// mapping is the whole of the mapped pages, buf the part that was asked for.
	mapping, buf []byte
	lkey, rkey   uint32
}

// RegMR implements verbs.PD (ibv_reg_mr).
func (p *pd) RegMR(size int, access verbs.Access, node ...int) (verbs.MR, error) {
	if err := p.use(); err != nil {
		return nil, err
	}
	if size <= 0 {
		return nil, p.dev.invalid(verbs.RegMR, "a buffer of %d bytes", size)
	}
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	if len(node) == 0 { // Otherwise the registration makes the pages present.
		flags |= unix.MAP_POPULATE
	}
	mapping, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err == nil && len(node) > 0 {
		var nodes unix.CPUSet // The kernel has no more nodes than this has bits. It subtracts one from their number.
		nodes.Set(node[0])
		// MPOL_BIND would make the kernel kill any process for memory, if the node is full.
		if _, _, errno := unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(&mapping[0])), uintptr(size), unix.MPOL_PREFERRED,
			uintptr(unsafe.Pointer(&nodes)), unsafe.Sizeof(nodes)*8+1, 0); errno != 0 {
			_ = unix.Munmap(mapping) // the error that matters is why it is of no use
			what := fmt.Sprintf("bind memory to NUMA node %d: mbind: %s", node[0], unix.ErrnoName(errno))
			if errno == unix.EPERM || errno == unix.ENOSYS { // By a filter: the kernel itself refuses a node with EINVAL.
				return nil, errors.New(what + ": a seccomp profile refuses it; give the container CAP_SYS_NICE, or a profile that allows mbind and get_mempolicy")
			}
			return nil, fmt.Errorf("%s: %w", what, verbs.ErrNUMANode)
		}
	}
	if err != nil {
		errno, _ := verbs.ErrnoOf(err)
		return nil, &verbs.Error{
			Verb: verbs.RegMR, Device: p.dev.name, Errno: errno, Detail: fmt.Errorf("a buffer of %d bytes", size),
		}
	}
	// C writes to ptr, so it must not be part of a Go value that holds Go pointers.
	var ptr *C.struct_ibv_mr
	err = p.dev.trace(verbs.RegMR, func(ns *C.int64_t) C.int {
		return C.shim_reg_mr(p.ptr, unsafe.Pointer(&mapping[0]), C.size_t(size), C.int(access), &ptr, ns)
	})
	if err != nil {
		_ = unix.Munmap(mapping) // the error that matters is the verb's
		return nil, err
	}
	m := &mr{
		object: object{kind: "memory region", dev: p.dev}, pd: p, ptr: ptr,
		mapping: mapping, buf: mapping[:size:size], lkey: uint32(ptr.lkey), rkey: uint32(ptr.rkey),
	}
	p.dev.live++
	if len(node) > 0 && !isOnNode(mapping, node[0]) {
		err = fmt.Errorf("bind memory to NUMA node %d: some pages are elsewhere, so it may be full: %w", node[0], verbs.ErrNUMANode)
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// isOnNode reports whether all pages of a mapping are on a NUMA node.
func isOnNode(mapping []byte, node int) bool {
	for at := 0; at < len(mapping); at += os.Getpagesize() {
		var found uint32
		_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&found)), 0, 0, uintptr(unsafe.Pointer(&mapping[at])), unix.MPOL_F_NODE|unix.MPOL_F_ADDR, 0)
		if errno != 0 || int(found) != node {
			return false
		}
	}
	return true
}

// Bytes implements verbs.MR.
func (m *mr) Bytes() []byte { return m.buf }

// SGE implements verbs.MR.
func (m *mr) SGE(offset, length int) verbs.SGE {
	_ = m.buf[offset : offset+length]
	return verbs.SGE{
		Addr:   uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.buf)))) + uint64(offset),
		Length: uint32(length),
		LKey:   m.lkey,
		RKey:   m.rkey,
	}
}

// Close implements verbs.MR (ibv_dereg_mr).
func (m *mr) Close() error {
	if m.closed {
		return nil
	}
	err := m.destroy(verbs.DeregMR, nil, func(ns *C.int64_t) C.int {
		return C.shim_dereg_mr(m.ptr, ns)
	})
	if err != nil {
		return err
	}
	if err := unix.Munmap(m.mapping); err != nil {
		return fmt.Errorf("unmap the buffer of a memory region of %s: %w", m.dev.name, err)
	}
	m.mapping, m.buf = nil, nil
	return nil
}

// ah implements verbs.AH (struct ibv_ah).
type ah struct {
	object
	pd  *pd
	ptr *C.struct_ibv_ah
}

// CreateAH implements verbs.PD (ibv_create_ah).
func (p *pd) CreateAH(attr verbs.AHAttr) (verbs.AH, error) {
	if err := p.use(); err != nil {
		return nil, err
	}
	var c C.struct_ibv_ah_attr
	if err := p.dev.setAHAttr(&c, verbs.CreateAH, attr); err != nil {
		return nil, err
	}
	a := &ah{object: object{kind: "address handle", dev: p.dev}, pd: p}
	return create[verbs.AH](&p.object, verbs.CreateAH, a, func(ns *C.int64_t) C.int {
		return C.shim_create_ah(p.ptr, &c, &a.ptr, ns)
	})
}

// setAHAttr fills a struct ibv_ah_attr.
func (d *device) setAHAttr(c *C.struct_ibv_ah_attr, v verbs.Verb, attr verbs.AHAttr) error {
	if attr.Port < 0 || attr.Port > math.MaxUint8 || attr.SGIDIndex < 0 || attr.SGIDIndex > math.MaxUint8 {
		return d.invalid(v, "port %d or GID index %d is not from 0 to 255", attr.Port, attr.SGIDIndex)
	}
	c.port_num = C.uint8_t(attr.Port)
	c.dlid = C.uint16_t(attr.DLID)
	if attr.Global {
		c.is_global = 1
		*(*verbs.GID)(unsafe.Pointer(&c.grh.dgid)) = attr.DGID
		c.grh.sgid_index = C.uint8_t(attr.SGIDIndex)
		c.grh.flow_label = C.uint32_t(attr.FlowLabel)
		c.grh.hop_limit = C.uint8_t(attr.HopLimit)
	}
	return nil
}

// Close implements verbs.AH (ibv_destroy_ah).
func (a *ah) Close() error {
	return a.destroy(verbs.DestroyAH, nil, func(ns *C.int64_t) C.int {
		return C.shim_destroy_ah(a.ptr, ns)
	})
}
