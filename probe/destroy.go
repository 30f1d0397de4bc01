package probe

import (
	"errors"
	"fmt"
	"time"

	"rdma_exporter/report"
	"rdma_exporter/verbs"
)

// closer is any object of package verbs.
type closer interface{ Close() error }

const (
	firstPause = 5 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// errUndestroyed is matched by the error of an object that is left.
var errUndestroyed = errors.New("not destroyed")

// destroyObject destroys an object of the given type. If the device refuses, it
// asks again after a pause that doubles, for as long as the run may spend on
// that. What is refused to the end is reported as undestroyed and its last error
// returned.
func (r *run) destroyObject(typ string, c closer) error {
	attempts := 1
	err := c.Close()
	for pause := firstPause; err != nil && r.retried < r.cfg.DestroyTimeout; pause = min(2*pause, lastPause) {
		pause = min(pause, r.cfg.DestroyTimeout-r.retried)
		start := time.Now()
		time.Sleep(pause)
		err = c.Close()
		r.retried += max(time.Since(start), pause)
		attempts++
	}
	if err == nil {
		return nil
	}
	r.undestroyed++
	errno := "unknown"
	if e, ok := verbs.ErrnoOf(err); ok {
		errno = verbs.ErrnoName(e)
	}
	_ = r.out.Undestroyed(report.Undestroyed{Type: typ, Errno: errno, Attempts: attempts})
	return fmt.Errorf("%w: refused %d times: %w", errUndestroyed, attempts, err)
}

// destroy is destroyObject for an object of a probe: a refusal is a failure of
// the probe.
func (s *step) destroy(subject, typ string, c closer) {
	if err := s.destroyObject(typ, c); err != nil {
		s.fail(subject, err)
	}
}
