package verbstest

import (
	"math"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/verbs"
)

// cq tests completion queues.
func (s *suite) cq(t *testing.T) {
	s.run(t, "create and close", func(t *testing.T, d *device) {
		for _, entries := range []int{1, 2, 7, 100, 1000} {
			c := d.mustCQ(entries, nil, 0)
			if got := c.Entries(); got < 1 {
				t.Errorf("%d entries asked: Entries = %d", entries, got)
			}
			c.mustBeEmpty()
			c.mustClose()
			c.mustClose()
			wantClosed(t, "Poll", errorOf(c.Poll(1)))
			wantClosed(t, "ReqNotify", c.ReqNotify(false))
			wantClosed(t, "AckEvents", c.AckEvents(0))
			wantClosed(t, "AckEvents", c.AckEvents(1))
			c.Entries()
		}
	})
	s.run(t, "entries out of range", func(t *testing.T, d *device) {
		// The last would be a small number, were it cut to 32 bits.
		for _, entries := range []int{0, -1, math.MinInt32, 1 << 30, math.MaxInt32, math.MinInt, math.MaxInt, 1<<32 + 8} {
			if _, err := d.CreateCQ(verbs.CQInitAttr{Entries: entries}); err == nil {
				t.Errorf("CreateCQ(%d entries) succeeded", entries)
			}
		}
		d.mustCQ(1, nil, 0)
	})
	s.run(t, "vectors", func(t *testing.T, d *device) {
		n := d.raw.CompletionVectors()
		for _, vector := range []int{0, n - 1, n, -1} {
			c, err := d.CreateCQ(verbs.CQInitAttr{Entries: 4, Vector: vector})
			if err != nil {
				if vector == 0 {
					t.Errorf("CreateCQ with vector 0: %v", err)
				}
				continue
			}
			c.mustBeEmpty()
			c.mustClose()
		}
		for _, vector := range []int{1 << 32, -1 << 32} { // no int32: cannot be passed on
			wantErrno(t, "CreateCQ with a vector that is no int32", errorOf(d.CreateCQ(verbs.CQInitAttr{Entries: 4, Vector: vector})), syscall.EINVAL)
		}
	})
	s.run(t, "poll none", func(t *testing.T, d *device) {
		c := d.mustCQ(4, nil, 0)
		for _, n := range []int{0, -1, math.MinInt} {
			wcs, err := c.raw.Poll(n)
			d.b.checkError(d.device, verbs.PollCQ, err)
			if len(wcs) > 0 {
				t.Errorf("Poll(%d) of an empty CQ: %d completions", n, len(wcs))
			}
		}
		c.mustBeEmpty()
	})
	s.run(t, "poll", func(t *testing.T, d *device) {
		c := d.mustCQ(32, nil, 0)
		q := d.mustFailing(d.mustPD(), c, c)
		for id := range uint64(4) {
			q.complete(1<<63 | id)
		}
		first := c.await(1)
		rest := c.await(3)
		wantFlushed(t, q.qp, append(first, rest...), 1<<63, 1<<63|1, 1<<63|2, 1<<63|3)
		c.mustBeEmpty()
	})
	s.run(t, "poll many", func(t *testing.T, d *device) {
		c := d.mustCQ(32, nil, 0)
		q := d.mustFailing(d.mustPD(), c, c)
		q.complete(7)
		wantFlushed(t, q.qp, c.await(1), 7)
		q.complete(8)
		for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
			wcs := must(c.Poll(100_000))(t, "Poll(100000)")
			if len(wcs) > 0 {
				wantFlushed(t, q.qp, wcs, 8)
				return
			}
		}
		t.Errorf("no completion after %v", soon)
	})
	s.run(t, "resize", func(t *testing.T, d *device) {
		c := d.mustCQ(8, nil, 0)
		q := d.mustFailing(d.mustPD(), c, c)
		q.complete(1)
		q.complete(2)
		// Whether the device can, and how much it gives, is its affair; that nothing is
		// lost is not.
		before := c.Entries()
		switch err := c.Resize(100); {
		case verbs.IsNotSupported(err):
			t.Logf("the device does not resize: %v", err)
		case err != nil:
			t.Errorf("Resize(100): %v", err)
		case c.Entries() < 1:
			t.Errorf("Entries = %d", c.Entries())
		default:
			t.Logf("%d entries, 100 asked: %d", before, c.Entries())
		}
		q.complete(3)
		wantFlushed(t, q.qp, c.await(3), 1, 2, 3)
		entries := c.Entries()
		for _, n := range []int{math.MaxInt32, math.MaxInt, 1<<32 + 8} {
			wantError(t, "Resize out of range", c.Resize(n))
			if c.Entries() != entries {
				t.Errorf("Resize(%d), which failed, made %d entries of %d", n, c.Entries(), entries)
			}
		}
		q.mustClose()
		c.mustClose()
		wantClosed(t, "Resize", c.Resize(8))
	})
	s.run(t, "query extended", func(t *testing.T, d *device) {
		if _, err := d.QueryExtended(); err != nil {
			t.Errorf("QueryExtended: %v", err)
		}
		d.mustClose()
		wantClosed(t, "QueryExtended", errorOf(d.QueryExtended()))
	})
	s.run(t, "arm without channel", func(t *testing.T, d *device) {
		d.mustPD() // some libraries map their doorbells with the first one
		c := d.mustCQ(4, nil, 0)
		for _, solicited := range []bool{false, true} {
			if err := c.ReqNotify(solicited); err != nil {
				t.Errorf("ReqNotify(%t): %v", solicited, err)
			}
		}
	})
	s.run(t, "close while a QP uses it", func(t *testing.T, d *device) {
		p := d.mustPD()
		send, recv := d.mustCQ(16, nil, 0), d.mustCQ(16, nil, 0)
		q := d.mustFailing(p, send, recv)
		wantErrno(t, "Close of the send CQ", send.Close(), syscall.EBUSY)
		wantErrno(t, "Close of the receive CQ", recv.Close(), syscall.EBUSY)
		q.complete(5)
		wantFlushed(t, q.qp, send.await(1), 5)
		recv.mustBeEmpty()
		q.mustBe(verbs.Err)
		q.mustClose()
		send.mustClose()
		recv.mustClose()
	})
	s.run(t, "close with completions in it", func(t *testing.T, d *device) {
		c := d.mustCQ(16, nil, 0)
		q := d.mustFailing(d.mustPD(), c, c)
		q.complete(1)
		q.complete(2)
		c.await(1)
		q.mustClose()
		c.mustClose()
	})
}
