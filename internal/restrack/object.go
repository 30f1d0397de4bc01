package restrack

import (
	"context"
	"fmt"
	"strconv"
	"syscall"

	"github.com/mdlayher/netlink"
)

// Type is a type of object that the kernel tracks, one of its tables. The zero value is none.
type Type uint8

// The types, in the order in which a device's objects are built on each other.
const (
	PD   Type = iota + 1 // protection domains
	CQ                   // completion queues
	QP                   // queue pairs
	CMID                 // identifiers of the connection manager (rdma_cm_id)
	MR                   // memory regions
	CTX                  // user contexts: a device that a process has opened
	SRQ                  // shared receive queues
)

// Types returns all types. The caller owns the slice.
func Types() []Type { return []Type{PD, CQ, QP, CMID, MR, CTX, SRQ} }

// String returns the name that rdma-resource(8) and the kernel's summary use: pd, cq, qp, cm_id,
// mr, ctx or srq.
func (t Type) String() string {
	if name := t.table().name; name != "" {
		return name
	}
	return "type_" + strconv.Itoa(int(t))
}

// A table is the protocol of one type, as in the fill_entries of the kernel's nldev.c.
type table struct {
	name    string
	command uint16 // reads it
	rows    uint16 // the attribute that holds the rows
	row     uint16 // the attribute that holds one row
	id      uint16 // the attribute that identifies the object
	perPort bool   // whether a request for one object needs the number of a port
}

// table returns the zero value for an unknown type.
func (t Type) table() table {
	tables := [...]table{
		PD:   {"pd", commandPD, attrPDs, attrPD, attrPDN, false},
		CQ:   {"cq", commandCQ, attrCQs, attrCQ, attrCQN, false},
		QP:   {"qp", commandQP, attrQPs, attrQP, attrLQPN, true},
		CMID: {"cm_id", commandCMID, attrCMIDs, attrCMID, attrCMIDN, true},
		MR:   {"mr", commandMR, attrMRs, attrMR, attrMRN, false},
		CTX:  {"ctx", commandCTX, attrCTXs, attrCTX, attrCTXN, false},
		SRQ:  {"srq", commandSRQ, attrSRQs, attrSRQ, attrSRQN, false},
	}
	if int(t) >= len(tables) {
		return table{}
	}
	return tables[t]
}

// Object is one row of a table. Values that the kernel did not report are zero, with the Has…
// flag false. Words are those of rdma-resource(8) in lower case; a number without one is
// unknown_<number>.
type Object struct {
	Type Type

	// ID identifies the object among those of its type and device: pdn, cqn, lqpn, mrn, cm-idn,
	// ctxn, srqn. The number of a QP is used again once the QP is gone, other numbers only when
	// all have been used. The special queue pairs of a device with several ports share theirs
	// (GSI: 1).
	ID    uint32
	HasID bool

	// Thread is the thread that created the object (RES_PID), as numbered in the reader's PID
	// namespace. Zero means that it has ended, or that the object is the kernel's.
	Thread uint32

	// Kernel is true if the kernel created the object.
	Kernel bool

	// Context is the user context that the object belongs to (ctxn).
	Context    uint32
	HasContext bool

	// PD is the protection domain of a QP, MR or SRQ (pdn).
	PD    uint32
	HasPD bool

	QPType  string // rc, uc, ud, gsi, smi, raw_packet, xrc_ini, xrc_tgt, driver, …
	QPState string // reset, init, rtr, rts, sqd, sqe, err

	// Entries is the size of a CQ, in completions.
	Entries    uint32
	HasEntries bool

	// Users is how many objects use a CQ or PD.
	Users    uint64
	HasUsers bool

	// Length of an MR, in bytes.
	Length uint64
}

// maxEmpty is the number of messages without a row after which a dump is stopped. The kernel
// starts a row again in the next message if it did not fit. A row that fits into none would
// repeat forever.
const maxEmpty = 16

