package probe_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
)

func TestNotificationPlan(t *testing.T) {
	plan := golden.Record(t)
	ports := func(states ...string) string {
		var list []string
		for i, s := range states {
			list = append(list, fmt.Sprintf(`{number: %d, state: %s, link_layer: InfiniBand, lid: %d, active_mtu: 1024, gids: [{index: 0, gid: "fe80::%d", type: IB}]}`, i+1, s, i+1, i+1))
		}
		return "like: sim_ib0, completion_vectors: 2, ports: [" + strings.Join(list, ", ") + "]"
	}
	for _, tc := range []struct {
		name, device string
		config       func(*probe.NotificationConfig) // nil changes nothing
	}{
		{name: "one port", device: "like: sim_rxe0"},
		{name: "port down", device: ports("down")},
		{name: "iwarp", device: "like: sim_siw0, completion_vectors: 1"},
		{name: "iwarp that flushes nothing", device: "like: sim_siw0, completion_vectors: 2, completion_faults: [{fault: never_complete, path: flush}]"},
		{name: "no address", device: "like: sim_rxe0, completion_vectors: 1, ports: [{number: 1, state: active, link_layer: Ethernet, active_mtu: 1024, gids: []}]"},
		{
			name: "six ports", device: ports("active", "active", "active", "down", "active", "active"),
			config: func(c *probe.NotificationConfig) { c.Vectors.Most = 1 },
		},
		{
			name: "spread vectors", device: "like: sim_rxe0, completion_vectors: 5",
			config: func(c *probe.NotificationConfig) { c.Vectors.Most = 3 },
		},
		{name: "no channels", device: "like: sim_rxe0, faults: [{verb: ibv_create_comp_channel, errno: EOPNOTSUPP}]"},
		{name: "no memory to pin", device: "like: sim_rxe0, completion_vectors: 1, faults: [{verb: ibv_reg_mr, errno: ENOMEM}]"},
		{
			name: "time for none", device: "like: sim_rxe0, latency: {ibv_create_cq: 30ms}",
			config: func(c *probe.NotificationConfig) { c.Budget = 10 * time.Millisecond },
		},
		{
			name: "time for some", device: "like: sim_rxe0, latency: {ibv_create_cq: 20ms}",
			config: func(c *probe.NotificationConfig) { c.Budget = 200 * time.Millisecond },
		},
		{name: "errors are not solicited", device: "like: sim_rxe0, violate: [notify_solicited_delivers_errors]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := quick()
			if tc.config != nil {
				tc.config(&c.Notification)
			}
			p := measure(t, tc.device, c)
			plan.Add(tc.name, string(p.Status), "taken: "+taken(p.Latencies), "skipped: "+skips(p.Skips))
			untimed(t, p.Latencies)
			for _, l := range p.Latencies {
				if l.Wrong() || l.Stopped != "" {
					t.Errorf("%s: %+v", latency(l), l)
				}
			}
		})
	}
}

func TestNotificationLeftOut(t *testing.T) {
	c := quick()
	c.Notification.Samples = 0
	r := still(t, parse(t, "like: sim_rxe0"), probe.Options{Config: c})
	if slices.ContainsFunc(r.Probes, func(p state.Probe) bool { return p.Name == "notification" }) || len(r.Probes) != 5 {
		t.Errorf("%d probes: %+v", len(r.Probes), r.Probes)
	}
}

// TestNotificationSamplesFit verifies that the samples fit into the report.
func TestNotificationSamplesFit(t *testing.T) {
	c := quick()
	c.Notification.Samples, c.Notification.Vectors.Most, c.Notification.Budget = 10000, 512, time.Minute
	p := measure(t, "like: sim_ib0, completion_vectors: 512", c)
	if len(p.Clamps) != 1 || p.Clamps[0].Configured != 10000 || len(p.Latencies) <= 512 {
		t.Fatalf("%d measurements, clamps %+v", len(p.Latencies), p.Clamps)
	}
	for _, l := range p.Latencies {
		if int64(l.Count) != p.Clamps[0].Used {
			t.Errorf("%s: %d samples, want %d", latency(l), l.Count, p.Clamps[0].Used)
		}
	}
}

// TestNotificationFaults verifies that a fault of completions or events is counted as what it
// is, in the measurement in which it happens. Package simulated tests more faults of batches.
func TestNotificationFaults(t *testing.T) {
	const (
		deadline = 30 * time.Millisecond
		budget   = 5 * time.Second
	)
	rec := golden.Record(t)
	for _, tc := range []struct{ name, faults string }{
		{"every event dropped", "{fault: drop_event}"},
		{"first event dropped", "{fault: drop_event, times: 1}"},
		{"event in a batch dropped", "{fault: drop_event, after: 9, times: 1}"},
		// The first arming is that of the comp_channel probe.
		{"first event spurious", "{fault: spurious_event, after: 1, times: 1}"},
		{"first event misdirected", "{fault: misdirect_event, times: 1}"},
		{"first event misnamed", "{fault: misname_event, times: 1}"},
		{"first event too late", "{fault: delay_event, delay: 400ms, times: 1}"},
		{"receipt lost", "{fault: lose_completion, times: 1}"},
		{"completion of the sender lost", "{fault: lose_completion, after: 1, times: 1}"},
		{"never completes", "{fault: never_complete}"},
		{"loopback never completes", "{fault: never_complete, path: loopback}"},
		{"receipt fails", "{fault: fail_completion, status: loc_prot_err, times: 1}"},
		{"send fails", "{fault: fail_completion, status: retry_exc_err, after: 1, times: 1}"},
		{"completion in a batch fails", "{fault: fail_completion, status: general_err, path: flush, after: 9, times: 1}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := quick()
			c.Notification.Deadline, c.Notification.Budget = deadline, budget
			p := measure(t, "like: sim_rxe0, completion_faults: ["+tc.faults+"]", c)
			if p.Duration > budget+5*deadline {
				t.Errorf("it took %s", p.Duration)
			}
			lines := []string{"taken: " + taken(p.Latencies)}
			for _, l := range p.Latencies {
				line := fmt.Sprintf("%s: %d samples", latency(l), l.Count)
				if l.Wrong() || l.Stopped != "" {
					line += fmt.Sprintf(", missed %d, spurious %d, misdirected %d, missing %d, unsuccessful %v, stopped: %s",
						l.Missed, l.Spurious, l.Misdirected, l.Missing, l.Unsuccessful, l.Stopped)
				}
				lines = append(lines, line)
			}
			rec.Add(tc.name, append(lines, failures(p))...)
		})
	}
}

