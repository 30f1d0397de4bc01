package verbs_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/verbs"
)

func TestWait(t *testing.T) {
	for _, test := range []struct {
		name   string
		length time.Duration
		// passed is the time before each question, and want the answer.
		passed, want []time.Duration
	}{
		{
			name: "in small steps", length: 10 * time.Second,
			passed: []time.Duration{0, 400 * time.Millisecond, time.Second, 0},
			want:   []time.Duration{10 * time.Second, 9600 * time.Millisecond, 8600 * time.Millisecond, 8600 * time.Millisecond},
		}, {
			name: "over a stall", length: 10 * time.Second,
			passed: []time.Duration{time.Hour, 5 * time.Second, 100 * time.Millisecond},
			want:   []time.Duration{9 * time.Second, 8 * time.Second, 7900 * time.Millisecond},
		}, {
			name: "to the end", length: 5,
			passed: []time.Duration{1, time.Hour, 1, 1, 1, 1},
			want:   []time.Duration{4, 3, 2, 1, 0, -1},
		}, {
			name:   "nothing",
			passed: []time.Duration{0, time.Hour},
			want:   []time.Duration{0, -1},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := verbs.NewWait(test.length)
				for i, passed := range test.passed {
					time.Sleep(passed)
					if got := w.Left(); got != test.want[i] {
						t.Errorf("question %d: %v left, want %v", i, got, test.want[i])
					}
				}
			})
		})
	}
}

func TestWaitPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := verbs.NewWait(10 * time.Second)
		for _, test := range []struct{ long, want time.Duration }{
			{time.Hour, time.Second}, {time.Millisecond, time.Millisecond}, {0, 0}, {-1, 0},
		} {
			if got := w.Pause(test.long); got != test.want {
				t.Errorf("a pause of %v instead of %v, want %v", got, test.long, test.want)
			}
		}
		for range 10 {
			time.Sleep(950 * time.Millisecond)
			w.Left()
		}
		if got := w.Pause(time.Hour); got != 500*time.Millisecond {
			t.Errorf("a pause of %v with half a second left", got)
		}
		time.Sleep(time.Second)
		w.Left()
		if got := w.Pause(time.Hour); got != 0 {
			t.Errorf("a pause of %v with nothing left", got)
		}
	})
}

// channel is a completion channel that has an event after some looks. Each look
// takes the time that it may, or longer.
type channel struct {
	verbs.CompChannel
	looks, after int
	stall        time.Duration
	err          error
}

func (c *channel) GetEvent(timeout time.Duration) (verbs.CQEvent, error) {
	c.looks++
	if c.looks > c.after {
		return verbs.CQEvent{Context: 7}, c.err
	}
	time.Sleep(max(timeout, c.stall))
	return verbs.CQEvent{}, verbs.ErrTimeout
}

func TestWaitEvent(t *testing.T) {
	other := errors.New("other")
	const never = 1 << 30
	for _, test := range []struct {
		name   string
		length time.Duration
		ch     channel
		err    error
		looks  int
		took   time.Duration
	}{
		{name: "there", length: time.Second, looks: 1},
		{name: "a look", ch: channel{after: never}, err: verbs.ErrTimeout, looks: 1},
		{name: "none", length: time.Second, ch: channel{after: never}, err: verbs.ErrTimeout, looks: 11, took: time.Second},
		{name: "after stalls", length: time.Second, ch: channel{after: 9, stall: time.Hour}, looks: 10, took: 9 * time.Hour},
		{name: "none after stalls", length: time.Second, ch: channel{after: never, stall: time.Hour}, err: verbs.ErrTimeout, looks: 11, took: 11 * time.Hour},
		{name: "fails", length: time.Second, ch: channel{after: 1, err: other}, err: other, looks: 2, took: 100 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				e, err := verbs.NewWait(test.length).Event(&test.ch)
				if !errors.Is(err, test.err) || err == nil && e.Context != 7 {
					t.Errorf("got %+v, %v, want the error %v", e, err, test.err)
				}
				if took := time.Since(start); took != test.took || test.ch.looks != test.looks {
					t.Errorf("%d looks in %v, want %d in %v", test.ch.looks, took, test.looks, test.took)
				}
			})
		})
	}
}
