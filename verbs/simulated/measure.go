package simulated

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"rdma_exporter/verbs"
)

// pollPause separates two polls of an empty CQ, for a completion comes at once or rarely.
const pollPause = 20 * time.Microsecond

// Measure implements verbs.Device. It finds the times of CompletionLatency, if the profile
// has any, and takes that long. The tracer sees only verbs on which a fault acts. A
// measurement that cannot be taken is reported as a failure of ibv_post_send.
func (d *device) Measure(m verbs.Measurement) (verbs.Samples, error) {
	r := &measuring{Measurement: m, hw: d.hardware}
	used := []*object{&d.object}
	var mine [6]bool
	r.sender, mine[0] = own[*qp](d, m.Sender, &used)
	r.receiver, mine[1] = own[*qp](d, m.Receiver, &used)
	r.cq, mine[2] = own[*cq](d, m.CQ, &used)
	r.other, mine[3] = own[*cq](d, m.Other, &used)
	r.channel, mine[4] = own[*channel](d, m.Channel, &used)
	r.bystander, mine[5] = own[*channel](d, m.Bystander, &used)
	if err := d.use(); err != nil {
		return verbs.Samples{}, err
	}
	err := m.Validate()
	switch {
	case slices.Contains(mine[:], false):
		err = errors.New("an object is not of this device")
	case err == nil && r.channel != nil && r.channel != r.cq.channel:
		err = errors.New("the completion channel is not that of the CQ")
	}
	if err != nil {
		return verbs.Samples{}, d.invalid(verbs.PostSend, "cannot measure: %w", err)
	}
	err = use(used...)
	if err == nil && r.sender != nil {
		r.send, err = r.sender.work(m.Send)
	}
	if err != nil {
		return verbs.Samples{}, err
	}
	err = r.run()
	return r.found, err
}

type measuring struct {
	verbs.Measurement
	hw                 *hardware
	sender, receiver   *qp // either may be nil
	cq, other          *cq // other may be nil
	channel, bystander *channel
	send               sendWork

	found verbs.Samples
	// late counts the samples that were missed and whose events may still come.
	late int
	// waits counts the samples that were waited for to their deadline.
	waits int
	// last is when the last event or completion came.
	last stamp
	// pendingDelay is the part of the times found that has not passed yet.
	pendingDelay time.Duration
}

// stamp is a time, with the delays that the profile caused so far.
type stamp struct {
	at     time.Time
	delays time.Duration
}

func (r *measuring) now() stamp { return stamp{time.Now(), r.hw.delays} }

func (r *measuring) run() error {
	// The measurement takes as long as it reports.
	defer func() { time.Sleep(r.pendingDelay) }()
	start := time.Now()
	for i := range r.Warmup + r.Samples {
		if err := r.tidy(start); err != nil || r.found.Stopped != verbs.StopNone {
			return err
		}
		latency, arm, err := r.sample(uint64(i))
		if err != nil || r.found.Stopped != verbs.StopNone {
			return err
		}
		if latency == 0 || i < r.Warmup {
			continue
		}
		r.found.Latency = append(r.found.Latency, latency)
		if r.channel != nil {
			r.found.Arm = append(r.found.Arm, arm)
		}
	}
	return nil
}

func (r *measuring) change(attr verbs.QPAttr, mask verbs.QPAttrMask) error {
	q := r.receiver
	return r.hw.quietly(verbs.ModifyQP, q.changing(attr, mask), func(int) *failure { return q.modify(attr, mask) })
}

// tidy takes the events that no sample waits for, and checks the budget, which began at start.
func (r *measuring) tidy(start time.Time) error {
	for {
		if time.Since(start)+max(0, r.pendingDelay) >= r.Budget {
			r.found.Stopped = verbs.StopBudget
			return nil
		}
		if r.channel == nil {
			return nil
		}
		e, ok, err := r.event(r.channel, time.Time{})
		switch {
		case !ok || err != nil:
			return err
		case e.says.CQ != r.cq:
			r.found.Misdirected++
		case r.late > 0:
			r.late--
		default:
			r.found.Spurious++
		}
	}
}

// event takes an event that comes until the deadline, and acknowledges it.
func (r *measuring) event(ch *channel, deadline time.Time) (pendingEvent, bool, error) {
	e, ok, err := ch.event(deadline, r.hw.quietly)
	if !ok || err != nil {
		return e, false, err
	}
	r.hw.delays += e.late
	r.last = r.now()
	e.from.unacked--
	// It counts as acknowledged even if the verb fails, because callers do not know it.
	return e, true, r.hw.quietly(verbs.AckCQEvents, Call{}, nil)
}

