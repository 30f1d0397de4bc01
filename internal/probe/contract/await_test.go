package contract

import (
	"testing"
	"testing/synctest"

	"rdma_exporter/verbs/verbstest"
)

func TestAwaitStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wcs, err := new(check).await(new(verbstest.Stalled), 1)
		if err != nil || len(wcs) != 1 || wcs[0].ID != 5 {
			t.Errorf("got %v, %v", wcs, err)
		}
	})
}
