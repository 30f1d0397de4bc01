package probe

import (
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/verbs"
)

// standingStill is a CQ that has a completion for the second look, before which the
// host stands still.
type standingStill struct {
	verbs.CQ
	looks int
}

func (q *standingStill) Poll(int) ([]verbs.WC, error) {
	q.looks++
	if q.looks > 1 {
		return []verbs.WC{{ID: 5}}, nil
	}
	time.Sleep(time.Hour)
	return nil, nil
}

func TestPollStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wc, err := poll(&standingStill{}, verbs.NewWait(500*time.Millisecond))
		if err != nil || wc == nil || wc.ID != 5 {
			t.Errorf("got %v, %v", wc, err)
		}
	})
}
