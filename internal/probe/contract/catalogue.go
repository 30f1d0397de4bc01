package contract

import "rdma_exporter/internal/state"

// Contract is one promise of the libibverbs man pages, and how a device is checked
// against it.
type Contract struct {
	// Name is the value of the label.
	Name     string
	Severity state.Severity
	// ManPage is the page of the verb, such as ibv_create_cq(3).
	ManPage string
	// Quote is the sentence of that page that is checked. It is empty for a convention,
	// which no page promises and whose severity is info.
	Quote string
	// Promise says in our own words what must hold.
	Promise string
	// Method says how it is checked.
	Method string
	// Consequence is what a violation means to an application, and Remedy what to
	// do about it.
	Consequence, Remedy string

	// check observes whether the device keeps the contract.
	check func(*check)
}

// Catalogue returns every contract, in the order in which they are checked.
func Catalogue() []Contract {
	return []Contract{
		{
			Name: "cq_at_least_requested", Severity: state.SeverityCritical, ManPage: "ibv_create_cq(3)",
			Quote:       "creates a completion queue (CQ) with at least cqe entries",
			Promise:     "A completion queue has at least as many entries as were asked for; its cqe says how many.",
			Method:      "Completion queues of many sizes, including around powers of two, are created; the cqe of each is compared with what was asked for.",
			Consequence: "A program that sizes its queue by its outstanding work requests overruns it: completions are lost, and the queue pairs on it break.",
			Remedy:      "Ask for more entries than needed, check cqe after creating, and report the driver's version to its vendor.",
			check:       cqAtLeastRequested,
		},
		{
			Name: "cq_ex_at_least_requested", Severity: state.SeverityCritical, ManPage: "ibv_create_cq_ex(3)",
			Quote:       "may create a CQ with size greater than or equal to the requested size.",
			Promise:     "An extended completion queue has at least as many entries as were asked for, and the fields asked for with wc_flags can be read from its completions.",
			Method:      "Extended queues of several sizes are created with the standard fields, and with the completion timestamp if ibv_query_device_ex says the device has one (completion_timestamp_mask); the cqe of each is compared with what was asked for. Two messages over the loopback path are polled with ibv_start_poll: number of the queue pair and length must be right, and timestamps stay within the mask and never go back; of a clock that starts again within seconds (hca_core_clock), timestamps are not checked. Without a loopback path only the sizes count. Not every library has extended queues.",
			Consequence: "A program overruns its queue and loses completions, or calculates with wrong numbers or times.",
			Remedy:      "Use ibv_create_cq and ibv_poll_cq, with timestamps of the host; report the versions of driver and rdma-core to the vendor.",
			check:       cqExAtLeastRequested,
		},
		{
			Name: "cq_ex_batch_keeps_completions", Severity: state.SeverityCritical, ManPage: "ibv_create_cq_ex(3)",
			Quote:       "This function is called in order to get the next work completion.",
			Promise:     "A batch of completions on an extended queue is ended with ibv_end_poll, also after ibv_next_poll found no more (ENOENT): none of them is lost or polled twice.",
			Method:      "Six flushed work requests complete on an extended queue and are polled as one batch until ibv_next_poll finds no more; each must be polled once, in the order of the work requests, before and after another one completes. A loss counts if it repeats and batches of one completion lose none. Not every library has extended queues.",
			Consequence: "A program takes old entries of the queue for completions, or loses new ones: it frees what is still in use, or waits for ever.",
			Remedy:      "End each batch before ibv_next_poll fails, by polling one completion at a time; update rdma-core.",
			check:       cqExBatchKeepsCompletions,
		},
		{
			Name: "cq_comp_vector_accepted", Severity: state.SeverityWarning, ManPage: "ibv_create_cq(3)",
			Quote:       "it must be at least zero and less than context->num_comp_vectors.",
			Promise:     "Every completion vector from 0 to num_comp_vectors minus one can be used.",
			Method:      "A completion queue with a channel is created on each vector that may be used: four, unless --notification.vectors is set. If none can be created, there is no verdict.",
			Consequence: "A program that spreads its queues over the vectors fails to start, or wakes all its threads on a few CPUs.",
			Remedy:      "Compare num_comp_vectors with the interrupts of the adapter (/proc/interrupts); reload the driver after their number changes.",
			check:       cqCompVectorAccepted,
		},
		{
			Name: "cq_comp_vector_rejected", Severity: state.SeverityInfo, ManPage: "ibv_create_cq(3)",
			Promise:     "A completion vector below 0 or not below num_comp_vectors is invalid, and creating a queue on it fails.",
			Method:      "Queues are created on vector -1 and on vector num_comp_vectors; both must fail, with any errno, while one on a vector in between succeeds.",
			Consequence: "A wrong choice of vector goes unnoticed: events come by another vector, or not at all.",
			Remedy:      "Check the range in the application; the device does not.",
			check:       cqCompVectorRejected,
		},
		{
			Name: "cq_destroy_busy", Severity: state.SeverityCritical, ManPage: "ibv_create_cq(3)",
			Quote:       "fails if any queue pair is still associated with this CQ.",
			Promise:     "A completion queue cannot be destroyed while a queue pair uses it. A refusal changes nothing.",
			Method:      "The exporter tries to destroy the send and receive CQs of an existing RC queue pair, both with a channel, and an unused one, which must succeed. Afterwards the queue pair must answer a query, an armed queue must get the event of a completing work request, and all four must be destroyable. Where such a completion never raises an event, the CQs have no channel.",
			Consequence: "The device may write completions into freed memory, or a refused destruction leaves objects that can no longer be used or destroyed.",
			Remedy:      "Destroy queue pairs before their completion queues; update the driver.",
			check:       cqDestroyBusy,
		},
		{
			Name: "cq_resize_at_least_requested", Severity: state.SeverityCritical, ManPage: "ibv_resize_cq(3)",
			Quote:       "resizes the completion queue (CQ) cq to have at least cqe entries.",
			Promise:     "A resized completion queue has at least as many entries as were asked for; its cqe says how many.",
			Method:      "One completion queue is enlarged and shrunk to sizes around powers of two; its cqe is compared with what was asked for each time. One that was enlarged to 256 entries or more is filled with as many flushed work requests: none may be lost, unless a queue created with as many entries loses some, too. Not every device resizes.",
			Consequence: "A program that enlarges its queue for more outstanding work requests overruns it: completions are lost, and the queue pairs on it break.",
			Remedy:      "Check cqe after resizing, ask for more than needed, and report the driver's version to its vendor.",
			check:       cqResizeAtLeastRequested,
		},
		{
			Name: "cq_resize_too_small_refused", Severity: state.SeverityInfo, ManPage: "ibv_resize_cq(3)",
			Promise:     "A completion queue cannot be made smaller than the number of completions in it.",
			Method:      "A queue holding unpolled completions is resized to one entry; that must fail, with any errno, or leave room for them, while enlarging it succeeds. A success counts only if it repeats after a longer wait for the completions.",
			Consequence: "A program that shrinks its queue during work gets no warning; completions may be lost, or the queue stays as it was.",
			Remedy:      "Poll the queue until it is empty before shrinking it, and check cqe afterwards.",
			check:       cqResizeTooSmallRefused,
		},
		{
			Name: "cq_resize_keeps_completions", Severity: state.SeverityInfo, ManPage: "ibv_resize_cq(3)",
			Promise:     "Completions that are in a queue when it is resized are polled from it afterwards, in order.",
			Method:      "A queue with completions in it is enlarged, gets more of them, is shrunk, and gets another: each must be polled once, in the order of the work requests. An error counts only if a queue that keeps its size does not show it.",
			Consequence: "Completions are lost or come twice: a program waits for ever, or frees what is still in use.",
			Remedy:      "Create a larger queue from the start, or poll the queue until it is empty before resizing it.",
			check:       cqResizeKeepsCompletions,
		},
		{
			Name: "channel_destroy_busy", Severity: state.SeverityWarning, ManPage: "ibv_create_comp_channel(3)",
			Quote:       "fails if any CQs are still associated with the completion event channel being destroyed.",
			Promise:     "A completion channel cannot be destroyed while a completion queue uses it.",
			Method:      "The exporter tries to destroy the channel of an existing completion queue. Afterwards it must be possible to arm and destroy the queue, then destroy the channel.",
			Consequence: "A queue is left without its file descriptor: its events go nowhere, and its destruction touches freed memory.",
			Remedy:      "Destroy completion queues before their channel; update rdma-core.",
			check:       channelDestroyBusy,
		},
		{
			Name: "channel_steering", Severity: state.SeverityCritical, ManPage: "ibv_create_comp_channel(3)",
			Quote:       "When a completion event is generated for a completion queue (CQ), the event is delivered via the completion channel attached to that CQ.",
			Promise:     "The event of a completion queue comes on the channel that is attached to it, so that several channels can steer events to several threads.",
			Method:      "Two queues with a channel each are armed. A completion on one must show on its channel and not on the other; then the other way round.",
			Consequence: "The thread that sleeps on the channel is not woken, and another wakes for nothing: the program hangs.",
			Remedy:      "Use one channel for all queues until the driver is fixed.",
			check:       channelSteering,
		},
		{
			Name: "srq_at_least_requested", Severity: state.SeverityCritical, ManPage: "ibv_create_srq(3)",
			Quote:       "the values of max_wr and max_sge will be greater than or equal to the values requested.",
			Promise:     "A shared receive queue has at least as many work requests and scatter entries as were asked for; its real sizes are written back.",
			Method:      "Shared receive queues of several sizes are created; what was written back is compared with what was asked for.",
			Consequence: "A program runs out of receives to post in the middle of its work.",
			Remedy:      "Read the sizes that were written back, and post no more than that.",
			check:       srqAtLeastRequested,
		},
		{
			Name: "srq_reports_actual", Severity: state.SeverityWarning, ManPage: "ibv_create_srq(3)",
			Quote:       "will update the srq_init_attr struct with the original values of the SRQ that was created",
			Promise:     "Creating a shared receive queue writes back the sizes that the queue really has.",
			Method:      "Shared receive queues of several sizes are created; what was written back is compared with what ibv_query_srq reports.",
			Consequence: "A program that trusts the wrong figure uses less than it has, or overestimates what it has.",
			Remedy:      "Post no more than the smaller of the two.",
			check:       srqReportsActual,
		},
		{
			Name: "srq_limit_ignored", Severity: state.SeverityWarning, ManPage: "ibv_create_srq(3)",
			Quote:       "The limit value of the SRQ (irrelevant for ibv_create_srq)",
			Promise:     "The srq_limit in the attributes is ignored when a shared receive queue is created.",
			Method:      "Queues that differ only in srq_limit, from 0 to the largest number, must all be created with the same sizes, and ibv_query_srq must show none with an armed limit. Where the query is not supported, creation alone decides.",
			Consequence: "A structure that was not cleared makes creation fail, or arms a limit that nobody asked for: an IBV_EVENT_SRQ_LIMIT_REACHED comes unexpectedly.",
			Remedy:      "Set srq_limit to 0 when creating; arm it with ibv_modify_srq.",
			check:       srqLimitIgnored,
		},
		{
			Name: "srq_limit_event", Severity: state.SeverityCritical, ManPage: "ibv_modify_srq(3)",
			Quote:       "Modifying the srq_limit arms the SRQ to produce an IBV_EVENT_SRQ_LIMIT_REACHED \"low watermark\" asynchronous event once the number of WRs in the SRQ drops below srq_limit.",
			Promise:     "Modifying srq_limit arms a shared receive queue: an IBV_EVENT_SRQ_LIMIT_REACHED comes once it holds fewer work requests than that, and not before.",
			Method:      "The limit of a queue with four receives is set to two. Two messages over the loopback path, which leave two receives, must raise no event within a fixed time; the next one must, and the event must name the queue.",
			Consequence: "A program that refills its queue at the event does so too late, or never: senders find no receive, are slowed down or lose their connection.",
			Remedy:      "Set a higher limit, or count receives and refill without waiting for the event; update the driver or firmware.",
			check:       srqLimitEvent,
		},
		{
			Name: "srq_limit_disarmed", Severity: state.SeverityInfo, ManPage: "ibv_modify_srq(3)",
			Promise:     "The limit of a shared receive queue is disarmed by its event: no other event comes until it is armed again, and ibv_query_srq reports 0, as for any unarmed limit (ibv_query_srq(3)).",
			Method:      "After the event of a limit the queue is used up, refilled and used up again over the loopback path: no event may come within a fixed time, and the query must report srq_limit 0. Where the query is not supported, the events alone decide.",
			Consequence: "A program refills its queue twice for one shortage, or believes an unarmed limit is armed and misses the next shortage.",
			Remedy:      "Arm the limit again after each event, whatever the query reports, and ignore events during a refill.",
			check:       srqLimitDisarmed,
		},
		{
			Name: "srq_destroy_busy", Severity: state.SeverityCritical, ManPage: "ibv_create_srq(3)",
			Quote:       "fails if any queue pair is still associated with this SRQ.",
			Promise:     "A shared receive queue cannot be destroyed while a queue pair uses it. A refusal changes nothing.",
			Method:      "The exporter tries to destroy the shared receive queue of an existing RC queue pair. Afterwards it must answer a query, take a receive, and be destroyable once the queue pair is gone.",
			Consequence: "The device may take receives from freed memory.",
			Remedy:      "Destroy queue pairs before their shared receive queue; update the driver.",
			check:       srqDestroyBusy,
		},
		{
			Name: "qp_at_least_requested", Severity: state.SeverityCritical, ManPage: "ibv_create_qp(3)",
			Quote:       "the values will be greater than or equal to the values requested.",
			Promise:     "A queue pair has at least the sizes that were asked for: work requests and scatter/gather elements of both queues, and inline data.",
			Method:      "RC, UC and UD queue pairs of several sizes are created; what was written back is compared with what was asked for.",
			Consequence: "Posting fails with ENOMEM or EINVAL below the depth that the program was given.",
			Remedy:      "Read the sizes that were written back, and post no more than that.",
			check:       qpAtLeastRequested,
		},
		{
			Name: "qp_reports_actual", Severity: state.SeverityWarning, ManPage: "ibv_create_qp(3)",
			Quote:       "will update the qp_init_attr->cap struct with the actual QP values of the QP that was created",
			Promise:     "Creating a queue pair writes back the sizes that it really has.",
			Method:      "RC, UC and UD queue pairs of several sizes are created; what was written back is compared with what ibv_query_qp reports.",
			Consequence: "A program that trusts what was written back uses less than it has, or overestimates what it has.",
			Remedy:      "Take the sizes from ibv_query_qp.",
			check:       qpReportsActual,
		},
		{
			Name: "qp_srq_type_restricted", Severity: state.SeverityInfo, ManPage: "ibv_create_qp(3)",
			Quote:       "will fail if a it is asked to create QP of a type other than IBV_QPT_RC or IBV_QPT_UD associated with an SRQ.",
			Promise:     "Only RC and UD queue pairs can have a shared receive queue.",
			Method:      "UC and raw packet queue pairs, where the device has them, are created with a shared receive queue; each must fail.",
			Consequence: "A program runs here but fails on devices that follow the manual; or the queue is accepted and then not used.",
			Remedy:      "Use shared receive queues with RC and UD only.",
			check:       qpSRQTypeRestricted,
		},
		{
			Name: "qp_recv_caps_ignored_with_srq", Severity: state.SeverityWarning, ManPage: "ibv_create_qp(3)",
			Quote:       "The attributes max_recv_wr and max_recv_sge are ignored by ibv_create_qp() if the QP is to be associated with an SRQ.",
			Promise:     "With a shared receive queue, max_recv_wr and max_recv_sge are ignored when a queue pair is created.",
			Method:      "RC queue pairs with a shared receive queue are created with both sizes 0, and with each above the device's limit; all must succeed.",
			Consequence: "A program that leaves the sizes as they are fails to create its queue pairs.",
			Remedy:      "Set both to 0 with a shared receive queue.",
			check:       qpRecvCapsIgnored,
		},
		{
			Name: "qp_sq_sig_all", Severity: state.SeverityCritical, ManPage: "ibv_create_qp(3)",
			Quote:       "If set, each Work Request (WR) submitted to the SQ generates a completion entry",
			Promise:     "With sq_sig_all each send leaves a completion; without it only those that ask for one do.",
			Method:      "Three sends without IBV_SEND_SIGNALED over the loopback path, on a queue pair with sq_sig_all 1 and on one with 0. With 0 a signalled send follows, whose completion must be the only one.",
			Consequence: "Unexpected completions overrun the completion queue, or a program waits for one that never comes.",
			Remedy:      "Signal each send, and size the completion queue for all of them.",
			check:       qpSignalAll,
		},
		{
			Name: "notify_any", Severity: state.SeverityCritical, ManPage: "ibv_req_notify_cq(3)",
			Quote:       "If the argument solicited_only is zero, a completion event is generated for any new CQE.",
			Promise:     "Armed with solicited_only 0, a completion queue raises an event for any new completion.",
			Method:      "Each on its own armed queue: the receive of a message, a send, and flushed work requests. Without a loopback path, only the last.",
			Consequence: "A program that sleeps until the next event never wakes.",
			Remedy:      "Poll with a timeout as well as waiting for events; update the driver or firmware.",
			check:       notifyAny,
		},
		{
			Name: "notify_one_shot", Severity: state.SeverityWarning, ManPage: "ibv_req_notify_cq(3)",
			Quote:       "Only one completion event will be generated for each call to ibv_req_notify_cq().",
			Promise:     "One request for notification leads to one event.",
			Method:      "A queue is armed once. After the event of the first completion, two more must raise none within a fixed time.",
			Consequence: "Events pile up in the channel; a program that counts them acknowledges the wrong number, and ibv_destroy_cq waits for ever.",
			Remedy:      "Acknowledge each event that ibv_get_cq_event returns, however many there are.",
			check:       notifyOneShot,
		},
		{
			Name: "notify_requires_arming", Severity: state.SeverityWarning, ManPage: "ibv_req_notify_cq(3)",
			Quote:       "Only one completion event will be generated for each call to ibv_req_notify_cq().",
			Promise:     "Without a request for notification there is no event.",
			Method:      "Two completions on a queue that was never armed must raise no event within a fixed time.",
			Consequence: "A program that polls is interrupted for nothing, and its channel fills with events that nobody acknowledges.",
			Remedy:      "Create queues that are only polled without a channel.",
			check:       notifyRequiresArming,
		},
		{
			Name: "notify_solicited_skips_unsolicited", Severity: state.SeverityWarning, ManPage: "ibv_req_notify_cq(3)",
			Quote:       "All other successful receive completions, or any successful send completion is unsolicited.",
			Promise:     "Armed with solicited_only 1, successful sends and receives of unsolicited messages raise no event.",
			Method:      "The receive of a message without the solicited event bit, and a successful send, must raise no event within a fixed time.",
			Consequence: "The program wakes for each message, which the solicited bit was meant to avoid.",
			Remedy:      "None needed for correctness; count wake-ups if the CPU is busy.",
			check:       notifySolicitedSkipsUnsolicited,
		},
		{
			Name: "notify_solicited_delivers_solicited", Severity: state.SeverityCritical, ManPage: "ibv_req_notify_cq(3)",
			Quote:       "A CQE is solicited if it is a receive completion for a message with the Solicited Event header bit set, or if the status is not successful.",
			Promise:     "Armed with solicited_only 1, the receive of a message sent with IBV_SEND_SOLICITED raises an event.",
			Method:      "Such a message over the loopback path must raise an event.",
			Consequence: "A program that sleeps for solicited completions never wakes.",
			Remedy:      "Arm with solicited_only 0.",
			check:       notifySolicitedDeliversSolicited,
		},
		{
			Name: "notify_solicited_delivers_errors", Severity: state.SeverityCritical, ManPage: "ibv_req_notify_cq(3)",
			Quote:       "A CQE is solicited if it is a receive completion for a message with the Solicited Event header bit set, or if the status is not successful.",
			Promise:     "Armed with solicited_only 1, an unsuccessful completion raises an event, because it counts as solicited.",
			Method:      "Work requests are flushed, each on its own armed queue: a send posted to a queue pair in the error state, and a receive whose queue pair enters it. Each that completes must raise an event.",
			Consequence: "A program that sleeps for solicited completions does not notice that its connection broke.",
			Remedy:      "Arm the send queue's completions with solicited_only 0, or poll them with a timeout.",
			check:       notifySolicitedDeliversErrors,
		},
		{
			Name: "notify_identifies_cq", Severity: state.SeverityCritical, ManPage: "ibv_get_cq_event(3)",
			Quote:       "Fills the arguments cq with the CQ that got the event and cq_context with the CQ's context.",
			Promise:     "An event names its completion queue, and carries its cq_context.",
			Method:      "Two queues with different cq_context share a channel. A completion on the second, then on the first, must each bring an event with the right queue and context.",
			Consequence: "The program polls the wrong queue, finds nothing, and sleeps again.",
			Remedy:      "Poll all queues of the channel at each event.",
			check:       notifyIdentifiesCQ,
		},
	}
}
