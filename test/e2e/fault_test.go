package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"
	"rdma_exporter/verbs"
)

// A verbCase says what comes of it when a verb misbehaves on a device that is
// like sim_rxe0.
type verbCase struct {
	verb verbs.Verb
	// before is how many probes have ended when the verb is called first.
	before int
	// once and always are the probes that fail if the first call of the verb
	// fails, and if each does. A destruction that is refused once is repeated, so
	// that none fails then.
	once, always []string
	// whole tells that the run fails even if no probe does, and alone that no
	// probe is run.
	whole, alone bool
	// object is the type of what the verb destroys, and holds are the types of
	// what cannot be destroyed either while it is there, with their verbs.
	object string
	holds  map[string]verbs.Verb
	// probe and subjects are what is skipped if the device does not offer, or the
	// process may not do, what the verb does.
	probe    string
	subjects []string
	// partial tells that a skip of all subjects leaves something of the probe.
	partial bool
	// search tells that the probe takes such a refusal for an answer, not for a
	// failed call.
	search bool
	// lacking are the probes and subjects that are skipped if the device does not
	// offer what the verb does, in place of failing; emptied are the probes of which
	// that leaves nothing.
	lacking map[string][]string
	emptied []string
	// vital tells that nothing can be probed on a device that does not offer what
	// the verb does.
	vital bool
	// measured are the measurements of the probe notification that are skipped
	// then, while the others go on; nil if it fails then, too. Denied are those that are
	// skipped with EPERM, if they are others.
	measured, denied []string
	// without are the errnos with which the probe notification does without what
	// the verb gives, and says so.
	without []string
	// leaves are the types and errnos of what cannot be destroyed if the verb fails
	// at all, and drags the verbs and errnos of the calls that fail for it.
	leaves, drags []string
	// short checks what comes of sizes that are 5 less than those asked for; nil
	// if the verb gives none.
	short func(*testing.T, metrics, string)
	// shortFails are the probes that fail then, and shortDrags the verbs and errnos
	// of calls that do.
	shortFails, shortDrags []string
}

// probesInOrder are the probes as a run has them.
func probesInOrder() []string { return []string{"cq", "comp_channel", "srq", "qp", "notification"} }

// measurements are those of the probe notification on a device with one port.
func measurements() []string { return append(asleep(), "loopback poll", "flush poll") }

// asleep are the measurements that use events.
func asleep() []string {
	return []string{"loopback any", "loopback solicited", "flush any", "flush solicited"}
}

