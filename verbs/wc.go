package verbs

// SendFlags modify a send work request (enum ibv_send_flags).
type SendFlags uint32

// The flags, as enum ibv_send_flags numbers them.
const (
	SendSignaled  SendFlags = 1 << 1
	SendSolicited SendFlags = 1 << 2
	SendInline    SendFlags = 1 << 3
)

// WCFields say what can be read of a completion (enum ibv_create_cq_wc_flags).
type WCFields uint64

// The fields, as enum ibv_create_cq_wc_flags numbers them.
const (
	// WCStandard are those that every completion of ibv_poll_cq has
	// (IBV_WC_STANDARD_FLAGS).
	WCStandard WCFields = 1<<7 - 1
	// WCTimestamp is the time by the clock of the device.
	WCTimestamp WCFields = 1 << 7
)

// CQVerbs returns the verbs that create and poll a CQ whose completions have these fields:
// with any it is an extended one.
func (f WCFields) CQVerbs() (create, poll Verb) {
	if f == 0 {
		return CreateCQ, PollCQ
	}
	return CreateCQEx, StartPoll
}

// WCStatus is how a work request ended. It is a type of its own, not an error of
// a verb: ibv_poll_cq succeeded.
type WCStatus int

// The statuses that matter here, as enum ibv_wc_status numbers them.
const (
	WCSuccess     WCStatus = 0
	WCLocLenErr   WCStatus = 1
	WCLocProtErr  WCStatus = 4
	WCWRFlushErr  WCStatus = 5
	WCRemInvReq   WCStatus = 9
	WCRetryExc    WCStatus = 12
	WCRNRRetryExc WCStatus = 13
	WCGeneralErr  WCStatus = 21
)

// String returns the status as a metric's label has it: success, wr_flush_err.
func (s WCStatus) String() string {
	return name(int(s),
		"success", "loc_len_err", "loc_qp_op_err", "loc_eec_op_err", "loc_prot_err", "wr_flush_err",
		"mw_bind_err", "bad_resp_err", "loc_access_err", "rem_inv_req_err", "rem_access_err", "rem_op_err",
		"retry_exc_err", "rnr_retry_exc_err", "loc_rdd_viol_err", "rem_inv_rd_req_err", "rem_abort_err",
		"inv_eecn_err", "inv_eec_state_err", "fatal_err", "resp_timeout_err", "general_err")
}