// Dump calls visit for each object of a type on a device (RDMA_NLDEV_CMD_RES_…_GET), as messages
// arrive, so memory does not grow with their number. If visit returns an error, Dump ends and
// returns it. visit must not use the Conn.
//
// The kernel asks the device's driver for each QP (ib_query_qp), and may for other types. If the
// kernel flagged the dump as inconsistent, Dump reads it completely and returns an error that
// matches [ErrInterrupted]. See the package comment for what else a dump may miss.
func (c *Conn) Dump(ctx context.Context, index uint32, t Type, visit func(*Object) error) error {
	r := request{command: t.table().command, index: index, dump: true, more: details()}
	if r.command == 0 {
		return fmt.Errorf("%s is no type: %w", t, syscall.EINVAL)
	}
	empty := 0
	var stopped error // not by the message
	err := c.query(ctx, r, func(data []byte) error {
		empty++
		err := objects(t, data, func(o *Object) error {
			empty = 0
			stopped = visit(o)
			return stopped
		})
		if err == nil && empty >= maxEmpty {
			stopped = fmt.Errorf("%s: a row fits into no message: %w", r, syscall.EMSGSIZE)
			return stopped
		}
		return err
	})
	if stopped != nil {
		return stopped
	}
	return err
}

// details asks for all objects of a device, as rdma(8) does with -dd. Otherwise the kernel leaves
// out queue pairs of a driver's own types, such as efa's SRD, in tables and summary alike
// (RESTRACK_DD in restrack.c of newer kernels, and of Debian 12's 6.1). Kernels that do not know
// the attribute ignore it, and leave out none.
func details() []netlink.Attribute {
	return []netlink.Attribute{{Type: attrDriverDetails, Data: []byte{1}}}
}

// Get returns one object by its [Object.ID]. If there is none the error matches ENOENT. QPs and
// CM_IDs, which the kernel files under ports, cannot be asked for: the error matches EINVAL.
func (c *Conn) Get(ctx context.Context, index uint32, t Type, id uint32) (o Object, err error) {
	table := t.table()
	if table.command == 0 || table.perPort {
		return Object{}, fmt.Errorf("one object of type %s: %w", t, syscall.EINVAL)
	}
	r := request{command: table.command, index: index, more: []netlink.Attribute{number(table.id, id)}}
	err = c.query(ctx, r, func(data []byte) error {
		o = Object{Type: t}
		return attributes(data, func(ad *netlink.AttributeDecoder) { o.decode(table.id, ad) })
	})
	if err != nil {
		return Object{}, err
	}
	return o, nil
}

// objects decodes the payload of one message of a dump and calls visit for each row.
func objects(t Type, data []byte, visit func(*Object) error) error {
	table := t.table()
	return entries(data, table.rows, table.row, func(row *netlink.AttributeDecoder) error {
		o := Object{Type: t}
		for row.Next() {
			o.decode(table.id, row)
		}
		if err := row.Err(); err != nil {
			return err
		}
		return visit(&o)
	})
}

// decode decodes one attribute of a row.
func (o *Object) decode(id uint16, ad *netlink.AttributeDecoder) {
	switch kind := ad.Type(); {
	case kind == id:
		o.ID, o.HasID = ad.Uint32(), true
	case kind == attrPDN:
		o.PD, o.HasPD = ad.Uint32(), true
	case kind == attrCTXN:
		o.Context, o.HasContext = ad.Uint32(), true
	case kind == attrCQE:
		o.Entries, o.HasEntries = ad.Uint32(), true
	case kind == attrPID:
		o.Thread = ad.Uint32()
	case kind == attrUseCount:
		o.Users, o.HasUsers = ad.Uint64(), true
	case kind == attrMRLength:
		o.Length = ad.Uint64()
	case kind == attrKernelName:
		o.Kernel = true
	case kind == attrType && o.Type == QP && o.QPType != driverType:
		o.QPType = qpType(ad.Uint8())
	case kind == attrSubtype:
		// The kernel's numbers of such types have more bits than attrType.
		o.QPType = driverType
	case kind == attrState && o.Type == QP:
		o.QPState = word(ad.Uint8(), "reset", "init", "rtr", "rts", "sqd", "sqe", "err")
	}
}

// driverType is the type of QPs of a driver's own types.
const driverType = "driver"

// qpType names an enum ib_qp_type.
func qpType(number uint8) string {
	if number == 0xff {
		return driverType
	}
	return word(number, "smi", "gsi", "rc", "uc", "ud", "raw_ipv6", "raw_ethertype", "", "raw_packet", "xrc_ini", "xrc_tgt")
}

// word returns the word of a number.
func word(number uint8, words ...string) string {
	if int(number) < len(words) && words[number] != "" {
		return words[number]
	}
	return "unknown_" + strconv.Itoa(int(number))
}
