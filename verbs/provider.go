package verbs

import "time"

// A Provider opens RDMA devices.
type Provider interface {
	// Open opens a device by name (ibv_open_device), for which it lists the devices
	// (ibv_get_device_list). If there is no such device the error matches
	// syscall.ENODEV. The caller closes the Device.
	Open(name string) (Device, error)
}

// A Device is an opened RDMA device (struct ibv_context).
type Device interface {
	// Transport returns what the device speaks.
	Transport() Transport
	// CompletionVectors returns num_comp_vectors: a CQ may be given any vector
	// from 0 to one less.
	CompletionVectors() int
	// QPTypes returns the types of QP that the device may have: those of [QPTypes], and
	// those of its own driver. Any other type is EOPNOTSUPP, without a call.
	QPTypes() []QPType
	// Query returns the device's attributes (ibv_query_device).
	Query() (DeviceAttr, error)
	// QueryExtended returns further attributes (ibv_query_device_ex).
	QueryExtended() (ExtendedAttr, error)
	// QueryPort returns a port's attributes (ibv_query_port). Ports count from 1.
	QueryPort(port int) (PortAttr, error)
	// GIDTable returns the used entries of the GID tables of all ports
	// (ibv_query_gid_table). It queries ports that were not queried before.
	GIDTable() ([]GIDEntry, error)
	// PKey returns an entry of a port's partition key table (ibv_query_pkey), in host byte
	// order. Indices count from 0.
	PKey(port, index int) (PKey, error)
	// AllocPD allocates a protection domain (ibv_alloc_pd).
	AllocPD() (PD, error)
	// CreateCompChannel creates a completion event channel
	// (ibv_create_comp_channel).
	CreateCompChannel() (CompChannel, error)
	// CreateCQ creates a completion queue (ibv_create_cq, or, with Fields,
	// ibv_create_cq_ex). Not every device has the latter; those that have not, or not with
	// these fields, fail with an error that IsNotSupported matches.
	CreateCQ(CQInitAttr) (CQ, error)
	// AsyncEvent waits up to the given time for an asynchronous event of the device
	// (ibv_get_async_event, called only once its file descriptor is readable), and
	// acknowledges it (ibv_ack_async_event). With no event by then, the error matches
	// ErrTimeout. A timeout of zero only looks.
	AsyncEvent(timeout time.Duration) (AsyncEvent, error)
	// Measure takes samples of the time that completions take to reach the process. The
	// tracer receives only the verb that failed, with no duration, or the one that hangs.
	// The error is that of a verb, ErrUnknownCQ for an event of a CQ that does not exist,
	// or EINVAL for a measurement that cannot be taken. It comes with the samples taken so
	// far.
	Measure(Measurement) (Samples, error)
	// Bandwidth moves data between QPs and their peers. The tracer receives what it receives of
	// Measure. The error is that of a verb. ETIMEDOUT of ibv_poll_cq means that completions are
	// missing, and EINVAL of ibv_post_send that the run is invalid.
	Bandwidth(BandwidthRun) (BandwidthResult, error)
	// Cost calls create, and returns the memory that each verb it calls adds to this
	// process. Memory that a verb frees is not subtracted. Create must not call Cost. If
	// the process cannot be measured, create is still called.
	Cost(create func()) (Memory, error)
	// Close closes the device (ibv_close_device). It fails with EBUSY, without
	// asking libibverbs, while any object of the device is open.
	Close() error
}