func verbCases() []verbCase {
	sizes := []string{"small", "medium", "large"}
	return []verbCase{
		{verb: verbs.GetDeviceList, whole: true, alone: true},
		{verb: verbs.OpenDevice, whole: true, alone: true},
		{verb: verbs.QueryDevice, whole: true, alone: true},
		{verb: verbs.QueryPort, whole: true, once: []string{"notification"}, always: []string{"notification"}, measured: []string{"loopback port 1"}},
		{
			verb: verbs.CreateCQ,
			once: []string{"cq"}, always: []string{"cq", "comp_channel", "qp", "notification"},
			measured: measurements(), vital: true,
			shortFails: []string{"cq"},
			short: func(t *testing.T, m metrics, device string) {
				m.want(t, 16, "rdma_probe_cq_entries_requested", "device", device, "profile", "small")
				m.want(t, 11, "rdma_probe_cq_entries_actual", "device", device, "profile", "small")
			},
		},
		{
			verb: verbs.DestroyCQ, object: "cq",
			always: []string{"cq", "comp_channel", "qp", "notification"},
			holds:  map[string]verbs.Verb{"comp_channel": verbs.DestroyCompChannel},
		},
		{
			verb: verbs.CreateCompChannel, before: 1,
			once: []string{"comp_channel"}, always: []string{"comp_channel", "notification"},
			probe: "comp_channel", subjects: []string{""}, measured: asleep(),
		},
		{
			verb: verbs.ReqNotifyCQ, before: 1,
			once: []string{"comp_channel"}, always: []string{"comp_channel", "notification"},
			lacking:  map[string][]string{"comp_channel": {"request notification"}},
			measured: asleep(),
		},
		{
			verb: verbs.DestroyCompChannel, before: 1, object: "comp_channel",
			always: []string{"comp_channel", "notification"},
		},
		{
			verb: verbs.AllocPD, before: 1,
			once: []string{"comp_channel"}, always: []string{"comp_channel", "srq", "qp", "notification"},
			lacking: map[string][]string{
				"comp_channel": {"protection domain"}, "srq": {"protection domain"}, "qp": {"protection domain"},
			},
			emptied:  []string{"comp_channel", "srq", "qp"},
			measured: measurements(),
		},
		{
			verb: verbs.CreateSRQ, before: 2,
			once: []string{"srq"}, always: []string{"srq"},
			probe: "srq", subjects: sizes,
			shortFails: []string{"srq"},
			short: func(t *testing.T, m metrics, device string) {
				m.want(t, 16, "rdma_probe_srq_work_requests_requested", "device", device, "profile", "small")
				m.want(t, 11, "rdma_probe_srq_work_requests_actual", "device", device, "profile", "small")
			},
		},
		{
			verb: verbs.QuerySRQ, before: 2,
			once: []string{"srq"}, always: []string{"srq"},
			probe: "srq", subjects: sizes, partial: true,
			short: func(t *testing.T, m metrics, device string) {
				m.want(t, 16, "rdma_probe_srq_work_requests_actual", "device", device, "profile", "small")
				m.want(t, 11, "rdma_probe_srq_work_requests_queried", "device", device, "profile", "small")
			},
		},
		{verb: verbs.DestroySRQ, before: 2, object: "srq", always: []string{"srq"}, holds: map[string]verbs.Verb{"pd": verbs.DeallocPD}},
		{verb: verbs.DeallocPD, before: 5, object: "pd", whole: true},
		{
			verb: verbs.CreateQP, before: 3,
			once: []string{"qp"}, always: []string{"qp", "notification"},
			probe: "qp", subjects: []string{"rc", "uc", "ud", "raw_packet"}, search: true,
			measured: measurements(),
			// The queues of those which notification asks for come out with no room.
			shortFails: []string{"qp", "notification"},
			shortDrags: []string{pair(verbs.PostRecv, "EINVAL"), pair(verbs.PostSend, "EINVAL")},
			short: func(t *testing.T, m metrics, device string) {
				for _, typ := range []string{"rc", "uc", "ud"} {
					for _, queue := range []string{"send", "recv"} {
						labels := []string{"device", device, "qp_type", typ, "profile", "small", "queue", queue}
						m.want(t, 16, "rdma_probe_qp_work_requests_requested", labels...)
						m.want(t, 11, "rdma_probe_qp_work_requests_actual", labels...)
					}
				}
			},
		},
		{
			verb: verbs.ModifyQP, before: 3,
			once: []string{"qp"}, always: []string{"qp", "notification"},
			measured: measurements(),
		},
		{
			verb: verbs.QueryQP, before: 3,
			once: []string{"qp"}, always: []string{"qp"},
			lacking: map[string][]string{"qp": {"rc small query", "uc small query", "ud small query", "raw_packet"}},
			// What ibv_query_qp tells is not shown yet.
			short: func(*testing.T, metrics, string) {},
		},
		{
			verb: verbs.DestroyQP, before: 3, object: "qp",
			always: []string{"qp", "notification"},
			holds: map[string]verbs.Verb{
				"cq": verbs.DestroyCQ, "pd": verbs.DeallocPD, "comp_channel": verbs.DestroyCompChannel,
			},
		},
		notificationCase(verbCase{verb: verbs.QueryGIDTable, measured: []string{"loopback port 1"}}),
		notificationCase(verbCase{verb: verbs.RegMR, measured: measurements(), without: []string{"ENOMEM", "EPERM"}}),
		notificationCase(verbCase{verb: verbs.DeregMR, object: "mr", holds: map[string]verbs.Verb{"pd": verbs.DeallocPD}}),
		notificationCase(verbCase{
			verb: verbs.CreateAH, search: true,
			measured: []string{}, denied: []string{"flush any", "flush poll", "flush solicited"},
		}),
		notificationCase(verbCase{verb: verbs.DestroyAH, object: "ah", holds: map[string]verbs.Verb{"pd": verbs.DeallocPD}}),
		notificationCase(verbCase{
			verb:     verbs.PostSend,
			measured: []string{"loopback any", "loopback poll", "loopback solicited"}, denied: measurements(),
		}),
		notificationCase(verbCase{
			verb:     verbs.PostRecv,
			measured: []string{"loopback any", "loopback poll", "loopback solicited"},
		}),
		notificationCase(verbCase{verb: verbs.PollCQ, measured: measurements()}),
		notificationCase(verbCase{verb: verbs.GetCQEvent, measured: asleep()}),
		// A CQ of which an event was not acknowledged would never be destroyed.
		notificationCase(verbCase{
			verb:   verbs.AckCQEvents,
			leaves: []string{"cq EBUSY", "comp_channel EBUSY"}, drags: []string{pair(verbs.DestroyCompChannel, "EBUSY")},
		}),
		{verb: verbs.CloseDevice, before: 5, object: "ctx", whole: true},
	}
}

