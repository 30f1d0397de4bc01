// Package fabric is a network of RDMA devices in memory, for tests of what happens between two
// nodes. Devices have one RoCE v2 port, UD and RC queue pairs, and clocks of their own.
package fabric

import (
	"slices"
	"sync"
	"syscall"
	"time"

	"rdma_exporter/verbs"
)

const grh = 40

// Device is a device.
type Device struct {
	Name string
	GID  verbs.GID
	// MTU is in bytes.
	MTU int
	// Offset is how far the clocks of the node are ahead. The device has timestamps if it has
	// a TimestampMask. CoreClock is in kHz.
	Offset                   time.Duration
	TimestampMask, CoreClock uint64
	// LateSends is how long the completion of a send takes, or how much longer that of a message.
	// Its timestamp is right.
	LateSends time.Duration
	// State is that of the port. If it is not active, what it sends or should receive is lost.
	State verbs.PortState
	// Fails has the errno of each verb that fails.
	Fails map[verbs.Verb]syscall.Errno

	qps map[uint32]*qp
}

// Packet is a datagram, or with RC a message on a connection.
type Packet struct {
	From, To                        verbs.GID
	SrcQPN, DstQPN, QKey, FlowLabel uint32
	RC                              bool
	Payload                         []byte

	pathMTU  int
	complete func(verbs.WCStatus)
}

// Fabric joins devices. Its methods are safe for concurrent use.
type Fabric struct {
	// Devices have the key of their name, and Rule, which may be nil, reports whether a packet
	// that is sent is lost. It is called without the lock. Change both in Set only.
	Devices map[string]*Device
	Rule    func(Packet) bool

	delay time.Duration
	start time.Time
	mu    sync.Mutex
	ports map[verbs.GID]*Device
	qps   uint32 // that ever existed
	live  map[*object]bool
}

// New returns a fabric of devices. Delay is how long a packet takes.
func New(delay time.Duration, devices ...*Device) *Fabric {
	f := &Fabric{delay: delay, start: time.Now(), live: make(map[*object]bool), Devices: make(map[string]*Device), ports: make(map[verbs.GID]*Device)}
	for _, d := range devices {
		d.qps, d.State = make(map[uint32]*qp), verbs.PortActive
		f.Devices[d.Name], f.ports[d.GID] = d, d
	}
	return f
}

// Set calls g, which may change what the fabric and its devices are like.
func (f *Fabric) Set(g func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g()
}

// Live returns the number of objects that exist, opened devices included, and of the queue pairs
// that ever did.
func (f *Fabric) Live() (objects, qps int) {
	f.Set(func() { objects, qps = len(f.live), int(f.qps) })
	return objects, qps
}

// Send sends a packet as if a device had. All that it says may be forged.
func (f *Fabric) Send(p Packet) {
	var rule func(Packet) bool
	f.Set(func() { rule = f.Rule })
	if rule != nil && rule(p) {
		p.To = verbs.GID{}
	}
	f.after(f.delay, func() { f.arrive(p) })
}

// after calls g with the lock.
func (f *Fabric) after(delay time.Duration, g func()) { time.AfterFunc(delay, func() { f.Set(g) }) }

func (f *Fabric) arrive(p Packet) {
	status, wait := verbs.WCRetryExc, time.Second
	from, to := f.ports[p.From], f.ports[p.To]
	if to != nil && to.State == verbs.PortActive && (from == nil || from.State == verbs.PortActive) {
		if q := to.qps[p.DstQPN]; q != nil && q.attr.State >= verbs.RTR && len(q.recvs) > 0 && p.RC == (q.init.Type == verbs.RC) {
			status, wait = q.receive(p), f.delay
		}
	}
	if p.RC {
		f.after(wait, func() { p.complete(status) })
	}
}

// receive puts a packet into the next receive, if it has the right key or is of the connection.
func (q *qp) receive(p Packet) verbs.WCStatus {
	wr, header, wrong := q.recvs[0], grh, p.QKey != q.attr.QKey || len(p.Payload) > q.d.MTU
	if p.RC {
		header, wrong = 0, q.attr.DestQPN != p.SrcQPN || q.attr.PathMTU != p.pathMTU
	}
	b, n := q.d.bytes(wr.SGEs), header+len(p.Payload)
	switch {
	case wrong:
		return verbs.WCRetryExc
	case n > len(b):
		return verbs.WCRemInvReq
	case !p.RC:
		copy(b[8:], append(p.From[:], p.To[:]...))
	}
	copy(b[header:], p.Payload)
	q.recvs = q.recvs[1:]
	q.init.RecvCQ.(*cq).complete(verbs.WC{ID: wr.ID, ByteLen: uint32(n), QPNum: q.qpn, SrcQP: p.SrcQPN, Timestamp: q.d.ticks()})
	return verbs.WCSuccess
}

// Process is a process that opens devices of a fabric. It implements verbs.Provider.
type Process struct {
	f *Fabric
	// Tracer sees each verb.
	Tracer verbs.Tracer
	dead   bool
	mrs    [][]byte // by key
}