// A PD is a protection domain (struct ibv_pd).
type PD interface {
	// RegMR allocates size bytes outside the Go heap, all of them present, and registers
	// them as a memory region (ibv_reg_mr). A node, if given, is the NUMA node of the memory
	// (mbind). ErrNUMANode means that this process may not use it, or that it is full.
	RegMR(size int, access Access, node ...int) (MR, error)
	// CreateAH creates an address handle (ibv_create_ah).
	CreateAH(AHAttr) (AH, error)
	// CreateSRQ creates a shared receive queue (ibv_create_srq).
	CreateSRQ(SRQAttr) (SRQ, error)
	// CreateQP creates a queue pair (ibv_create_qp). One of the type SRD is created by
	// efadv_create_qp_ex, and traced as ibv_create_qp.
	CreateQP(QPInitAttr) (QP, error)
	// Close deallocates the protection domain (ibv_dealloc_pd). The device
	// refuses it with EBUSY while objects of the domain exist.
	Close() error
}

// An MR is a registered memory region (struct ibv_mr) and the buffer beneath it.
type MR interface {
	// Bytes returns the buffer. It must not be used after Close.
	Bytes() []byte
	// SGE returns a scatter/gather element for length bytes from offset. It
	// panics, as a slice expression would, if they are outside the buffer.
	SGE(offset, length int) SGE
	// Close deregisters the region and frees its buffer (ibv_dereg_mr). A buffer
	// whose deregistration is refused stays allocated.
	Close() error
}

// An AH is an address handle (struct ibv_ah): where a datagram goes.
type AH interface {
	// Close destroys the address handle (ibv_destroy_ah).
	Close() error
}

// A CompChannel is a completion event channel (struct ibv_comp_channel).
type CompChannel interface {
	// GetEvent waits up to the given time for a completion event
	// (ibv_get_cq_event, called only once the channel's file descriptor is
	// readable). With no event by then, the error matches ErrTimeout; with one for
	// a CQ that does not exist, ErrUnknownCQ. A timeout of zero only looks. The
	// caller acknowledges the event with CQ.AckEvents.
	GetEvent(timeout time.Duration) (CQEvent, error)
	// Close destroys the channel (ibv_destroy_comp_channel). It is refused with
	// EBUSY while CQs are associated with it.
	Close() error
}

// CQEvent says which CQ a completion event is for.
type CQEvent struct {
	// CQ is the completion queue that the event names.
	CQ CQ
	// Context is the cq_context that came with the event.
	Context uint64
}

// CQInitAttr says which CQ to create.
type CQInitAttr struct {
	// Entries is the minimum number of completions that the CQ must hold (cqe).
	Entries int
	// Context is given back with each event (cq_context).
	Context uint64
	// Channel receives the CQ's events; may be nil.
	Channel CompChannel
	// Vector is the completion vector (comp_vector), from 0 to
	// CompletionVectors()−1; others are passed on to the device as they are.
	Vector int
	// Fields are what can be read of each completion (wc_flags). With any, the CQ is an
	// extended one.
	Fields WCFields
}

// A CQ is a completion queue (struct ibv_cq).
type CQ interface {
	// Entries returns the number of completions that the CQ can hold, as the
	// device gave it.
	Entries() int
	// Resize asks for room for at least that many completions (ibv_resize_cq). What
	// the CQ has then is in Entries. Not every device can; those that cannot fail
	// with an error that IsNotSupported matches.
	Resize(entries int) error
	// Poll takes up to n completions, without waiting (ibv_poll_cq; of an extended CQ
	// ibv_start_poll, ibv_next_poll and ibv_end_poll, traced as ibv_start_poll). What an
	// extended CQ was not created with is left 0.
	Poll(n int) ([]WC, error)
	// ReqNotify asks for one event at the next completion, or at the next
	// solicited or unsuccessful one (ibv_req_notify_cq).
	ReqNotify(solicitedOnly bool) error
	// AckEvents acknowledges n events (ibv_ack_cq_events). Acknowledging more
	// than were returned is an error and acknowledges none.
	AckEvents(n int) error
	// Close destroys the CQ (ibv_destroy_cq). While events are not acknowledged
	// it fails at once with EBUSY and an error that matches ErrUnacknowledged,
	// because ibv_destroy_cq would block. The device refuses it with EBUSY while
	// QPs use the CQ.
	Close() error
}

