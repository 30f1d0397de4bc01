package contract

import (
	"fmt"

	"rdma_exporter/internal/probe/known"
	"rdma_exporter/verbs"
)

func cqModerationNotifies(j *judge) error {
	attr, err := j.Device.QueryExtended()
	if err != nil {
		return cannot("query the device", err)
	}
	most := attr.Moderation
	if most == (verbs.Moderation{}) {
		return notSupported("the device does not moderate CQs: cq_mod_caps are 0")
	}
	on, off := verbs.Moderation{Count: min(most.Count, 4), Period: min(most.Period, 16)}, verbs.Moderation{}
	j.asks(fmt.Sprintf("ibv_modify_cq with cq_count %d and cq_period %d (at most %d and %d), and with 0 and 0; a completion of the armed CQ after each",
		on.Count, on.Period, most.Count, most.Period), "both are accepted, and an event comes for each completion")
	n, c, err := j.begin()
	if err != nil {
		return err
	}
	completes := func() (bool, error) {
		if err := n.arm(false); err != nil {
			return false, err
		}
		return j.completesWithEvent(c, true, n.cq, n.ch)
	}
	// What raises no event anyway proves nothing.
	came, err := completes()
	if err != nil {
		return err
	}
	if !came {
		return fmt.Errorf("not moderated: no event within %v", patience)
	}
	for _, step := range []struct {
		what        string
		to, instead verbs.Moderation
	}{{"moderated", on, off}, {"set back to 0", off, on}} {
		moderate := func(m verbs.Moderation) func() error { return func() error { return n.cq.Moderate(m) } }
		refusal, err := j.insists(step.what, moderate(step.to), moderate(step.instead))
		if err != nil {
			return err
		}
		if refusal != nil {
			j.seeIn(known.WayRefused, false, "%s: %s", step.what, short(refusal))
			return nil
		}
		if came, err = completes(); err != nil {
			return err
		}
		j.seeEvent(came, true, step.what)
	}
	return nil
}
