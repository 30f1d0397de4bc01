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

// acquire waits for a slot until ctx is done. A suspect first waits for its turn
// among the suspects, until patient is done.
func (l *lane) acquire(ctx, patient context.Context, suspect bool) (release func(), err error) {
	if suspect {
		if err := l.suspect.Acquire(patient, 1); err != nil {
			return nil, err
		}
	}
	if err := l.slots.Acquire(ctx, 1); err != nil {
		if suspect {
			l.suspect.Release(1)
		}
		return nil, err
	}
	return func() {
		l.slots.Release(1)
		if suspect {
			l.suspect.Release(1)
		}
	}, nil
}
