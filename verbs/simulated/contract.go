package simulated

// The contracts that a device can be made to break: sentences of the manual on
// which programs rely. Each comment says how the device breaks it, which is
// decided by behaviour. It breaks that one only: what the others say can still
// be seen to hold.
const (
	// A CQ is said to have one entry less than was asked for. Like every size that
	// is misreported here it is not really that small, so that no work fails.
	cqAtLeastRequested = "cq_at_least_requested"
	// A CQ of ibv_create_cq_ex is said to have one entry less than was asked for.
	cqExAtLeastRequested = "cq_ex_at_least_requested"
	// A batch of completions that came to the end of an extended CQ leaves the last one of
	// them there.
	cqExBatchKeepsCompletions = "cq_ex_batch_keeps_completions"
	// The last completion vector is refused.
	cqCompVectorAccepted = "cq_comp_vector_accepted"
	// Completion vectors that the device does not have are taken.
	cqCompVectorRejected = "cq_comp_vector_rejected"
	// A CQ is destroyed although QPs use it. Their completions are lost.
	cqDestroyBusy = "cq_destroy_busy"
	// A CQ that was moderated at any time raises no events.
	cqModerationNotifies = "cq_moderation_notifies"
	// A CQ is said to have one entry less than it was to be resized to.
	cqResizeAtLeastRequested = "cq_resize_at_least_requested"
	// A CQ is resized to fewer entries than there are completions in it, which stay.
	cqResizeTooSmallRefused = "cq_resize_too_small_refused"
	// The oldest completion is lost when its CQ is resized.
	cqResizeKeepsCompletions = "cq_resize_keeps_completions"
	// A channel is destroyed although CQs use it. Their events are lost.
	channelDestroyBusy = "channel_destroy_busy"
	// Events arrive on another channel: the newest that has a CQ, if there is one.
	channelSteering = "channel_steering"
	// Creation of an SRQ writes back, and queries say, one work request less than
	// was asked for.
	srqAtLeastRequested = "srq_at_least_requested"
	// Queries of an SRQ say one work request more than creation wrote back.
	srqReportsActual = "srq_reports_actual"
	// Creation of an SRQ fails if srq_limit is above max_wr.
	srqLimitIgnored = "srq_limit_ignored"
	// The event of an SRQ's limit comes one work request too late.
	srqLimitEvent = "srq_limit_event"
	// The limit of an SRQ stays armed after its event.
	srqLimitDisarmed = "srq_limit_disarmed"
	// An SRQ is destroyed although QPs use it.
	srqDestroyBusy = "srq_destroy_busy"
	// Creation of a QP writes back, and queries say, one work request less than
	// was asked for, in each queue.
	qpAtLeastRequested = "qp_at_least_requested"
	// Queries of a QP say one work request more than creation wrote back, in each
	// queue.
	qpReportsActual = "qp_reports_actual"
	// Each type of QP can be created with an SRQ.
	qpSRQTypeRestricted = "qp_srq_type_restricted"
	// Creation of a QP with an SRQ fails if max_recv_wr or max_recv_sge is above
	// the limit of the device.
	qpRecvCapsIgnoredWithSRQ = "qp_recv_caps_ignored_with_srq"
	// A successful send leaves a completion although neither it nor the QP asks
	// for one.
	qpSQSigAll = "qp_sq_sig_all"
	// A QP is destroyed although it is attached to a multicast group.
	qpDestroyBusyMulticast = "qp_destroy_busy_multicast"
	// Creation of an SRQ of an XRC domain writes back one work request less than was asked
	// for.
	xrcAtLeastRequested = "xrc_at_least_requested"
	// A message to a multicast group arrives only at the first QP that was attached.
	multicastDelivers = "multicast_delivers"
	// A QP that is attached to a multicast group once more receives one more copy.
	multicastSingleCopy = "multicast_single_copy"
	// Armed for any completion, a successful one that is not solicited raises no
	// event.
	notifyAny = "notify_any"
	// After its event, a CQ that was not armed again raises more of them.
	notifyOneShot = "notify_one_shot"
	// A CQ raises events before it is armed for the first time.
	notifyRequiresArming = "notify_requires_arming"
	// Armed for solicited completions, a successful one that is not solicited
	// raises an event.
	notifySolicitedSkipsUnsolicited = "notify_solicited_skips_unsolicited"
	// Armed for solicited completions, a solicited receive raises no event.
	notifySolicitedDeliversSolicited = "notify_solicited_delivers_solicited"
	// Armed for solicited completions, an unsuccessful one raises no event.
	notifySolicitedDeliversErrors = "notify_solicited_delivers_errors"
	// Events carry another cq_context than that of their CQ.
	notifyIdentifiesCQ = "notify_identifies_cq"
)

// Contracts returns the names of the contracts that DeviceProfile.Violate can
// list: every promise of the manual that the simulation knows how to break.
func Contracts() []string {
	return []string{
		cqAtLeastRequested, cqExAtLeastRequested, cqExBatchKeepsCompletions, cqCompVectorAccepted, cqCompVectorRejected, cqDestroyBusy,
		cqModerationNotifies, cqResizeAtLeastRequested, cqResizeTooSmallRefused, cqResizeKeepsCompletions,
		channelDestroyBusy, channelSteering,
		srqAtLeastRequested, srqReportsActual, srqLimitIgnored,
		srqLimitEvent, srqLimitDisarmed, srqDestroyBusy,
		qpAtLeastRequested, qpReportsActual, qpSRQTypeRestricted, qpRecvCapsIgnoredWithSRQ,
		qpSQSigAll, qpDestroyBusyMulticast, multicastDelivers, multicastSingleCopy, xrcAtLeastRequested,
		notifyAny, notifyOneShot, notifyRequiresArming, notifySolicitedSkipsUnsolicited,
		notifySolicitedDeliversSolicited, notifySolicitedDeliversErrors, notifyIdentifiesCQ,
	}
}
