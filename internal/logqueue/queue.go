// Package logqueue keeps writers of a log from waiting for its reader.
package logqueue

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// maxWaiting limits the waiting lines, in bytes. Hundreds of lines fit, more than the exporter
// usually logs in an hour.
const maxWaiting = 64 << 10

// A Queue is a writer of lines that never waits for the writer behind it. It keeps lines up to a
// bound, and drops and counts further ones. It is safe for concurrent use.
type Queue struct {
	w io.Writer
	// done is closed when nothing more is written.
	done chan struct{}

	mu sync.Mutex
	// changed is signalled when waiting or closed changes.
	changed sync.Cond
	waiting []byte
	closed  bool
	dropped uint64
}

// New returns a queue before w. Callers must not write to w themselves, and must close the
// queue.
func New(w io.Writer) *Queue {
	q := &Queue{w: w, done: make(chan struct{})}
	q.changed.L = &q.mu
	go q.run()
	return q
}

// Write implements io.Writer for whole lines. It succeeds even if it drops all of them.
func (q *Queue) Write(b []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting)+len(b) > maxWaiting {
		q.dropped += lines(b)
		return len(b), nil
	}
	q.waiting = append(q.waiting, b...)
	q.changed.Signal()
	return len(b), nil
}

// Dropped returns how many lines had no room or were refused by the writer.
func (q *Queue) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Close drops further lines, and waits until the others are written or the timeout has passed.
func (q *Queue) Close(timeout time.Duration) {
	q.mu.Lock()
	q.closed = true
	q.changed.Signal()
	q.mu.Unlock()
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-q.done:
	case <-t.C:
	}
}

func (q *Queue) run() {
	defer close(q.done)
	for {
		b := q.take()
		if len(b) == 0 {
			return
		}
		// A writer that fails may work again with a new reader.
		if n, err := q.w.Write(b); err != nil {
			q.lost(lines(b[n:]))
		}
	}
}

// take waits for lines and returns all of them. Empty means that the queue is closed.
func (q *Queue) take() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.closed {
		q.changed.Wait()
	}
	b := q.waiting
	q.waiting = nil
	return b
}

func (q *Queue) lost(n uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropped += n
}

// lines returns how many lines end in b.
func lines(b []byte) uint64 { return uint64(bytes.Count(b, []byte{'\n'})) }
