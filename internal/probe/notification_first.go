package probe

import (
	"errors"
	"time"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

const (
	// errorGrace limits the wait for an event that need not come.
	errorGrace = 50 * time.Millisecond
	// firstID is the ID of the first sample, which no sample of a batch has.
	firstID = verbs.MaxSamples
	// maxStray limits the events that are taken where none or one is expected.
	maxStray = 3
)

// first takes the first sample of a measurement, which took about that long. The result has
// counts only; Stopped says why no batch may follow. The error is an obstacle if the device
// does not offer what is measured.
func (n *notification) first(m measurement, o verbs.Measurement) (found verbs.Samples, took time.Duration, err error) {
	f := firstSample{Measurement: o}
	grace := o.Deadline
	unsure := m.path == state.PathFlush && m.mode == state.ModeSolicited
	if unsure {
		grace = min(grace, errorGrace)
	}
	err = session.Catch(func() { f.take(grace) })
	if unsure && err == nil && f.found.Missed > 0 {
		return found, 0, &session.ObstacleError{
			Reason: state.SkipNotSupported,
			Detail: "the flushed request completed and raised no event: whether it should have is for the contract notify_solicited_delivers_errors",
		}
	}
	switch s := &f.found; {
	case s.Missing > 0:
		s.Stopped = verbs.StopMissing
	case len(s.Unsuccessful) > 0:
		s.Stopped = verbs.StopUnsuccessful
	case s.Missed+s.Misdirected > 0:
		s.Stopped = verbs.StopMissed
	}
	return f.found, max(f.took, 1), err
}

// firstSample is a sample taken by single verbs. Each event is acknowledged at once, so
// that the CQ can be destroyed whatever comes next.
type firstSample struct {
	verbs.Measurement
	found verbs.Samples
	// took is the time from posting to the completion, or until it was given up.
	took time.Duration
	// eventPending is true if the completion was polled without its event, which may be late.
	eventPending bool
}

// take takes the sample as verbs.Measurement describes it, or stops. If the completion is there, it
// waits for the event no longer than grace.
func (f *firstSample) take(grace time.Duration) {
	if f.Init != nil {
		session.Stop(f.refused(f.Receiver.Modify(f.Init.Attr, f.Init.Mask)))
	}
	if f.Receiver != nil {
		f.Recv.ID = firstID
		session.Stop(f.refused(f.Receiver.PostRecv(f.Recv)))
	}
	if f.Channel != nil {
		session.Stop(f.CQ.ReqNotify(f.SolicitedOnly))
	}
	f.Send.ID = firstID
	posted := time.Now()
	session.Stop(f.refused(f.trigger()))
	wc := f.await(grace)
	f.took = time.Since(posted)
	f.check(wc, f.Status)
	if f.Other != nil {
		// Even if the receive did not complete: the send may say why.
		f.check(poll(f.Other, verbs.NewWait(f.Deadline)), verbs.WCSuccess)
	}
	f.drain()
}

// trigger causes the completion.
func (f *firstSample) trigger() error {
	if f.Init != nil {
		return f.Receiver.Modify(verbs.ToError())
	}
	return f.Sender.PostSend(f.Send)
}

// refused returns a refusal if another candidate may work: any may on the loopback path. On
// the flush path receives are the control.
func (f *firstSample) refused(err error) error {
	switch {
	case err == nil:
		return nil
	case f.Status == verbs.WCSuccess:
		return &session.RefusedError{Err: err}
	case f.Init != nil:
		return err
	default:
		return session.Refused(err)
	}
}

// check counts a completion that is missing or has another status.
func (f *firstSample) check(wc *verbs.WC, status verbs.WCStatus) {
	switch {
	case wc == nil:
		f.found.Missing++
	case wc.Status != status:
		f.found.Unsuccessful = append(f.found.Unsuccessful, wc.Status)
	}
}

// await waits for the measured completion, by its event if there is a channel: up to grace
// for the event, and up to the deadline for the completion. Nil means that it did not come.
func (f *firstSample) await(grace time.Duration) *verbs.WC {
	if f.Channel == nil {
		return poll(f.CQ, verbs.NewWait(f.Deadline))
	}
	for _, wait := range []time.Duration{grace, f.Deadline - grace} {
		notified := f.awaitEvent(verbs.NewWait(wait))
		wc := poll(f.CQ, verbs.NewWait(0))
		switch {
		case wc != nil && notified:
			return wc
		case wc != nil:
			f.countMissed()
			return wc
		case notified:
			f.found.Spurious++
			f.eventPending = true
			return poll(f.CQ, verbs.NewWait(f.Deadline))
		}
	}
	return nil
}

// awaitEvent reports whether an event of the CQ came.
func (f *firstSample) awaitEvent(w *verbs.Wait) bool {
	for range maxStray {
		if came, own := f.event(f.Channel, w); !came || own {
			return came
		}
		f.found.Misdirected++
	}
	return false
}

// countMissed counts the event of a completion that was polled without it, as misdirected if
// it is on the other channel or named another CQ.
func (f *firstSample) countMissed() {
	f.eventPending = true
	if f.found.Misdirected > 0 {
		return
	}
	if astray, _ := f.event(f.Bystander, verbs.NewWait(0)); astray {
		f.found.Misdirected++
	} else {
		f.found.Missed++
	}
}

// drain takes the events that are left, so that a batch does not count them. A pending event
// is late; others have no cause.
func (f *firstSample) drain() {
	if f.Channel == nil {
		return
	}
	for _, ch := range []verbs.CompChannel{f.Channel, f.Bystander} {
		for range maxStray {
			came, own := f.event(ch, verbs.NewWait(0))
			if !came {
				break
			}
			switch {
			case ch == f.Bystander || !own:
				f.found.Misdirected++
			case f.eventPending:
				f.eventPending = false
			default:
				f.found.Spurious++
			}
		}
	}
}

// event waits for an event and acknowledges it. It reports whether one came, and whether it
// names the measured CQ.
func (f *firstSample) event(ch verbs.CompChannel, w *verbs.Wait) (came, own bool) {
	e, err := w.Event(ch)
	if errors.Is(err, verbs.ErrTimeout) {
		return false, false
	}
	session.Stop(err)
	session.Stop(e.CQ.AckEvents(1))
	return true, e.CQ == f.CQ
}

// poll waits for a completion, and polls at least once. Nil means that there is none.
func poll(q verbs.CQ, w *verbs.Wait) *verbs.WC {
	wcs := session.Must(session.Completions(q, 1, w))
	if len(wcs) == 0 {
		return nil
	}
	return &wcs[0]
}
