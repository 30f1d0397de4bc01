package session_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// TestEvents verifies that events of an open device are reported, by type and port, except
// those that the run causes. If they are not available, nothing fails.
func TestEvents(t *testing.T) {
	for name, tt := range map[string]struct {
		yaml string
		want []state.Events
	}{
		"none": {"", nil},
		"some": {
			"    async_events: [port_err, comm_est, device_fatal, port_err, srq_limit_reached]\n",
			[]state.Events{{Type: "port_err", Port: 1, Count: 2}, {Type: "device_fatal", Count: 1}},
		},
		"not to be had": {
			"    async_events: [port_err]\n    faults: [{verb: ibv_get_async_event, errno: EIO}]\n", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := running.Must(simulated.ParseProfile("profile", []byte("devices:\n  - name: sim0\n    like: sim_ib0\n"+tt.yaml)))(t)
			var out bytes.Buffer
			running.Check(t, session.Run(t.Context(), session.Options{
				Provider: func(tr verbs.Tracer) verbs.Provider { return simulated.New(p, tr) },
				Device:   "sim0", Out: wire.NewWriter(&out),
			}, func(context.Context, *session.Session) error { return nil }))
			r := state.Run{Device: "sim0"}
			running.Check(t, wire.Read(&out, &r))
			if r.Error != "" || !slices.Equal(r.Events, tt.want) {
				t.Errorf("error %q, events %+v, want %+v", r.Error, r.Events, tt.want)
			}
			for _, c := range r.Calls {
				if c.Errno != "" && !c.Expected {
					t.Errorf("%s of %s was not expected", c.Errno, c.Verb)
				}
			}
		})
	}
}
