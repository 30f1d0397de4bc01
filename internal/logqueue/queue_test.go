package logqueue_test

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/internal/logqueue"
	"rdma_exporter/test/running"
)

// line is a line of 1 KiB.
func line() []byte { return []byte(strings.Repeat("x", 1023) + "\n") }

func TestOrder(t *testing.T) {
	var out running.Output
	q := logqueue.New(&out)
	var want strings.Builder
	for i := range 50 {
		text := strings.Repeat("x", i) + "\n"
		want.WriteString(text)
		if n, err := io.WriteString(q, text); n != len(text) || err != nil {
			t.Errorf("line %d: %d, %v", i, n, err)
		}
	}
	q.Close(running.Patience)
	if got := out.String(); got != want.String() || q.Dropped() != 0 {
		t.Errorf("dropped %d, got\n%s", q.Dropped(), got)
	}
	_, _ = q.Write(line())
	if got := out.String(); got != want.String() || q.Dropped() != 1 {
		t.Errorf("after the end: dropped %d, got\n%s", q.Dropped(), got)
	}
}

// TestStalled verifies that neither Write nor Close waits for a writer that does not return, and that
// lost lines are counted.
func TestStalled(t *testing.T) {
	r, w := io.Pipe() // A write waits until it was read.
	q := logqueue.New(w)
	const all = 1000
	for range all {
		_, _ = q.Write(line())
	}
	dropped := q.Dropped()
	if dropped < all/2 || dropped >= all {
		t.Errorf("%d of %d lines were dropped", dropped, all)
	}
	q.Close(time.Millisecond)

	read := 0
	b := make([]byte, 1024)
	for range all - int(dropped) {
		if n, err := io.ReadFull(r, b); err != nil || string(b[:n]) != string(line()) {
			t.Fatalf("line %d: %v, %q", read, err, b[:n])
		}
		read++
	}
	q.Close(running.Patience)
	if q.Dropped() != dropped {
		t.Errorf("%d lines were dropped, %d before", q.Dropped(), dropped)
	}
}

// TestRefused verifies that refused lines are counted, and that a writer that works again is used.
func TestRefused(t *testing.T) {
	w := &refusing{refuse: true}
	q := logqueue.New(w)
	_, _ = io.WriteString(q, "one\ntwo\nthree\n")
	running.Eventually(t, "the lines are lost", func() bool { return q.Dropped() == 2 })
	w.set(false)
	_, _ = io.WriteString(q, "four\n")
	q.Close(running.Patience)
	if got := w.String(); got != "one\nfour\n" || q.Dropped() != 2 {
		t.Errorf("got %q, dropped %d", got, q.Dropped())
	}
}

// refusing takes the first 4 bytes of what is written to it while it refuses.
type refusing struct {
	running.Output
	mu     sync.Mutex
	refuse bool
}

func (r *refusing) set(refuse bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = refuse
}

func (r *refusing) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.refuse {
		return r.Output.Write(b)
	}
	n, _ := r.Output.Write(b[:4])
	return n, errors.New("there is no room")
}
