package health_test

import (
	"strconv"
	"strings"
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

// failure returns one thing that went wrong in a probe, and probing a probe that failed.
func failure(subject, verb, errno, message string) state.Failure {
	return state.Failure{Subject: subjectOf(subject), Verb: verb, Errno: errno, Message: message}
}

// subjectOf returns the subject that is called like that.
func subjectOf(name string) state.Subject {
	words := strings.Fields(name)
	var vector int
	switch {
	case len(words) == 4 && words[2] == "vector":
		vector, _ = strconv.Atoi(words[3])
		return state.Subject{Object: words[0], Profile: words[1], Vector: &vector}
	case len(words) == 6 && words[4] == "vector":
		vector, _ = strconv.Atoi(words[5])
		port, _ := strconv.Atoi(words[3])
		return state.Subject{Object: words[0], Profile: words[1], Port: port, Vector: &vector}
	case len(words) == 2 && len(words[0]) == 2:
		return state.Subject{Object: "qp", QPType: words[0], Profile: words[1]}
	default:
		return state.Subject{Object: name}
	}
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
		p := probing("notification", failure("loopback any port 1 vector 1", "", "", "no event came"))
		p.Latencies = []state.Latency{{Port: 1, Path: state.PathLoopback, Mode: state.ModeAny, Vector: 1, Missed: 1}}
		s := probed(p)
		check(t, s, health.Default(), kind)
		alone(t, s, health.FindingNotification)
		for name, other := range map[string]state.Failure{
			"another vector": failure("loopback any port 1 vector 11", "", "", "no event came"),
			"another mode":   failure("loopback anyhow vector 1", "", "", "no event came"),
			"a verb":         failure("loopback any vector 1", "ibv_post_send", "EIO", "no"),
			"a wrong answer": failure("loopback any vector 1", "ibv_poll_cq", "", "a completion of no QP"),
			"an errno":       failure("loopback any vector 1", "", "EIO", "no"),
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
