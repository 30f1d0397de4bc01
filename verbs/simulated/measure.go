package simulated

import (
	"time"

	"rdma_exporter/verbs"
)

// pollPause is between two looks into a CQ that was empty. In the simulation a
// completion is there at once or hardly ever, so that nothing is gained by looking
// without a pause.
const pollPause = 20 * time.Microsecond

// Measure implements verbs.Device. The times that it finds are those of
// CompletionLatency, if the profile has any, and really pass. The tracer is told
// of the verbs on which a fault of the profile acts, and of no others. A
// measurement that cannot be taken is told as the failure of ibv_post_send.
func (d *device) Measure(m verbs.Measurement) (verbs.Samples, error) {
	if err := d.use(); err != nil {
		return verbs.Samples{}, err
	}
	r, used, err := d.measuring(m)
	if err != nil {
		return verbs.Samples{}, err
	}
	if err := useAll(used...); err != nil {
		return verbs.Samples{}, err
	}
	err = r.run()
	return r.found, err
}

// measuring is a measurement under way.
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
	// slow is by how much the profile made the verbs of the sample longer.
	slow time.Duration
	// owed is how much of the times found did not really pass yet.
	owed time.Duration
}

// measuring checks what to measure, and returns it with all its objects.
func (d *device) measuring(m verbs.Measurement) (*measuring, []*object, error) {
	r := &measuring{Measurement: m, hw: d.hw}
	used := []*object{&d.object}
	refuse := func(format string, args ...any) (*measuring, []*object, error) {
		return nil, nil, d.invalid(verbs.PostSend, "cannot measure: "+format, args...)
	}
	own := func(o *object) bool {
		used = append(used, o)
		return o.dev == d
	}
	var ok bool
	r.sender, ok = m.Sender.(*qp)
	switch {
	case m.Init != nil:
		if m.Sender != nil || m.Receiver == nil || m.Other != nil {
			return refuse("receives are flushed on a receiver alone")
		}
	case !ok || r.sender == nil || !own(&r.sender.object):
		return refuse("there is no sender, or it is not of this device")
	}
	if m.Receiver != nil {
		if r.receiver, ok = m.Receiver.(*qp); !ok || r.receiver == nil || !own(&r.receiver.object) {
			return refuse("the receiver is not of this device")
		}
	}
	if r.cq, ok = m.CQ.(*cq); !ok || r.cq == nil || !own(&r.cq.object) {
		return refuse("there is no CQ, or it is not of this device")
	}
	if m.Other != nil {
		if r.other, ok = m.Other.(*cq); !ok || r.other == nil || !own(&r.other.object) {
			return refuse("the other CQ is not of this device")
		}
		if r.other == r.cq {
			return refuse("the completions of one sample cannot be told apart on one CQ")
		}
	}
	if m.Channel != nil {
		if r.channel, ok = m.Channel.(*channel); !ok || r.channel == nil || r.channel != r.cq.channel {
			return refuse("the completion channel is not that of the CQ")
		}
		used = append(used, &r.channel.object)
	}
	if m.Bystander != nil {
		if r.bystander, ok = m.Bystander.(*channel); !ok || r.bystander == nil || !own(&r.bystander.object) {
			return refuse("the bystander is not of this device")
		}
		if r.bystander == r.channel {
			return refuse("the bystander is the completion channel itself")
		}
	}
	if err := m.Validate(); err != nil {
		return refuse("%w", err)
	}
	if r.sender == nil {
		return r, used, nil
	}
	var err error
	r.send, err = r.sender.work(m.Send)
	return r, used, err
}