// SRQAttr are the attributes of a shared receive queue (struct ibv_srq_attr).
type SRQAttr struct {
	// MaxWR is the number of outstanding work requests.
	MaxWR uint32
	// MaxSGE is the number of scatter elements of each.
	MaxSGE uint32
	// Limit is the number of work requests below which the device raises an
	// event. It does not matter to creation.
	Limit uint32
}

// An SRQ is a shared receive queue (struct ibv_srq).
type SRQ interface {
	// Created returns the attributes that ibv_create_srq wrote back.
	Created() SRQAttr
	// Query returns the attributes that the device says now (ibv_query_srq).
	Query() (SRQAttr, error)
	// SetLimit arms the event of the number of work requests dropping below the limit
	// (ibv_modify_srq with IBV_SRQ_LIMIT); 0 disarms it.
	SetLimit(limit uint32) error
	// PostRecv posts one receive work request (ibv_post_srq_recv).
	PostRecv(RecvWR) error
	// Close destroys the SRQ (ibv_destroy_srq). The device refuses it with EBUSY
	// while QPs use the SRQ.
	Close() error
}

// QPCap are the sizes of a queue pair (struct ibv_qp_cap).
type QPCap struct {
	MaxSendWR     uint32
	MaxRecvWR     uint32
	MaxSendSGE    uint32
	MaxRecvSGE    uint32
	MaxInlineData uint32
}

// QPInitAttr says which QP to create (struct ibv_qp_init_attr).
type QPInitAttr struct {
	Type QPType
	// SendCQ and RecvCQ may be the same. Both are needed.
	SendCQ, RecvCQ CQ
	// SRQ may be nil.
	SRQ SRQ
	Cap QPCap
	// SignalAll makes each send work request leave a completion (sq_sig_all).
	SignalAll bool
}

// A QP is a queue pair (struct ibv_qp).
type QP interface {
	// Number returns qp_num.
	Number() uint32
	// Type returns the type of its creation.
	Type() QPType
	// Created returns the sizes that ibv_create_qp wrote back.
	Created() QPCap
	// Query returns what the device says now (ibv_query_qp).
	Query() (QPQuery, error)
	// Modify changes the attributes that the mask names (ibv_modify_qp). See
	// [ToInit], [ToRTR], [ToRTS] and [ToError] for the usual transitions.
	Modify(QPAttr, QPAttrMask) error
	// PostSend posts one send work request (ibv_post_send).
	PostSend(SendWR) error
	// PostRecv posts one receive work request (ibv_post_recv).
	PostRecv(RecvWR) error
	// Close destroys the QP (ibv_destroy_qp).
	Close() error
}

// QPQuery is the answer of ibv_query_qp.
type QPQuery struct {
	State     QPState
	Cap       QPCap
	SignalAll bool
}

// SGE is one scatter/gather element (struct ibv_sge).
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
	// RKey is the key by which a peer accesses it (RDMA READ and WRITE).
	RKey uint32
}

// SendWR is one send work request (struct ibv_send_wr), of IBV_WR_SEND.
type SendWR struct {
	ID    uint64
	Flags SendFlags
	SGEs  []SGE
	// AH, RemoteQPN and RemoteQKey address a send on a QP of datagrams, which needs
	// all three.
	AH         AH
	RemoteQPN  uint32
	RemoteQKey uint32
}

// RecvWR is one receive work request (struct ibv_recv_wr).
type RecvWR struct {
	ID   uint64
	SGEs []SGE
}

// WC is one work completion (struct ibv_wc).
type WC struct {
	ID     uint64
	Status WCStatus
	// ByteLen is the number of bytes received.
	ByteLen uint32
	QPNum   uint32
	SrcQP   uint32
	// Timestamp is when the device completed it, in ticks of its clock; of successful ones on
	// an extended CQ with WCTimestamp, else 0.
	Timestamp uint64
}