// notificationCase is for a verb that only the probe notification calls.
func notificationCase(c verbCase) verbCase {
	c.before = 4
	c.once, c.always = []string{"notification"}, []string{"notification"}
	return c
}

// A cell is one way in which one verb misbehaves, on a device of its own.
type cell struct {
	device string
	verb   verbs.Verb
	// fault is the fault in the profile, or what makes the device one that is
	// gone.
	fault string
	want  want
}

// want is what is on /metrics of a device after a run.
type want struct {
	outcome string
	// success has 1 or 0 for each probe that was judged, and nothing else.
	success map[string]float64
	// failures are the verbs and errnos of failed calls, and nothing else.
	failures []string
	// undestroyed are the types and errnos of objects left, and nothing else.
	undestroyed []string
	// skipped are the subjects of a probe that are skipped, and skipReason is why.
	skipped    map[string][]string
	skipReason string
	// abort is the verb in which the run was ended.
	abort verbs.Verb
	// slow is the least time, in seconds, that calls of the verb took.
	slow float64
	// more checks what else there is.
	more func(*testing.T, metrics, string)
}

// allOK returns the probes that succeed on a device like sim_rxe0, but for those
// that fail.
func allOK(failed ...string) map[string]float64 {
	success := make(map[string]float64)
	for _, p := range probesInOrder() {
		success[p] = 1
	}
	for _, p := range failed {
		success[p] = 0
	}
	return success
}

// result returns what comes of failing probes. The whole run may fail by itself.
func (c verbCase) result(failed []string) want {
	w := want{outcome: "ok", success: allOK(failed...)}
	if c.alone {
		w.success = map[string]float64{}
	}
	if len(failed) > 0 || c.whole {
		w.outcome = "failed"
	}
	return w
}

func (c verbCase) cell(kind, fault string, w want) cell {
	return cell{
		device: strings.TrimPrefix(string(c.verb), "ibv_") + "-" + kind, verb: c.verb,
		fault: fmt.Sprintf("faults: [{verb: %s, %s}]", c.verb, fault), want: w,
	}
}

func pair(verb verbs.Verb, errno string) string { return string(verb) + " " + errno }

// onceCell has the first call of the verb fail.
func (c verbCase) onceCell() cell {
	w := c.result(c.once)
	if c.object != "" {
		w = want{outcome: "ok", success: allOK()} // it is repeated
	}
	w.failures = append([]string{pair(c.verb, "EBUSY")}, c.drags...)
	w.undestroyed = c.leaves
	return c.cell("once", "times: 1, errno: EBUSY", w)
}

