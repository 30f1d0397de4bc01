package verbstest

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/verbs"
)

// workers is how many goroutines do the same at once.
const workers = 4

// inParallel calls work in several goroutines and waits for them all.
func inParallel(work func(worker int)) {
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() { work(i) })
	}
	wg.Wait()
}

// concurrency tests methods called at the same time, best with -race.
func (s *suite) concurrency(t *testing.T) {
	s.runConcurrent(t, "create and close", func(t *testing.T, d *device) {
		inParallel(func(int) {
			for range 10 {
				ch, err := d.CreateCompChannel()
				if err != nil {
					t.Errorf("CreateCompChannel: %v", err)
					return
				}
				c, err := d.CreateCQ(verbs.CQInitAttr{Entries: 8, Channel: ch.raw})
				if err != nil {
					t.Errorf("CreateCQ: %v", err)
					return
				}
				if wcs, err := c.Poll(4); err != nil || len(wcs) > 0 {
					t.Errorf("Poll: %v, %v", wcs, err)
				}
				if err := c.ReqNotify(false); err != nil {
					t.Errorf("ReqNotify: %v", err)
				}
				if _, err := ch.GetEvent(time.Millisecond); !errors.Is(err, verbs.ErrTimeout) {
					t.Errorf("GetEvent: %v", err)
				}
				c.mustClose()
				ch.mustClose()
			}
		})
	})
	s.runConcurrent(t, "query", func(t *testing.T, d *device) {
		inParallel(func(int) {
			for range 10 {
				if _, err := d.Query(); err != nil {
					t.Errorf("Query: %v", err)
				}
				if _, err := d.QueryPort(1); err != nil {
					t.Errorf("QueryPort: %v", err)
				}
				if _, err := d.GIDTable(); err != nil {
					t.Errorf("GIDTable: %v", err)
				}
				p, err := d.AllocPD()
				if err != nil {
					t.Errorf("AllocPD: %v", err)
					return
				}
				m, err := p.RegMR(4096, access)
				if err != nil {
					t.Errorf("RegMR: %v", err)
					return
				}
				m.mustClose()
				p.mustClose()
			}
		})
	})
	s.runConcurrent(t, "close while polled", func(t *testing.T, d *device) {
		for range 10 {
			c := d.mustCQ(8, nil, 0)
			var polls atomic.Int64
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				for polls.Load() < workers {
					time.Sleep(100 * time.Microsecond)
				}
				c.mustClose()
			}()
			inParallel(func(int) {
				for end := time.Now().Add(soon); time.Now().Before(end); polls.Add(1) {
					if _, err := c.Poll(1); err != nil {
						wantClosed(t, "Poll", err)
						return
					}
				}
				t.Errorf("Poll of a CQ that is closed still succeeds after %v", soon)
			})
			<-closed
		}
	})
	s.runConcurrent(t, "close while waited for", func(t *testing.T, d *device) {
		ch := d.mustChannel()
		var waits atomic.Int64
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			for waits.Load() < workers {
				time.Sleep(100 * time.Microsecond)
			}
			ch.mustClose()
		}()
		inParallel(func(int) {
			for end := time.Now().Add(soon); time.Now().Before(end); {
				waits.Add(1)
				if _, err := ch.GetEvent(moment); !errors.Is(err, verbs.ErrTimeout) {
					wantClosed(t, "GetEvent", err)
					return
				}
			}
			t.Errorf("GetEvent on a channel that is closed still waits after %v", soon)
		})
		<-closed
	})
	s.runConcurrent(t, "close in parallel", func(t *testing.T, d *device) {
		for range 10 {
			p := d.mustPD()
			c := d.mustCQ(8, nil, 0)
			q := d.mustFailing(p, c, c)
			inParallel(func(int) { q.mustClose() })
			inParallel(func(int) { c.mustClose() })
			inParallel(func(int) { q.buf.mustClose() })
			inParallel(func(int) { p.mustClose() })
		}
		inParallel(func(int) { d.mustClose() })
	})
	s.runConcurrent(t, "device closed beside creation", func(t *testing.T, d *device) {
		// Each creation comes before the Close, which then is refused, or after.
		for range 10 {
			d := d.b.open(d.device)
			inParallel(func(worker int) {
				if worker == 0 {
					for end := time.Now().Add(soon); ; time.Sleep(100 * time.Microsecond) {
						err := d.Close()
						if err == nil {
							return
						}
						if time.Now().After(end) {
							t.Errorf("Close is still refused after %v: %v", soon, err)
							return
						}
					}
				}
				for end := time.Now().Add(soon / 2); time.Now().Before(end); {
					p, err := d.AllocPD()
					if err != nil {
						wantClosed(t, "AllocPD", err)
						return
					}
					p.mustClose()
					time.Sleep(200 * time.Microsecond)
				}
			})
			d.mustClose()
		}
	})
	s.runConcurrent(t, "crossed CQs", func(t *testing.T, d *device) {
		// QPs that use two CQs in opposite order, beside closes of both.
		p := d.mustPD()
		one, two := d.mustCQ(8, nil, 0), d.mustCQ(8, nil, 0)
		d.mustFailing(p, one, two) // so that the closes are refused
		typ := s.offered()
		inParallel(func(worker int) {
			for range 100 {
				send, recv := one, two
				if worker%2 == 1 {
					send, recv = two, one
				}
				if worker >= 2 {
					wantErrno(t, "Close of a CQ in use", send.Close(), syscall.EBUSY)
					continue
				}
				q, err := p.CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: send, RecvCQ: recv, Cap: smallCap()})
				if err != nil {
					t.Errorf("CreateQP: %v", err)
					return
				}
				q.mustClose()
			}
		})
	})
	s.runConcurrent(t, "post in parallel", func(t *testing.T, d *device) {
		const each = 8
		c := d.mustCQ(256, nil, 0)
		p := d.mustPD()
		typ := verbs.RC
		s.requireType(t, typ)
		q, err := p.CreateQP(verbs.QPInitAttr{
			Type: typ, SendCQ: c, RecvCQ: c,
			Cap: verbs.QPCap{MaxSendWR: workers * each, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1},
		})
		if err != nil {
			t.Fatalf("CreateQP: %v", err)
		}
		m := p.mustMR(64)
		q.mustModify(verbs.ToInit(typ, 1, access))
		d.mustFail(q, typ)
		inParallel(func(worker int) {
			for i := range each {
				wr := verbs.SendWR{
					ID: uint64(worker*each + i), Opcode: verbs.OpSend, Flags: verbs.SendSignaled,
					SGEs: []verbs.SGE{m.SGE(0, 8)},
				}
				if err := q.PostSend(wr); err != nil {
					t.Errorf("PostSend: %v", err)
				}
			}
		})
		seen := make(map[uint64]bool)
		for _, wc := range c.await(workers * each) {
			if wc.Status != verbs.WCWRFlushErr || seen[wc.ID] || wc.ID >= workers*each {
				t.Errorf("completion %+v, seen before: %t", wc, seen[wc.ID])
			}
			seen[wc.ID] = true
		}
	})
	s.runConcurrent(t, "events while CQs come and go", func(t *testing.T, d *device) {
		ch := d.mustChannel()
		// What the failing QPs need is made here, where a failure may end the test.
		p := d.mustPD()
		stop := make(chan struct{})
		var listeners sync.WaitGroup
		var events atomic.Int64
		for range 2 {
			listeners.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					ev, err := ch.GetEvent(5 * time.Millisecond)
					if errors.Is(err, verbs.ErrTimeout) {
						continue
					}
					if err != nil {
						t.Errorf("GetEvent: %v", err)
						return
					}
					events.Add(1)
					if got := ev.CQ.Context(); got != ev.Context {
						t.Errorf("the event has context %#x, its CQ %#x", ev.Context, got)
					}
					// A CQ cannot go before its event is acknowledged.
					if err := ev.CQ.AckEvents(1); err != nil {
						t.Errorf("AckEvents: %v", err)
					}
				}
			})
		}
		var work sync.WaitGroup
		for worker := range workers {
			work.Go(func() {
				for i := range 8 {
					s.comeAndGo(t, d, p, ch, uint64(worker)<<32|uint64(i))
				}
			})
		}
		work.Wait()
		close(stop)
		listeners.Wait()
		if events.Load() == 0 {
			t.Error("no event was seen")
		}
		ch.mustClose()
	})
}