// Process returns a process whose verbs the tracer sees.
func (f *Fabric) Process(t verbs.Tracer) *Process { return &Process{f: f, Tracer: t} }

// Kill destroys all that the process has, as its end does. Each verb fails from then on.
func (p *Process) Kill() {
	p.f.Set(func() {
		p.dead = true
		for o := range p.f.live {
			if o.d.Process == p {
				o.remove()
			}
		}
	})
}

// Open implements verbs.Provider. The device must exist.
func (p *Process) Open(name string) (verbs.Device, error) {
	d := &device{Process: p, Device: p.f.Devices[name]}
	d.object = object{d: d, close: verbs.CloseDevice}
	return create(d, verbs.OpenDevice, d)
}

// object is what can be destroyed.
type object struct {
	d     *device
	close verbs.Verb
	qpn   uint32 // of a queue pair
}

func (o *object) Close() error { return o.d.call(o.close, o.remove) }
func (o *object) add()         { o.d.f.live[o] = true }
func (o *object) remove() {
	delete(o.d.f.live, o)
	delete(o.d.qps, o.qpn)
}

// create creates an object by a verb.
func create[T interface{ add() }](d *device, v verbs.Verb, o T) (T, error) {
	return o, d.call(v, o.add)
}

// device implements verbs.Device and most of verbs.PD. What nothing calls is not supported.
type device struct {
	object
	*Device
	*Process
}

// call is a verb, which calls do with the lock.
func (d *device) call(v verbs.Verb, do func()) error {
	d.Tracer.Begin(v)
	d.f.mu.Lock()
	c := verbs.Call{Verb: v, Began: d.now(), Errno: d.Fails[v]}
	if d.dead {
		c.Errno = syscall.ENODEV
	}
	if c.Errno == 0 {
		do()
	}
	c.Duration = d.now() - c.Began
	d.f.mu.Unlock()
	d.Tracer.End(c)
	if c.Errno != 0 {
		return &verbs.Error{Verb: v, Device: d.Name, Errno: c.Errno}
	}
	return nil
}

// now returns the time of the node, and ticks that of the device.
func (d *device) now() time.Duration { return time.Since(d.f.start) + d.Offset }

func (d *device) ticks() uint64 { return uint64(d.now()) * d.CoreClock / 1e6 & d.TimestampMask }

// bytes returns the memory of the only element.
func (p *Process) bytes(list []verbs.SGE) []byte {
	return p.mrs[list[0].LKey][list[0].Addr:][:list[0].Length]
}

const none = syscall.EOPNOTSUPP

func (d *device) PKey(int, int) (k verbs.PKey, err error)                { return k, none }
func (d *device) Cost(func()) (m verbs.Memory, err error)                { return m, none }
func (d *device) Measure(verbs.Measurement) (s verbs.Samples, err error) { return s, none }
func (d *device) CreateSRQ(verbs.SRQAttr) (s verbs.SRQ, err error)       { return s, none }
func (d *device) Bandwidth(verbs.BandwidthRun) (r verbs.BandwidthResult, err error) {
	return r, none
}

func (d *device) AsyncEvent(time.Duration) (verbs.AsyncEvent, error) { return verbs.AsyncEvent{}, none }

func (d *device) Transport() verbs.Transport { return verbs.TransportIB }
func (d *device) CompletionVectors() int     { return 1 }
func (d *device) QPTypes() []verbs.QPType    { return verbs.QPTypes() }
func (d *device) Query() (a verbs.DeviceAttr, err error) {
	return verbs.DeviceAttr{Ports: 1}, d.call(verbs.QueryDevice, func() {})
}

func (d *device) QueryExtended() (a verbs.ExtendedAttr, err error) {
	return verbs.ExtendedAttr{TimestampMask: d.TimestampMask, CoreClock: d.CoreClock}, d.call(verbs.QueryDeviceEx, func() {})
}

func (d *device) QueryPort(int) (a verbs.PortAttr, err error) {
	err = d.call(verbs.QueryPort, func() { a.State, a.LinkLayer, a.ActiveMTU = d.State, verbs.LinkEthernet, d.MTU })
	return a, err
}

func (d *device) GIDTable() ([]verbs.GIDEntry, error) {
	return []verbs.GIDEntry{{Port: 1, GID: d.GID, Type: verbs.GIDTypeRoCEv2}}, d.call(verbs.QueryGIDTable, func() {})
}

func (d *device) AllocPD() (verbs.PD, error) {
	return create(d, verbs.AllocPD, &pd{d, object{d: d, close: verbs.DeallocPD}})
}

func (d *device) CreateCompChannel() (verbs.CompChannel, error) {
	return create(d, verbs.CreateCompChannel, &channel{object{d: d, close: verbs.DestroyCompChannel}, make(chan *cq, 1)})
}

func (d *device) CreateCQ(a verbs.CQInitAttr) (verbs.CQ, error) {
	v, _ := a.Fields.CQVerbs()
	return create(d, v, &cq{object: object{d: d, close: verbs.DestroyCQ}, init: a})
}

