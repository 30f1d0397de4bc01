package health_test

import (
	"math"
	"testing"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// failed returns a device whose last run of the probes failed, unless it says otherwise.
func failed(run state.Run) *state.DeviceState {
	s := device(state.Inventory{})
	run.Kind, run.Device, run.Started = state.KindProbe, "rxe0", taken()
	if run.Outcome == "" {
		run.Outcome = state.OutcomeFailed
	}
	s.Last = &run
	return s
}

// probed is failed for a device that answered, with these probes.
func probed(probes ...state.Probe) *state.DeviceState {
	return failed(state.Run{Info: new(state.Device), Probes: probes})
}

// alone fails the test unless all findings are of one kind: nothing is told twice.
func alone(t *testing.T, s *state.DeviceState, kind health.Kind) {
	t.Helper()
	for _, f := range assess(s) {
		if f.Kind != kind {
			t.Errorf("told as well: %+v", f)
		}
	}
}

func TestRunAborted(t *testing.T) {
	const (
		kind = health.FindingRunAborted
		c    = health.SeverityCritical
	)
	hung := state.Run{Outcome: state.OutcomeTimeout, Verb: "ibv_create_qp", Error: "timed out after 10s in ibv_create_qp", Info: new(state.Device)}
	crashed := state.Run{Outcome: state.OutcomeCrashed, Error: "the child ended before the end of its report: signal: aborted"}
	looked := func(run state.Run, verdicts ...state.Contract) *state.DeviceState {
		s := device(state.Inventory{})
		run.Kind, run.Started = state.KindContract, taken()
		s.Contracts = &state.Contracts{Last: &run, Verdicts: verdicts}
		return s
	}
	t.Run("a run of the probes that was killed", func(t *testing.T) {
		s := failed(hung)
		check(t, s, health.Default(), kind, want{
			c, "the probes, in ibv_create_qp",
			[]string{"The last run of the probes, started at 2026-03-01 12:00:00 UTC, was killed at its deadline: timed out after 10s in ibv_create_qp."},
			[]string{"waits 5 seconds", "`ibv_devinfo -d rxe0`"},
		})
		alone(t, s, kind)
		s.Present = false
		check(t, s, health.Default(), kind)
	})
	t.Run("a run of the probes that crashed", func(t *testing.T) {
		s := failed(crashed)
		check(t, s, health.Default(), kind, want{c, "the probes", []string{"ended without a complete report: the child ended"}, []string{"OOM killer"}})
		alone(t, s, kind)
	})
	t.Run("a contract run", func(t *testing.T) {
		run := hung
		run.InProgress = "notify_any"
		check(t, looked(run), health.Default(), kind, want{
			c, "the contract run, in ibv_create_qp", []string{"of the contract run,", "while it checked notify_any: timed out after 10s in ibv_create_qp"}, nil,
		})
		check(t, looked(crashed), health.Default(), kind, want{c, "the contract run", nil, nil})
	})
	t.Run("both", func(t *testing.T) {
		s := looked(crashed)
		s.Last = failed(hung).Last
		check(t, s, health.Default(), kind, want{c, "the probes, in ibv_create_qp", nil, nil}, want{c, "the contract run", nil, nil})
	})
	t.Run("told by the verdict", func(t *testing.T) {
		run := crashed
		run.InProgress = "cq_destroy_busy"
		verdict := state.Contract{Name: "cq_destroy_busy", Severity: state.Severity(c), Verdict: state.VerdictViolated, CheckedAt: taken()}
		s := looked(run, verdict)
		check(t, s, health.Default(), kind)
		alone(t, s, health.FindingContract)
		// Not by a verdict that only has the same name, or is of another run.
		verdict.Verdict = state.VerdictSkipped
		check(t, looked(run, verdict), health.Default(), kind, want{c, "the contract run", nil, nil})
		verdict.Verdict, verdict.CheckedAt = state.VerdictViolated, taken().Add(-1)
		check(t, looked(run, verdict), health.Default(), kind, want{c, "the contract run", nil, nil})
		verdict.CheckedAt, verdict.Name = taken(), "channel_destroy_busy"
		check(t, looked(run, verdict), health.Default(), kind, want{c, "the contract run", nil, nil})
	})
	t.Run("told as stuck", func(t *testing.T) {
		s := looked(crashed)
		s.Last = failed(hung).Last
		s.Stuck = &state.Stuck{PID: 814, Verb: "ibv_create_qp", Since: taken()}
		check(t, s, health.Default(), kind)
		alone(t, s, health.FindingStuck)
		// A child of the inventory is another matter.
		s.Resources.Stuck, s.Stuck = s.Stuck, nil
		check(t, s, health.Default(), kind, want{c, "the probes, in ibv_create_qp", nil, nil}, want{c, "the contract run", nil, nil})
	})
	t.Run("other outcomes", func(t *testing.T) {
		for _, outcome := range []state.Outcome{state.OutcomeOK, state.OutcomeFailed, "odd"} {
			run := hung
			run.Outcome = outcome
			s := looked(crashed)
			s.Contracts = nil
			s.Last = failed(run).Last
			check(t, s, health.Default(), kind)
		}
	})
	t.Run("an earlier process of the contract run", func(t *testing.T) {
		verdict := state.Contract{
			Name: "cq_resize_at_least_requested", Severity: state.Severity(c), Verdict: state.VerdictSkipped, Reason: state.SkipTimeout,
			Observed: "the process that judged it was killed", CheckedAt: taken().Add(-time.Minute),
		}
		good := state.Run{Outcome: state.OutcomeOK, Started: taken()}
		s := looked(good, verdict)
		check(t, s, health.Default(), kind, want{
			c, "the contract run, at cq_resize_at_least_requested",
			[]string{"The contract cq_resize_at_least_requested could not be checked at 2026-03-01 11:59:00 UTC: the process that judged it was killed."},
			nil,
		})
		alone(t, s, kind)
		verdict.Reason = state.SkipCrashed
		check(t, looked(good, verdict), health.Default(), kind, want{c, "the contract run, at cq_resize_at_least_requested", nil, []string{"OOM killer"}})
		check(t, looked(crashed, verdict), health.Default(), kind,
			want{c, "the contract run", nil, nil}, want{c, "the contract run, at cq_resize_at_least_requested", nil, nil})
		for _, judged := range []time.Time{taken(), taken().Add(time.Minute)} {
			verdict.CheckedAt = judged
			check(t, looked(good, verdict), health.Default(), kind, want{c, "the contract run, at cq_resize_at_least_requested", nil, nil})
		}
		s.Contracts.Last, s.Contracts.Verdicts[0].CheckedAt = nil, taken()
		check(t, s, health.Default(), kind, want{c, "the contract run, at cq_resize_at_least_requested", nil, nil})
		// The finding about the last process covers it.
		verdict.CheckedAt = taken()
		check(t, looked(crashed, verdict), health.Default(), kind, want{c, "the contract run", nil, nil})
		for _, reason := range []state.SkipReason{state.SkipNotSupported, state.SkipPortDown, state.SkipNeeds} {
			verdict.Reason = reason
			check(t, looked(good, verdict), health.Default(), kind)
		}
	})
	t.Run("a contract run that failed", func(t *testing.T) {
		run := state.Run{Outcome: state.OutcomeFailed, Started: taken(), Error: "open the device: EMFILE", FailedVerb: "ibv_open_device", Errno: "EMFILE"}
		s := looked(run)
		check(t, s, health.Default(), kind, want{health.SeverityWarning, "the contract run", []string{"failed: open the device: EMFILE."}, []string{"ibv_devinfo"}})
		alone(t, s, kind)
		// Leftovers explain it, unless something else failed.
		run.Undestroyed = []state.Undestroyed{{Type: "cq", Errno: "EBUSY", Attempts: 3}}
		check(t, looked(run), health.Default(), kind, want{health.SeverityWarning, "the contract run", nil, nil})
		run.FailedVerb = "ibv_destroy_cq"
		check(t, looked(run), health.Default(), kind)
		alone(t, looked(run), health.FindingUndestroyed)
		// Neither can the probes use the device.
		run.FailedVerb, run.Undestroyed = "ibv_open_device", nil
		s = looked(run)
		s.Last = failed(run).Last
		s.Last.Info = nil
		check(t, s, health.Default(), kind)
		alone(t, s, health.FindingUnusable)
	})
}

func failure(subject, verb, errno, message string) state.Failure {
	return state.Failure{Subject: state.Subject{Object: subject}, Verb: verb, Errno: errno, Message: message}
}

func probing(name string, failures ...state.Failure) state.Probe {
	return state.Probe{Name: name, Status: state.StatusFailed, Failures: failures}
}

func TestProbeFailed(t *testing.T) {
	const (
		kind = health.FindingProbeFailed
		c    = health.SeverityCritical
	)
	limit := func(n int64) *int64 { return &n }
	pinning := failure("small", "ibv_create_cq", "ENOMEM", "ibv_create_cq on rxe0: ENOMEM (cannot allocate memory)")
	pinning.Memlock = limit(64 << 10)
	forbidden := failure("small", "ibv_create_cq", "EPERM", "no")
	forbidden.Memlock = limit(0)
	noMemory := failure("rc small", "ibv_create_qp", "ENOMEM", "no")
	tooMany := failure("rc small", "ibv_create_qp", "EAGAIN", "no")
	short := failure("small", "ibv_create_cq", "", "asked for cqe 16, given 15")
	broken := failure("rc small", "ibv_modify_qp", "EIO", "no")
	for _, tc := range []struct {
		name     string
		failures []state.Failure
		message  []string
		action   string
	}{
		{"memory may not be locked", []state.Failure{pinning}, []string{
			"The probe cq failed: small: ibv_create_cq on rxe0: ENOMEM (cannot allocate memory).", "may lock 64 KiB (RLIMIT_MEMLOCK)",
		}, "LimitMEMLOCK=infinity"},
		{"no memory may be locked", []state.Failure{forbidden}, []string{"may lock 0 bytes (RLIMIT_MEMLOCK)"}, "LimitMEMLOCK=infinity"},
		{"memory among others", []state.Failure{broken, noMemory, pinning, short, noMemory}, []string{"ibv_create_qp ENOMEM, 2 times (rc small, rc small)", "may lock 64 KiB", "; and 1 more."}, "LimitMEMLOCK=infinity"},
		{"no room", []state.Failure{noMemory}, []string{"rc small: ibv_create_qp: ENOMEM: no."}, "`rdma resource show rxe0`"},
		{"a cgroup's limit", []state.Failure{tooMany}, []string{"EAGAIN"}, "rdma.max"},
		{"no room among others", []state.Failure{broken, short, noMemory}, nil, "rdma.max"},
		{"less than asked", []state.Failure{short, short}, []string{"small: ibv_create_cq: asked for cqe 16, given 15; small"}, "_at_least_requested"},
		{"less than asked among others", []state.Failure{short, broken}, nil, "`ibv_devinfo -v -d rxe0`"},
		{"less than asked after others", []state.Failure{broken, short}, nil, "`ibv_devinfo -v -d rxe0`"},
		{"an errno", []state.Failure{broken}, []string{"rc small: ibv_modify_qp: EIO: no."}, "`ibv_devinfo -v -d rxe0`"},
		{"no errno", []state.Failure{failure("", "", "", "an event for a CQ that does not exist")}, []string{"failed: an event for"}, "`ibv_devinfo -v -d rxe0`"},
		{"nothing said", []state.Failure{{}}, []string{"failed: no reason given."}, "`dmesg`"},
		{"several in one way", []state.Failure{broken, broken, broken}, []string{"failed: ibv_modify_qp EIO, 3 times (rc small, rc small, rc small)."}, "`dmesg`"},
		{"many in one way", []state.Failure{broken, broken, broken, broken, broken}, []string{"ibv_modify_qp EIO, 5 times (rc small, rc small, rc small, and 2 more)."}, "`dmesg`"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := probed(state.Probe{Name: "srq", Status: state.StatusOK}, probing("cq", tc.failures...))
			check(t, s, health.Default(), kind, want{c, "cq", tc.message, []string{tc.action}})
			alone(t, s, kind)
			s.Present = false
			check(t, s, health.Default(), kind)
		})
	}
	t.Run("one for each probe", func(t *testing.T) {
		check(t, probed(probing("cq", broken), probing("srq"), probing("qp", broken, broken)), health.Default(), kind, want{c, "qp", nil, nil}, want{c, "cq", nil, nil})
	})
	t.Run("a run that was killed after it", func(t *testing.T) {
		s := probed(probing("cq", broken))
		s.Last.Outcome = state.OutcomeTimeout
		check(t, s, health.Default(), kind, want{c, "cq", nil, nil})
	})

	busy := failure("small", "ibv_destroy_cq", "EBUSY", "not destroyed")
	t.Run("told as undestroyed", func(t *testing.T) {
		s := probed(probing("cq", busy), probing("qp", failure("pd", "ibv_dealloc_pd", "EBUSY", "not destroyed")))
		s.Last.Undestroyed = []state.Undestroyed{{Type: "cq", Errno: "EBUSY", Attempts: 3}}
		check(t, s, health.Default(), kind)
		alone(t, s, health.FindingUndestroyed)
		s.Last.FailedVerb, s.Last.Errno = "ibv_close_device", "EIO"
		check(t, s, health.Default(), kind)
		s.Last.Probes[0].Failures = append(s.Last.Probes[0].Failures, broken)
		check(t, s, health.Default(), kind, want{c, "cq", []string{"failed: rc small: ibv_modify_qp: EIO: no."}, nil})
		s.Last.Undestroyed = nil
		check(t, s, health.Default(), kind, want{c, "cq", []string{"small: ibv_destroy_cq"}, nil}, want{c, "qp", nil, nil}, want{c, "ibv_close_device", nil, nil})
	})
	t.Run("told as notification", func(t *testing.T) {
		at := func(mode string, vector int, verb, errno string) state.Failure {
			return state.Failure{Subject: state.Subject{Object: "loopback", Profile: mode, Port: 1, Vector: &vector}, Verb: verb, Errno: errno, Message: "no event came"}
		}
		p := probing("notification", at("any", 1, "", ""))
		p.Latencies = []state.Latency{{Port: 1, Path: state.PathLoopback, Mode: state.ModeAny, Vector: 1, Missed: 1}}
		s := probed(p)
		check(t, s, health.Default(), kind)
		alone(t, s, health.FindingNotification)
		for name, other := range map[string]state.Failure{
			"another vector": at("any", 11, "", ""),
			"another mode":   at("anyhow", 1, "", ""),
			"a verb":         at("any", 1, "ibv_post_send", "EIO"),
			"a wrong answer": at("any", 1, "ibv_poll_cq", ""),
			"an errno":       at("any", 1, "", "EIO"),
		} {
			more := p
			more.Failures = append([]state.Failure{other}, p.Failures...)
			f := of(health.Assess(probed(more), health.Default(), health.History{}), kind)
			if len(f) != 1 {
				t.Errorf("%s: got %+v", name, f)
			}
		}
		p.Latencies[0].Missed = 0
		check(t, probed(p), health.Default(), kind, want{c, "notification", []string{"no event came"}, nil})
	})

	t.Run("a port that cannot be asked", func(t *testing.T) {
		s := probed(probing("notification", broken))
		s.Last.FailedVerb, s.Last.Errno, s.Last.Error = "ibv_query_port", "EIO", "query port 2: ibv_query_port on rxe0: EIO"
		check(t, s, health.Default(), kind, want{c, "notification", nil, nil}, want{c, "ibv_query_port", []string{"Not all of the device could be probed: query port 2: ibv_query_port"}, []string{"`dmesg`"}})
		s.Last.Probes[0].Failures = append(s.Last.Probes[0].Failures, failure("loopback port 2", "ibv_query_port", "EIO", "no"))
		check(t, s, health.Default(), kind, want{c, "notification", nil, nil})
	})
	t.Run("for no reason", func(t *testing.T) {
		s := probed(probing("cq"))
		s.Last.Error = "cq: failed"
		check(t, s, health.Default(), kind, want{c, "the probes", []string{"The last probe run failed: cq: failed."}, nil})
		s.Last.Error = ""
		check(t, s, health.Default(), kind, want{c, "the probes", []string{"no reason given"}, nil})
		s.Last.Outcome = state.OutcomeOK
		check(t, s, health.Default(), kind)
	})
}

