package probe

import (
	"errors"
	"time"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

const (
	// errorGrace is how long a flushed request, or its event, is waited for where
	// it is not certain that there is one.
	errorGrace = 50 * time.Millisecond
	// firstID is the ID of the first sample, which no sample of a batch has.
	firstID = verbs.MaxSamples
	// maxStray is the most events that are taken where none or one is expected.
	maxStray = 3
	// The pauses between two looks at a CQ double within these bounds: the time
	// does not matter here, but each look is a line of the report.
	firstLook, lastLook = 50 * time.Microsecond, 10 * time.Millisecond
)

// first takes the first sample of a measurement. What is found has counts only;
// if the sample is such that a batch must not follow it, Stopped says why. It
// took that long, roughly. The error is an obstacle if the device does not take
// part in what is to be measured.
func (n *notification) first(m measurement, o verbs.Measurement) (found verbs.Samples, took time.Duration, err error) {
	f := firstSample{Measurement: o}
	grace := o.Deadline
	flush := m.path == state.PathFlush
	unsure := flush && m.mode == state.ModeSolicited
	if unsure {
		grace = min(grace, errorGrace)
	}
	err = f.take(grace)
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

// firstSample is a sample that is taken by the ordinary calls. Each event is
// acknowledged as soon as it was returned, so that the CQ can be destroyed
// whatever comes next.
type firstSample struct {
	verbs.Measurement
	found verbs.Samples
	// took is the time from posting to the completion, or until it was given up.
	took time.Duration
	// owed tells that the completion was taken without its event, which may come
	// late.
	owed bool
}

// take takes the sample, as verbs.Measurement has it. The event is waited for no
// longer than grace if the completion is there by then.
func (f *firstSample) take(grace time.Duration) error {
	if f.Init != nil {
		if err := f.Receiver.Modify(f.Init.Attr, f.Init.Mask); err != nil {
			return f.refused(err)
		}
	}
	if f.Receiver != nil {
		f.Recv.ID = firstID
		if err := f.Receiver.PostRecv(f.Recv); err != nil {
			return f.refused(err)
		}
	}
	if f.Channel != nil {
		if err := f.CQ.ReqNotify(f.SolicitedOnly); err != nil {
			return err
		}
	}
	f.Send.ID = firstID
	posted := time.Now()
	if err := f.trigger(); err != nil {
		return f.refused(err)
	}
	wc, err := f.await(grace)
	if err != nil {
		return err
	}
	f.took = time.Since(posted)
	f.judge(wc, f.Status)
	if f.Other != nil {
		// Also if the receipt did not come: the sender may have been told why.
		if wc, err = poll(f.Other, verbs.NewWait(f.Deadline)); err != nil {
			return err
		}
		f.judge(wc, verbs.WCSuccess)
	}
	return f.drain()
}

// trigger does what leads to the completion.
func (f *firstSample) trigger() error {
	if f.Init != nil {
		return f.Receiver.Modify(verbs.ToError())
	}
	return f.Sender.PostSend(f.Send)
}

// refused makes a refusal of the error of a work request if another way may do better:
// on the loopback path any may, and of those that flush, receives are the control.
func (f *firstSample) refused(err error) error {
	switch {
	case f.Status == verbs.WCSuccess:
		return &session.RefusedError{Err: err}
	case f.Init != nil:
		return err
	default:
		return session.Refused(err)
	}
}

// judge counts what is wrong about a completion, or that there is none.
func (f *firstSample) judge(wc *verbs.WC, status verbs.WCStatus) {
	switch {
	case wc == nil:
		f.found.Missing++
	case wc.Status != status:
		f.found.Unsuccessful = append(f.found.Unsuccessful, wc.Status)
	}
}

// await waits for the measured completion, by its event if there is a channel:
// for either as long as grace, without a completion as long as the deadline. It
// returns nil if the completion did not come.
func (f *firstSample) await(grace time.Duration) (*verbs.WC, error) {
	if f.Channel == nil {
		return poll(f.CQ, verbs.NewWait(f.Deadline))
	}
	for _, length := range []time.Duration{grace, f.Deadline - grace} {
		notified, err := f.awaitEvent(verbs.NewWait(length))
		if err != nil {
			return nil, err
		}
		wc, err := poll(f.CQ, verbs.NewWait(0))
		switch {
		case err != nil:
			return nil, err
		case wc != nil && notified:
			return wc, nil
		case wc != nil:
			return wc, f.unnotified()
		case notified:
			f.found.Spurious++
			f.owed = true
			return poll(f.CQ, verbs.NewWait(f.Deadline))
		}
	}
	return nil, nil
}

// awaitEvent waits for an event of the CQ, and tells whether one came.
func (f *firstSample) awaitEvent(w *verbs.Wait) (bool, error) {
	for range maxStray {
		came, own, err := f.event(f.Channel, w)
		if !came || own || err != nil {
			return came, err
		}
		f.found.Misdirected++
	}
	return false, nil
}

// unnotified finds out where the event of a completion is that was polled without
// one.
func (f *firstSample) unnotified() error {
	f.owed = true
	if f.found.Misdirected > 0 {
		return nil // that was it: it named another CQ
	}
	astray, _, err := f.event(f.Bystander, verbs.NewWait(0))
	switch {
	case err != nil:
		return err
	case astray:
		f.found.Misdirected++
	default:
		f.found.Missed++
	}
	return nil
}

// drain takes the events that are left, lest a batch counts them as its own. An
// event that is owed is late; others have no cause.
func (f *firstSample) drain() error {
	if f.Channel == nil {
		return nil
	}
	for _, ch := range []verbs.CompChannel{f.Channel, f.Bystander} {
		for range maxStray {
			came, own, err := f.event(ch, verbs.NewWait(0))
			if err != nil {
				return err
			}
			if !came {
				break
			}
			switch {
			case ch == f.Bystander || !own:
				f.found.Misdirected++
			case f.owed:
				f.owed = false
			default:
				f.found.Spurious++
			}
		}
	}
	return nil
}

// event takes and acknowledges an event, which it waits for, and tells whether one
// came and whether it names the measured CQ.
func (f *firstSample) event(ch verbs.CompChannel, w *verbs.Wait) (came, own bool, err error) {
	e, err := w.Event(ch)
	if errors.Is(err, verbs.ErrTimeout) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	return true, e.CQ == f.CQ, e.CQ.AckEvents(1)
}

// poll waits for a completion, and looks at least once. It returns nil if there is
// none.
func poll(q verbs.CQ, w *verbs.Wait) (*verbs.WC, error) {
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		left := w.Left()
		wcs, err := q.Poll(1)
		if err != nil {
			return nil, err
		}
		if len(wcs) > 0 {
			return &wcs[0], nil
		}
		if left <= 0 {
			return nil, nil
		}
		time.Sleep(w.Pause(pause))
	}
}
