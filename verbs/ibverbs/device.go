//go:build cgo && linux

package ibverbs

// #include "shim.h"
import "C"

import (
	"encoding/binary"
	"fmt"
	"math"
	"syscall"
	"unsafe"

	"rdma_exporter/verbs"
)

// device implements verbs.Device (struct ibv_context).
type device struct {
	object
	name   string
	tracer verbs.Tracer
	ctx    *C.struct_ibv_context
	// library is the file of the library that serves the device; empty if that cannot
	// be read.
	library string

	live  int    // objects
	meter *meter // of the Cost under way; nil if none is
	cqs   map[*C.struct_ibv_cq]*cq
	srqs  map[*C.struct_ibv_srq]*srq
	gids  map[int]int // the lengths of the GID tables of the ports that were queried
}

func newDevice(name string, ctx *C.struct_ibv_context, tracer verbs.Tracer) *device {
	d := &device{name: name, tracer: tracer, ctx: ctx, gids: make(map[int]int)}
	d.cqs, d.srqs = make(map[*C.struct_ibv_cq]*cq), make(map[*C.struct_ibv_srq]*srq)
	d.object = object{kind: "device", dev: d}
	if file := C.shim_library(ctx); file != nil {
		d.library = C.GoString(file)
	}
	return d
}

func (d *device) trace(v verbs.Verb, call func(ns *C.int64_t) C.int) error {
	m := d.meter
	if m == nil {
		return trace(d.tracer, d.name, v, call)
	}
	return trace(d.tracer, d.name, v, func(ns *C.int64_t) (errno C.int) {
		m.measure(func() { errno = call(ns) })
		return errno
	})
}

// Transport implements verbs.Device (enum ibv_transport_type of struct ibv_device).
func (d *device) Transport() verbs.Transport {
	if d.use() != nil {
		return verbs.TransportUnknown
	}
	return map[int32]verbs.Transport{
		C.IBV_TRANSPORT_IB: verbs.TransportIB, C.IBV_TRANSPORT_IWARP: verbs.TransportIWARP,
		C.IBV_TRANSPORT_USNIC: verbs.TransportUSNIC, C.IBV_TRANSPORT_USNIC_UDP: verbs.TransportUSNICUDP,
		C.IBV_TRANSPORT_UNSPECIFIED: verbs.TransportUnspecified,
	}[d.ctx.device.transport_type] // The zero value is the unknown one.
}

// CompletionVectors implements verbs.Device (num_comp_vectors).
func (d *device) CompletionVectors() int {
	if d.use() != nil {
		return 0
	}
	return int(d.ctx.num_comp_vectors)
}

// QPTypes implements verbs.Device.
func (d *device) QPTypes() []verbs.QPType {
	types := verbs.QPTypes()
	if isEFA(d.library) {
		types = append(types, verbs.SRD)
	}
	return types
}

// Query implements verbs.Device (ibv_query_device).
func (d *device) Query() (verbs.DeviceAttr, error) {
	var a C.struct_ibv_device_attr
	err := d.call(verbs.QueryDevice, func(ns *C.int64_t) C.int {
		return C.shim_query_device(d.ctx, &a, ns)
	})
	if err != nil {
		return verbs.DeviceAttr{}, err
	}
	return verbs.DeviceAttr{
		Firmware:     C.GoStringN(&a.fw_ver[0], C.int(C.strnlen(&a.fw_ver[0], C.size_t(len(a.fw_ver))))),
		NodeGUID:     guid(a.node_guid),
		VendorID:     uint32(a.vendor_id),
		VendorPartID: uint32(a.vendor_part_id),
		HWVersion:    uint32(a.hw_ver),
		Ports:        int(a.phys_port_cnt),
		Limits: verbs.Limits{
			MaxMRSize:       uint64(a.max_mr_size),
			MaxQP:           int(a.max_qp),
			MaxQPWR:         int(a.max_qp_wr),
			MaxSGE:          int(a.max_sge),
			MaxCQ:           int(a.max_cq),
			MaxCQE:          int(a.max_cqe),
			MaxMR:           int(a.max_mr),
			MaxPD:           int(a.max_pd),
			MaxQPRdAtom:     int(a.max_qp_rd_atom),
			MaxQPInitRdAtom: int(a.max_qp_init_rd_atom),
			MaxMW:           int(a.max_mw),
			MaxAH:           int(a.max_ah),
			MaxMcastGroup:   int(a.max_mcast_grp),
			MaxMcastQP:      int(a.max_mcast_qp_attach),
			MaxSRQ:          int(a.max_srq),
			MaxSRQWR:        int(a.max_srq_wr),
			MaxSRQSGE:       int(a.max_srq_sge),
			MaxPKeys:        int(a.max_pkeys),
		},
	}, nil
}

// QueryExtended implements verbs.Device (ibv_query_device_ex).
func (d *device) QueryExtended() (verbs.ExtendedAttr, error) {
	var a C.struct_ibv_device_attr_ex
	err := d.call(verbs.QueryDeviceEx, func(ns *C.int64_t) C.int {
		return C.shim_query_device_ex(d.ctx, &a, ns)
	})
	if err != nil {
		return verbs.ExtendedAttr{}, err
	}
	return verbs.ExtendedAttr{
		TimestampMask: uint64(a.completion_timestamp_mask),
		CoreClock:     uint64(a.hca_core_clock),
		RawPacketCaps: uint32(a.raw_packet_caps),
		MaxDMSize:     uint64(a.max_dm_size),
	}, nil
}

