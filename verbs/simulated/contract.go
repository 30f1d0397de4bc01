package simulated

import "strings"

// Contracts returns the names of the contracts that DeviceProfile.Violate can list.
// docs/reference/simulator.md says how a device breaks each. It breaks that one only: the
// others can still be seen to hold. A size that is misreported is not really that small, so
// that no work fails.
func Contracts() []string {
	return strings.Fields(`
		cq_at_least_requested cq_ex_at_least_requested cq_ex_batch_keeps_completions cq_comp_vector_accepted
		cq_comp_vector_rejected cq_destroy_busy cq_resize_at_least_requested cq_resize_too_small_refused
		cq_resize_keeps_completions channel_destroy_busy channel_steering srq_at_least_requested srq_reports_actual
		srq_limit_ignored srq_limit_event srq_limit_disarmed srq_destroy_busy qp_at_least_requested qp_reports_actual
		qp_srq_type_restricted qp_recv_caps_ignored_with_srq qp_sq_sig_all notify_any notify_one_shot
		notify_requires_arming notify_solicited_skips_unsolicited notify_solicited_delivers_solicited
		notify_solicited_delivers_errors notify_identifies_cq`)
}
