package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/faults/expected"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs"
)

// A cell is one way in which one verb misbehaves, on a device of its own that is like
// sim_rxe0.
type cell struct {
	device string
	verb   verbs.Verb
	// fault is the fault in the profile, or what makes the device one that is
	// gone.
	fault string
	want  expected.Run
	// slow is the least time, in seconds, that calls of the verb took.
	slow float64
	// short are the metrics of sizes that are less, nil if that was not asked for.
	short []string
}

func newCell(verb verbs.Verb, kind, fault string, want expected.Run) cell {
	return cell{
		device: strings.TrimPrefix(string(verb), "ibv_") + "-" + kind, verb: verb,
		fault: fmt.Sprintf("faults: [{verb: %s, %s}]", verb, fault), want: want,
	}
}

// missing is how much less is given than was asked for, and smallSize how much the profile
// small asks for.
const (
	missing   = 5
	smallSize = 16
)

// shortCell has the verb give less than it was asked for.
func shortCell(v expected.Verb) cell {
	want := v.Less()
	if v.Verb == verbs.CreateQP {
		// The queues of those which notification asks for come out with no room.
		want.Failed = v.Probes
		want.Failures = []string{expected.Pair(verbs.PostRecv, "EINVAL"), expected.Pair(verbs.PostSend, "EINVAL")}
	}
	c := newCell(v.Verb, "short", fmt.Sprintf("short: %d", missing), want)
	c.short = v.Short
	return c
}

// cells returns those that hang, which take as long as a run may, and the others. That
// other errnos come out as they should the tests of the probes make sure.
func cells() (hanging, others []cell) {
	for _, v := range expected.Verbs() {
		hanging = append(hanging, newCell(v.Verb, "hang", "hang: true", v.Ended("timeout")))
		slow := newCell(v.Verb, "delay", "times: 1, delay: 300ms", expected.Run{Outcome: "ok"})
		slow.slow = 0.3
		others = append(others, slow,
			newCell(v.Verb, "once", "times: 1, errno: EBUSY", v.Once("EBUSY")),
			newCell(v.Verb, "crash", "crash: true", v.Ended("crashed")))
		for _, errno := range []string{"EIO", "EOPNOTSUPP"} {
			others = append(others, newCell(v.Verb, "always_"+strings.ToLower(errno), "errno: "+errno, v.Always(errno)))
		}
		if v.Short != nil {
			others = append(others, shortCell(v))
		}
	}
	return hanging, append(others, cell{device: "vanish", verb: verbs.OpenDevice, fault: "vanish: true", want: expected.Run{
		Outcome: "failed", Unjudged: expected.Probes(), Failures: []string{expected.Pair(verbs.OpenDevice, "ENODEV")},
	}})
}

// Each fault on each verb that the probes call, each on a device of its own: the
// exporter stays up, says what happened to whom, and probes the healthy devices
// as if nothing had.
func TestFaults(t *testing.T) {
	t.Parallel()
	hanging, others := cells()
	t.Run("hang", func(t *testing.T) {
		t.Parallel()
		// All hang at the same time, so that the timeout, which has to be long
		// enough for the healthy devices of a busy machine, passes once.
		testFaults(t, hanging, "--probe.timeout=40s", fmt.Sprintf("--probe.concurrency=%d", len(hanging)+2))
	})
	t.Run("others", func(t *testing.T) {
		t.Parallel()
		testFaults(t, others, "--probe.timeout=40s", "--probe.concurrency=16")
	})
}

func testFaults(t *testing.T, cells []cell, args ...string) {
	var profile strings.Builder
	profile.WriteString("devices:\n")
	device := func(name, like, more string) {
		fmt.Fprintf(&profile, "  - {name: %s, like: %s, %s}\n", name, like, more)
	}
	healthy := map[string]string{"healthy_rxe": "sim_rxe0", "healthy_siw": "sim_siw0", "healthy_ib": "sim_ib0"}
	for name, like := range healthy {
		device(name, like, "faults: []")
	}
	for _, c := range cells {
		device(c.device, "sim_rxe0", c.fault)
	}
	e := start(t, append([]string{
		"--provider=simulated", "--simulated.profile=" + running.File(t, "profile.yaml", profile.String()),
		"--config.file=" + running.File(t, "config.yaml", "probe: {destroy_timeout: 200ms}"),
		"--probe.interval=1h", "--contract.interval=0", "--inventory.interval=0", "--notification.samples=20", "--collector.verb-histograms",
	}, args...)...)
	e.readyWithin(t, 10*time.Minute)

	text, m := e.exposition(t)
	m.want(t, float64(len(cells)+len(healthy)), "rdma_devices")
	for name := range healthy {
		m.want(t, 1, "rdma_probe_runs_total", "device", name, "outcome", "ok")
		for _, outcome := range []string{"failed", "timeout", "crashed"} {
			m.absent(t, "rdma_probe_runs_total", "device", name, "outcome", outcome)
		}
		m.absent(t, "rdma_verbs_errors_total", "device", name)
	}
	for _, c := range cells {
		t.Run(c.device, func(t *testing.T) { c.check(t, m) })
	}
	checkCells(t, m, cells)
	checkExposition(t, text)
	t.Logf("%d faulty devices", len(cells))
}