func TestEmptyMessages(t *testing.T) {
	const kind = health.FindingProbeFailed
	dev := func(skips ...state.Skip) *state.DeviceState {
		s := probed(state.Probe{Name: "qp", Skips: []state.Skip{{Subject: state.Subject{Object: "qp", QPType: "raw_packet"}, Reason: state.SkipNotPermitted}}}, state.Probe{Name: "notification", Skips: skips})
		s.Last.Outcome = state.OutcomeOK
		return s
	}
	skip := state.Skip{Subject: state.Subject{Object: "message"}, Reason: state.SkipNotPermitted, Detail: "the messages that are measured are empty: ibv_reg_mr on rxe0: EPERM", Memlock: new(int64)}
	check(t, dev(), health.Default(), kind)
	check(t, dev(skip), health.Default(), kind, want{
		health.SeverityWarning, "notification message",
		[]string{"No memory could be registered: the messages that are measured are empty: ibv_reg_mr on rxe0: EPERM.", "may lock 0 bytes (RLIMIT_MEMLOCK)"},
		[]string{"LimitMEMLOCK=infinity", "IPC_LOCK"},
	})
	alone(t, dev(skip), kind)
	skip.Memlock = nil
	check(t, dev(skip), health.Default(), kind, want{health.SeverityWarning, "notification message", nil, []string{"If not, check `rdma resource show rxe0` for mr"}})
	if f := of(health.Assess(dev(skip), health.Default(), health.History{}), kind)[0]; f.Message != "No memory could be registered: "+skip.Detail+"." {
		t.Errorf("the message is %q", f.Message)
	}
	skip.Reason = state.SkipNeeds
	check(t, dev(skip), health.Default(), kind)
	skip.Reason, skip.Subject = state.SkipNotPermitted, state.Subject{Object: "loopback", Profile: "any"}
	check(t, dev(skip), health.Default(), kind)
	// A run that failed for no reason is not explained by it.
	skip.Subject = state.Subject{Object: "message"}
	s := dev(skip)
	s.Last.Outcome = state.OutcomeFailed
	check(t, s, health.Default(), kind, want{health.SeverityCritical, "the probes", nil, nil}, want{health.SeverityWarning, "notification message", nil, nil})
}

