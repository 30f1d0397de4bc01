package verbs

import (
	"syscall"
	"time"
)

// Verb names a C function of libibverbs.
type Verb string

// The verbs that a provider calls.
const (
	GetDeviceList      Verb = "ibv_get_device_list"
	OpenDevice         Verb = "ibv_open_device"
	CloseDevice        Verb = "ibv_close_device"
	QueryDevice        Verb = "ibv_query_device"
	QueryDeviceEx      Verb = "ibv_query_device_ex"
	QueryPort          Verb = "ibv_query_port"
	QueryGIDTable      Verb = "ibv_query_gid_table"
	QueryPKey          Verb = "ibv_query_pkey"
	AllocPD            Verb = "ibv_alloc_pd"
	DeallocPD          Verb = "ibv_dealloc_pd"
	RegMR              Verb = "ibv_reg_mr"
	DeregMR            Verb = "ibv_dereg_mr"
	CreateAH           Verb = "ibv_create_ah"
	DestroyAH          Verb = "ibv_destroy_ah"
	CreateCompChannel  Verb = "ibv_create_comp_channel"
	DestroyCompChannel Verb = "ibv_destroy_comp_channel"
	CreateCQ           Verb = "ibv_create_cq"
	CreateCQEx         Verb = "ibv_create_cq_ex"
	ResizeCQ           Verb = "ibv_resize_cq"
	DestroyCQ          Verb = "ibv_destroy_cq"
	PollCQ             Verb = "ibv_poll_cq"
	StartPoll          Verb = "ibv_start_poll"
	ReqNotifyCQ        Verb = "ibv_req_notify_cq"
	GetCQEvent         Verb = "ibv_get_cq_event"
	AckCQEvents        Verb = "ibv_ack_cq_events"
	CreateSRQ          Verb = "ibv_create_srq"
	QuerySRQ           Verb = "ibv_query_srq"
	ModifySRQ          Verb = "ibv_modify_srq"
	DestroySRQ         Verb = "ibv_destroy_srq"
	PostSRQRecv        Verb = "ibv_post_srq_recv"
	CreateQP           Verb = "ibv_create_qp"
	QueryQP            Verb = "ibv_query_qp"
	ModifyQP           Verb = "ibv_modify_qp"
	DestroyQP          Verb = "ibv_destroy_qp"
	PostSend           Verb = "ibv_post_send"
	PostRecv           Verb = "ibv_post_recv"
	GetAsyncEvent      Verb = "ibv_get_async_event"
	AckAsyncEvent      Verb = "ibv_ack_async_event"
)

// Verbs returns every verb that a provider may call, in the order of an object's
// life.
func Verbs() []Verb {
	return []Verb{
		GetDeviceList, OpenDevice, QueryDevice, QueryDeviceEx, QueryPort, QueryGIDTable, QueryPKey,
		AllocPD, RegMR, CreateAH, CreateCompChannel,
		CreateCQ, CreateCQEx, ReqNotifyCQ, GetCQEvent, AckCQEvents, PollCQ, StartPoll, ResizeCQ,
		CreateSRQ, QuerySRQ, ModifySRQ, PostSRQRecv,
		CreateQP, QueryQP, ModifyQP, PostSend, PostRecv,
		GetAsyncEvent, AckAsyncEvent,
		DestroyQP, DestroySRQ, DestroyCQ, DestroyCompChannel,
		DestroyAH, DeregMR, DeallocPD, CloseDevice,
	}
}

// A Tracer sees each verb before and after a provider calls it. A process
// that hangs or dies inside a verb has thus named it. Its methods are called one after
// the other, from the goroutine that calls the verb; of a verb that hangs in
// [Device].Measure, Begin is called from another one meanwhile.
type Tracer interface {
	// Begin is called immediately before the verb.
	Begin(v Verb)
	// End is called after the verb returned.
	End(c Call)
}

// Call is one finished call of a verb.
type Call struct {
	Verb Verb
	// Began is when the C function was entered, on the clock of Duration; zero if it was not.
	Began time.Duration
	// Duration is the time inside the C function, by CLOCK_MONOTONIC read next
	// to the call.
	Duration time.Duration
	// Errno is 0 when the call succeeded.
	Errno syscall.Errno
}

// NopTracer is a Tracer that ignores everything.
type NopTracer struct{}

// Begin implements Tracer.
func (NopTracer) Begin(Verb) {}

// End implements Tracer.
func (NopTracer) End(Call) {}
