package restrack

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"syscall"
)

// Object is one row of a table. What the kernel did not tell has its zero
// value, with the Has… flag false. Words are those of rdma-resource(8) in lower
// case; a number without one is unknown_<number>.
type Object struct {
	Type Type

	// ID tells the objects of one type and device apart: pdn, cqn, lqpn, mrn,
	// cm-idn, ctxn, srqn. The
	// number of a QP is given again once it is gone, those of other objects only
	// when all numbers have been used. The special queue pairs of a device with several ports share theirs (GSI: 1).
	ID    uint32
	HasID bool

	// Thread is the thread that created the object (RES_PID), as numbered in
	// the reader's PID namespace; 0 if the kernel names none: it has ended, or
	// the object is the kernel's.
	Thread uint32

	// Kernel says that the kernel created the object; KernelName is which part
	// of it, and may be empty.
	Kernel     bool
	KernelName string

	// Context is the user context that the object belongs to (ctxn).
	Context    uint32
	HasContext bool

	// PD is the protection domain of a QP, MR or SRQ (pdn).
	PD    uint32
	HasPD bool

	// CQ is the completion queue of an SRQ that has one (cqn).
	CQ    uint32
	HasCQ bool

	// Port of a QP or CM_ID, from 1; 0 if it has none yet.
	Port uint32

	QPType  string // rc, uc, ud, gsi, smi, raw_packet, xrc_ini, xrc_tgt, driver, …
	QPState string // reset, init, rtr, rts, sqd, sqe, err
	SRQType string // basic, xrc, tm

	// QPN is the queue pair of a CM_ID.
	QPN    uint32
	HasQPN bool

	// RemoteQPN is the peer of a QP of the types rc and uc; 0 before there is one.
	RemoteQPN    uint32
	HasRemoteQPN bool

	// AttachedQPs is how many QPs use an SRQ.
	AttachedQPs    uint64
	HasAttachedQPs bool

	// Entries is the size of a CQ, in completions.
	Entries    uint32
	HasEntries bool

	// Users is how many objects use a CQ or PD.
	Users    uint64
	HasUsers bool

	// PollContext is how the kernel polls a CQ of its own: direct, softirq,
	// workqueue, unbound_workqueue.
	PollContext string

	// Length of an MR, in bytes.
	Length    uint64
	HasLength bool

	CMState     string         // idle, addr_bound, listen, connect, disconnect, …
	PortSpace   string         // of a CM_ID: tcp, udp, ib, ipoib
	Source      netip.AddrPort // of a CM_ID; not valid unless IPv4 or IPv6
	Destination netip.AddrPort
}

// DecodeObjects decodes the payload of one message of a dump of a type's table
// (RES_…_GET with NLM_F_DUMP) and calls visit for each row. The object belongs
// to DecodeObjects, which reuses it for the next call; its strings stay valid.
// An error of visit is returned as it is, any other is a [MessageError].
func DecodeObjects(t Type, data []byte, visit func(*Object) error) error {
	var d decoder
	_, err := d.objects(t, data, visit)
	return blame(t.table().command, 0, err)
}

// DecodeObject decodes the payload of the reply to a request for one object
// (RES_…_GET without NLM_F_DUMP). An error is a [MessageError].
func DecodeObject(t Type, data []byte) (Object, error) {
	var d decoder
	if err := d.decode(t, data); err != nil {
		return Object{}, blame(t.table().command, 0, err)
	}
	return d.object, nil
}

// maxNames bounds how many strings a decoder keeps. The kernel has few names
// for itself; what exceeds this is not shared, and costs its memory.
const maxNames = 256

// A decoder decodes rows into memory of its own, so that a row costs none.
type decoder struct {
	object Object
	// own tells that the type of the row's QP is a driver's own.
	own   bool
	names map[string]string
}

// objects returns how many rows it visited.
func (d *decoder) objects(t Type, data []byte, visit func(*Object) error) (int, error) {
	table, visited := t.table(), 0
	for len(data) > 0 {
		rows, rest, err := nextAttribute(data)
		if err != nil {
			return visited, err
		}
		data = rest
		// Attribute 0 is padding, and the only one of a type that there is not.
		if rows.kind != table.rows || rows.kind == 0 {
			continue
		}
		for b := rows.data; len(b) > 0; {
			row, rest, err := nextAttribute(b)
			if err != nil {
				return visited, rows.in(err)
			}
			b = rest
			if row.kind != table.row {
				continue
			}
			if err := d.decode(t, row.data); err != nil {
				return visited, row.in(err)
			}
			visited++
			if err := visit(&d.object); err != nil {
				return visited, &visitError{err}
			}
		}
	}
	return visited, nil
}

// decode decodes the attributes of one row into d.object.
func (d *decoder) decode(t Type, data []byte) error {
	d.object, d.own = Object{Type: t}, false
	for len(data) > 0 {
		a, rest, err := nextAttribute(data)
		if err != nil {
			return err
		}
		data = rest
		if err := d.attribute(t, a); err != nil {
			return err
		}
	}
	return nil
}

