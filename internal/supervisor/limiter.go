package supervisor

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// limiter bounds how many children run concurrently. Suspect devices, whose last child was
// killed at its deadline, use up the whole timeout of each. They share one slot, so however
// many they are, the others have the rest. Slots are given in the order of waiting, so that a
// device that is due often cannot starve another.
type limiter struct {
	slots *semaphore.Weighted
	// suspect is held in addition to a slot by a suspect device.
	suspect *semaphore.Weighted
	// running are the goroutines of the supervisor.
	running *sync.WaitGroup
}

func newLimiter(n int, running *sync.WaitGroup) *limiter {
	return &limiter{slots: semaphore.NewWeighted(int64(n)), suspect: semaphore.NewWeighted(1), running: running}
}

// ticket is a place in the queue for the slot that all suspect devices share. It stays valid
// until end is called, even if its owner stops waiting for a while.
type ticket struct {
	called <-chan struct{}
	end    context.CancelFunc
}

// queue returns a ticket that ends with ctx at the latest.
func (l *limiter) queue(ctx context.Context) *ticket {
	ctx, cancel := context.WithCancel(ctx)
	called := make(chan struct{})
	l.running.Go(func() {
		defer cancel()
		if l.suspect.Acquire(ctx, 1) != nil {
			return
		}
		close(called)
		<-ctx.Done()
		l.suspect.Release(1)
	})
	return &ticket{called, cancel}
}

// acquire waits for a slot until ctx is done. A suspect first waits for its ticket, but only
// until patient is done, and keeps the ticket then. Other devices have none. Releasing the
// slot ends the ticket.
func (l *limiter) acquire(ctx, patient context.Context, t *ticket) (release func(), err error) {
	if t != nil {
		select {
		case <-t.called:
		case <-patient.Done():
			return nil, patient.Err()
		}
	}
	if err := l.slots.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() {
		l.slots.Release(1)
		if t != nil {
			t.end()
		}
	}, nil
}

// acquireAs is acquire without a break in waiting.
func (l *limiter) acquireAs(ctx context.Context, suspect bool) (release func(), err error) {
	var t *ticket
	if suspect {
		t = l.queue(ctx)
	}
	return l.acquire(ctx, ctx, t)
}
