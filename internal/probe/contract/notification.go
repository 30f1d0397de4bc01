package contract

import (
	"errors"
	"fmt"
	"slices"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/verbs"
)

// notified is a CQ with a channel of its own.
type notified struct {
	cq verbs.CQ
	ch verbs.CompChannel
}

func (j *check) notified() notified {
	ch := session.Must(j.CompChannel())
	return notified{j.cq(ch, 0), ch}
}

func (n notified) arm(solicitedOnly bool) {
	session.Stop(cannot("arm a CQ", n.cq.ReqNotify(solicitedOnly)))
}

func (j *check) observeEvent(came, should bool, what string) {
	j.observe(came == should, "%s: %s", what, eventText(came, should))
}

func eventText(came, should bool) string {
	switch {
	case came:
		return "an event came"
	case should:
		return fmt.Sprintf("no event within %v", eventTimeout)
	default:
		return fmt.Sprintf("no event within %v", silenceWindow)
	}
}

// onFresh produces one completion on a new, armed CQ, and records whether an event came, which
// it should or should not.
func (j *check) onFresh(create func(verbs.CQ) completer, solicitedOnly, solicited, should bool, what string) {
	j.isolated(func() {
		n := j.notified()
		c := create(n.cq)
		n.arm(solicitedOnly)
		j.observeEvent(j.completes(c, solicited, n, should), should, what)
	})
}

// onEachFlush is onFresh with each method by which the device flushes. An event should come.
func (j *check) onEachFlush(solicitedOnly bool) {
	for _, method := range j.sources.flushes {
		create := func(q verbs.CQ) completer { return j.flusher(q, method, session.FlushDepth) }
		j.onFresh(create, solicitedOnly, false, true, method.String())
	}
}

func notifyAny(j *check) {
	j.describe("CQs armed with solicited_only 0; a completion on each: of a receive, of a send, of flushed work requests",
		"an event comes for each")
	if j.sources.route != nil {
		j.onFresh(j.receiver, false, false, true, "receive")
		j.onFresh(j.sender, false, false, true, "send")
	} else {
		j.remark("checked by unsuccessful completions alone, for there is no loopback: %v", j.sources.noRoute)
	}
	if j.onEachFlush(false); !j.checked {
		session.Stop(j.noCompletions())
	}
}

func (j *check) begin() (notified, completer) {
	n := j.notified()
	c := j.best(n.cq)
	j.remark("by %s", c)
	return n, c
}

func notifyOneShot(j *check) {
	j.describe("a CQ armed once, then three completions", "an event comes for the first and for no other")
	n, c := j.begin()
	n.arm(false)
	if !j.completes(c, true, n, true) {
		session.Stop(fmt.Errorf("first completion: no event within %v", eventTimeout))
	}
	j.remark("first completion: an event came")
	j.quiet(c, n, "second completion, not armed again", "third completion, not armed again")
}

// quiet produces completions and records that no event comes.
func (j *check) quiet(c completer, n notified, what ...string) {
	for _, which := range what {
		j.observeEvent(j.completes(c, true, n, false), false, which)
	}
}

func notifyRequiresArming(j *check) {
	j.describe("a CQ with a channel that was never armed, and two completions", "no event comes")
	n, c := j.begin()
	j.quiet(c, n, "first completion", "second completion")
}

func notifySolicitedSkipsUnsolicited(j *check) {
	j.describe("CQs armed with solicited_only 1; a receive of a message without the solicited event bit, and a successful send",
		"no event comes for either")
	j.needRoute()
	j.onFresh(j.receiver, true, false, false, "receive")
	j.onFresh(j.sender, true, false, false, "send")
}

func notifySolicitedDeliversSolicited(j *check) {
	j.describe("a CQ armed with solicited_only 1; a receive of a message sent with IBV_SEND_SOLICITED", "an event comes")
	j.needRoute()
	j.onFresh(j.receiver, true, true, true, "receive")
}

func notifySolicitedDeliversErrors(j *check) {
	j.describe("CQs armed with solicited_only 1; an unsuccessful completion on each, of flushed work requests",
		"an event comes for each: what is unsuccessful counts as solicited")
	if j.onEachFlush(true); !j.checked {
		session.Stop(j.noFlushes())
	}
}

// notifyIdentifiesCQ puts two CQs on one channel, so that an event may name the wrong one.
func notifyIdentifiesCQ(j *check) {
	contexts := [2]uint64{0x5eed0001, 0x5eed0002}
	j.describe(fmt.Sprintf("two CQs on one channel with the cq_context %#x and %#x, both armed; a completion on the second, then on the first",
		contexts[0], contexts[1]), "each event names its CQ and that CQ's cq_context")
	ch := session.Must(j.CompChannel())
	var cqs [2]notified
	var completers [2]completer
	for i, context := range contexts {
		cqs[i] = notified{j.cq(ch, context), ch}
		completers[i] = j.best(cqs[i].cq)
	}
	j.remark("by %s", completers[0])
	cqs[0].arm(false)
	cqs[1].arm(false)
	for _, i := range []int{1, 0} {
		completers[i].complete(true)
		session.Must(j.await(cqs[i].cq, 1))
		j.presume("taking the event of CQ "+fmt.Sprint(i+1), true)
		var e verbs.CQEvent
		came := false
		err := session.Catch(func() { e, came = j.event(ch, eventTimeout) })
		if errors.Is(err, verbs.ErrUnknownCQ) {
			j.observe(false, "completion on CQ %d: the event names no CQ of this device", i+1)
			return
		}
		session.Stop(err)
		if !came {
			session.Stop(fmt.Errorf("completion on CQ %d: no event within %v", i+1, eventTimeout))
		}
		named := 1 + slices.IndexFunc(cqs[:], func(n notified) bool { return n.cq == e.CQ })
		j.observe(named == i+1 && e.Context == contexts[i], "completion on CQ %d: the event names CQ %d with %#x", i+1, named, e.Context)
	}
}