type pd struct {
	*device
	object
}

func (p *pd) RegMR(size int, _ verbs.Access, _ ...int) (verbs.MR, error) {
	p.f.Set(func() { p.mrs = append(p.mrs, make([]byte, size)) })
	return create(p.device, verbs.RegMR, &mr{object{d: p.device, close: verbs.DeregMR}, len(p.mrs) - 1})
}

func (p *pd) CreateAH(a verbs.AHAttr) (verbs.AH, error) {
	return create(p.device, verbs.CreateAH, &ah{object{d: p.device, close: verbs.DestroyAH}, a})
}

func (p *pd) CreateQP(a verbs.QPInitAttr) (verbs.QP, error) {
	q := &qp{object: object{d: p.device, close: verbs.DestroyQP}, init: a}
	p.f.Set(func() { p.f.qps++; q.qpn = 17 + p.f.qps })
	return create(p.device, verbs.CreateQP, q)
}

type ah struct {
	object
	verbs.AHAttr
}

type mr struct {
	object
	key int
}

func (m *mr) Bytes() []byte { return m.d.mrs[m.key] }
func (m *mr) SGE(at, n int) verbs.SGE {
	return verbs.SGE{Addr: uint64(at), Length: uint32(n), LKey: uint32(m.key)}
}

type channel struct {
	object
	events chan *cq
}

func (c *channel) GetEvent(timeout time.Duration) (verbs.CQEvent, error) {
	select {
	case q := <-c.events:
		return verbs.CQEvent{CQ: q}, c.d.call(verbs.GetCQEvent, func() {})
	case <-time.After(timeout):
		return verbs.CQEvent{}, verbs.ErrTimeout
	}
}

type cq struct {
	object
	init  verbs.CQInitAttr
	armed bool
	list  []verbs.WC
}

func (q *cq) Entries() int         { return q.init.Entries }
func (q *cq) Resize(int) error     { return none }
func (q *cq) AckEvents(int) error  { return q.d.call(verbs.AckCQEvents, func() {}) }
func (q *cq) ReqNotify(bool) error { return q.d.call(verbs.ReqNotifyCQ, func() { q.armed = true }) }

func (q *cq) complete(wc verbs.WC) {
	if q.list = append(q.list, wc); q.armed {
		q.armed = false
		select {
		case q.init.Channel.(*channel).events <- q:
		default: // An event is there.
		}
	}
}

func (q *cq) Poll(n int) (list []verbs.WC, err error) {
	err = q.d.call(verbs.PollCQ, func() { list, q.list = q.list[:min(n, len(q.list))], q.list[min(n, len(q.list)):] })
	return list, err
}

type qp struct {
	object
	init  verbs.QPInitAttr
	attr  verbs.QPAttr
	recvs []verbs.RecvWR
}

func (q *qp) Number() uint32                      { return q.qpn }
func (q *qp) Type() verbs.QPType                  { return q.init.Type }
func (q *qp) Created() verbs.QPCap                { return q.init.Cap }
func (q *qp) Query() (a verbs.QPQuery, err error) { return a, none }

// Modify implements verbs.QP. The queue pair can be found from INIT on.
func (q *qp) Modify(a verbs.QPAttr, _ verbs.QPAttrMask) error {
	return q.d.call(verbs.ModifyQP, func() {
		if q.attr.State = a.State; a.State == verbs.Init {
			q.d.qps[q.qpn], q.attr.QKey = q, a.QKey
		} else if a.State == verbs.RTR {
			q.attr.AH, q.attr.DestQPN, q.attr.PathMTU = a.AH, a.DestQPN, a.PathMTU
		}
	})
}

func (q *qp) PostRecv(wr verbs.RecvWR) error {
	return q.d.call(verbs.PostRecv, func() { q.recvs = append(q.recvs, wr) })
}

func (q *qp) PostSend(wr verbs.SendWR) error {
	p := Packet{From: q.d.GID, SrcQPN: q.qpn, RC: q.init.Type == verbs.RC, Payload: slices.Clone(q.d.bytes(wr.SGEs)), pathMTU: q.attr.PathMTU}
	err := q.d.call(verbs.PostSend, func() {
		wc := verbs.WC{ID: wr.ID, QPNum: q.qpn, Timestamp: q.d.ticks()}
		p.complete = func(s verbs.WCStatus) {
			wc.Status = s
			q.d.f.after(q.d.LateSends, func() { q.init.SendCQ.(*cq).complete(wc) })
		}
		if p.To, p.DstQPN = q.attr.AH.DGID, q.attr.DestQPN; p.RC {
			return
		}
		to := wr.AH.(*ah)
		p.To, p.DstQPN, p.QKey, p.FlowLabel = to.DGID, wr.RemoteQPN, wr.RemoteQKey, to.FlowLabel
		p.complete(verbs.WCSuccess)
	})
	if err == nil {
		q.d.f.Send(p)
	}
	return err
}