// comeAndGo creates a CQ, has an event made for it, and closes it, while others
// wait for events and acknowledge them.
func (s *suite) comeAndGo(t *testing.T, d *device, p *pd, ch *channel, context uint64) {
	c, err := d.CreateCQ(verbs.CQInitAttr{Entries: 16, Context: context, Channel: ch.raw})
	if err != nil {
		t.Errorf("CreateCQ: %v", err)
		return
	}
	typ := s.offered()
	q, err := p.CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: c, RecvCQ: c, Cap: smallCap()})
	if err != nil {
		t.Errorf("CreateQP: %v", err)
		return
	}
	if err := errors.Join(
		q.Modify(verbs.ToInit(typ, 1, access)),
		q.PostRecv(verbs.RecvWR{ID: context}),
		c.ReqNotify(false),
		q.Modify(verbs.ToError()),
	); err != nil {
		t.Errorf("making a completion: %v", err)
	}
	for end := time.Now().Add(soon); ; time.Sleep(100 * time.Microsecond) {
		wcs, err := c.Poll(1)
		if err != nil {
			t.Errorf("Poll: %v", err)
			return
		}
		if len(wcs) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Errorf("no completion after %v", soon)
			break
		}
	}
	q.mustClose()
	for end := time.Now().Add(soon); ; time.Sleep(100 * time.Microsecond) {
		err := c.Close()
		if err == nil {
			return
		}
		if !errors.Is(err, verbs.ErrUnacknowledged) || time.Now().After(end) {
			t.Errorf("Close: %v", err)
			return
		}
	}
}
