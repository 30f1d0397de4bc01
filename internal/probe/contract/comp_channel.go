package contract

import (
	"fmt"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/verbs"
)

func channelDestroyBusy(j *check) {
	j.describe("ibv_destroy_comp_channel of a channel that a CQ is associated with",
		"it fails; afterwards the CQ can be destroyed, and then the channel")
	ch := session.Must(j.CompChannel())
	q := j.cq(ch, 0)
	arm := func() error { return q.ReqNotify(false) }
	before := j.refused(arm)
	j.observeRefused("ibv_destroy_comp_channel", ch.Close, func() error { return created(j.CompChannel) })
	if j.violated {
		return
	}
	j.stillWorks(verbs.ReqNotifyCQ, before, arm)
	j.observeWorks(verbs.DestroyCQ, q.Close)
	j.observeWorks(verbs.DestroyCompChannel, ch.Close)
}

// channelSteering arms two CQs with a channel each. A completion on one must show
// on its channel and leave the other silent.
func channelSteering(j *check) {
	j.describe("two CQs, each armed and with a channel of its own; a completion on one, then on the other",
		"each event comes on the channel of its own CQ and on no other")
	var both [2]notified
	var completers [2]completer
	for i := range both {
		both[i] = j.notified()
		completers[i] = j.best(both[i].cq)
	}
	j.remark("by %s", completers[0])
	for own := range both {
		other := 1 - own
		both[0].arm(false)
		both[1].arm(false)
		completers[own].complete(true)
		session.Must(j.await(both[own].cq, 1))
		j.presume("taking an event", true)
		_, came := j.event(both[own].ch, eventTimeout/4)
		_, strayed := j.event(both[other].ch, silenceWindow)
		what := fmt.Sprintf("completion on CQ %d", own+1)
		switch {
		case strayed:
			j.observe(false, "%s: an event came on channel %d", what, other+1)
		case came:
			j.observe(true, "%s: an event came on channel %d alone", what, own+1)
		default:
			session.Stop(fmt.Errorf("%s: no event came on either channel", what))
		}
	}
}