// guid converts a __be64: in memory its most significant byte comes first.
func guid(be C.__be64) verbs.GUID {
	var g verbs.GUID
	binary.NativeEndian.PutUint64(g[:], uint64(be))
	return g
}

// QueryPort implements verbs.Device (ibv_query_port).
func (d *device) QueryPort(port int) (verbs.PortAttr, error) {
	if err := d.use(); err != nil {
		return verbs.PortAttr{}, err
	}
	if port < 0 || port > 255 {
		return verbs.PortAttr{}, d.invalid(verbs.QueryPort, "port %d is not from 1 to 255", port)
	}
	var a C.struct_ibv_port_attr
	err := d.trace(verbs.QueryPort, func(ns *C.int64_t) C.int {
		return C.shim_query_port(d.ctx, C.uint8_t(port), &a, ns)
	})
	if err != nil {
		return verbs.PortAttr{}, err
	}
	d.gids[port] = max(0, int(a.gid_tbl_len))
	return verbs.PortAttr{
		State:       verbs.PortState(a.state),
		LinkLayer:   verbs.LinkLayer(a.link_layer),
		LID:         uint16(a.lid),
		ActiveMTU:   mtuBytes(a.active_mtu),
		PKeys:       int(a.pkey_tbl_len),
		GRHRequired: a.flags&C.IBV_QPF_GRH_REQUIRED != 0,
	}, nil
}

// PKey implements verbs.Device (ibv_query_pkey).
func (d *device) PKey(port, index int) (verbs.PKey, error) {
	if err := d.use(); err != nil {
		return 0, err
	}
	if port < 0 || port > 255 || index < 0 || index > math.MaxUint16 {
		return 0, d.invalid(verbs.QueryPKey, "there is no partition key %d of a port %d", index, port)
	}
	var key C.__be16
	err := d.trace(verbs.QueryPKey, func(ns *C.int64_t) C.int {
		return C.shim_query_pkey(d.ctx, C.uint8_t(port), C.int(index), &key, ns)
	})
	return verbs.PKey(binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&key))[:])), err
}

// mtuBytes converts an enum ibv_mtu (1 is 256 bytes, 5 is 4096) to bytes.
func mtuBytes(mtu uint32) int {
	if mtu < C.IBV_MTU_256 || mtu > C.IBV_MTU_4096 {
		return 0
	}
	return 128 << mtu
}

// mtuEnum is the inverse of mtuBytes; 0 if there is no such MTU.
func mtuEnum(bytes int) C.enum_ibv_mtu {
	for mtu := C.enum_ibv_mtu(C.IBV_MTU_256); mtu <= C.IBV_MTU_4096; mtu++ {
		if mtuBytes(mtu) == bytes {
			return mtu
		}
	}
	return 0
}

// GIDTable implements verbs.Device (ibv_query_gid_table).
func (d *device) GIDTable() ([]verbs.GIDEntry, error) {
	attr, err := d.Query()
	if err != nil {
		return nil, err
	}
	size := 0
	for port := 1; port <= attr.Ports; port++ {
		size += d.gidTableLength(port)
	}
	if size == 0 {
		return nil, nil
	}
	entries := make([]C.struct_ibv_gid_entry, size)
	var n C.size_t
	err = d.trace(verbs.QueryGIDTable, func(ns *C.int64_t) C.int {
		return C.shim_query_gid_table(d.ctx, &entries[0], C.size_t(size), &n, ns)
	})
	if err != nil {
		return nil, err
	}
	// A broken provider could say that it wrote more than there is room for.
	var table []verbs.GIDEntry
	for _, e := range entries[:min(int(n), size)] {
		table = append(table, verbs.GIDEntry{
			Port:  int(e.port_num),
			Index: int(e.gid_index),
			GID:   *(*verbs.GID)(unsafe.Pointer(&e.gid)),
			Type:  verbs.GIDType(e.gid_type),
		})
	}
	return table, nil
}

// gidTableLength returns the length of a port's GID table. The table is that of all
// ports: for one that does not answer there is room, too.
func (d *device) gidTableLength(port int) int {
	if n, ok := d.gids[port]; ok {
		return n
	}
	if _, err := d.QueryPort(port); err != nil {
		d.gids[port] = 256 // more than any known device has
	}
	return d.gids[port]
}

// Close implements verbs.Device (ibv_close_device).
func (d *device) Close() error {
	if !d.closed && d.live > 0 {
		return &verbs.Error{
			Verb: verbs.CloseDevice, Device: d.name, Errno: syscall.EBUSY,
			Detail: fmt.Errorf("%d objects of the device are open", d.live),
		}
	}
	return d.destroy(verbs.CloseDevice, nil, func(ns *C.int64_t) C.int {
		return C.shim_close_device(d.ctx, ns)
	})
}
