package contract

import (
	"errors"
	"fmt"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/verbs"
)

// notified is a CQ with a channel of its own.
type notified struct {
	cq verbs.CQ
	ch verbs.CompChannel
}

func (j *check) notified() (n notified, err error) {
	if n.ch, err = j.CompChannel(); err != nil {
		return n, err
	}
	n.cq, err = j.cq(n.ch, 0)
	return n, err
}

func (n notified) arm(solicitedOnly bool) error {
	if err := n.cq.ReqNotify(solicitedOnly); err != nil {
		return cannot("arm a CQ", err)
	}
	return nil
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
func (j *check) onFresh(
	create func(verbs.CQ) (completer, error), solicitedOnly, solicited, should bool, what string,
) error {
	return j.isolated(func() error {
		n, err := j.notified()
		if err != nil {
			return err
		}
		c, err := create(n.cq)
		if err != nil {
			return err
		}
		if err := n.arm(solicitedOnly); err != nil {
			return err
		}
		came, err := j.completes(c, solicited, n, should)
		if err != nil {
			return err
		}
		j.observeEvent(came, should, what)
		return nil
	})
}

func (j *check) eachFlush(f func(create func(verbs.CQ) (completer, error), what string) error) error {
	for _, method := range j.sources.flushes {
		create := func(q verbs.CQ) (completer, error) { return j.flusher(q, method, session.FlushDepth) }
		if err := f(create, method.String()); err != nil {
			return err
		}
	}
	return nil
}

func notifyAny(j *check) error {
	j.describe("CQs armed with solicited_only 0; a completion on each: of a receive, of a send, of flushed work requests",
		"an event comes for each")
	if j.sources.route != nil {
		if err := j.onFresh(j.receiver, false, false, true, "receive"); err != nil {
			return err
		}
		if err := j.onFresh(j.sender, false, false, true, "send"); err != nil {
			return err
		}
	} else {
		j.remark("checked by unsuccessful completions alone, for there is no loopback: %v", j.sources.noRoute)
	}
	err := j.eachFlush(func(create func(verbs.CQ) (completer, error), what string) error {
		return j.onFresh(create, false, false, true, what)
	})
	if err != nil {
		return err
	}
	if !j.checked {
		return j.noCompletions()
	}
	return nil
}

func (j *check) begin() (notified, completer, error) {
	n, err := j.notified()
	if err != nil {
		return n, nil, err
	}
	c, err := j.best(n.cq)
	if err == nil {
		j.remark("by %s", c)
	}
	return n, c, err
}

func notifyOneShot(j *check) error {
	j.describe("a CQ armed once, then three completions", "an event comes for the first and for no other")
	n, c, err := j.begin()
	if err != nil {
		return err
	}
	if err := n.arm(false); err != nil {
		return err
	}
	came, err := j.completes(c, true, n, true)
	if err != nil {
		return err
	}
	if !came {
		return fmt.Errorf("first completion: no event within %v", eventTimeout)
	}
	j.remark("first completion: an event came")
	return j.quiet(c, n, "second completion, not armed again", "third completion, not armed again")
}

// quiet produces completions and records that no event comes.
func (j *check) quiet(c completer, n notified, what ...string) error {
	for _, which := range what {
		came, err := j.completes(c, true, n, false)
		if err != nil {
			return err
		}
		j.observeEvent(came, false, which)
	}
	return nil
}

func notifyRequiresArming(j *check) error {
	j.describe("a CQ with a channel that was never armed, and two completions", "no event comes")
	n, c, err := j.begin()
	if err != nil {
		return err
	}
	return j.quiet(c, n, "first completion", "second completion")
}

func notifySolicitedSkipsUnsolicited(j *check) error {
	j.describe("CQs armed with solicited_only 1; a receive of a message without the solicited event bit, and a successful send",
		"no event comes for either")
	if err := j.needRoute(); err != nil {
		return err
	}
	if err := j.onFresh(j.receiver, true, false, false, "receive"); err != nil {
		return err
	}
	return j.onFresh(j.sender, true, false, false, "send")
}

func notifySolicitedDeliversSolicited(j *check) error {
	j.describe("a CQ armed with solicited_only 1; a receive of a message sent with IBV_SEND_SOLICITED", "an event comes")
	if err := j.needRoute(); err != nil {
		return err
	}
	return j.onFresh(j.receiver, true, true, true, "receive")
}

func notifySolicitedDeliversErrors(j *check) error {
	j.describe("CQs armed with solicited_only 1; an unsuccessful completion on each, of flushed work requests",
		"an event comes for each: what is unsuccessful counts as solicited")
	err := j.eachFlush(func(create func(verbs.CQ) (completer, error), what string) error {
		return j.onFresh(create, true, false, true, what)
	})
	if err != nil {
		return err
	}
	if !j.checked {
		return j.noFlushes()
	}
	return nil
}

// notifyIdentifiesCQ puts two CQs on one channel, so that an event may name the wrong one.
func notifyIdentifiesCQ(j *check) error {
	contexts := [2]uint64{0x5eed0001, 0x5eed0002}
	j.describe(fmt.Sprintf("two CQs on one channel with the cq_context %#x and %#x, both armed; a completion on the second, then on the first",
		contexts[0], contexts[1]), "each event names its CQ and that CQ's cq_context")
	ch, err := j.CompChannel()
	if err != nil {
		return err
	}
	var cqs [2]verbs.CQ
	var completers [2]completer
	for i, context := range contexts {
		if cqs[i], err = j.cq(ch, context); err != nil {
			return err
		}
		if completers[i], err = j.best(cqs[i]); err != nil {
			return err
		}
	}
	j.remark("by %s", completers[0])
	for _, q := range cqs {
		if err := q.ReqNotify(false); err != nil {
			return cannot("arm a CQ", err)
		}
	}
	for _, i := range []int{1, 0} {
		if err := completers[i].complete(true); err != nil {
			return err
		}
		if _, err := j.await(cqs[i], 1); err != nil {
			return err
		}
		j.presume("taking the event of CQ "+fmt.Sprint(i+1), true)
		e, came, err := j.event(ch, eventTimeout)
		if errors.Is(err, verbs.ErrUnknownCQ) {
			j.observe(false, "completion on CQ %d: the event names no CQ of this device", i+1)
			return nil
		}
		if err != nil {
			return err
		}
		if !came {
			return fmt.Errorf("completion on CQ %d: no event within %v", i+1, eventTimeout)
		}
		named := 0
		for k, q := range cqs {
			if e.CQ == q {
				named = k + 1
			}
		}
		j.observe(named == i+1 && e.Context == contexts[i], "completion on CQ %d: the event names CQ %d with %#x", i+1, named, e.Context)
	}
	return nil
}