// TestNotificationEnds verifies that a device on which nothing works takes no more time than
// the budget and some deadlines, and that each skip is reported once.
func TestNotificationEnds(t *testing.T) {
	for _, fault := range []string{
		"fault: never_complete", "fault: drop_event", "fault: misdirect_event", "fault: misname_event",
		"fault: lose_completion", "fault: spurious_event", "fault: delay_event, delay: 40ms",
		"fault: drop_event, after: 1", "fault: drop_event, path: loopback, after: 3",
	} {
		t.Run(fault, func(t *testing.T) {
			c := quick()
			c.Notification.Samples, c.Notification.Vectors.Most = 1000, 64
			c.Notification.Deadline, c.Notification.Budget = 100*time.Millisecond, 300*time.Millisecond
			// If nothing is awaited in vain, creating the objects uses up the budget.
			p := measure(t, "like: sim_ib0, latency: {ibv_create_cq: 5ms}, completion_faults: [{"+fault+"}]", c)
			if most := c.Notification.Budget + 10*c.Notification.Deadline; p.Duration > most {
				t.Errorf("it took %s, more than %s", p.Duration, most)
			}
			want := state.StatusFailed
			if strings.Contains(fault, "delay") {
				want = state.StatusOK // A late event is not missed.
			}
			if p.Status != want {
				t.Errorf("status %s, want %s", p.Status, want)
			}
			if !strings.Contains(skips(p.Skips), ": budget") {
				t.Errorf("skips %q", skips(p.Skips))
			}
			seen := make(map[string]bool)
			for _, s := range p.Skips {
				key := s.Subject.String() + " " + string(s.Reason)
				if seen[key] {
					t.Errorf("%s is there twice", key)
				}
				seen[key] = true
			}
		})
	}
}

// TestNotificationVerbs verifies that a verb that fails, alone or in a batch, is a failure
// that names it and keeps earlier samples. No event stays unacknowledged.
func TestNotificationVerbs(t *testing.T) {
	const any0 = "loopback any vector 0"
	for _, tc := range []struct {
		fault, subject string
		measurements   int
	}{
		{"ibv_post_recv", any0, 0},
		{"ibv_post_send", any0, 0},
		{"ibv_get_cq_event", any0, 2},
		{"ibv_poll_cq", any0, 0},
		{"ibv_reg_mr, after: 2", any0, 0},
		{"ibv_query_gid_table", "loopback port 1", 0},
		{"ibv_post_recv, times: 1", any0, 3},
		{"ibv_post_send, times: 1", any0, 3},
		{"ibv_get_cq_event, times: 1", any0, 3},
		{"ibv_poll_cq, times: 1", any0, 3},
		{"ibv_reg_mr, after: 2, times: 1", any0, 3},
		{"ibv_query_gid_table, times: 1", "loopback port 1", 3},
		{"ibv_post_send, after: 9, times: 1", any0, 7},
	} {
		t.Run(tc.fault, func(t *testing.T) {
			p := measure(t, "like: sim_rxe0, faults: [{verb: "+tc.fault+", errno: EIO}]", quick())
			if p.Status != state.StatusFailed || len(p.Failures) == 0 || len(p.Latencies) < tc.measurements {
				t.Fatalf("status %s, failures %v, taken: %s", p.Status, p.Failures, taken(p.Latencies))
			}
			if f := p.Failures[0]; f.Subject.String() != tc.subject || !strings.HasPrefix(tc.fault, f.Verb) || f.Errno != "EIO" {
				t.Errorf("%+v", f)
			}
			if strings.Contains(tc.fault, "times") && len(p.Failures) != 1 {
				t.Errorf("failures %v", p.Failures)
			}
			if n := p.Latencies; strings.Contains(tc.fault, "after: 9") && (n[0].Count == 0 || n[0].Count >= quickSamples) {
				t.Errorf("%d samples", n[0].Count)
			}
		})
	}
}

// TestNotificationUndestroyed verifies that no more objects are created once one is left.
func TestNotificationUndestroyed(t *testing.T) {
	r := still(t, parse(t, "like: sim_rxe0, faults: [{verb: ibv_dereg_mr, after: 2, errno: EBUSY}]"), probe.Options{Config: quick()})
	n := named(t, r, "notification")
	if got := taken(n.Latencies); got != "loopback any 1/0" {
		t.Errorf("taken: %s", got)
	}
	const want = "loopback any: prerequisite_failed, loopback solicited: prerequisite_failed"
	if got := skips(n.Skips); !strings.HasPrefix(got, want) {
		t.Errorf("skips %q", got)
	}
	if len(n.Failures) != 1 || n.Failures[0].Verb != "ibv_dereg_mr" || len(r.Undestroyed) != 2 {
		t.Errorf("failures %v, undestroyed %v", n.Failures, r.Undestroyed)
	}
}
