package session

import (
	"time"

	"rdma_exporter/verbs"
)

// stopped is the value with which Stop panics. Its error is nil if nothing failed.
type stopped struct{ err error }

// Stop ends what the nearest Catch called, as a failed test ends, unless err is nil. It serves
// where one step after the other needs the one before.
func Stop(err error) {
	if err != nil {
		panic(stopped{err})
	}
}

// End ends what the nearest Catch called, without an error.
func End() { panic(stopped{}) }

// Must returns the result of a call. If it failed, it is as Stop.
func Must[T any](v T, err error) T {
	Stop(err)
	return v
}

// Catch calls f and returns the error with which it was stopped. Other panics go on.
func Catch(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case stopped:
			err = r.err
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// The pauses between two polls double within these bounds: each poll is a line of the report.
const minPollPause, maxPollPause = 20 * time.Microsecond, 20 * time.Millisecond

// Completions polls a CQ, at least once, until it has had n completions or the wait is over. It
// returns those that came.
func Completions(q verbs.CQ, n int, w *verbs.Wait) (got []verbs.WC, err error) {
	for pause := minPollPause; ; pause = min(2*pause, maxPollPause) {
		left := w.Left()
		wcs, err := q.Poll(n - len(got))
		if got = append(got, wcs...); err != nil || len(got) >= n || left <= 0 {
			return got, err
		}
		time.Sleep(w.Pause(pause))
	}
}
