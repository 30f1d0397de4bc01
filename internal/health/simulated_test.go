package health_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
	"rdma_exporter/verbs/simulated/simulatedtest"
)

func TestSimulated(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, device, want string }{
		{"a healthy one", "", ""},
		{"no permission", "faults: [{verb: ibv_open_device, errno: EACCES}]", "critical device_unusable ibv_open_device EACCES"},
		{"no node", "faults: [{verb: ibv_open_device, errno: ENOENT}]", "critical device_unusable ibv_open_device ENOENT"},
		{"not listed", "vanish: true", "critical device_unusable ibv_open_device ENODEV"},
		{"does not answer", "faults: [{verb: ibv_query_device, errno: EIO}]", "critical device_unusable ibv_query_device EIO"},
		{"a port does not answer", "faults: [{verb: ibv_query_port, errno: EIO}]", "critical probe_failed notification"},
		{"a port does not answer at first", "faults: [{verb: ibv_query_port, errno: EIO, times: 1}]", "critical probe_failed notification"},
		{"cannot be closed", "faults: [{verb: ibv_close_device, errno: EIO}]", "warning undestroyed ctx EIO"},
		{"no room", "faults: [{verb: ibv_create_srq, errno: ENOMEM}]", "critical probe_failed srq"},
		{"less than asked", "faults: [{verb: ibv_create_cq, short: 1, times: 1}]", "critical probe_failed cq"},
		{"what is not destroyed", "faults: [{verb: ibv_destroy_cq, errno: EBUSY, after: 4}]", "warning undestroyed cq EBUSY: warning undestroyed comp_channel EBUSY"},
		{"a verb in a measurement", "faults: [{verb: ibv_post_send, errno: EIO, after: 3}]", "critical probe_failed notification"},
		{"no memory for messages", "faults: [{verb: ibv_reg_mr, errno: EPERM}]", "critical probe_failed memory: warning probe_failed notification message"},
		{"no long memory", "faults: [{verb: ibv_reg_mr, when: {above: {length: 4096}}, errno: ENOMEM}]", "critical probe_failed memory"},
		{"missed", "completion_faults: [{fault: drop_event, after: 10}]", "critical notification_failed missed events"},
		{"misdirected", "completion_faults: [{fault: misdirect_event}]", "critical notification_failed misdirected events"},
		{"misnamed", "completion_faults: [{fault: misname_event}]", "critical notification_failed misdirected events"},
		{"missing", "completion_faults: [{fault: never_complete, after: 20}]", "critical notification_failed missing completions"},
		{"unsuccessful", "completion_faults: [{fault: fail_completion, status: retry_exc_err, path: loopback}]", "warning notification_failed unsuccessful completions"},
		{"a port down", "ports: [{number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, pkeys: 1}]", "info port_down port 1"},
		{"no subnet manager", "ports: [{number: 1, state: init, link_layer: InfiniBand, active_mtu: 1024, pkeys: 1}]", "info port_down port 1"},
		{"a slow vector", "completion_vectors: 4, completion_latency: {polled: 1us, notified: 5us, jitter: 0, slow_vectors: {2: 80us}}", "info slow_vector vector 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := runProbes(t, "dev", tc.device)
			got := lines(assess(s), true)
			if strings.Join(got, ", ") != tc.want {
				t.Errorf("got %q, want %q; the run: %+v", got, tc.want, s.Last)
			}
			// The same on another host, some time later.
			other := runProbes(t, "mlx5_7", "fw_version: 22.1.7, max_inline_data: 96, "+tc.device)
			other.Last.Started = other.Last.Started.Add(77 * time.Minute)
			other.Failures, other.LastSuccess = 12, taken()
			here, there := causes(assess(s)), causes(assess(other))
			if !slices.Equal(here, there) {
				t.Errorf("the causes are %q, and %q on another host", here, there)
			}
		})
	}
}

func causes(all []health.Finding) (causes []string) {
	for _, f := range flat(all) {
		causes = append(causes, fmt.Sprint(f.Kind, " ", f.Severity, " ", f.Reason, " ", f.Verb, " ", f.Errno))
	}
	return causes
}

func runProbes(t *testing.T, name, device string) *state.DeviceState {
	t.Helper()
	p := running.Must(simulatedtest.Parse([]byte("devices: [{name: " + name + ", like: sim_rxe0, " + device + "}]")))(t)
	c := probe.DefaultConfig()
	c.DestroyTimeout = time.Millisecond
	c.Notification.Samples, c.Notification.Budget, c.Notification.Deadline = 10, time.Minute, 250*time.Millisecond
	var out bytes.Buffer
	if err := probe.Run(t.Context(), probe.Options{
		Options: session.Options{
			Provider: func(tr verbs.Tracer) verbs.Provider { return simulated.New(p, tr) },
			Device:   name, Out: wire.NewWriter(&out),
		},
		Config: c,
	}); err != nil {
		t.Fatal(err)
	}
	run := state.Run{Kind: state.KindProbe, Device: name, Started: taken(), Outcome: state.OutcomeOK}
	running.Check(t, wire.Read(&out, &run))
	for _, p := range run.Probes {
		if p.Status == state.StatusFailed {
			run.Outcome = state.OutcomeFailed
		}
	}
	if run.Error != "" || len(run.Undestroyed) > 0 {
		run.Outcome = state.OutcomeFailed
	}
	last := run.Compact()
	return &state.DeviceState{Name: name, Present: true, Info: run.Info, Last: last, Full: last}
}
