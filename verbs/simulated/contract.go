package simulated

// The contracts that a device can be made to break. docs/reference/simulator.md says how it
// breaks each. It breaks that one only: the others can still be seen to hold. A size that is
// misreported is not really that small, so that no work fails.
const (
	cqAtLeastRequested               = "cq_at_least_requested"
	cqExAtLeastRequested             = "cq_ex_at_least_requested"
	cqExBatchKeepsCompletions        = "cq_ex_batch_keeps_completions"
	cqCompVectorAccepted             = "cq_comp_vector_accepted"
	cqCompVectorRejected             = "cq_comp_vector_rejected"
	cqDestroyBusy                    = "cq_destroy_busy"
	cqResizeAtLeastRequested         = "cq_resize_at_least_requested"
	cqResizeTooSmallRefused          = "cq_resize_too_small_refused"
	cqResizeKeepsCompletions         = "cq_resize_keeps_completions"
	channelDestroyBusy               = "channel_destroy_busy"
	channelSteering                  = "channel_steering"
	srqAtLeastRequested              = "srq_at_least_requested"
	srqReportsActual                 = "srq_reports_actual"
	srqLimitIgnored                  = "srq_limit_ignored"
	srqLimitEvent                    = "srq_limit_event"
	srqLimitDisarmed                 = "srq_limit_disarmed"
	srqDestroyBusy                   = "srq_destroy_busy"
	qpAtLeastRequested               = "qp_at_least_requested"
	qpReportsActual                  = "qp_reports_actual"
	qpSRQTypeRestricted              = "qp_srq_type_restricted"
	qpRecvCapsIgnoredWithSRQ         = "qp_recv_caps_ignored_with_srq"
	qpSQSigAll                       = "qp_sq_sig_all"
	notifyAny                        = "notify_any"
	notifyOneShot                    = "notify_one_shot"
	notifyRequiresArming             = "notify_requires_arming"
	notifySolicitedSkipsUnsolicited  = "notify_solicited_skips_unsolicited"
	notifySolicitedDeliversSolicited = "notify_solicited_delivers_solicited"
	notifySolicitedDeliversErrors    = "notify_solicited_delivers_errors"
	notifyIdentifiesCQ               = "notify_identifies_cq"
)

// Contracts returns the names that DeviceProfile.Violate can list.
func Contracts() []string {
	return []string{
		cqAtLeastRequested, cqExAtLeastRequested, cqExBatchKeepsCompletions, cqCompVectorAccepted,
		cqCompVectorRejected, cqDestroyBusy, cqResizeAtLeastRequested, cqResizeTooSmallRefused,
		cqResizeKeepsCompletions, channelDestroyBusy, channelSteering, srqAtLeastRequested, srqReportsActual,
		srqLimitIgnored, srqLimitEvent, srqLimitDisarmed, srqDestroyBusy, qpAtLeastRequested, qpReportsActual,
		qpSRQTypeRestricted, qpRecvCapsIgnoredWithSRQ, qpSQSigAll, notifyAny, notifyOneShot,
		notifyRequiresArming, notifySolicitedSkipsUnsolicited, notifySolicitedDeliversSolicited,
		notifySolicitedDeliversErrors, notifyIdentifiesCQ,
	}
}
