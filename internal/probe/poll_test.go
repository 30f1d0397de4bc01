package probe

import (
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/verbstest"
)

func TestPollStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wc, err := poll(new(verbstest.Stalled), verbs.NewWait(500*time.Millisecond))
		if err != nil || wc == nil || wc.ID != 5 {
			t.Errorf("got %v, %v", wc, err)
		}
	})
}
