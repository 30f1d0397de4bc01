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

// TestNotificationRoutes verifies that each address of a port is tried, in a partition in
// which the port reaches itself.
func TestNotificationRoutes(t *testing.T) {
	const roce = `like: sim_rxe0, completion_vectors: 1, ports: [{number: 1, state: active, link_layer: Ethernet, active_mtu: 1024,
		gids: [{index: 0, gid: "fe80::1", type: RoCE v2}, {index: 3, gid: "::ffff:192.0.2.1", type: RoCE v2}, {index: 5, gid: "::ffff:198.51.100.1", type: RoCE v2}]}]`
	ib := func(keys string) string {
		return `like: sim_ib0, completion_vectors: 1, ports: [{number: 1, state: active, link_layer: InfiniBand, active_mtu: 1024,
			gids: [{index: 0, gid: "fe80::1", type: IB}], ` + keys + "}]"
	}
	const (
		lose   = "{verb: ibv_post_send, when: {gids: [5], states: [RTS]}, ignore: true}"
		refuse = "{verb: ibv_modify_qp, when: {gids: [%s], to: [RTR]}, errno: EINVAL}"
	)
	rec := golden.Record(t)
	for _, tc := range []struct{ name, device string }{
		{"the best", roce},
		{"the first refused", roce + ", faults: [" + fmt.Sprintf(refuse, "3") + "]"},
		{"the last alone", roce + ", faults: [" + fmt.Sprintf(refuse, "3") + ", " + lose + "]"},
		{"none", roce + ", faults: [" + fmt.Sprintf(refuse, "0, 3, 5") + "]"},
		{"by LID", ib("lid: 7")},
		{"without LID", ib("lid: 0")},
		{"global addresses alone", ib("lid: 7, grh_required: true")},
		{"the second partition", ib("lid: 7, pkey_table: [0x7fff, 0, 0x8001]")},
		{"a limited member of all", ib("lid: 7, pkey_table: [0x7fff, 0, 0x0001]")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := measure(t, tc.device, impatient())
			w := methodOf(p, state.PathLoopback)
			rec.Add(tc.name, "taken: "+taken(p.Latencies), "skipped: "+skips(p.Skips),
				"by: "+w.By, "instead of: "+w.InsteadOf, "failures: "+failures(p))
		})
	}
}

// TestNotificationLossOrTrait verifies that a method by which nothing ever completes does
// not count as a failure if another one works, but that a single loss does.
func TestNotificationLossOrTrait(t *testing.T) {
	const device = "like: sim_rxe0, completion_vectors: 1, "
	for _, tc := range []struct {
		name, device, by string
		missing          int
	}{
		{"never by UD", "faults: [{verb: ibv_post_send, when: {qp_types: [UD]}, ignore: true}]", byRC, 0},
		{"once by UD", "faults: [{verb: ibv_post_send, when: {qp_types: [UD]}, times: 1, ignore: true}]", byUD, 1},
		{"no send", "faults: [{verb: ibv_post_send, when: {states: [ERR]}, ignore: true}]", byRecv, 0},
		{"no address handle", "faults: [{verb: ibv_create_ah, errno: EINVAL}]", byRC, 0},
		{"nothing", "faults: [{verb: ibv_post_send, when: {states: [ERR]}, ignore: true}, {verb: ibv_post_recv, when: {states: [INIT]}, ignore: true}]", "", 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := measure(t, device+tc.device, impatient())
			missing := 0
			for _, l := range p.Latencies {
				if l.Path == state.PathLoopback && l.Wrong() {
					t.Errorf("loopback: %+v", l)
				}
				missing += l.Missing
			}
			if missing != tc.missing {
				t.Errorf("%d completions missing, want %d: %v", missing, tc.missing, p.Failures)
			}
			if w := methodOf(p, state.PathFlush); w.By != tc.by {
				t.Errorf("flushed by %q, want %q", w.By, tc.by)
			}
		})
	}
}

// TestNotificationRefusal verifies that on the flush path the next method is tried after an
// errno that means a refusal, and that any other errno fails the probe. Receives are the
// control: for them no errno is a refusal.
func TestNotificationRefusal(t *testing.T) {
	t.Parallel()
	const device = "like: sim_rxe0, completion_vectors: 1, "
	// rule is a fault that spares the loopback path.
	rule := func(verb, when, errno string) string {
		return fmt.Sprintf("{verb: %s, when: {%s}, errno: %s}", verb, when, errno)
	}
	type test struct {
		faults string
		by     string // the way that is taken; else verb and errno are of the failure
		verb   string
		errno  string
	}
	var tests []test
	for _, step := range []struct {
		verb, when, by string
		refusals       []string
	}{
		{"ibv_create_ah", "", byRC, []string{"EINVAL", "EOPNOTSUPP", "ENODEV", "ENETUNREACH", "no_errno"}},
		{"ibv_modify_qp", "qp_types: [UD], to: [RTR]", byRC, []string{"EINVAL", "EOPNOTSUPP", "ENOSYS", "EPROTONOSUPPORT", "no_errno"}},
		{"ibv_modify_qp", "qp_types: [UD], states: [RTS], to: [ERR]", byRC, []string{"EINVAL"}},
		{"ibv_post_send", "states: [ERR]", byRecv, []string{"EINVAL", "ENOMEM", "EIO", "EOPNOTSUPP", "no_errno"}},
	} {
		for _, errno := range step.refusals {
			tests = append(tests, test{faults: rule(step.verb, step.when, errno), by: step.by})
		}
		for _, errno := range []string{"EFAULT", "EMFILE", "EBUSY", "EAGAIN", "EIO", "ENOMEM"} {
			if !slices.Contains(step.refusals, errno) {
				tests = append(tests, test{faults: rule(step.verb, step.when, errno), verb: step.verb, errno: errno})
			}
		}
	}
	noSends := rule("ibv_post_send", "states: [ERR]", "EINVAL") + ", "
	for _, errno := range []string{"EINVAL", "EIO"} {
		tests = append(tests,
			test{faults: noSends + rule("ibv_post_recv", "states: [INIT]", errno), verb: "ibv_post_recv", errno: errno},
			test{faults: noSends + rule("ibv_modify_qp", "states: [INIT], to: [ERR]", errno), verb: "ibv_modify_qp", errno: errno},
		)
	}
	for _, tc := range tests {
		t.Run(tc.faults, func(t *testing.T) {
			t.Parallel()
			p := measure(t, device+"faults: ["+tc.faults+"]", quick())
			if w := methodOf(p, state.PathFlush); w.By != tc.by {
				t.Errorf("flushed by %q, want %q", w.By, tc.by)
			}
			if tc.by != "" {
				if p.Status != state.StatusOK {
					t.Errorf("%s: %+v", p.Status, p.Failures)
				}
				return
			}
			found := slices.ContainsFunc(p.Failures, func(f state.Failure) bool {
				return f.Subject.Object == "flush" && f.Verb == tc.verb && f.Errno == tc.errno
			})
			if !found || skips(p.Skips) != "" {
				t.Errorf("failures %+v, skips %q", p.Failures, skips(p.Skips))
			}
		})
	}
}

