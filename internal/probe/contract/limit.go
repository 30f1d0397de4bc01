package contract

import (
	"errors"
	"fmt"
	"time"

	"rdma_exporter/internal/probe/errata"
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
func (j *check) limited() (*limited, error) {
	_, srq, received, err := j.shared()
	if err != nil {
		return nil, err
	}
	l := &limited{srq: srq, received: received}
	if l.sent, err = j.cq(nil, 0); err != nil {
		return nil, err
	}
	if l.pair, err = j.connect(l.sent, received, srq, true); err != nil {
		return nil, err
	}
	if err := l.fill(); err != nil {
		return nil, err
	}
	err = j.refused(func() error { return srq.SetLimit(srqLimit) })
	if verbs.IsNotSupported(err) {
		return nil, notSupported("the device has no limits of SRQs: %v", err)
	}
	if err != nil {
		return nil, cannot("arm the limit of an SRQ", err)
	}
	return l, nil
}

func (l *limited) fill() error {
	for range srqReceives {
		l.posted++
		if err := l.srq.PostRecv(verbs.RecvWR{ID: l.posted, SGEs: l.data}); err != nil {
			return cannot("post a receive to an SRQ", err)
		}
	}
	return nil
}

func (l *limited) take(n int) error {
	for range n {
		if err := l.from.PostSend(verbs.SendWR{ID: l.posted, Flags: verbs.SendSignaled, SGEs: l.data}); err != nil {
			return cannot("post a send", err)
		}
		if err := l.j.successful(l.received); err != nil {
			return err
		}
		if err := l.j.successful(l.sent); err != nil {
			return err
		}
	}
	return nil
}

// limitReached waits for the event of an SRQ's limit, and reports whether one came. It
// records other asynchronous events.
func (j *check) limitReached(within time.Duration) (e verbs.AsyncEvent, came bool, err error) {
	for w := verbs.NewWait(within); ; {
		left := w.Left()
		e, err := j.Device.AsyncEvent(w.Pause(left))
		switch {
		case err == nil && e.Type == verbs.EventSRQLimitReached:
			return e, true, nil
		case err == nil:
			j.Notice(e)
		case !errors.Is(err, verbs.ErrTimeout):
			return e, false, cannot("get an asynchronous event", err)
		}
		if left <= 0 {
			return e, false, nil
		}
	}
}

func srqLimitEvent(j *check) error {
	j.describe(fmt.Sprintf("ibv_modify_srq with srq_limit %d of an SRQ with %d receives, then messages that take one after the other", srqLimit, srqReceives),
		fmt.Sprintf("no event while %d are left; with %d left, one that names the SRQ", srqLimit, srqLimit-1))
	l, err := j.limited()
	if err != nil {
		return err
	}
	if err := l.take(srqReceives - srqLimit); err != nil {
		return err
	}
	_, came, err := j.limitReached(silenceWindow)
	if err != nil {
		return err
	}
	if came {
		j.observe(false, "with %d receives left: an event came", srqLimit)
		return nil
	}
	j.observe(true, "with %d receives left: no event within %v", srqLimit, silenceWindow)
	if err := l.take(1); err != nil {
		return err
	}
	e, came, err := j.limitReached(eventTimeout)
	switch {
	case err != nil:
		return err
	case !came:
		j.observe(false, "with %d left: no event within %v", srqLimit-1, eventTimeout)
	case e.SRQ == l.srq:
		j.observe(true, "with %d left: an event came that names the SRQ", srqLimit-1)
	default:
		j.observe(false, "with %d left: an event came that names another SRQ, or none", srqLimit-1)
	}
	return nil
}

func srqLimitDisarmed(j *check) error {
	j.describe(fmt.Sprintf("ibv_modify_srq with srq_limit %d; the SRQ is used up, asked for its limit, filled again and used up again", srqLimit),
		"one event comes and no other, and the query tells srq_limit 0")
	l, err := j.limited()
	if err != nil {
		return err
	}
	if err := l.take(srqReceives); err != nil {
		return err
	}
	_, came, err := j.limitReached(eventTimeout)
	if err != nil {
		return err
	}
	if !came {
		err := fmt.Errorf("used up: no event within %v", eventTimeout)
		if known := j.driver.Of("srq_limit_event"); len(known) > 0 {
			err = fmt.Errorf("%w; known of %s: %s", err, known[0].Driver, known[0].What)
		}
		return err
	}
	told, err := attempt(j, l.srq.Query) // Not every device has the query.
	switch {
	case err != nil:
		j.remark("checked by events alone: %v", err)
	case told.Limit == 0:
		j.observe(true, "after the event the query tells srq_limit 0")
	default:
		j.observe(false, "after the event the query tells srq_limit %d", told.Limit)
	}
	if err := l.fill(); err != nil {
		return err
	}
	if err := l.take(srqReceives); err != nil {
		return err
	}
	if _, came, err = j.limitReached(silenceWindow); err != nil {
		return err
	}
	if came {
		j.observeMode(errata.ModeArmed, false, "another event came, though the limit was armed once")
	} else {
		j.observe(true, "used up again: no event within %v", silenceWindow)
	}
	return nil
}
