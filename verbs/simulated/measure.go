package simulated

import (
	"time"

	"rdma_exporter/verbs"
)

// pollPause separates two polls of an empty CQ. A simulated completion comes at once or
// rarely at all, so polling without a pause gains nothing.
const pollPause = 20 * time.Microsecond

// Measure implements verbs.Device. It finds the times of CompletionLatency, if the profile
// has any, and takes that long. The tracer sees only verbs on which a fault acts. A
// measurement that cannot be taken is reported as a failure of ibv_post_send.
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
	// pendingDelay is the part of the times found that has not passed yet.
	pendingDelay time.Duration
}

// measuring checks what to measure, and returns it with all its objects.
func (d *device) measuring(m verbs.Measurement) (*measuring, []*object, error) {
	r := &measuring{Measurement: m, hw: d.hw}
	used := []*object{&d.object}
	refuse := func(format string, args ...any) (*measuring, []*object, error) {
		return nil, nil, d.invalid(verbs.PostSend, "cannot measure: "+format, args...)
	}
	bad := ""
	check := func(ok bool, why string) {
		if !ok && bad == "" {
			bad = why
		}
	}
	if m.Init != nil {
		check(m.Sender == nil && m.Receiver != nil && m.Other == nil, "receives are flushed on a receiver alone")
	} else {
		r.sender = own[*qp](d, m.Sender, &used)
		check(r.sender != nil, "there is no sender, or it is not of this device")
	}
	if m.Receiver != nil {
		r.receiver = own[*qp](d, m.Receiver, &used)
		check(r.receiver != nil, "the receiver is not of this device")
	}
	r.cq = own[*cq](d, m.CQ, &used)
	check(r.cq != nil, "there is no CQ, or it is not of this device")
	if m.Other != nil {
		r.other = own[*cq](d, m.Other, &used)
		check(r.other != nil, "the other CQ is not of this device")
		check(r.other != r.cq, "one CQ cannot have both completions of a sample")
	}
	if m.Channel != nil {
		r.channel = own[*channel](d, m.Channel, &used)
		check(r.channel != nil && r.cq != nil && r.channel == r.cq.channel, "the completion channel is not that of the CQ")
	}
	if m.Bystander != nil {
		r.bystander = own[*channel](d, m.Bystander, &used)
		check(r.bystander != nil && r.bystander != r.channel, "the bystander is not another channel of this device")
	}
	if bad != "" {
		return refuse("%s", bad)
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

// own returns an object as its type if it is one of this device, and adds it to those used.
func own[T interface {
	comparable
	base() *object
}](d *device, o any, used *[]*object) (result T) {
	found, ok := o.(T)
	if !ok || found == result || found.base().dev != d {
		return result
	}
	*used = append(*used, found.base())
	return found
}

// run takes all samples.
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

// call is hardware.quietly for the verbs of a sample.
func (r *measuring) call(v verbs.Verb, effect func(int) *failure) error {
	return r.callOn(Call{GID: -1}, v, effect)
}

// callOn is call for a verb of which there are facts.
func (r *measuring) callOn(about Call, v verbs.Verb, effect func(int) *failure) error {
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
		if time.Since(start)+max(0, r.pendingDelay) >= r.Budget {
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
		if err := r.callOn(r.receiver.about(), verbs.PostRecv, func(int) *failure { return r.hw.postRecv(r.receiver, wr) }); err != nil {
			return 0, 0, err
		}
	}
	if r.channel != nil {
		start := time.Now()
		err := r.call(verbs.ReqNotifyCQ, func(int) *failure {
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
	if err != nil || !r.succeeded(o, r.Status) {
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
	if !o.timed {
		return 0, 0, nil
	}
	return r.clock(o.at.Sub(start), o.slow), arm, nil
}

// succeeded reports whether the completion that was awaited came, as it should.
func (r *measuring) succeeded(o outcome, status verbs.WCStatus) bool {
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

// clock returns the latency of a sample. If the profile has one, it counts instead
// of the time that passed, which is mostly that of Go's scheduler; what the
// profile made the verbs longer comes on top of it.
func (r *measuring) clock(passed, slow time.Duration) time.Duration {
	median := r.hw.times.median(r.cq, r.channel == nil)
	if median == 0 {
		return max(1, passed)
	}
	// Were it longer than the deadline, the sample would not have gone well.
	latency := min(r.hw.times.draw(median), r.Deadline) + slow
	r.pendingDelay += latency - passed
	return latency
}
