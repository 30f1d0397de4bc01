package supervisor

import (
	"context"
	"slices"
	"sync"
)

// semaphore bounds how many children run at the same time. Whoever waits longest
// is served first, so that a device that is due often cannot starve another.
type semaphore struct {
	mu      sync.Mutex
	free    int
	waiting []chan struct{}
}

func newSemaphore(n int) *semaphore { return &semaphore{free: n} }

// acquire waits for a slot. It returns an error, and no slot, if ctx is done
// before it has one.
func (s *semaphore) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	s.waiting = append(s.waiting, turn)
	s.mu.Unlock()

	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, turn); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	} else {
		// The slot came at the same moment: pass it on.
		s.give()
	}
	return ctx.Err()
}

// release gives a slot back.
func (s *semaphore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.give()
}

// give hands a slot to who waits longest. It is called with mu held.
func (s *semaphore) give() {
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	close(s.waiting[0])
	s.waiting = slices.Delete(s.waiting, 0, 1)
}

// lane bounds how many children of one sort run at the same time. Devices whose
// last child of that sort had to be killed at its deadline use up the whole time of
// each; however many there are, they leave all slots but one to the others.
type lane struct {
	slots *semaphore
	// suspect is held beside a slot by such a device.
	suspect *semaphore
}

func newLane(n int) *lane { return &lane{slots: newSemaphore(n), suspect: newSemaphore(1)} }

// acquire waits for a slot until ctx is done. A suspect first waits for its turn
// among the suspects, until patient is done.
func (l *lane) acquire(ctx, patient context.Context, suspect bool) (release func(), err error) {
	if suspect {
		if err := l.suspect.acquire(patient); err != nil {
			return nil, err
		}
	}
	if err := l.slots.acquire(ctx); err != nil {
		if suspect {
			l.suspect.release()
		}
		return nil, err
	}
	return func() {
		l.slots.release()
		if suspect {
			l.suspect.release()
		}
	}, nil
}
