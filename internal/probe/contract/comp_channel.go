package contract

import (
	"fmt"

	"rdma_exporter/verbs"
)

func channelDestroyBusy(j *check) error {
	j.describe("ibv_destroy_comp_channel of a channel that a CQ is associated with",
		"it fails; afterwards the CQ can be destroyed, and then the channel")
	ch, err := j.CompChannel()
	if err != nil {
		return err
	}
	q, err := j.cq(ch, 0)
	if err != nil {
		return err
	}
	arm := func() error { return q.ReqNotify(false) }
	before := j.refused(arm)
	plain := func() error { return created(j.CompChannel) }
	if err := j.observeRefused("ibv_destroy_comp_channel", ch.Close, plain); err != nil || j.violated {
		return err
	}
	if ok, err := j.stillWorks(verbs.ReqNotifyCQ, before, arm); !ok {
		return err
	}
	if ok, err := j.observeWorks(verbs.DestroyCQ, q.Close); !ok {
		return err
	}
	_, err = j.observeWorks(verbs.DestroyCompChannel, ch.Close)
	return err
}

// channelSteering arms two CQs with a channel each. A completion on one must show
// on its channel and leave the other silent.
func channelSteering(j *check) error {
	j.describe("two CQs, each armed and with a channel of its own; a completion on one, then on the other",
		"each event comes on the channel of its own CQ and on no other")
	var both [2]notified
	var completers [2]completer
	for i := range both {
		var err error
		if both[i], err = j.notified(); err != nil {
			return err
		}
		if completers[i], err = j.best(both[i].cq); err != nil {
			return err
		}
	}
	j.remark("by %s", completers[0])
	for own := range both {
		other := 1 - own
		for _, n := range both {
			if err := n.arm(false); err != nil {
				return err
			}
		}
		if err := completers[own].complete(true); err != nil {
			return err
		}
		if _, err := j.await(both[own].cq, 1); err != nil {
			return err
		}
		j.presume("taking an event", true)
		_, came, err := j.event(both[own].ch, eventTimeout/4)
		if err != nil {
			return err
		}
		_, strayed, err := j.event(both[other].ch, silenceWindow)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("completion on CQ %d", own+1)
		switch {
		case strayed:
			j.observe(false, "%s: an event came on channel %d", what, other+1)
		case came:
			j.observe(true, "%s: an event came on channel %d alone", what, own+1)
		default:
			return fmt.Errorf("%s: no event came on either channel", what)
		}
	}
	return nil
}
