package supervisor

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// lane bounds how many children of one sort run at the same time. Devices whose
// last child of that sort had to be killed at its deadline use up the whole time of
// each; however many there are, they leave all slots but one to the others. Whoever waits
// longest is served first, so that a device that is due often cannot starve another.
type lane struct {
	slots *semaphore.Weighted
	// suspect is held beside a slot by such a device.
	suspect *semaphore.Weighted
}

func newLane(n int) *lane {
	return &lane{slots: semaphore.NewWeighted(int64(n)), suspect: semaphore.NewWeighted(1)}
}

// turn is the turn of a suspect among the suspects, or its place in the queue until it
// comes. It lasts until it is ended, whether anybody waits for it or not.
type turn struct {
	comes <-chan struct{}
	end   context.CancelFunc
}

// queue returns a turn that ends with ctx at the latest.
func (l *lane) queue(ctx context.Context) *turn {
	ctx, cancel := context.WithCancel(ctx)
	comes := make(chan struct{})
	go func() {
		defer cancel()
		if l.suspect.Acquire(ctx, 1) != nil {
			return
		}
		close(comes)
		<-ctx.Done()
		l.suspect.Release(1)
	}()
	return &turn{comes, cancel}
}

// acquire waits for a slot until ctx is done. A suspect first waits for its turn, until
// patient is done; then the turn is still its own. The turn of others is nil. With the
// slot the turn is given back.
func (l *lane) acquire(ctx, patient context.Context, t *turn) (release func(), err error) {
	if t != nil {
		select {
		case <-t.comes:
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

// acquireAs is acquire for a suspect, or another, that waits for nothing else.
func (l *lane) acquireAs(ctx context.Context, suspect bool) (release func(), err error) {
	if !suspect {
		return l.acquire(ctx, ctx, nil)
	}
	return l.acquire(ctx, ctx, l.queue(ctx))
}
