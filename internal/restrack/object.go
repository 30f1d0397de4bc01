package restrack

import "strconv"

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

	// Kernel says that the kernel created the object.
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

// A decoder decodes rows into memory of its own, so that a row costs none.
type decoder struct {
	object Object
	// own tells that the type of the row's QP is a driver's own.
	own bool
	// unknown are the words for numbers that have none.
	unknown map[uint8]string
}

// objects decodes the payload of one message of a dump of a type's table (RES_…_GET with
// NLM_F_DUMP), calls visit for each row, and returns how many there were. The object is the
// decoder's, which reuses it for the next call; its strings stay valid.
func (d *decoder) objects(t Type, data []byte, visit func(*Object) error) (visited int, err error) {
	table := t.table()
	// Attribute 0 is padding, and the only one of a type that there is not.
	if table.rows == 0 {
		return 0, nil
	}
	err = entries(data, table.rows, table.row, func(row []byte) error {
		if err := d.decode(t, row); err != nil {
			return err
		}
		visited++
		if err := visit(&d.object); err != nil {
			return &visitError{err}
		}
		return nil
	})
	return visited, err
}

// decode decodes the attributes of one row into d.object.
func (d *decoder) decode(t Type, data []byte) error {
	d.object, d.own = Object{Type: t}, false
	id := t.table().id
	// There may be a million rows, and to range over a function takes longer.
	for len(data) > 0 {
		a, rest, err := nextAttribute(data)
		if err == nil {
			err = d.attribute(t, id, a)
		}
		if err != nil {
			return err
		}
		data = rest
	}
	return nil
}

// attribute decodes one attribute of a row, of which one is the id.
func (d *decoder) attribute(t Type, id uint16, a attribute) (err error) {
	o := &d.object
	switch a.kind {
	case id:
		return number(a, &o.ID, &o.HasID)
	case attrPDN:
		return number(a, &o.PD, &o.HasPD)
	case attrCTXN:
		return number(a, &o.Context, &o.HasContext)
	case attrCQE:
		return number(a, &o.Entries, &o.HasEntries)
	case attrPID:
		o.Thread, err = a.uint32()
	case attrUseCount:
		o.Users, err = a.uint64()
		o.HasUsers = err == nil
	case attrMRLength:
		o.Length, err = a.uint64()
	case attrKernelName:
		o.Kernel = true
	case attrType:
		if t == QP && !d.own {
			return d.word(a, &o.QPType, qpType)
		}
	case attrSubtype:
		// The kernel's numbers of such types have more bits than the attribute.
		d.own, o.QPType = true, "driver"
	case attrState:
		if t == QP {
			return d.word(a, &o.QPState, qpState)
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
	if *word = name(value); *word != "" {
		return nil
	}
	if d.unknown == nil {
		d.unknown = make(map[uint8]string)
	}
	if d.unknown[value] == "" {
		d.unknown[value] = "unknown_" + strconv.Itoa(int(value))
	}
	*word = d.unknown[value]
	return nil
}
