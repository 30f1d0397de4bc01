package verbstest

import (
	"time"

	"rdma_exporter/verbs"
)

// Stalled is a CQ for tests of code that waits. Only Poll can be called: the
// host stands still for an hour after the first look at it, and the second finds a
// completion. It is for one goroutine.
type Stalled struct {
	verbs.CQ
	looks int
}

// Poll implements verbs.CQ.
func (q *Stalled) Poll(int) ([]verbs.WC, error) {
	q.looks++
	if q.looks > 1 {
		return []verbs.WC{{ID: 5}}, nil
	}
	time.Sleep(time.Hour)
	return nil, nil
}