// checkCells makes sure that no verb that the probes call was forgotten.
func checkCells(t *testing.T, m metrics, cells []cell) {
	t.Helper()
	tried := make(map[string]bool)
	for _, c := range cells {
		tried[string(c.verb)] = true
	}
	// A refusal of further attributes fails nothing.
	tried[string(verbs.QueryDeviceEx)] = true
	called := m.values("rdma_verbs_call_latency_seconds_count", "verb", "device", "healthy_rxe")
	if got := slices.Sorted(maps.Keys(tried)); !slices.Equal(got, called) {
		t.Errorf("faults are tried on\n%q\nbut a healthy device is called\n%q", got, called)
	}
}

func (c cell) check(t *testing.T, m metrics) {
	got := expected.Run{
		Failures:    pairs(t, m, "rdma_verbs_errors_total", c.device, "verb", "errno"),
		Undestroyed: pairs(t, m, "rdma_probe_undestroyed_objects", c.device, "type", "errno"),
		Skipped:     make(map[string][]string), SkipReason: c.want.SkipReason,
	}
	for _, outcome := range []string{"ok", "failed", "timeout", "crashed"} {
		if m.runs(c.device, outcome) > 0 {
			got.Outcome += outcome
		}
	}
	for _, probe := range expected.Probes() {
		switch judged := m.all("rdma_probe_success", "device", c.device, "probe", probe); {
		case len(judged) == 0:
			got.Unjudged = append(got.Unjudged, probe)
		case judged[0].value == 0:
			got.Failed = append(got.Failed, probe)
		}
		if _, ok := c.want.Skipped[probe]; ok {
			got.Skipped[probe] = m.values("rdma_probe_skipped", "subject", "device", c.device, "probe", probe, "reason", c.want.SkipReason)
		}
	}
	var aborts []string
	if c.want.Abort != "" {
		aborts = []string{expected.Pair(c.want.Abort, c.want.Outcome)}
	}
	if aborted := pairs(t, m, "rdma_probe_aborts_total", c.device, "verb", "outcome"); slices.Equal(aborted, aborts) {
		got.Abort = c.want.Abort
	} else {
		t.Errorf("aborted by %q, want %q", aborted, aborts)
	}
	if got, want := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", c.want); got != want {
		t.Errorf("seen\n%s, want\n%s", got, want)
	}
	if took := m.sum("rdma_verbs_call_latency_seconds_sum", "device", c.device, "verb", string(c.verb)); took < c.slow {
		t.Errorf("calls of %s took %v s, want %v s at least", c.verb, took, c.slow)
	}
	m.want(t, 0, "rdma_probe_stuck", "device", c.device)
	for _, metric := range c.short {
		less := 0
		for _, s := range m.all(metric, "device", c.device) {
			labels := []string{"device", "healthy_rxe"}
			for name, value := range s.labels {
				if name != "device" {
					labels = append(labels, name, value)
				}
			}
			// What is queried is what was given, where nothing is wrong.
			if s.value < m.sum(strings.Replace(metric, "_queried", "_actual", 1), labels...) {
				less++
			}
			if s.labels["profile"] == "small" && (strings.Contains(metric, "work_requests") || strings.Contains(metric, "cq_entries")) && s.value != smallSize-missing {
				t.Errorf("%s%v is %v, want %d", metric, s.labels, s.value, smallSize-missing)
			}
		}
		if less == 0 {
			t.Errorf("nothing is less in %s", metric)
		}
	}
}

// pairs returns the pairs of labels that a metric of a device has, which makes sure that
// its samples are above 0.
func pairs(t *testing.T, m metrics, metric, device, first, second string) []string {
	t.Helper()
	var got []string
	for _, s := range m.all(metric, "device", device) {
		if s.value <= 0 {
			t.Errorf("%s%v is %v", metric, s.labels, s.value)
		}
		got = append(got, s.labels[first]+" "+s.labels[second])
	}
	slices.Sort(got)
	return got
}