// alwaysCell has each call of the verb fail.
func (c verbCase) alwaysCell(errno string) cell {
	if slices.Contains(c.without, errno) {
		w := c.result(nil)
		w.failures = []string{pair(c.verb, errno)}
		w.skipReason, w.skipped = "not_permitted", map[string][]string{"notification": {"message"}}
		return c.cell("always_"+strings.ToLower(errno), "errno: "+errno, w)
	}
	w := c.result(c.always)
	w.failures = append([]string{pair(c.verb, errno)}, c.drags...)
	if c.search && errno == "EOPNOTSUPP" {
		w.failures = nil
	}
	w.undestroyed = slices.Clone(c.leaves)
	if c.object != "" {
		w.undestroyed = append(w.undestroyed, c.object+" "+errno)
		for object, verb := range c.holds {
			w.undestroyed = append(w.undestroyed, object+" EBUSY")
			w.failures = append(w.failures, pair(verb, "EBUSY"))
		}
	}
	w.skipReason = map[string]string{"EPERM": "not_permitted", "EOPNOTSUPP": "not_supported"}[errno]
	if w.skipReason != "" {
		c.skip(&w, errno)
	}
	return c.cell("always_"+strings.ToLower(errno), "errno: "+errno, w)
}

// skip says what comes of it that the device does not offer, or the process may
// not do, what the verb does.
func (c verbCase) skip(w *want, errno string) {
	w.skipped = make(map[string][]string)
	if c.vital && errno == "EOPNOTSUPP" {
		w.outcome, w.success, w.skipped["cq"] = "ok", map[string]float64{}, []string{""}
		return
	}
	if c.probe != "" {
		w.skipped[c.probe] = c.subjects
		w.success[c.probe] = 1
		switch {
		case c.search && errno == "EPERM":
			// Every process may create RC QPs.
			w.success[c.probe], w.skipped[c.probe] = 0, c.subjects[1:]
		case !c.partial:
			delete(w.success, c.probe)
		}
	}
	if errno == "EOPNOTSUPP" {
		for probe, subjects := range c.lacking {
			w.skipped[probe], w.success[probe] = subjects, 1
		}
		for _, probe := range c.emptied {
			delete(w.success, probe)
		}
	}
	measured := c.measured
	if errno == "EPERM" && c.denied != nil {
		measured = c.denied
	}
	if measured != nil {
		w.skipped["notification"] = measured
		w.success["notification"] = 1
		if len(measured) == len(measurements()) {
			delete(w.success, "notification")
		}
	}
	if !c.whole && !slices.Contains(slices.Collect(maps.Values(w.success)), 0) {
		w.outcome = "ok"
	}
}

// delayCell has the first call of the verb take long.
func (c verbCase) delayCell() cell {
	return c.cell("delay", "times: 1, delay: 300ms", want{outcome: "ok", success: allOK(), slow: 0.3})
}

// abortCell ends the run within the verb.
func (c verbCase) abortCell(fault, outcome string) cell {
	success := make(map[string]float64)
	for _, p := range probesInOrder()[:c.before] {
		success[p] = 1
	}
	return c.cell(fault, fault+": true", want{outcome: outcome, success: success, abort: c.verb})
}

// shortCell has the verb give less than it was asked for.
func (c verbCase) shortCell() cell {
	w := c.result(c.shortFails)
	w.failures, w.more = c.shortDrags, c.short
	return c.cell("short", "short: 5", w)
}

