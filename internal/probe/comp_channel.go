package probe

import "rdma_exporter/verbs"

// compChannel probes ibv_create_comp_channel(3): a channel with a CQ on it that
// is armed once. How long an event takes is not measured here.
func (r *run) compChannel(s *step) {
	if _, err := r.PD(); err != nil {
		s.cannot("protection domain", err)
		return
	}
	var ch verbs.CompChannel
	err := s.measure("comp_channel", "", func() (err error) {
		ch, err = r.Device.CreateCompChannel()
		return err
	})
	if err != nil {
		if !s.skipped("", err) {
			s.fail("create", err)
		}
		return
	}
	s.done++
	defer s.destroy("destroy", "comp_channel", ch)

	cq, err := r.Device.CreateCQ(verbs.CQInitAttr{Entries: r.cfg.CQ.Small.clamped(r.Attr.Limits), Channel: ch, Vector: r.Vectors[0]})
	if err != nil {
		s.cannot("cq with a channel", err)
		return
	}
	defer s.destroy("cq with a channel", "cq", cq)
	if err := cq.ReqNotify(false); err != nil {
		s.cannot("request notification", err)
	}
}

// clamped returns the number of entries within the device's limit.
func (p CQProfile) clamped(l verbs.Limits) int {
	if l.MaxCQE > 0 {
		return min(p.Entries, l.MaxCQE)
	}
	return p.Entries
}