// TestUnexplained verifies that neither an old measurement nor leftovers explain a failure of the last run.
func TestUnexplained(t *testing.T) {
	const kind = health.FindingProbeFailed
	s := failed(state.Run{Info: new(state.Device), Error: "a reason of its own", Started: taken()})
	s.Full = &state.Run{Started: taken().Add(-time.Hour), Probes: []state.Probe{{Name: "notification", Latencies: []state.Latency{
		{Port: 1, Path: state.PathFlush, Mode: state.ModeAny, Spurious: 1},
	}}}}
	told := want{health.SeverityCritical, "the probes", []string{"The last probe run failed: a reason of its own."}, nil}
	check(t, s, health.Default(), kind, told)
	s.Full = nil
	s.Last.Undestroyed = []state.Undestroyed{{Type: "cq", Errno: "EBUSY", Attempts: 2}}
	check(t, s, health.Default(), kind)
	alone(t, s, health.FindingUndestroyed)
	s.Last.FailedVerb = "ibv_query_port"
	s.Last.Info = nil
	check(t, s, health.Default(), health.FindingUnusable, want{health.SeverityCritical, "ibv_query_port", nil, nil})
}

// What was refused to be registered is found by what refused it, with what helps there; what no program needs is not.
func TestRegistrations(t *testing.T) {
	const kind = health.FindingProbeFailed
	refused := func(memory state.RegisteredMemory, by state.RefusedBy, errno string) state.Registration {
		return state.Registration{Memory: memory, Bytes: 4096, Result: state.MemoryRefused, By: by, Errno: errno, Detail: "ibv_reg_mr on rxe0: " + errno}
	}
	of := func(list ...state.Registration) *state.DeviceState {
		p := state.Probe{Name: "mr", Registrations: list}
		for _, r := range list {
			if r.Result == state.MemoryRefused && r.By != state.RefusedByMemlock {
				p.Status = state.StatusFailed
				p.Failures = append(p.Failures, state.Failure{Subject: state.Subject{Object: string(r.Memory)}, Verb: "ibv_reg_mr", Errno: r.Errno, Message: r.Detail})
			}
		}
		return probed(p)
	}
	good := state.Registration{Memory: state.MemoryPage, Bytes: 4096, Result: state.MemoryRegistered, Duration: 1}
	well := of()
	well.Last.Outcome, well.Last.Probes[0].Failures, well.Last.Probes[0].Registrations = state.OutcomeOK, nil, []state.Registration{
		good,
	}
	check(t, well, health.Default(), kind)
	for _, tc := range []struct {
		by       state.RefusedBy
		severity health.Severity
		action   string
	}{
		{state.RefusedByMemlock, health.SeverityWarning, "LimitMEMLOCK=infinity"},
		{state.RefusedByCgroup, health.SeverityCritical, "rdma.max"},
		{state.RefusedByHost, health.SeverityCritical, "`free`"},
		{state.RefusedByDevice, health.SeverityCritical, "`rdma resource show rxe0`"},
		{"the weather", health.SeverityCritical, "`rdma resource show rxe0`"},
	} {
		s := of(good, refused(state.MemoryMany, tc.by, "ENOMEM"))
		message := "Memory could not be registered (2MiB): ibv_reg_mr on rxe0: ENOMEM."
		if tc.by == state.RefusedByMemlock {
			s.Last.Outcome = state.OutcomeOK
			check(t, s, health.Default(), kind)
			s.Last.Probes[0].Registrations[0] = refused(state.MemoryPage, tc.by, "ENOMEM")
			message = "Memory could not be registered (4KiB, 2MiB): ibv_reg_mr on rxe0: ENOMEM."
		}
		check(t, s, health.Default(), kind, want{tc.severity, "memory", []string{message}, []string{tc.action}})
		alone(t, s, kind)
	}
	// Another failure of the probe has its own finding.
	s := of(refused(state.MemoryMany, state.RefusedByDevice, "EINVAL"))
	s.Last.Probes[0].Failures = append(s.Last.Probes[0].Failures, state.Failure{Subject: state.Subject{Object: "pd"}, Verb: "ibv_alloc_pd", Errno: "EIO", Message: "no"})
	check(
		t, s, health.Default(), kind,
		want{health.SeverityCritical, "mr", []string{"ibv_alloc_pd"}, nil}, want{health.SeverityCritical, "memory", nil, nil},
	)
}

