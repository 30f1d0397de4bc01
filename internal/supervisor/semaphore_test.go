package supervisor

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

func TestSemaphoreIsFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSemaphore(1)
		if err := s.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		var order []int
		given, cancelGiven := context.WithCancel(t.Context())
		for i := range 5 {
			ctx := t.Context()
			if i == 2 {
				ctx = given
			}
			go func() {
				if s.acquire(ctx) != nil {
					return
				}
				order = append(order, i)
				s.release()
			}()
			synctest.Wait()
		}
		cancelGiven()
		synctest.Wait()
		s.release()
		synctest.Wait()
		if want := []int{0, 1, 3, 4}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		if s.free != 1 || len(s.waiting) != 0 {
			t.Errorf("%d free, %d waiting", s.free, len(s.waiting))
		}
	})
}

// A slot that is handed over while its taker gives up is not lost.
func TestSemaphoreLosesNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSemaphore(1)
		for range 500 {
			if err := s.acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				if s.acquire(ctx) == nil {
					s.release()
				}
			}()
			synctest.Wait()
			go cancel()
			s.release()
			synctest.Wait()
			if s.free != 1 || len(s.waiting) != 0 {
				t.Fatalf("%d free, %d waiting", s.free, len(s.waiting))
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if s.acquire(ctx) == nil {
			t.Error("a slot for who has given up")
		}
	})
}
