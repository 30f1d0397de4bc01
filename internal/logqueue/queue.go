// Package logqueue keeps writers of a log from waiting for its reader.
package logqueue

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// maxWaiting limits the waiting lines. It is more than the exporter usually logs in an hour.
const maxWaiting = 256

// A Queue is a writer of lines that never waits for the writer behind it. It keeps lines up to a
// bound, and drops and counts further ones. It is safe for concurrent use.
type Queue struct {
	w       io.Writer
	dropped atomic.Uint64
	// done is closed when nothing more is written.
	done chan struct{}

	// mu is held while something is put into waiting, or it is closed.
	mu      sync.Mutex
	waiting chan []byte
	closed  bool
}

// New returns a queue before w. Callers must not write to w themselves, and must close the
// queue.
func New(w io.Writer) *Queue {
	q := &Queue{w: w, done: make(chan struct{}), waiting: make(chan []byte, maxWaiting)}
	go q.run()
	return q
}

// Write implements io.Writer for whole lines. It succeeds even if it drops all of them.
func (q *Queue) Write(b []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		select {
		case q.waiting <- bytes.Clone(b):
			return len(b), nil
		default:
		}
	}
	q.drop(b)
	return len(b), nil
}

// Dropped returns how many lines had no room or were refused by the writer.
func (q *Queue) Dropped() uint64 { return q.dropped.Load() }

// Close drops further lines, and waits until the others are written or the timeout has passed.
func (q *Queue) Close(timeout time.Duration) {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.waiting)
	}
	q.mu.Unlock()
	select {
	case <-q.done:
	case <-time.After(timeout):
	}
}

func (q *Queue) run() {
	defer close(q.done)
	for b := range q.waiting {
		// A writer that fails may work again with a new reader.
		if n, err := q.w.Write(b); err != nil {
			q.drop(b[n:])
		}
	}
}

func (q *Queue) drop(b []byte) { q.dropped.Add(uint64(bytes.Count(b, []byte{'\n'}))) }