func TestNotification(t *testing.T) {
	const (
		kind = health.FindingNotification
		c    = health.SeverityCritical
		w    = health.SeverityWarning
	)
	latency := func(change func(*state.Latency)) state.Latency {
		l := state.Latency{Port: 1, Path: state.PathLoopback, Mode: state.ModeAny, Vector: 3, Count: 998}
		change(&l)
		return l
	}
	dev := func(latencies ...state.Latency) *state.DeviceState {
		return probed(state.Probe{Name: "cq"}, state.Probe{Name: "notification", Status: state.StatusFailed, Latencies: latencies})
	}
	for _, tc := range []struct {
		name   string
		change func(*state.Latency)
		want   want
	}{
		{"missed", func(l *state.Latency) { l.Missed = 2 }, want{
			c, "missed events",
			[]string{"2 completions whose event missed the deadline. Where: loopback any on port 1, vector 3: 2, while 998 samples succeeded."},
			[]string{"/proc/interrupts"},
		}},
		{"misdirected", func(l *state.Latency) { l.Misdirected = 1 }, want{c, "misdirected events", []string{"1 event on a wrong channel or for a wrong queue. Where"}, []string{"channel_steering"}}},
		{"missing", func(l *state.Latency) { l.Missing, l.Count = 1, 1 }, want{c, "missing completions", []string{"1 completion that missed the deadline. Where", "while 1 sample succeeded"}, []string{"`rdma statistic show link rxe0`"}}},
		{"spurious", func(l *state.Latency) { l.Spurious = 5 }, want{w, "spurious events", []string{"5 events without a completion. Where"}, []string{"until the queue is empty"}}},
		{"unsuccessful", func(l *state.Latency) {
			l.Unsuccessful = []string{"retry_exc_err", "success", "retry_exc_err"}
		}, want{w, "unsuccessful completions", []string{"3 completions with a wrong status. Where", "vector 3: 3 (retry_exc_err, success)"}, []string{"`rdma link show rxe0`"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := dev(latency(func(*state.Latency) {}), latency(tc.change))
			check(t, s, health.Default(), kind, tc.want)
			alone(t, s, kind)
			s.Present = false
			check(t, s, health.Default(), kind)
		})
	}
	t.Run("several", func(t *testing.T) {
		var all []state.Latency
		for vector := range 5 {
			all = append(all, latency(func(l *state.Latency) { l.Vector, l.Missed, l.Spurious = vector, vector, 1 }))
		}
		check(t, dev(all...), health.Default(), kind,
			want{c, "missed events", []string{"10 completions whose event missed the deadline. Where: loopback any on port 1, vector 1: 1", "; and 1 more."}, nil},
			want{w, "spurious events", []string{"5 events without a completion. Where: loopback any on port 1, vector 0: 1", "; and 2 more."}, nil})
	})
	t.Run("a vector that the last run did not come to", func(t *testing.T) {
		s := dev(latency(func(*state.Latency) {}))
		s.Last.Outcome = state.OutcomeOK
		broken := latency(func(l *state.Latency) { l.Vector, l.Missed = 5, 2 })
		s.Full = &state.Run{Started: s.Last.Started.Add(-time.Minute), Probes: []state.Probe{{Name: "notification", Latencies: []state.Latency{broken}}}}
		check(t, s, health.Default(), kind, want{c, "missed events", []string{"vector 5: 2, while 998 samples succeeded, last measured at 20"}, nil})
	})
	t.Run("what cannot be counted", func(t *testing.T) {
		odd := latency(func(l *state.Latency) { l.Missed, l.Missing = math.MaxInt, -1 })
		check(t, dev(odd, odd), health.Default(), kind, want{c, "missed events", []string{"9,223,372,036,854,775,807 completions whose event"}, nil})
	})
	t.Run("nothing", func(t *testing.T) {
		s := dev(latency(func(l *state.Latency) { l.Stopped = "the time was used up" }))
		s.Last.Outcome = state.OutcomeOK
		check(t, s, health.Default(), kind)
		s.Last = nil
		check(t, s, health.Default(), kind)
	})
}

// fullRun returns a full run that measured completion vectors with these medians.
func fullRun(medians ...time.Duration) *state.Run {
	p := state.Probe{Name: "notification", Status: state.StatusOK}
	for i, m := range medians {
		p.Latencies = append(p.Latencies, state.Latency{
			Port: 1, Path: state.PathLoopback, Mode: state.ModeAny, Vector: i, Count: 1, P50: m, P99: 2*m + 123,
		})
	}
	return &state.Run{Started: taken(), Outcome: state.OutcomeOK, Depth: state.DepthFull, Probes: []state.Probe{p}}
}

func TestSlowVector(t *testing.T) {
	const kind = health.FindingSlowVector
	dev := func(medians ...time.Duration) *state.DeviceState {
		s := device(state.Inventory{})
		for i := range medians {
			medians[i] *= time.Microsecond
		}
		s.Full = fullRun(medians...)
		return s
	}
	check(t, device(state.Inventory{}), health.Default(), kind)
	check(t, dev(), health.Default(), kind)
	check(t, dev(80), health.Default(), kind)
	check(t, dev(5, 5, 24), health.Default(), kind)
	check(t, dev(5, 5, 80), health.Default(), kind, want{
		health.SeverityInfo, "vector 2",
		[]string{"1 of 3 completion vectors measured are slow: vector 2 takes 80 µs in the median and 160 µs at the 99th percentile, against the usual 5 µs (loopback on port 1, measured at 2026-03-01 12:00:00 UTC)."},
		[]string{"/proc/interrupts", "/sys/class/infiniband/rxe0/device/numa_node"},
	})
	alone(t, dev(5, 5, 80), kind)
	check(t, dev(5, 5, 5, 5, 5, 50, 60, 70, 80, 90), health.Default(), kind, want{
		health.SeverityInfo, "vectors 5, 6, 7, and 2 more", []string{"5 of 10 completion vectors measured are slow: vector 5 takes 50 µs", "; and 2 more."}, nil,
	})
	vanished := dev(5, 5, 80)
	vanished.Present = false
	check(t, vanished, health.Default(), kind)
}
