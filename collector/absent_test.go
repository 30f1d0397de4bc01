package collector_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"rdma_exporter/collector"
	"rdma_exporter/internal/state"
)

// What is not known of a device now is not told.
func TestAbsent(t *testing.T) {
	info := &state.Device{Ports: []state.Port{{Number: 1, State: "active"}}}
	hung := &state.Run{Device: "rxe0", Started: time.Unix(1e9, 0), Outcome: state.OutcomeTimeout, Verb: "ibv_open_device"}
	for _, tc := range []struct {
		name  string
		state state.DeviceState
		want  map[string]int // metric to number of series
	}{
		{
			"a run that could not ask for the ports",
			state.DeviceState{Name: "rxe0", Present: true, Info: info, Last: hung},
			map[string]int{"rdma_port_state_id": 0, "rdma_device_info": 1, "rdma_probe_runs_total": 2, "rdma_probe_child_cpu_seconds": 0},
		},
		{
			"a device that vanished with a child that does not end",
			state.DeviceState{Name: "rxe0", Info: info, Last: hung, Stuck: &state.Stuck{PID: 1, Verb: "ibv_open_device"}},
			map[string]int{"rdma_port_state_id": 0, "rdma_device_info": 0, "rdma_probe_runs_total": 0, "rdma_probe_aborts_total": 0, "rdma_probe_stuck": 1},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &state.Snapshot{Provider: "libibverbs", Devices: []state.DeviceState{tc.state}}
			c := collector.New(collector.Options{Host: judged(func() *state.Snapshot { return s }, nil)})
			c.Observe(hung)
			for metric, want := range tc.want {
				got := testutil.CollectAndCount(c, metric)
				if got != want {
					t.Errorf("%d series %s, want %d", got, metric, want)
				}
			}
		})
	}
}
