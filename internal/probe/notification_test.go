package probe_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

func TestNotificationPlan(t *testing.T) {
	ports := func(states ...string) string {
		var list []string
		for i, s := range states {
			list = append(list, fmt.Sprintf(`{number: %d, state: %s, link_layer: InfiniBand, lid: %d, active_mtu: 1024, gids: [{index: 0, gid: "fe80::%d", type: IB}]}`, i+1, s, i+1, i+1))
		}
		return "like: sim_ib0, completion_vectors: 2, ports: [" + strings.Join(list, ", ") + "]"
	}
	const flush = "flush any 1/0, flush solicited 1/0, flush poll 1/0"
	for _, tc := range []struct {
		name, device string
		config       func(*probe.NotificationConfig)
		taken, skips string
		status       state.Status // ok without it
	}{
		{
			name: "one port", device: "like: sim_rxe0",
			taken: "loopback any 1/0, loopback any 1/1, loopback solicited 1/0, loopback poll 1/0, " + flush,
		},
		{
			name: "port down", device: ports("down"),
			taken: "flush any 1/0, flush any 1/1, flush solicited 1/0, flush poll 1/0",
			skips: "loopback port 1: port_down",
		},
		{
			name: "iwarp", device: "like: sim_siw0, completion_vectors: 1",
			taken: flush,
			skips: "loopback port 1: not_supported",
		},
		{
			name: "iwarp that flushes nothing", device: "like: sim_siw0, completion_vectors: 2, completion_faults: [{fault: never_complete, path: flush}]",
			skips:  "loopback port 1: not_supported, flush any: not_supported, flush solicited: not_supported, flush poll: not_supported",
			status: state.StatusSkipped,
		},
		{
			name: "no address", device: "like: sim_rxe0, completion_vectors: 1, ports: [{number: 1, state: active, link_layer: Ethernet, active_mtu: 1024, gids: []}]",
			taken: flush,
			skips: "loopback port 1: prerequisite_failed",
		},
		{
			name: "six ports", device: ports("active", "active", "active", "down", "active", "active"),
			config: func(c *probe.NotificationConfig) { c.Vectors.Most = 1 },
			taken: "loopback any 1/0, loopback solicited 1/0, loopback poll 1/0, " + flush +
				", loopback any 2/0, loopback solicited 2/0, loopback poll 2/0" +
				", loopback any 3/0, loopback solicited 3/0, loopback poll 3/0" +
				", loopback any 5/0, loopback solicited 5/0, loopback poll 5/0",
			skips: "loopback port 4: port_down, loopback port 6: budget",
		},
		{
			name: "spread vectors", device: "like: sim_rxe0, completion_vectors: 5",
			config: func(c *probe.NotificationConfig) { c.Vectors.Most = 3 },
			taken:  "loopback any 1/0, loopback any 1/2, loopback any 1/4, loopback solicited 1/0, loopback poll 1/0, " + flush,
		},
		{
			name: "no channels", device: "like: sim_rxe0, faults: [{verb: ibv_create_comp_channel, errno: EOPNOTSUPP}]",
			taken: "loopback poll 1/0, flush poll 1/0",
			skips: "loopback any: not_supported, loopback solicited: not_supported, flush any: not_supported, flush solicited: not_supported",
		},
		{
			name: "no memory to pin", device: "like: sim_rxe0, completion_vectors: 1, faults: [{verb: ibv_reg_mr, errno: ENOMEM}]",
			taken: "loopback any 1/0, loopback solicited 1/0, loopback poll 1/0, " + flush,
			skips: "message: not_permitted",
		},
		{
			name: "time for none", device: "like: sim_rxe0, latency: {ibv_create_cq: 30ms}",
			config: func(c *probe.NotificationConfig) { c.Budget = 10 * time.Millisecond },
			skips: "loopback any: budget, loopback solicited: budget, loopback poll: budget, " +
				"flush any: budget, flush solicited: budget, flush poll: budget",
			status: state.StatusSkipped,
		},
		{
			name: "time for some", device: "like: sim_rxe0, latency: {ibv_create_cq: 20ms}",
			config: func(c *probe.NotificationConfig) { c.Budget = 200 * time.Millisecond },
			taken:  "loopback any 1/0, loopback any 1/1, loopback solicited 1/0, loopback poll 1/0",
			skips:  "flush any: budget, flush solicited: budget, flush poll: budget",
		},
		{
			name: "errors are not solicited", device: "like: sim_rxe0, violate: [notify_solicited_delivers_errors]",
			taken: "loopback any 1/0, loopback any 1/1, loopback solicited 1/0, loopback poll 1/0, flush any 1/0, flush poll 1/0",
			skips: "flush solicited: not_supported",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := quick()
			if tc.config != nil {
				tc.config(&c.Notification)
			}
			p := measure(t, tc.device, c)
			if want := cmp.Or(tc.status, state.StatusOK); p.Status != want {
				t.Errorf("status %s, want %s: %v", p.Status, want, p.Failures)
			}
			if got := taken(p.Latencies); got != tc.taken {
				t.Errorf("taken:\n%s, want\n%s", got, tc.taken)
			}
			if got := skips(p.Skips); got != tc.skips {
				t.Errorf("skips %q, want %q", got, tc.skips)
			}
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

// counts are those of measurements, added up.
type counts struct{ missed, spurious, misdirected, missing, unsuccessful int }

// TestNotificationFaults verifies that a fault of completions or events is counted as what it
// is, in the measurement in which it happens. Package simulated tests more faults of batches.
func TestNotificationFaults(t *testing.T) {
	const (
		deadline = 30 * time.Millisecond
		budget   = 5 * time.Second
	)
	for _, tc := range []struct {
		name   string
		faults string // of completions
		// where has the measurements that go wrong: "" means all that wait for events, and
		// "poll" means all.
		where   string
		want    counts // in each of them; -1 for any number but 0
		stopped verbs.Stop
		message string // in part
		order   string // of the measurements: those that may wait in vain come last
	}{
		{
			name: "every event dropped", faults: "{fault: drop_event}",
			want: counts{missed: 1}, stopped: verbs.StopMissed,
			message: "no event came within 30ms for 1 completion that the queue had, while 0 samples went well",
		},
		{
			name: "first event dropped", faults: "{fault: drop_event, times: 1}", where: "loopback any 1/0",
			want: counts{missed: 1}, stopped: verbs.StopMissed, message: "no event came within 30ms for 1 completion",
			order: "loopback any 1/0, loopback solicited 1/0, loopback poll 1/0, flush any 1/0, flush solicited 1/0, flush poll 1/0, loopback any 1/1",
		},
		{
			name: "event in a batch dropped", faults: "{fault: drop_event, after: 9, times: 1}", where: "loopback any 1/0",
			want: counts{missed: 1}, message: "while 9 samples went well: a program that sleeps until the event would hang",
		},
		{
			// The first arming is that of the comp_channel probe.
			name: "first event spurious", faults: "{fault: spurious_event, after: 1, times: 1}", where: "loopback any 1/0",
			want: counts{spurious: 1}, message: "1 event came while the queue was empty, while 10 samples went well",
		},
		{
			name: "first event misdirected", faults: "{fault: misdirect_event, times: 1}", where: "loopback any 1/0",
			want: counts{misdirected: 1}, stopped: verbs.StopMissed, message: "1 event came on another channel or named another queue",
		},
		{
			name: "first event misnamed", faults: "{fault: misname_event, times: 1}", where: "loopback any 1/0",
			want: counts{misdirected: 1}, stopped: verbs.StopMissed, message: "named another queue",
		},
		{
			name: "first event too late", faults: "{fault: delay_event, delay: 400ms, times: 1}", where: "loopback any 1/0",
			want: counts{missed: 1}, stopped: verbs.StopMissed, message: "no event came",
		},
		{
			name: "receipt lost", faults: "{fault: lose_completion, times: 1}", where: "loopback any 1/0",
			want: counts{spurious: 1, missing: 1}, stopped: verbs.StopMissing, message: "1 completion had not come within 30ms, while 0 samples went well",
			order: "loopback any 1/0, flush any 1/0, flush solicited 1/0, flush poll 1/0, loopback any 1/1, loopback solicited 1/0, loopback poll 1/0",
		},
		{
			name: "completion of the sender lost", faults: "{fault: lose_completion, after: 1, times: 1}", where: "loopback any 1/0",
			want: counts{missing: 1}, stopped: verbs.StopMissing, message: "1 completion had not come",
		},
		{
			name: "never completes", faults: "{fault: never_complete}", where: "poll",
			want: counts{missing: -1}, stopped: verbs.StopMissing, message: "had not come within 30ms, while 0 samples went well",
		},
		{
			name: "loopback never completes", faults: "{fault: never_complete, path: loopback}", where: "loopback",
			want: counts{missing: 2}, stopped: verbs.StopMissing, message: "2 completions had not come",
		},
		{
			name: "receipt fails", faults: "{fault: fail_completion, status: loc_prot_err, times: 1}", where: "loopback any 1/0",
			want: counts{unsuccessful: 1}, stopped: verbs.StopUnsuccessful, message: "1 completion had the status loc_prot_err instead of success",
		},
		{
			name: "send fails", faults: "{fault: fail_completion, status: retry_exc_err, after: 1, times: 1}", where: "loopback any 1/0",
			want: counts{unsuccessful: 1}, stopped: verbs.StopUnsuccessful, message: "retry_exc_err instead of success, while 0 samples went well: messages from the port to itself do not get through",
		},
		{
			name: "completion in a batch fails", faults: "{fault: fail_completion, status: general_err, path: flush, after: 9, times: 1}", where: "flush any 1/0",
			want: counts{unsuccessful: 1}, stopped: verbs.StopUnsuccessful, message: "general_err instead of wr_flush_err",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := quick()
			c.Notification.Deadline, c.Notification.Budget = deadline, budget
			p := measure(t, "like: sim_rxe0, completion_faults: ["+tc.faults+"]", c)
			if p.Duration > budget+5*deadline {
				t.Errorf("it took %s", p.Duration)
			}
			failed := failures(p)
			if !strings.Contains(failed, tc.message) {
				t.Errorf("failures %q, want %q", failed, tc.message)
			}
			if got := taken(p.Latencies); tc.order != "" && got != tc.order {
				t.Errorf("taken:\n%s, want\n%s", got, tc.order)
			}
			touched := 0
			for _, l := range p.Latencies {
				name := latency(l)
				got := counts{l.Missed, l.Spurious, l.Misdirected, l.Missing, len(l.Unsuccessful)}
				wrong := tc.where == "poll" || tc.where == "" && l.Mode != state.ModePoll ||
					tc.where != "" && strings.HasPrefix(name, tc.where)
				if !wrong {
					if got != (counts{}) || l.Count != quickSamples || l.Stopped != "" {
						t.Errorf("%s: %+v, %d samples, stopped %q", name, got, l.Count, l.Stopped)
					}
					continue
				}
				touched++
				if tc.want.missing < 0 && got.missing > 0 {
					got.missing = -1
				}
				if got != tc.want || l.Stopped != tc.stopped.String() {
					t.Errorf("%s: %+v, stopped %q, want %+v, %q", name, got, l.Stopped, tc.want, tc.stopped)
				}
				if !strings.Contains(failed, fmt.Sprintf("%s %s vector %d: ", l.Path, l.Mode, l.Vector)) {
					t.Errorf("no failure names %s: %s", name, failed)
				}
			}
			if touched == 0 {
				t.Errorf("%s is not among %s", tc.where, taken(p.Latencies))
			}
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