// run takes all samples.
func (r *measuring) run() error {
	// What was found to have passed has passed when it is told.
	defer func() {
		if r.hw.together {
			r.hw.debt.pass(r.owed)
			return
		}
		time.Sleep(r.owed)
	}()
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

// call is hardware.quietly for the verbs of a sample.
func (r *measuring) call(v verbs.Verb, effect func(int) *failure) error {
	return r.callOn(facts{}, v, effect)
}

// callOn is call for a verb of which there are facts.
func (r *measuring) callOn(about facts, v verbs.Verb, effect func(int) *failure) error {
	slow, err := r.hw.quietly(about, v, effect)
	r.slow += slow
	return err
}

// change changes the state of the receiver.
func (r *measuring) change(attr verbs.QPAttr, mask verbs.QPAttrMask) error {
	q := r.receiver
	return r.callOn(q.changing(attr, mask), verbs.ModifyQP, func(int) *failure { return q.modify(attr, mask) })
}

// trigger does what leads to the completion of a sample.
func (r *measuring) trigger(number uint64) error {
	if r.Init != nil {
		return r.change(verbs.ToError())
	}
	send := r.send
	send.wr.ID = number
	return r.callOn(r.sender.sending(send), verbs.PostSend, func(int) *failure { return r.hw.postSend(r.sender, send) })
}

// tidy takes the events for which nobody waits, and looks at the budget, which
// began at start.
func (r *measuring) tidy(start time.Time) error {
	for {
		if time.Since(start)+max(0, r.owed) >= r.Budget {
			r.found.Stopped = verbs.StopBudget
			return nil
		}
		if r.channel == nil {
			return nil
		}
		e, ok, err := r.event(r.channel, time.Time{})
		if !ok || err != nil {
			return err
		}
		switch {
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
func (r *measuring) event(ch *channel, deadline time.Time) (timedEvent, bool, error) {
	e, ok, err := ch.event(deadline, r.call)
	if !ok || err != nil {
		return timedEvent{}, false, err
	}
	r.slow += e.late
	t := timedEvent{pendingEvent: e, at: time.Now(), slow: r.slow}
	e.from.unacked--
	// Acknowledged all the same if the verb fails: it is not known outside.
	return t, true, r.call(verbs.AckCQEvents, nil)
}

// timedEvent is an event that was taken.
type timedEvent struct {
	pendingEvent
	at   time.Time
	slow time.Duration // measuring.slow at that time
}

// outcome is what became of a sample.
type outcome struct {
	wc    verbs.WC
	found bool // the completion came
	timed bool // and in a way that tells the time
	at    time.Time
	slow  time.Duration // measuring.slow at that time
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
		if err := r.callOn(r.receiver.facts(), verbs.PostRecv, func(int) *failure { return r.hw.postRecv(r.receiver, wr) }); err != nil {
			return 0, 0, err
		}
	}
	if r.channel != nil {
		start := time.Now()
		err := r.callOn(r.cq.asking(r.SolicitedOnly), verbs.ReqNotifyCQ, func(int) *failure {
			r.cq.arm(r.SolicitedOnly)
			return nil
		})
		if err != nil {
			return 0, 0, err
		}
		arm = time.Since(start)
	}
	r.slow = 0
	start := time.Now()
	if err := r.trigger(number); err != nil {
		return 0, 0, err
	}
	await := r.polled
	if r.channel != nil {
		await = r.notified
	}
	o, err := await(number, start.Add(r.Deadline))
	if err != nil || !r.judge(o, r.Status) {
		return 0, 0, err
	}
	if r.other != nil {
		sent, err := r.completion(r.other, number, time.Now().Add(r.Deadline))
		if err != nil || !r.judge(sent, verbs.WCSuccess) {
			return 0, 0, err
		}
	}
	if r.waits >= verbs.MaxMissed {
		r.found.Stopped = verbs.StopMissed
		return 0, 0, nil
	}
	if !o.timed {
		return 0, 0, nil
	}
	return r.clock(o.at.Sub(start), o.slow), arm, nil
}

// judge reports whether the completion that was awaited came, as it should.
func (r *measuring) judge(o outcome, status verbs.WCStatus) bool {
	switch {
	case !o.found:
		r.found.Missing++
		r.found.Stopped = verbs.StopMissing
	case o.wc.Status != status:
		r.found.Unsuccessful = append(r.found.Unsuccessful, o.wc.Status)
		r.found.Stopped = verbs.StopUnsuccessful
	default:
		return true
	}
	return false
}

// polled waits for the completion of a sample by polling.
func (r *measuring) polled(number uint64, deadline time.Time) (outcome, error) {
	return r.completion(r.cq, number, deadline)
}

// notified waits for the completion of a sample by its event.
func (r *measuring) notified(number uint64, deadline time.Time) (outcome, error) {
	astray := false
	for {
		e, ok, err := r.event(r.channel, deadline)
		if err != nil {
			return outcome{}, err
		}
		if !ok {
			return r.overdue(number, astray)
		}
		if e.says.CQ != r.cq {
			r.found.Misdirected++
			astray = true
			continue
		}
		o, err := r.completion(r.cq, number, time.Time{})
		if err != nil || o.found {
			o.at, o.slow = e.at, e.slow
			return o, err
		}
		// An event without a completion. If that of a missed sample was still to
		// come, this is it, and that of the present sample is to come in its stead.
		if r.late == 0 {
			r.found.Spurious++
		}
		o, err = r.completion(r.cq, number, deadline)
		o.timed = false
		return o, err
	}
}

// overdue looks for what became of a sample whose event did not come in time. One
// of its events may have gone astray already.
func (r *measuring) overdue(number uint64, astray bool) (outcome, error) {
	o, err := r.completion(r.cq, number, time.Time{})
	if err != nil {
		return o, err
	}
	o.timed = false
	if !astray && r.bystander != nil {
		_, astray, err = r.event(r.bystander, time.Time{})
		if err != nil {
			return o, err
		}
		if astray {
			r.found.Misdirected++
		}
	}
	if !o.found {
		return o, nil
	}
	r.waits++
	if !astray {
		r.found.Missed++
		r.late++
	}
	return o, nil
}

// completion polls a CQ until the completion of a sample is found or the deadline
// has come, but at least once. Completions of earlier samples are late, and
// dropped.
func (r *measuring) completion(q *cq, number uint64, deadline time.Time) (outcome, error) {
	for {
		// Whatever was in the CQ when the time had come is seen once more.
		over := !time.Now().Before(deadline)
		var o outcome
		var some bool
		err := r.call(verbs.PollCQ, func(int) *failure {
			o.wc, some = q.next()
			return nil
		})
		if err != nil {
			return outcome{}, err
		}
		if some && o.wc.ID == number {
			o.found, o.timed = true, true
			o.at, o.slow = time.Now(), r.slow
			return o, nil
		}
		if some {
			continue
		}
		if over {
			return outcome{}, nil
		}
		time.Sleep(pollPause)
	}
}

// putOff returns how long the moderation of the CQ keeps the event of a sample, which is its
// only completion.
func (r *measuring) putOff() time.Duration {
	if r.channel == nil || r.cq.moderation.Count <= 1 {
		return 0
	}
	return time.Duration(r.cq.moderation.Period) * time.Microsecond
}

// clock returns the latency of a sample. If the profile has one, it counts instead
// of the time that passed, which is mostly that of Go's scheduler; what the
// profile made the verbs longer comes on top of it.
func (r *measuring) clock(passed, slow time.Duration) time.Duration {
	median := r.hw.times.median(r.cq, r.channel == nil)
	if median == 0 {
		return max(1, passed)
	}
	// Were it longer than the deadline, the sample would not have gone well.
	latency := min(r.hw.times.draw(median)+r.putOff(), r.Deadline) + slow
	r.owed += latency - passed
	return latency
}