// TestNotificationSearchEnds verifies that only some of many routes are tried in vain.
func TestNotificationSearchEnds(t *testing.T) {
	keys := manyPorts(4, func(port int) string {
		var gids []string
		for i := range 20 {
			gids = append(gids, fmt.Sprintf(`{index: %d, gid: "::ffff:192.0.%d.%d", type: RoCE v2}`, i, port, i+1))
		}
		return "state: active, gids: [" + strings.Join(gids, ", ") + "]"
	})
	p := parse(t, keys+", faults: [{verb: ibv_post_send, ignore: true}]")
	c := quick()
	c.Notification.Deadline, c.Notification.Budget = 20*time.Millisecond, 20*time.Millisecond
	r := still(t, p, probe.Options{Config: c})
	sends := 0
	for _, c := range r.Calls {
		if c.Verb == "ibv_post_send" {
			sends++
		}
	}
	// Each of them waits for a deadline at least, and one is under way when the time ends.
	if most := probe.MaxDeadlines + 2; sends == 0 || sends > most {
		t.Errorf("%d messages that never came, want no more than %d", sends, most)
	}
}

// manyPorts returns the keys of a device whose ports have these keys.
func manyPorts(n int, port func(number int) string) string {
	var list []string
	for i := 1; i <= n; i++ {
		list = append(list, fmt.Sprintf("{number: %d, link_layer: Ethernet, active_mtu: 1024, %s}", i, port(i)))
	}
	return "like: sim_rxe0, completion_vectors: 1, ports: [" + strings.Join(list, ", ") + "]"
}

const oneAddress = `state: active, gids: [{index: 0, gid: "fe80::1", type: RoCE v2}]`

// TestManyPorts verifies that a port that does not answer does not affect the others.
func TestManyPorts(t *testing.T) {
	const ports = 255
	keys := manyPorts(ports, func(number int) string {
		if number > ports-5 {
			return oneAddress
		}
		return "state: active, gids: []"
	})
	r := still(t, parse(t, keys+", faults: [{verb: ibv_query_port, when: {ports: [1, 253]}, errno: EIO}]"), probe.Options{Config: quick()})
	if !strings.Contains(r.Error, "query port 1: ") || !strings.Contains(r.Error, "query port 253: ") || len(r.Info.Ports) != ports-2 {
		t.Errorf("error %q, %d ports", r.Error, len(r.Info.Ports))
	}
	n := named(t, r, "notification")
	for _, port := range []int{251, 252, 254, 255} {
		if !strings.Contains(taken(n.Latencies), fmt.Sprintf("loopback any %d/0", port)) {
			t.Errorf("port %d was not measured", port)
		}
	}
	// Port 2, the first that answers, has no address for UD.
	if w := methodOf(n, state.PathFlush); w.Port != 251 || w.By != byRC {
		t.Errorf("flushed by %+v", w)
	}
}

// TestPortsCostOneVerb verifies that each further port costs one verb, whether it reaches
// itself or not.
func TestPortsCostOneVerb(t *testing.T) {
	t.Parallel()
	const some, most = 16, 255
	for name, port := range map[string]func(last bool) string{
		"all have an address": func(bool) string { return oneAddress },
		"the last has an address": func(last bool) string {
			if last {
				return oneAddress
			}
			return "state: active, gids: []"
		},
		"all are down": func(bool) string { return "state: down, gids: []" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verbs := make(map[int]int)
			for _, ports := range []int{some, most} {
				keys := manyPorts(ports, func(number int) string { return port(number == ports) })
				c := quick()
				c.Notification.Budget, c.Notification.Deadline = time.Minute, 10*time.Second // all is measured
				for _, c := range still(t, parse(t, keys), probe.Options{Config: c}).Calls {
					if c.Verb != "ibv_poll_cq" { // as often as it takes
						verbs[ports]++
					}
				}
			}
			if more := verbs[most] - verbs[some]; more != most-some {
				t.Errorf("%d ports cost %d verbs, and %d cost %d: %d more, want %d", some, verbs[some], most, verbs[most], more, most-some)
			}
		})
	}
}
