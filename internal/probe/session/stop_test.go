package session

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/verbstest"
)

func TestCompletionsStandStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wcs, err := Completions(new(verbstest.Stalled), 1, verbs.NewWait(500*time.Millisecond))
		if err != nil || len(wcs) != 1 || wcs[0].ID != 5 {
			t.Errorf("got %v, %v", wcs, err)
		}
	})
}

// TestCatch verifies that only Stop, Must and End are caught.
func TestCatch(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for _, want := range []error{failed, nil} {
		err := Catch(func() {
			if Must(7, nil) == 7 {
				Stop(want)
				End()
			}
			t.Error("it goes on")
		})
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	defer func() {
		if r := recover(); r != "other" {
			t.Errorf("recovered %v", r)
		}
	}()
	_ = Catch(func() { panic("other") })
}