// sample takes one sample. Its latency is 0 if it has none.
func (r *measuring) sample(number uint64) (latency, arm time.Duration, err error) {
	if r.Init != nil {
		if err := r.change(verbs.ToReset()); err != nil {
			return 0, 0, err
		}
		if err := r.change(r.Init.Attr, r.Init.Mask); err != nil {
			return 0, 0, err
		}
	}
	if r.receiver != nil {
		wr := r.Recv
		wr.ID = number
		err := r.hw.quietly(verbs.PostRecv, r.receiver.about(), func(int) *failure { return r.receiver.postRecv(wr) })
		if err != nil {
			return 0, 0, err
		}
	}
	if r.channel != nil {
		start := time.Now()
		err := r.hw.quietly(verbs.ReqNotifyCQ, Call{}, func(int) *failure {
			r.cq.arm(r.SolicitedOnly)
			return nil
		})
		if err != nil {
			return 0, 0, err
		}
		arm = time.Since(start)
	}
	start := r.now()
	if r.Init != nil {
		err = r.change(verbs.ToError())
	} else {
		send := r.send
		send.wr.ID = number
		err = r.hw.quietly(verbs.PostSend, r.sender.sending(send), func(int) *failure { return r.hw.postSend(r.sender, send) })
	}
	if err != nil {
		return 0, 0, err
	}
	timed, deadline := true, start.at.Add(r.Deadline)
	var wc *verbs.WC
	if r.channel != nil {
		wc, timed, err = r.notified(number, deadline)
	} else {
		wc, err = r.completion(r.cq, number, deadline)
	}
	end := r.last
	if err != nil || !r.succeeded(wc, r.Status) {
		return 0, 0, err
	}
	if r.other != nil {
		sent, err := r.completion(r.other, number, time.Now().Add(r.Deadline))
		if err != nil || !r.succeeded(sent, verbs.WCSuccess) {
			return 0, 0, err
		}
	}
	if r.waits >= verbs.MaxMissed {
		r.found.Stopped = verbs.StopMissed
		return 0, 0, nil
	}
	if !timed {
		return 0, 0, nil
	}
	return r.latency(end.at.Sub(start.at), end.delays-start.delays), arm, nil
}

func (r *measuring) succeeded(wc *verbs.WC, status verbs.WCStatus) bool {
	switch {
	case wc == nil:
		r.found.Missing++
		r.found.Stopped = verbs.StopMissing
	case wc.Status != status:
		r.found.Unsuccessful = append(r.found.Unsuccessful, wc.Status)
		r.found.Stopped = verbs.StopUnsuccessful
	default:
		return true
	}
	return false
}

// notified waits for the completion of a sample by its event. It reports whether the event
// tells the time.
func (r *measuring) notified(number uint64, deadline time.Time) (wc *verbs.WC, timed bool, err error) {
	astray := false
	for {
		e, ok, err := r.event(r.channel, deadline)
		came := r.last
		switch {
		case err != nil:
			return nil, false, err
		case !ok:
			wc, err = r.overdue(number, astray)
			return wc, false, err
		case e.says.CQ != r.cq:
			r.found.Misdirected++
			astray = true
			continue
		}
		if wc, err = r.completion(r.cq, number, time.Time{}); err != nil || wc != nil {
			r.last = came
			return wc, true, err
		}
		// The event came without a completion. If the event of a missed sample was
		// pending, this is it, and that of the present sample takes its place.
		if r.late == 0 {
			r.found.Spurious++
		}
		wc, err = r.completion(r.cq, number, deadline)
		return wc, false, err
	}
}

// overdue looks for the completion of a sample whose event did not come in time. One of its
// events may have gone astray already.
func (r *measuring) overdue(number uint64, astray bool) (*verbs.WC, error) {
	wc, err := r.completion(r.cq, number, time.Time{})
	if err != nil {
		return nil, err
	}
	if !astray && r.bystander != nil {
		if _, astray, err = r.event(r.bystander, time.Time{}); err != nil {
			return wc, err
		}
		if astray {
			r.found.Misdirected++
		}
	}
	if wc != nil {
		r.waits++
		if !astray {
			r.found.Missed++
			r.late++
		}
	}
	return wc, nil
}

// completion polls a CQ at least once, until it has the completion of a sample or the
// deadline has come. It drops completions of earlier samples. Nil means that none came.
func (r *measuring) completion(q *cq, number uint64, deadline time.Time) (*verbs.WC, error) {
	for {
		// What was in the CQ at the deadline is still seen.
		over := !time.Now().Before(deadline)
		var wc verbs.WC
		var some bool
		err := r.hw.quietly(verbs.PollCQ, Call{}, func(int) *failure {
			wc, some = q.next()
			return nil
		})
		if err != nil {
			return nil, err
		}
		if some && wc.ID == number {
			r.last = r.now()
			return &wc, nil
		}
		if !some {
			if over {
				return nil, nil
			}
			time.Sleep(pollPause)
		}
	}
}

// latency returns the latency of a sample. If the profile has one, it counts instead of the
// time that passed, which is mainly that of Go's scheduler. The delays that the profile caused
// come on top of it.
func (r *measuring) latency(passed, delays time.Duration) time.Duration {
	times := r.hw.profile.CompletionLatency
	median := times.Notified
	if slow, ok := times.SlowVectors[r.cq.vector]; ok {
		median = slow
	}
	if r.channel == nil {
		median = times.Polled
	}
	if median == 0 {
		return max(1, passed)
	}
	// A longer one than the deadline would have failed.
	latency := min(draw(r.hw.times, median, times.Jitter), r.Deadline) + delays
	r.pendingDelay += latency - passed
	return latency
}

// draw returns a time of a distribution with a median and a long tail.
func draw(rng *rand.Rand, median time.Duration, jitter float64) time.Duration {
	const (
		rare = 200 // one time in this many is of the tail
		tail = 20  // how many times longer it is on average, at a jitter of 1
		most = 100 // medians that a time may have
	)
	factor := math.Exp(jitter * rng.NormFloat64())
	if rng.IntN(rare) == 0 {
		factor *= 1 + jitter*tail*rng.ExpFloat64()
	}
	return max(1, time.Duration(float64(median)*min(factor, most)))
}