// attribute decodes one attribute of a row.
func (d *decoder) attribute(t Type, a attribute) (err error) {
	o := &d.object
	switch a.kind {
	case attrPDN:
		if t == PD {
			return number(a, &o.ID, &o.HasID)
		}
		return number(a, &o.PD, &o.HasPD)
	case attrCQN:
		if t == CQ {
			return number(a, &o.ID, &o.HasID)
		}
		return number(a, &o.CQ, &o.HasCQ)
	case attrCTXN:
		if t == CTX {
			return number(a, &o.ID, &o.HasID)
		}
		return number(a, &o.Context, &o.HasContext)
	case attrLQPN:
		if t == QP {
			return number(a, &o.ID, &o.HasID)
		}
		return number(a, &o.QPN, &o.HasQPN)
	case attrMRN, attrCMIDN, attrSRQN:
		if a.kind == t.table().id {
			return number(a, &o.ID, &o.HasID)
		}
	case attrRQPN:
		return number(a, &o.RemoteQPN, &o.HasRemoteQPN)
	case attrCQE:
		return number(a, &o.Entries, &o.HasEntries)
	case attrPort:
		o.Port, err = a.uint32()
	case attrPID:
		o.Thread, err = a.uint32()
	case attrUseCount:
		o.Users, err = a.uint64()
		o.HasUsers = err == nil
	case attrMRLength:
		o.Length, err = a.uint64()
		o.HasLength = err == nil
	case attrKernelName:
		o.Kernel, o.KernelName = true, d.intern(a.text())
	case attrType:
		if t == SRQ {
			return d.word(a, &o.SRQType, srqType)
		}
		if d.own {
			return nil
		}
		return d.word(a, &o.QPType, qpType)
	case attrSubtype:
		// The kernel's numbers of such types have more bits than the attribute.
		d.own, o.QPType = true, "driver"
	case attrState:
		if t == CMID {
			return d.word(a, &o.CMState, cmState)
		}
		return d.word(a, &o.QPState, qpState)
	case attrPollContext:
		return d.word(a, &o.PollContext, pollContext)
	case attrPortSpace:
		value, err := a.uint32()
		if err != nil {
			return err
		}
		if o.PortSpace = portSpace(value); o.PortSpace == "" {
			o.PortSpace = d.unknown(value)
		}
	case attrSource:
		o.Source, err = address(a)
	case attrDestination:
		o.Destination, err = address(a)
	case attrQPs:
		if t == SRQ {
			if o.AttachedQPs, err = attached(a.data); err != nil {
				return a.in(err)
			}
			o.HasAttachedQPs = true
		}
	}
	return err
}

func number(a attribute, value *uint32, has *bool) (err error) {
	*value, err = a.uint32()
	*has = err == nil
	return err
}

func (d *decoder) word(a attribute, word *string, name func(uint8) string) error {
	value, err := a.uint8()
	if err != nil {
		return err
	}
	if *word = name(value); *word == "" {
		*word = d.unknown(uint32(value))
	}
	return nil
}

// unknown returns the word for a number that has none.
func (d *decoder) unknown(value uint32) string {
	var buffer [len("unknown_") + 10]byte
	return d.intern(strconv.AppendUint(append(buffer[:0], "unknown_"...), uint64(value), 10))
}

// intern returns text as a string, the same one each time.
func (d *decoder) intern(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	if name, ok := d.names[string(text)]; ok {
		return name
	}
	name := string(text)
	if d.names == nil {
		d.names = make(map[string]string)
	}
	if len(d.names) < maxNames {
		d.names[name] = name
	}
	return name
}

// attached counts the queue pairs of an SRQ, which the kernel gives as single
// numbers and as ranges (fill_res_srq_qps).
func attached(data []byte) (count uint64, err error) {
	for len(data) > 0 {
		entry, rest, err := nextAttribute(data)
		if err != nil {
			return 0, err
		}
		data = rest
		if entry.kind != attrQP {
			continue
		}
		var first, last uint32
		var hasFirst, hasLast bool
		for b := entry.data; len(b) > 0; {
			a, rest, err := nextAttribute(b)
			if err != nil {
				return 0, entry.in(err)
			}
			b = rest
			switch a.kind {
			case attrLQPN:
				if _, err = a.uint32(); err == nil {
					count++
				}
			case attrMinRange:
				err = number(a, &first, &hasFirst)
			case attrMaxRange:
				err = number(a, &last, &hasLast)
			}
			if err != nil {
				return 0, entry.in(err)
			}
		}
		if hasFirst && hasLast && first <= last {
			count += uint64(last-first) + 1
		}
	}
	return count, nil
}

// address decodes a struct sockaddr_storage. Families other than IPv4 and IPv6
// (AF_IB) yield the zero value. A scope is left out.
func address(a attribute) (netip.AddrPort, error) {
	const v4, v6 = 8, 28 // up to the end of the address, in sockaddr_in and sockaddr_in6
	b := a.data
	if len(b) < 2 {
		return netip.AddrPort{}, a.sized(syscall.SizeofSockaddrAny)
	}
	switch binary.NativeEndian.Uint16(b) {
	case syscall.AF_INET:
		if len(b) < v4 {
			return netip.AddrPort{}, a.sized(v4)
		}
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:])), nil
	case syscall.AF_INET6:
		if len(b) < v6 {
			return netip.AddrPort{}, a.sized(v6)
		}
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])), binary.BigEndian.Uint16(b[2:])), nil
	}
	return netip.AddrPort{}, nil
}
