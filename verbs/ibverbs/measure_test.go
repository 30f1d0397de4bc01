//go:build cgo && linux

package ibverbs

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/verbs"
)

// begun is a tracer that remembers which verbs began.
type begun struct {
	verbs.NopTracer
	mu   sync.Mutex
	list []verbs.Verb
}

func (b *begun) Begin(v verbs.Verb) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, v)
}

// TestWatch tests who is accused of what, with the word that C keeps.
func TestWatch(t *testing.T) {
	const (
		limit = 10 * time.Second
		step  = 700 * time.Millisecond
		poll  = 6 // the number of ibv_poll_cq
	)
	if v, ok := measured(poll); !ok || v != verbs.PollCQ {
		t.Fatalf("number %d is %q", poll, v)
	}
	word := func(calls, verb uint64) uint64 { return calls<<8 | verb }
	for _, tt := range []struct {
		name string
		// after is how long the measurement takes, and words what it is in, for a
		// step each and then the last one.
		after time.Duration
		words []uint64
		want  []verbs.Verb
	}{
		{name: "hangs", after: time.Hour, words: []uint64{word(7, poll)}, want: []verbs.Verb{verbs.PollCQ}},
		{name: "returns just in time", after: limit + time.Second - 1, words: []uint64{word(7, poll)}},
		{name: "returns late", after: limit + time.Second + 1, words: []uint64{word(7, poll)}, want: []verbs.Verb{verbs.PollCQ}},
		{name: "waits", after: time.Hour, words: []uint64{word(7, 0)}},
		{name: "not begun", after: time.Hour, words: []uint64{0}},
		{name: "goes on", after: 20 * time.Second, words: func() (w []uint64) {
			for i := range uint64(40) {
				w = append(w, word(i, poll))
			}
			return w
		}()},
		{name: "hangs late", after: time.Hour, words: func() (w []uint64) {
			for i := range uint64(40) {
				w = append(w, word(i, poll))
			}
			return w
		}(), want: []verbs.Verb{verbs.PollCQ}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &begun{}
				d := &device{tracer: b}
				d.watched(limit, func(in *uint64) {
					start := time.Now()
					for i, w := range tt.words {
						atomic.StoreUint64(in, w)
						if i < len(tt.words)-1 && time.Since(start) < tt.after {
							time.Sleep(step)
						}
					}
					time.Sleep(tt.after - time.Since(start))
				})
				if !slices.Equal(b.list, tt.want) {
					t.Errorf("accused %q, want %q", b.list, tt.want)
				}
			})
		})
	}
}

// TestUnknownCQ verifies the error for an event that names no CQ of the device.
func TestUnknownCQ(t *testing.T) {
	err := (&device{name: "rxe0"}).unknownCQ()
	if !errors.Is(err, verbs.ErrUnknownCQ) {
		t.Errorf("%v does not match ErrUnknownCQ", err)
	}
	if want := "completion channel of rxe0: an event for a CQ that does not exist"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}
