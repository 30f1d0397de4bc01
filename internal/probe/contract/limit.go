package contract

import (
	"errors"
	"fmt"
	"time"

	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/verbs"
)

const (
	srqLimit    = 2
	srqReceives = 4
)

// limited is a shared receive queue of a connected QP, from which messages take receives.
type limited struct {
	*pair
	srq            verbs.SRQ
	sent, received verbs.CQ
}

// limited returns an SRQ with receives in it and its limit armed.
func (j *check) limited() *limited {
	l := &limited{srq: j.srq()}
	l.received, l.sent = j.cq(nil, 0), j.cq(nil, 0)
	l.pair = j.connect(l.sent, l.received, l.srq, true)
	l.fill()
	err := j.refused(func() error { return l.srq.SetLimit(srqLimit) })
	if verbs.IsNotSupported(err) {
		session.Stop(notSupported("the device has no limits of SRQs: %v", err))
	}
	session.Stop(cannot("arm the limit of an SRQ", err))
	return l
}

func (l *limited) fill() {
	for range srqReceives {
		l.posted++
		session.Stop(cannot("post a receive to an SRQ", l.srq.PostRecv(verbs.RecvWR{ID: l.posted, SGEs: l.data})))
	}
}

func (l *limited) take(n int) {
	for range n {
		session.Stop(cannot("post a send", l.from.PostSend(verbs.SendWR{ID: l.posted, Flags: verbs.SendSignaled, SGEs: l.data})))
		l.j.successful(l.received)
		l.j.successful(l.sent)
	}
}

// limitReached waits for the event of an SRQ's limit, and reports whether one came. It
// records other asynchronous events.
func (j *check) limitReached(within time.Duration) (e verbs.AsyncEvent, came bool) {
	for w := verbs.NewWait(within); ; {
		left := w.Left()
		e, err := j.Device.AsyncEvent(w.Pause(left))
		switch {
		case err == nil && e.Type == verbs.EventSRQLimitReached:
			return e, true
		case err == nil:
			j.Notice(e)
		case !errors.Is(err, verbs.ErrTimeout):
			session.Stop(cannot("get an asynchronous event", err))
		}
		if left <= 0 {
			return e, false
		}
	}
}

func srqLimitEvent(j *check) {
	j.describe(fmt.Sprintf("ibv_modify_srq with srq_limit %d of an SRQ with %d receives, then messages that take one after the other", srqLimit, srqReceives),
		fmt.Sprintf("no event while %d are left; with %d left, one that names the SRQ", srqLimit, srqLimit-1))
	l := j.limited()
	l.take(srqReceives - srqLimit)
	if _, came := j.limitReached(silenceWindow); came {
		j.observe(false, "with %d receives left: an event came", srqLimit)
		return
	}
	j.observe(true, "with %d receives left: no event within %v", srqLimit, silenceWindow)
	l.take(1)
	switch e, came := j.limitReached(eventTimeout); {
	case !came:
		j.observe(false, "with %d left: no event within %v", srqLimit-1, eventTimeout)
	case e.SRQ == l.srq:
		j.observe(true, "with %d left: an event came that names the SRQ", srqLimit-1)
	default:
		j.observe(false, "with %d left: an event came that names another SRQ, or none", srqLimit-1)
	}
}

func srqLimitDisarmed(j *check) {
	j.describe(fmt.Sprintf("ibv_modify_srq with srq_limit %d; the SRQ is used up, asked for its limit, filled again and used up again", srqLimit),
		"one event comes and no other, and the query tells srq_limit 0")
	l := j.limited()
	l.take(srqReceives)
	if _, came := j.limitReached(eventTimeout); !came {
		err := fmt.Errorf("used up: no event within %v", eventTimeout)
		if known := j.driver.Of("srq_limit_event"); len(known) > 0 {
			err = fmt.Errorf("%w; known of %s: %s", err, known[0].Driver, known[0].What)
		}
		session.Stop(err)
	}
	told, err := attempt(j, l.srq.Query) // Not every device has the query.
	if err != nil {
		j.remark("checked by events alone: %v", err)
	} else {
		j.observe(told.Limit == 0, "after the event the query tells srq_limit %d", told.Limit)
	}
	l.fill()
	l.take(srqReceives)
	if _, came := j.limitReached(silenceWindow); came {
		j.observeMode(errata.ModeArmed, false, "another event came, though the limit was armed once")
	} else {
		j.observe(true, "used up again: no event within %v", silenceWindow)
	}
}
