package restrack

import "strconv"

// Type is a type of object that the kernel tracks: one of its tables. The zero
// value is none.
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

// String returns the name that rdma-resource(8) and the kernel's summary use:
// pd, cq, qp, cm_id, mr, ctx or srq.
func (t Type) String() string {
	if name := t.table().name; name != "" {
		return name
	}
	return "type_" + strconv.Itoa(int(t))
}

// A table is what is particular to one type in the protocol: entry by entry
// the fill_entries of the kernel's nldev.c.
type table struct {
	name    string
	command uint16 // reads it
	rows    uint16 // the attribute that holds the rows
	row     uint16 // the attribute that holds one row
	id      uint16 // the attribute that identifies the object
	perPort bool   // asking for one object takes the number of a port
}

// table returns the zero value for a type that there is not.
func (t Type) table() table {
	switch t {
	case PD:
		return table{"pd", commandPD, attrPDs, attrPD, attrPDN, false}
	case CQ:
		return table{"cq", commandCQ, attrCQs, attrCQ, attrCQN, false}
	case QP:
		return table{"qp", commandQP, attrQPs, attrQP, attrLQPN, true}
	case CMID:
		return table{"cm_id", commandCMID, attrCMIDs, attrCMID, attrCMIDN, true}
	case MR:
		return table{"mr", commandMR, attrMRs, attrMR, attrMRN, false}
	case CTX:
		return table{"ctx", commandCTX, attrCTXs, attrCTX, attrCTXN, false}
	case SRQ:
		return table{"srq", commandSRQ, attrSRQs, attrSRQ, attrSRQN, false}
	}
	return table{}
}
