package supervisor

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

// TestLaneIsFair makes sure that a lane serves first who waits longest, without those who
// have given up, suspect or not, and that no slot is lost.
func TestLaneIsFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLane(1)
		for range 2 {
			release, err := l.acquire(t.Context(), t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			var order []int
			given, cancel := context.WithCancel(t.Context())
			for i := range 7 {
				ctx, patient := t.Context(), t.Context()
				switch i {
				case 2:
					ctx = given // as a suspect that waits for a slot
				case 3:
					patient = given // as one that waits for another suspect
				case 4:
					ctx = given
				}
				go func() {
					release, err := l.acquire(ctx, patient, i == 2 || i == 3 || i == 6)
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
			if _, err := l.acquire(given, t.Context(), false); err == nil {
				t.Error("a slot for who has given up")
			}
		}
	})
}
