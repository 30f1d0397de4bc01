package verbstest

import (
	"errors"
	"testing"
	"time"

	"rdma_exporter/verbs"
)

// async tests asynchronous events.
func (s *suite) async(t *testing.T) {
	s.run(t, "none", func(t *testing.T, d *device) {
		for _, wait := range []time.Duration{0, -time.Second, moment} {
			// Something may happen to the port at any time.
			if e, err := d.AsyncEvent(wait); !errors.Is(err, verbs.ErrTimeout) && (err != nil || e.Type.OfSRQ()) {
				t.Errorf("AsyncEvent(%v): event %+v, error %v; want ErrTimeout", wait, e, err)
			}
		}
		d.mustClose()
		wantClosed(t, "AsyncEvent", errorOf(d.AsyncEvent(0)))
	})
	s.run(t, "limit of an SRQ", func(t *testing.T, d *device) {
		from, to := s.connect(t, d, link{typ: verbs.RC, shared: true})
		to.expect(1)
		to.expect(2)
		if err := to.shared.SetLimit(2); err != nil {
			t.Skipf("the device has no limits of SRQs: %v", err)
		}
		from.mustSend(verbs.SendWR{ID: 3, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{from.buf.SGE(0, 8)}})
		to.recv.await(1)
		from.send.await(1)
		for deadline := time.Now().Add(soon); ; {
			e := must(d.AsyncEvent(time.Until(deadline)))(t, "AsyncEvent")
			if e.Type == verbs.EventSRQLimitReached {
				if e.SRQ != to.shared.raw {
					t.Errorf("the event names another SRQ (%v)", e.SRQ)
				}
				break
			}
		}
		// It was acknowledged: nothing waits for that.
		to.mustClose()
		to.shared.mustClose()
	})
}
