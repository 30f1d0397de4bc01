package verbstest

import (
	"errors"
	"math"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/verbs"
)

// Two contexts that need all their bits.
const (
	contextA = 0xfedcba9876543210
	contextB = 0x0123456789abcdef
)

// channel tests completion channels and the accounting of their events.
func (s *suite) channel(t *testing.T) {
	s.run(t, "create and close", func(t *testing.T, d *device) {
		ch := d.mustChannel()
		ch.mustClose()
		ch.mustClose()
		wantClosed(t, "GetEvent", errorOf(ch.GetEvent(0)))
		wantClosed(t, "GetEvent", errorOf(ch.GetEvent(moment)))
	})
	s.run(t, "timeout", func(t *testing.T, d *device) {
		ch := d.mustChannel()
		c := d.mustCQ(4, ch, contextA)
		c.mustArm(false)
		// The shortest is less than a millisecond: it must neither fail nor last.
		for _, timeout := range []time.Duration{0, 1, 20 * time.Millisecond, -1, math.MinInt64} {
			start := time.Now()
			_, err := ch.GetEvent(timeout)
			took := time.Since(start)
			if !errors.Is(err, verbs.ErrTimeout) {
				t.Errorf("GetEvent(%v): %v, want ErrTimeout", timeout, err)
			}
			if took < timeout {
				t.Errorf("GetEvent(%v) returned after %v", timeout, took)
			}
			if took > max(timeout, 0)+soon {
				t.Errorf("GetEvent(%v) took %v", timeout, took)
			}
		}
	})
	s.run(t, "event", func(t *testing.T, d *device) {
		ch, c, q := d.mustNotifying()
		// Not armed: no event.
		q.complete(1)
		c.await(1)
		ch.mustBeQuiet()
		// One arming, one event.
		q.notify(ch, c, 2)
		q.complete(3)
		c.await(1)
		ch.mustBeQuiet()
		wantNoError(t, "AckEvents(1)", c.AckEvents(1))
	})
	s.run(t, "two CQs on one channel", func(t *testing.T, d *device) {
		ch := d.mustChannel()
		a, b := d.mustCQ(16, ch, contextA), d.mustCQ(16, ch, contextB)
		p := d.mustPD()
		qa, qb := d.mustFailing(p, a, a), d.mustFailing(p, b, b)
		a.mustArm(false)
		b.mustArm(false)
		qb.complete(1)
		ch.awaitEvent(b)
		ch.mustBeQuiet()
		qa.complete(2)
		ch.awaitEvent(a)
		ch.mustBeQuiet()
		wantFlushed(t, qa.qp, a.await(1), 2)
		wantFlushed(t, qb.qp, b.await(1), 1)
		for _, c := range []*cq{a, b} {
			wantNoError(t, "AckEvents", c.AckEvents(1))
		}
	})
	s.run(t, "two channels", func(t *testing.T, d *device) {
		chA, chB := d.mustChannel(), d.mustChannel()
		a, b := d.mustCQ(16, chA, 0), d.mustCQ(16, chB, 0)
		p := d.mustPD()
		qa, qb := d.mustFailing(p, a, a), d.mustFailing(p, b, b)
		a.mustArm(false)
		b.mustArm(false)
		qb.complete(1)
		chB.awaitEvent(b)
		chA.mustBeQuiet()
		qa.complete(2)
		chA.awaitEvent(a)
		chB.mustBeQuiet()
	})
	s.run(t, "too many acknowledged", func(t *testing.T, d *device) {
		ch, c, q := d.mustNotifying()
		wantError(t, "AckEvents(1) without an event", c.AckEvents(1))
		for id := range uint64(3) {
			q.notify(ch, c, id)
		}
		wantError(t, "AckEvents(4) after 3 events", c.AckEvents(4))
		wantError(t, "AckEvents(-1)", c.AckEvents(-1))
		wantError(t, "AckEvents of far too many", c.AckEvents(1<<32+1))
		q.mustClose()
		// None was acknowledged by those.
		if err := c.Close(); !errors.Is(err, verbs.ErrUnacknowledged) {
			t.Fatalf("Close with 3 events unacknowledged: %v", err)
		}
		wantNoError(t, "AckEvents(2) of 3", c.AckEvents(2))
		wantNoError(t, "AckEvents(1) of 1", c.AckEvents(1))
		wantError(t, "AckEvents(1) of 0", c.AckEvents(1))
		c.mustClose()
	})
	s.run(t, "close a CQ with unacknowledged events", func(t *testing.T, d *device) {
		ch, c, q := d.mustNotifying()
		q.notify(ch, c, 1)
		q.mustClose()
		err := c.Close() // the verb would wait for ever
		wantErrno(t, "Close", err, syscall.EBUSY)
		if !errors.Is(err, verbs.ErrUnacknowledged) {
			t.Errorf("Close: %v, want ErrUnacknowledged", err)
		}
		// As before: it may be used, acknowledged and closed.
		c.mustBeEmpty()
		c.mustArm(false)
		wantNoError(t, "AckEvents", c.AckEvents(1))
		c.mustClose()
		ch.mustClose()
	})
	s.run(t, "close a CQ with an event not taken", func(t *testing.T, d *device) {
		ch, c, q := d.mustNotifying()
		c.mustArm(false)
		q.complete(1)
		c.await(1)
		q.mustClose()
		c.mustClose()
		ch.mustBeQuiet() // the event went with its CQ
		other := d.mustCQ(16, ch, contextB)
		q = d.mustFailing(d.mustPD(), other, other)
		other.mustArm(false)
		q.complete(2)
		ch.awaitEvent(other)
	})
	s.run(t, "close while a CQ is attached", func(t *testing.T, d *device) {
		ch := d.mustChannel()
		c := d.mustCQ(16, ch, contextA)
		wantErrno(t, "Close", ch.Close(), syscall.EBUSY)
		q := d.mustFailing(d.mustPD(), c, c)
		q.notify(ch, c, 1)
		wantNoError(t, "AckEvents", c.AckEvents(1))
		q.mustClose()
		c.mustClose()
		ch.mustClose()
	})
}
