package probe

import (
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// compChannel probes ibv_create_comp_channel(3): a channel with a CQ that is armed once.
func (r *run) compChannel(s *step) {
	if _, err := r.PD(); err != nil {
		s.cannot(state.Subject{Object: "pd"}, err)
		return
	}
	subject, onChannel := state.Subject{Object: "comp_channel"}, state.Subject{Object: "cq"}
	var ch verbs.CompChannel
	err := s.measure(subject, func() (err error) {
		ch, err = r.Device.CreateCompChannel()
		return err
	})
	if err != nil {
		s.skipOrFail(state.Subject{}, err)
		return
	}
	s.done++
	defer s.destroy(subject, "comp_channel", ch)

	cq, err := r.Device.CreateCQ(verbs.CQInitAttr{Entries: r.cfg.CQ.Small.clamped(r.Attr.Limits), Channel: ch, Vector: r.Vectors[0]})
	if err != nil {
		s.cannot(onChannel, err)
		return
	}
	defer s.destroy(onChannel, "cq", cq)
	if err := cq.ReqNotify(false); err != nil {
		s.cannot(onChannel, err)
	}
}

// clamped returns the number of entries within the device's limit.
func (p CQSize) clamped(l verbs.Limits) int {
	if l.MaxCQE > 0 {
		return min(p.Entries, l.MaxCQE)
	}
	return p.Entries
}
