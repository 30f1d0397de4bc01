package errata

import "strings"

// The modes that checks distinguish, next to the names of sizes.
const (
	// ModeAccepted: what must be refused is accepted.
	ModeAccepted = "accepted"
	// ModeRefused: what must be accepted is refused.
	ModeRefused = "refused"
	// ModeInError: the work request was posted to a QP that was in the error state by then.
	ModeInError = "in_error"
	// ModeArmed: the limit of an SRQ is armed by its creation, or again after its event.
	ModeArmed = "armed"
	// ModeUnsent: what a QP was given for inline data cannot be sent as such.
	ModeUnsent = "unsent"
	// ModeEnd: the process died of, or hung in, what must work.
	ModeEnd = "end"
)

// breaks returns an erratum of all releases. Modes are separated by spaces. Empty means any.
func breaks(driver, contract, modes, what, source string) Erratum {
	return Erratum{Driver: driver, Contract: contract, Modes: strings.Fields(modes), What: what, Source: source}
}

// All returns all errata, sorted by driver. Each was read in the source that it names:
// rdma-core 44 and its master of early 2026, Linux 6.1 and 6.12. SinceLibrary and FixedInLibrary
// were read in that release and in the one before. Those of rxe and siw were also seen on devices.
func All() []Erratum {
	const (
		bnxtResizes       = "When the kernel refuses to resize a queue, as Linux 6.1 always does, the library frees memory of the queue that is still in use."
		bnxtResizesSource = "rdma-core, since d035125e3 and still in 64; 46 to 50 free the new queue, and before there is no resizing: bnxt_re_resize_cq in providers/bnxt_re/verbs.c"
	)
	return []Erratum{
		{
			Driver: "bnxt_re", Contract: "cq_destroy_busy", Modes: []string{ModeEnd}, SinceLibrary: "50",
			What:   "On adapters with toggle pages (Thor2), the library unmaps that of the queue before the kernel refuses to destroy it: the next ibv_req_notify_cq ends the process.",
			Source: "rdma-core, since d5d79c8f5 and still in 64: bnxt_re_destroy_cq in providers/bnxt_re/verbs.c",
		},
		{
			Driver: "bnxt_re", Contract: "cq_resize_at_least_requested", Modes: []string{ModeEnd}, SinceLibrary: "51",
			What:   bnxtResizes,
			Source: bnxtResizesSource,
		},
		{
			Driver: "bnxt_re", Contract: "cq_resize_too_small_refused", Modes: []string{ModeEnd}, SinceLibrary: "51",
			What:   bnxtResizes,
			Source: bnxtResizesSource,
		},
		{
			Driver: "bnxt_re", Contract: "cq_resize_keeps_completions", Modes: []string{ModeEnd}, SinceLibrary: "51",
			What:   bnxtResizes,
			Source: bnxtResizesSource,
		},
		breaks("bnxt_re", "srq_reports_actual", "",
			"Creation leaves max_wr as requested; the query reports the slots of the queue, which are at least one more.",
			"Linux: bnxt_re_create_srq and bnxt_re_query_srq in drivers/infiniband/hw/bnxt_re/ib_verbs.c"),
		{
			Driver: "bnxt_re", Contract: "srq_limit_event", FixedIn: "6.17",
			What:   "ibv_modify_srq only records the limit: the adapter is armed when a receive is posted later, with more receives than the limit by then.",
			Source: "rdma-core, since 602bb7ce1: bnxt_re_modify_srq and bnxt_re_post_srq_recv in providers/bnxt_re/verbs.c. Linux: bnxt_qplib_modify_srq and bnxt_qplib_srq_arm_db in drivers/infiniband/hw/bnxt_re/qplib_fp.c also arm it, in older kernels by a doorbell without a type; from 666bce0bd7e7 on (6.17, and stable releases of August 2025) whatever the queue holds. Not seen on an adapter",
		},
		breaks("bnxt_re", "srq_limit_disarmed", ModeArmed,
			"Where the kernel arms the limit in ibv_modify_srq, the library arms it again when receives are posted later: a second event comes.",
			"rdma-core, since 602bb7ce1: bnxt_re_modify_srq and bnxt_re_post_srq_recv in providers/bnxt_re/verbs.c; Linux: bnxt_re_modify_srq in drivers/infiniband/hw/bnxt_re/ib_verbs.c. Not seen on an adapter"),
		breaks("bnxt_re", "qp_reports_actual", "",
			"Creation leaves the numbers of work requests as requested; the query reports the slots of the queues.",
			"Linux: bnxt_re_init_rq_attr, bnxt_re_init_sq_attr and bnxt_re_query_qp in drivers/infiniband/hw/bnxt_re/ib_verbs.c"),
		breaks("bnxt_re", "qp_recv_caps_ignored_with_srq", "max_recv_wr max_recv_sge",
			"The sizes of the receive queue are checked against the limits although the queue pair has none.",
			"rdma-core: bnxt_re_check_qp_limits in providers/bnxt_re/verbs.c; Linux: bnxt_re_test_qp_limits in drivers/infiniband/hw/bnxt_re/ib_verbs.c"),
		breaks("bnxt_re", "notify_any", ModeInError,
			"The adapter completes nothing posted to a queue pair in the error state: the library makes up the completion when it polls, and no event comes.",
			"rdma-core, later than 44, which refuses to post a send: bnxt_re_poll_flush_wcs in providers/bnxt_re/verbs.c; Linux: bnxt_qplib_post_send in drivers/infiniband/hw/bnxt_re/qplib_fp.c, which raises events of its own for the queue pairs of the kernel"),
		{
			Driver: "bnxt_re", Contract: "notify_one_shot", FixedInLibrary: "46",
			What:   "The first arming of a queue is also kept for the next ibv_poll_cq, which arms it again: a second event comes.",
			Source: "rdma-core, since 0b72e02a1 of 2018, until 7a2bb5492: bnxt_re_arm_cq and bnxt_re_poll_cq in providers/bnxt_re/verbs.c",
		},
		breaks("cxgb4", "notify_requires_arming", "",
			"The kernel raises an event on each completion queue of a queue pair that goes to the error state, armed or not.",
			"Linux: flush_qp in drivers/infiniband/hw/cxgb4/qp.c (6.1)"),
		breaks("cxgb4", "notify_one_shot", "",
			"Such an event also comes on a queue that was not armed again.",
			"Linux: flush_qp in drivers/infiniband/hw/cxgb4/qp.c (6.1)"),
		{
			Driver: "efa", Contract: "cq_destroy_busy", Modes: []string{ModeEnd},
			FixedInLibrary: "37.12 38.11 39.10 40.9 41.9 42.9 43.8 44.8 45.7 46.6 47.5 48",
			What:           "The library unmaps the queue before the kernel refuses to destroy it: the next ibv_poll_cq ends the process.",
			Source:         "rdma-core, until 884716f17, which the stable branches have since January 2025: efa_destroy_cq in providers/efa/verbs.c",
		},
		breaks("erdma", "qp_reports_actual", "",
			"Creation leaves the sizes as requested; the query reports those of the queues, and always the same inline size.",
			"Linux: erdma_create_qp and erdma_query_qp in drivers/infiniband/hw/erdma/erdma_verbs.c"),
		{
			Driver: "hns", Contract: "cq_at_least_requested", Modes: []string{"cqe"}, MaxShortfall: 1,
			What:   "cqe is the index of the last entry: one less than the queue has.",
			Source: "Linux: set_cq_param in drivers/infiniband/hw/hns/hns_roce_cq.c (6.1 and 6.12)",
		},
		{
			Driver: "hns", Contract: "cq_ex_at_least_requested", Modes: []string{"cqe"}, MaxShortfall: 1,
			What:   "cqe is the index of the last entry: one less than the queue has.",
			Source: "Linux: set_cq_param in drivers/infiniband/hw/hns/hns_roce_cq.c (6.1 and 6.12)",
		},
		{
			Driver: "hns", Contract: "qp_at_least_requested", Modes: []string{ModeUnsent}, SinceLibrary: "32",
			FixedInLibrary: "32.9 33.9 34.8 35.7 36.7 37.6 38.5 39.4 40.3 41.3 42.3 43.2 44.2 45.1 46",
			What:           "A send takes no more inline data than 16 bytes for each scatter/gather element that the queue pair has, whatever size it was given.",
			Source:         "rdma-core, since b7814b7b9, until 2aff0d550 and 81fa88936 of February 2023, which the stable branches have too: fill_ext_sge_inl_data in providers/hns/hns_roce_u_hw_v2.c",
		},
		breaks("hns", "qp_at_least_requested", "max_inline_data",
			"More inline data than the adapter supports is reduced to that instead of refused.",
			"rdma-core: get_max_inline_data in providers/hns/hns_roce_u_verbs.c"),
		breaks("hns", "qp_reports_actual", "max_send_sge",
			"A send takes more scatter/gather elements than were asked for, because inline data uses their space: creation leaves max_send_sge as requested, and the query reports what a send takes.",
			"Linux 6.18 and 6.12.58: set_user_sq_size in drivers/infiniband/hw/hns/hns_roce_qp.c, which wrote it back before; rdma-core, later than 44.0: set_ext_sge_param and hns_roce_u_query_qp in providers/hns/hns_roce_u_verbs.c"),
		breaks("hns", "qp_recv_caps_ignored_with_srq", "max_recv_wr max_recv_sge",
			"The sizes of the receive queue are checked against the limits although the queue pair has none.",
			"rdma-core: verify_qp_create_cap in providers/hns/hns_roce_u_verbs.c"),
		breaks("irdma", "qp_reports_actual", "max_send_wr max_recv_wr",
			"With the older of two ABIs, the query reports the whole queues, and creation the part a program may use.",
			"rdma-core: irdma_ucreate_qp in providers/irdma/uverbs.c; Linux: irdma_setup_umode_qp in drivers/infiniband/hw/irdma/verbs.c"),
		breaks("irdma", "cq_resize_too_small_refused", ModeAccepted,
			"Neither the library nor the kernel checks what is in the queue. The completions in it stay in the old one, from which the library polls them first.",
			"rdma-core: irdma_uresize_cq and __irdma_upoll_cq in providers/irdma/uverbs.c; Linux: irdma_resize_cq in drivers/infiniband/hw/irdma/verbs.c"),
		breaks("mana", "qp_at_least_requested", ModeUnsent,
			"Inline data of any size is accepted, and IBV_SEND_INLINE is ignored: what is sent is read from memory by its L_Key.",
			"rdma-core, later than 44: mana_post_send and gdma_write_sge in providers/mana/wr.c"),
		breaks("mana", "cq_at_least_requested", "cqe",
			"The kernel does not say how many entries a queue has: cqe is 0.",
			"Linux: mana_ib_create_cq in drivers/infiniband/hw/mana/cq.c (6.12); rdma-core, later than 44: mana_create_cq in providers/mana/cq.c"),
		{
			Driver: "mana", Contract: "cq_comp_vector_accepted", Modes: []string{ModeRefused}, FixedInLibrary: "53",
			What:   "The program must allocate the memory of a completion queue (manadv_set_context_attr): otherwise ibv_create_cq fails with EINVAL.",
			Source: "rdma-core, since 44, the first with mana, until e3ddaeb62: mana_create_cq in providers/mana/mana.c",
		},
		breaks("mlx4", "qp_srq_type_restricted", ModeAccepted,
			"A UC queue pair with a shared receive queue is created.",
			"rdma-core: create_qp_ex in providers/mlx4/verbs.c; Linux: create_qp_common in drivers/infiniband/hw/mlx4/qp.c, neither of which looks"),
		breaks("mlx4", "qp_recv_caps_ignored_with_srq", "max_recv_wr max_recv_sge",
			"The sizes of the receive queue are checked against the limits although the queue pair has none.",
			"rdma-core: create_qp_ex in providers/mlx4/verbs.c"),
		breaks("mlx5", "cq_resize_too_small_refused", ModeAccepted,
			"Neither the library nor the kernel checks what is in the queue: the firmware decides whether to refuse it. Completions without room overwrite others.",
			"rdma-core: mlx5_resize_cq in providers/mlx5/verbs.c and mlx5_cq_resize_copy_cqes in cq.c; Linux: mlx5_ib_resize_cq in drivers/infiniband/hw/mlx5/cq.c"),
		breaks("mlx5", "qp_at_least_requested", ModeUnsent,
			"A datagram with the most inline data is a request of 64 units of 16 bytes, one more than its six length bits can express: it may complete with loc_qp_op_err. A message 16 bytes shorter fits.",
			"rdma-core: sq_overhead and mlx5_create_qp in providers/mlx5/verbs.c, _mlx5_post_send and wq_sig in providers/mlx5/qp.c"),
		breaks("mlx5", "srq_reports_actual", "max_wr",
			"Creation writes back what a program can post; the query also counts the entries of the library's wait queue.",
			"rdma-core: mlx5_create_srq in providers/mlx5/verbs.c and mlx5_alloc_srq_buf in srq.c; Linux: mlx5_ib_query_srq in drivers/infiniband/hw/mlx5/srq.c"),
		breaks("mlx5", "qp_srq_type_restricted", ModeAccepted,
			"A raw packet queue pair is created but does not use the shared receive queue; for UC the firmware decides.",
			"Linux: qp_has_rq and create_raw_packet_qp in drivers/infiniband/hw/mlx5/qp.c"),
		breaks("mlx5", "qp_recv_caps_ignored_with_srq", "max_recv_wr",
			"max_recv_wr is checked against the limit even without a receive queue.",
			"rdma-core: mlx5_calc_rq_size in providers/mlx5/verbs.c; Linux: set_rq_size in drivers/infiniband/hw/mlx5/qp.c"),
		breaks("ocrdma", "cq_resize_too_small_refused", ModeAccepted,
			"Resizing only records the number, if the queue was created with that many entries.",
			"Linux: ocrdma_resize_cq in drivers/infiniband/hw/ocrdma/ocrdma_verbs.c"),
		breaks("ocrdma", "srq_limit_ignored", ModeArmed+" "+ModeRefused,
			"Creation arms an srq_limit other than 0.",
			"Linux: ocrdma_create_srq in drivers/infiniband/hw/ocrdma/ocrdma_verbs.c"),
		breaks("ocrdma", "qp_reports_actual", "max_send_wr max_recv_wr",
			"Creation leaves the numbers of work requests as requested; the query reports the real sizes.",
			"Linux: ocrdma_get_create_qp_rsp in drivers/infiniband/hw/ocrdma/ocrdma_hw.c and ocrdma_query_qp in ocrdma_verbs.c (6.1)"),
		breaks("ocrdma", "notify_one_shot", "",
			"The first arming of a queue is also kept for the next ibv_poll_cq, which arms it again: a second event comes.",
			"rdma-core 44: ocrdma_arm_cq and ocrdma_poll_cq in providers/ocrdma/ocrdma_verbs.c"),
		breaks("ocrdma", "qp_recv_caps_ignored_with_srq", "max_recv_sge",
			"max_recv_sge is checked against the limit even without a receive queue.",
			"Linux: ocrdma_check_qp_params in drivers/infiniband/hw/ocrdma/ocrdma_verbs.c"),
		breaks("qedr", "srq_reports_actual", "",
			"The query reports the maxima of the device, whatever the queue has.",
			"Linux: qedr_query_srq in drivers/infiniband/hw/qedr/verbs.c"),
		breaks("qedr", "srq_limit_disarmed", "",
			"The query reports the limit that was set last, whether it is armed or not.",
			"Linux: qedr_query_srq and qedr_modify_srq in drivers/infiniband/hw/qedr/verbs.c"),
		breaks("qedr", "qp_reports_actual", "max_inline_data",
			"The query reports the most inline data of the device, whatever the queue pair has.",
			"Linux: qedr_query_qp in drivers/infiniband/hw/qedr/verbs.c"),
		breaks("qedr", "qp_recv_caps_ignored_with_srq", "max_recv_sge",
			"max_recv_sge is checked against the limit even without a receive queue.",
			"Linux: qedr_check_qp_attrs in drivers/infiniband/hw/qedr/verbs.c"),
		{
			Driver: "rxe", Contract: "cq_ex_batch_keeps_completions", FixedInLibrary: "55",
			What:   "When no more completions are found, both ibv_next_poll and ibv_end_poll take the last one off the queue: the next batch starts behind it, with whatever is there.",
			Source: "rdma-core, since e3af50b60, the first with extended queues, until b78b414e0: cq_next_poll and cq_end_poll in providers/rxe/rxe.c",
		},
		{
			Driver: "rxe", Contract: "srq_reports_actual", Modes: []string{"max_wr"}, FixedIn: "6.12",
			What:   "Creation leaves max_wr as requested; the query reports the real size.",
			Source: "Linux 6.1: rxe_srq_from_init in drivers/infiniband/sw/rxe/rxe_srq.c, rxe_query_srq in rxe_verbs.c; 6.12 writes it back",
		},
		breaks("rxe", "srq_limit_ignored", ModeArmed,
			"Creation arms srq_limit.",
			"Linux: rxe_srq_from_init in drivers/infiniband/sw/rxe/rxe_srq.c (6.1 and 6.12)"),
		{
			Driver: "rxe", Contract: "qp_reports_actual", Modes: []string{"max_send_wr", "max_recv_wr"}, FixedIn: "6.12",
			What:   "Creation leaves the numbers of work requests as requested; the query reports the real sizes.",
			Source: "Linux 6.1: rxe_qp_init_req, rxe_qp_init_resp and rxe_qp_to_init in drivers/infiniband/sw/rxe/rxe_qp.c; 6.12 writes them back",
		},
		breaks("rxe", "qp_srq_type_restricted", ModeAccepted,
			"A UC queue pair with a shared receive queue is created.",
			"Linux: rxe_qp_chk_init in drivers/infiniband/sw/rxe/rxe_qp.c, which does not look (6.1 and 6.12)"),
		breaks("rxe", "notify_solicited_delivers_errors", "",
			"Flushed sends complete as if unsolicited; with newer kernels flushed receives do too.",
			"Linux: do_complete (6.1) and flush_send_wqe (6.12) in drivers/infiniband/sw/rxe/rxe_comp.c, flush_recv_wqe (6.12) in rxe_resp.c, which give rxe_cq_post 0 for solicited"),
		breaks("siw", "cq_destroy_busy", ModeEnd,
			"The library unmaps the queue before the kernel refuses to destroy it: the next ibv_req_notify_cq or ibv_poll_cq ends the process.",
			"rdma-core: siw_destroy_cq in providers/siw/siw.c"),
		breaks("siw", "srq_limit_ignored", ModeArmed+" "+ModeRefused,
			"Creation arms srq_limit, and fails if it is above max_wr.",
			"Linux: siw_create_srq in drivers/infiniband/sw/siw/siw_verbs.c (6.1 and 6.12)"),
		breaks("siw", "qp_reports_actual", "max_send_wr max_recv_wr max_inline_data",
			"Creation leaves the sizes as requested; the query reports the real ones, and always the same inline size.",
			"Linux: siw_create_qp and siw_query_qp in drivers/infiniband/sw/siw/siw_verbs.c (6.1 and 6.12)"),
		breaks("siw", "qp_recv_caps_ignored_with_srq", "max_recv_wr max_recv_sge",
			"The sizes of the receive queue are checked against the limits although the queue pair has none.",
			"Linux: siw_create_qp in drivers/infiniband/sw/siw/siw_verbs.c (6.1 and 6.12)"),
		breaks("siw", "notify_solicited_delivers_errors", "",
			"No receive completion counts as solicited, and no send completion unless the send asks for it.",
			"Linux: siw_rqe_complete, siw_sqe_complete and siw_cq_notify_now in drivers/infiniband/sw/siw/siw_qp.c (6.1 and 6.12)"),
		breaks("vmw_pvrdma", "qp_at_least_requested", "max_inline_data "+ModeUnsent,
			"Inline data is not refused, but max_inline_data is written back as 0.",
			"Linux: pvrdma_create_qp in drivers/infiniband/hw/vmw_pvrdma/pvrdma_qp.c (6.12)"),
		breaks("vmw_pvrdma", "qp_reports_actual", "",
			"The query reports no sizes of the receive queue until the queue pair leaves RESET.",
			"Linux: pvrdma_query_qp in drivers/infiniband/hw/vmw_pvrdma/pvrdma_qp.c (6.12); rdma-core: pvrdma_query_qp in providers/vmw_pvrdma/qp.c, which puts in those of the send queue alone"),
	}
}
