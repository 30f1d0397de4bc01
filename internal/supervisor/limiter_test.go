package supervisor

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"rdma_exporter/test/running"
)

// TestLimiterIsFair verifies that the longest waiting device gets the slot, suspect or not, and
// that no slot is lost.
func TestLimiterIsFair(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLimiter(1, new(sync.WaitGroup))
		for range 2 {
			release := running.Must(l.acquireAs(t.Context(), false))(t)
			var order []int
			given, cancel := context.WithCancel(t.Context())
			for i := range 7 {
				ctx := t.Context()
				if i >= 2 && i <= 4 { // a suspect that waits for a slot, one that waits for that one, and another
					ctx = given
				}
				go func() {
					release, err := l.acquireAs(ctx, i == 2 || i == 3 || i == 6)
					if err != nil {
						return
					}
					order = append(order, i)
					release()
				}()
				synctest.Wait()
			}
			cancel()
			synctest.Wait()
			release()
			synctest.Wait()
			if want := []int{0, 1, 5, 6}; !slices.Equal(order, want) {
				t.Errorf("order %v, want %v", order, want)
			}
			if _, err := l.acquireAs(given, false); err == nil {
				t.Error("a slot for who has given up")
			}
		}
	})
}

// TestTickets verifies that a device that stops waiting keeps its ticket, and that an ended one
// is not lost.
func TestTickets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLimiter(2, new(sync.WaitGroup))
		came := func(all ...*ticket) (n int) {
			synctest.Wait()
			for _, one := range all {
				select {
				case <-one.called:
					n++
				default:
				}
			}
			return n
		}
		first := l.queue(t.Context())
		synctest.Wait()
		second := l.queue(t.Context())
		synctest.Wait()
		third := l.queue(t.Context())
		given, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.acquire(t.Context(), given, second); err == nil {
			t.Error("a turn that had not come")
		}
		first.end()
		if came(second) != 1 || came(third) != 0 {
			t.Error("who has given way lost its turn")
		}
		release := running.Must(l.acquire(t.Context(), t.Context(), second))(t)
		third.end()
		ended, end := context.WithCancel(t.Context())
		fourth := l.queue(ended)
		end()
		release()
		if came(third, fourth) != 0 {
			t.Error("a turn that was ended before it came")
		}
		if last := l.queue(t.Context()); came(last) != 1 {
			t.Error("a turn is lost")
		} else {
			last.end()
		}
	})
}
