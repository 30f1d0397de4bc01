package verbs

import (
	"errors"
	"time"
)

// waitShares is in how many shares a Wait is used up, at least.
const waitShares = 10

// A Wait bounds how long something is waited for. A host that stands still, as a
// virtual machine does while it is moved, does not use it up: whatever time passes
// between two calls of Left counts as a tenth of the whole at most. So
// what came meanwhile is found, and what could not come is waited for. It is for one
// goroutine.
type Wait struct {
	left, share time.Duration
	asked       time.Time
}

// NewWait begins a wait of the given length.
func NewWait(length time.Duration) *Wait {
	return &Wait{left: length, share: max(1, length/waitShares), asked: time.Now()}
}

// Left returns the rest of the wait. It is asked before each look: that after which
// nothing was left is the last.
func (w *Wait) Left() time.Duration {
	now := time.Now()
	w.left -= min(w.share, now.Sub(w.asked))
	w.asked = now
	return w.left
}

// Pause returns how long the next look may be put off after the last question, if it
// is to be put off for that long.
func (w *Wait) Pause(long time.Duration) time.Duration {
	return max(0, min(w.left, w.share, long))
}

// Event waits for an event of a channel as CompChannel.GetEvent does.
func (w *Wait) Event(ch CompChannel) (CQEvent, error) {
	for {
		left := w.Left()
		e, err := ch.GetEvent(w.Pause(left))
		if left <= 0 || !errors.Is(err, ErrTimeout) {
			return e, err
		}
	}
}
