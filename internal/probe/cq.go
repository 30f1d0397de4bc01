package probe

import (
	"errors"
	"syscall"

	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// cq probes ibv_create_cq(3): a CQ of each profile, without a channel.
func (r *run) cq(s *step) {
	for _, p := range r.cfg.CQ.of(r.depth) {
		if cq := s.createCQ(p); cq != nil {
			s.destroy(cqSubject(p.name), "cq", cq)
		}
		if r.noCQs {
			return
		}
	}
}

// hasNoCQs reports whether the first CQ was refused because the device has none: its errno
// says so, or it is a known erratum, which is recorded.
func (s *step) hasNoCQs(subject state.Subject, err error) bool {
	if verbs.IsNotSupported(err) {
		return true
	}
	fact, ok := s.driver.Explains("cq_comp_vector_accepted", errata.ModeRefused, 0)
	if !ok || !errors.Is(err, syscall.EINVAL) {
		return false
	}
	s.known(subject, err.Error(), fact)
	return true
}

func cqSubject(profile string) state.Subject { return state.Subject{Object: "cq", Profile: profile} }

// createCQ creates a CQ of a profile and records the result. Nil means that it failed.
func (s *step) createCQ(p named[CQSize]) verbs.CQ {
	subject := cqSubject(p.name)
	entries := s.clamp(subject, "cqe", p.size.Entries, "max_cqe", s.Attr.Limits.MaxCQE)
	var cq verbs.CQ
	err := s.measure(subject, func() (err error) {
		cq, err = s.Device.CreateCQ(verbs.CQInitAttr{Entries: entries, Vector: s.Vectors[0]})
		return err
	})
	if err != nil {
		if s.done == 0 && len(s.Failures) == 0 && s.hasNoCQs(subject, err) {
			// Without CQs there is nothing else to probe.
			s.skip(state.Subject{}, state.SkipNotSupported, "nothing can be probed: %v", err)
			s.noCQs = true
			return nil
		}
		s.fail(subject, err)
		return nil
	}
	s.done++
	s.CQs = append(s.CQs, state.CQSize{Profile: p.name, Requested: int64(entries), Actual: int64(cq.Entries())})
	s.atLeast(subject, verbs.CreateCQ, "cqe", int64(entries), int64(cq.Entries()))
	return cq
}