// cells returns those that hang, which take as long as a run may, and the others.
func cells() (hanging, others []cell) {
	for _, c := range verbCases() {
		hanging = append(hanging, c.abortCell("hang", "timeout"))
		others = append(others, c.onceCell(), c.delayCell(), c.abortCell("crash", "crashed"))
		for _, errno := range []string{"ENOMEM", "EIO", "EPERM", "EOPNOTSUPP"} {
			others = append(others, c.alwaysCell(errno))
		}
		if c.short != nil {
			others = append(others, c.shortCell())
		}
	}
	return hanging, append(others, cell{
		device: "vanish", verb: verbs.OpenDevice, fault: "vanish: true",
		want: want{outcome: "failed", failures: []string{pair(verbs.OpenDevice, "ENODEV")}},
	})
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
		testFaults(t, hanging, "--probe.timeout=15s", "--notification.deadline=1s", fmt.Sprintf("--probe.concurrency=%d", len(hanging)+2))
	})
	t.Run("others", func(t *testing.T) {
		t.Parallel()
		testFaults(t, others, "--probe.timeout=2m", "--notification.deadline=5s", "--notification.budget=10s", "--probe.concurrency=16")
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
		"--probe.interval=1h", "--contract.interval=0", "--inventory.interval=0", "--notification.samples=20",
	}, args...)...)
	e.readyWithin(t, 10*time.Minute)

	text, m := e.exposition(t)
	m.want(t, float64(len(cells)+len(healthy)), "rdma_devices")
	for name := range healthy {
		m.want(t, 1, "rdma_probe_runs_total", "device", name, "outcome", "ok")
		for _, outcome := range []string{"failed", "timeout", "crashed"} {
			m.want(t, 0, "rdma_probe_runs_total", "device", name, "outcome", outcome)
		}
		m.absent(t, "rdma_verbs_call_failures_total", "device", name)
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
	called := m.values("rdma_verbs_call_duration_seconds_count", "verb", "device", "healthy_rxe")
	if got := slices.Sorted(maps.Keys(tried)); !slices.Equal(got, called) {
		t.Errorf("faults are tried on\n%q\nbut a healthy device is called\n%q", got, called)
	}
}

func (c cell) check(t *testing.T, m metrics) {
	w := c.want
	for _, outcome := range []string{"ok", "failed", "timeout", "crashed"} {
		if n := m.runs(c.device, outcome); (n > 0) != (outcome == w.outcome) {
			t.Errorf("%v runs %s, want %s alone", n, outcome, w.outcome)
		}
	}

	success := make(map[string]float64)
	for _, s := range m.all("rdma_probe_success", "device", c.device) {
		success[s.labels["probe"]] = s.value
	}
	if !maps.Equal(success, w.success) {
		t.Errorf("success of the probes is %v, want %v", success, w.success)
	}

	pairs(t, m, "rdma_verbs_call_failures_total", c.device, "verb", "errno", w.failures)
	pairs(t, m, "rdma_probe_undestroyed_objects", c.device, "type", "errno", w.undestroyed)

	var aborts []string
	if w.abort != "" {
		aborts = []string{string(w.abort) + " " + w.outcome}
	}
	pairs(t, m, "rdma_probe_aborts_total", c.device, "verb", "outcome", aborts)

	for probe, subjects := range w.skipped {
		got := m.values("rdma_probe_skipped", "subject", "device", c.device, "probe", probe, "reason", w.skipReason)
		if want := slices.Sorted(slices.Values(subjects)); !slices.Equal(got, want) {
			t.Errorf("skipped by probe %s as %s: %q, want %q", probe, w.skipReason, got, want)
		}
	}
	if took := m.sum("rdma_verbs_call_duration_seconds_sum", "device", c.device, "verb", string(c.verb)); took < w.slow {
		t.Errorf("calls of %s took %v s, want %v s at least", c.verb, took, w.slow)
	}
	m.want(t, 0, "rdma_probe_stuck", "device", c.device)
	if w.more != nil {
		w.more(t, m, c.device)
	}
}

// pairs makes sure that the samples of a metric of a device are above 0 and have
// these pairs of labels, and no others.
func pairs(t *testing.T, m metrics, metric, device, first, second string, want []string) {
	t.Helper()
	var got []string
	for _, s := range m.all(metric, "device", device) {
		if s.value <= 0 {
			t.Errorf("%s%v is %v", metric, s.labels, s.value)
		}
		got = append(got, s.labels[first]+" "+s.labels[second])
	}
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
		t.Errorf("%s has %s and %s %q, want %q", metric, first, second, got, want)
	}
}
