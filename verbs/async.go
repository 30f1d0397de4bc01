package verbs

// AsyncEvent is an asynchronous event (struct ibv_async_event).
type AsyncEvent struct {
	Type AsyncEventType
	// Port is the port of an event that is of one; otherwise 0.
	Port int
	// SRQ is the shared receive queue of an event that is of one; otherwise nil. It is
	// nil, too, if the event names none that there is.
	SRQ SRQ
}

// AsyncEventType is the type of an asynchronous event (enum ibv_event_type).
type AsyncEventType int

// Some of the types, as enum ibv_event_type numbers them.
const (
	EventCQErr            AsyncEventType = 0
	EventCommEst          AsyncEventType = 4
	EventSQDrained        AsyncEventType = 5
	EventPortActive       AsyncEventType = 9
	EventSMChange         AsyncEventType = 13
	EventSRQErr           AsyncEventType = 14
	EventSRQLimitReached  AsyncEventType = 15
	EventQPLastWQEReached AsyncEventType = 16
	EventClientReregister AsyncEventType = 17
	EventGIDChange        AsyncEventType = 18
	EventWQFatal          AsyncEventType = 19
)

// String returns the type as a metric's label has it: device_fatal, srq_limit_reached.
func (t AsyncEventType) String() string {
	return name(int(t),
		"cq_err", "qp_fatal", "qp_req_err", "qp_access_err", "comm_est", "sq_drained", "path_mig", "path_mig_err",
		"device_fatal", "port_active", "port_err", "lid_change", "pkey_change", "sm_change",
		"srq_err", "srq_limit_reached", "qp_last_wqe_reached", "client_reregister", "gid_change", "wq_fatal")
}

// OfPort reports whether an event of the type names a port.
func (t AsyncEventType) OfPort() bool {
	return t >= EventPortActive && t <= EventSMChange || t == EventClientReregister || t == EventGIDChange
}

// OfSRQ reports whether an event of the type names a shared receive queue.
func (t AsyncEventType) OfSRQ() bool { return t == EventSRQErr || t == EventSRQLimitReached }
