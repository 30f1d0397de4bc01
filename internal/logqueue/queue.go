// Package logqueue keeps those who write a log from waiting for those who read it.
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

// Queue is a writer of lines that never waits: what the writer behind it does not take
// yet is kept, up to a bound, and what is beyond is dropped and counted. It is safe for
// concurrent use.
type Queue struct {
	w io.Writer
	// done is closed when nothing more is written.
	done chan struct{}

	mu sync.Mutex
	// changed is signalled when waiting or closed changes.
	changed sync.Cond
	// waiting are the lines that are not being written yet.
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

// Write implements io.Writer. It takes all or nothing of what it is given, which is one
// line or more, and does not tell which: Dropped does.
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

// Dropped returns how many lines were lost: those for which there was no room, and those
// that the writer refused.
func (q *Queue) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Close takes no further lines, and waits until those that wait are written, but for no
// longer than timeout: a writer that does not return is left alone with the rest.
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

// run writes what waits, until the queue is closed and empty.
func (q *Queue) run() {
	defer close(q.done)
	for {
		b := q.take()
		if len(b) == 0 {
			return
		}
		// A writer that fails now may work later: a new reader may come.
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
