package collector_test

import (
	"fmt"
	"strconv"
	"testing"

	"rdma_exporter/internal/state"
)

// What a device has no room for is counted: ten contracts more, of which none has a
// series, are ten more.
func TestDropped(t *testing.T) {
	t.Parallel()
	dropped := func(contracts int) int {
		r := contractRun("rxe0")
		for i := range contracts {
			r.Contracts = append(r.Contracts, state.Contract{Name: fmt.Sprint("x", i), Verdict: state.VerdictSkipped, Reason: state.SkipPortDown})
		}
		s := stateOf(measured())
		s.Contracts = contractsOf(r)
		got := values(t, sceneOf("simulated", s, r).collector())
		n, err := strconv.Atoi(got[`rdma_exporter_dropped_series{device="rxe0"}`])
		if err != nil || n <= 0 {
			t.Errorf("of %d contracts %d are dropped, %v", contracts, n, err)
		}
		return n
	}
	if few, more := dropped(5000), dropped(5010); more != few+10 {
		t.Errorf("%d and with 10 more %d are dropped", few, more)
	}
}

// A verb that was not called has no calls.
func TestNoArms(t *testing.T) {
	t.Parallel()
	r := measured(state.Latency{Port: 1, Path: state.PathLoopback, Mode: state.ModeSolicited})
	compare(t, values(t, sceneOf("simulated", stateOf(r), r).collector()), map[string]string{
		`rdma_verbs_call_duration_seconds_count{device="rxe0",verb="ibv_req_notify_cq"}`: "",
	})
}
