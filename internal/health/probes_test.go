package health_test

import (
	"fmt"
	"math"
	"testing"
	"time"

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

func TestRunAborted(t *testing.T) {
	r := recording(t)
	hung := state.Run{Outcome: state.OutcomeTimeout, Verb: "ibv_create_qp", Error: "timed out after 10s in ibv_create_qp", Info: new(state.Device)}
	crashed := state.Run{Outcome: state.OutcomeCrashed, Error: "the child ended before the end of its report: signal: aborted"}
	during := func(run state.Run, contract string) state.Run {
		run.InProgress = contract
		return run
	}
	looked := func(run state.Run, verdicts ...state.Contract) *state.DeviceState {
		s := device(state.Inventory{})
		run.Kind, run.Started = state.KindContract, taken()
		s.Contracts = &state.Contracts{Last: &run, Verdicts: verdicts}
		return s
	}
	s := failed(hung)
	r.add("a probe run that was killed", s)
	s.Present = false
	r.add("of a device that vanished", s)
	r.add("a probe run that crashed", failed(crashed))
	for _, outcome := range []state.Outcome{state.OutcomeOK, state.OutcomeFailed, "odd"} {
		run := hung
		run.Outcome = outcome
		r.add("a probe run whose outcome is "+string(outcome), failed(run))
	}
	r.add("a contract run that was killed", looked(during(hung, "notify_any")))
	r.add("a contract run that crashed", looked(crashed))
	s = looked(crashed)
	s.Last = failed(hung).Last
	r.add("both", s)
	s.Stuck = &state.Stuck{PID: 814, Verb: "ibv_create_qp", Since: taken()}
	r.add("both, and a child that is stuck", s)
	s.Resources.Stuck, s.Stuck = s.Stuck, nil
	r.add("both, and an inventory that is stuck", s)

	violated := state.Contract{Name: "cq_destroy_busy", Severity: state.SeverityCritical, Verdict: state.VerdictViolated, CheckedAt: taken()}
	busy := during(crashed, violated.Name)
	r.add("reported by the verdict", looked(busy, violated))
	skipped, earlier, other := violated, violated, violated
	skipped.Verdict, earlier.CheckedAt, other.Name = state.VerdictSkipped, taken().Add(-1), "channel_destroy_busy"
	r.add("not by a verdict that is skipped", looked(busy, skipped))
	r.add("nor by one of an earlier run", looked(busy, earlier))
	r.add("nor by one of another contract", looked(busy, other))

	good := state.Run{Outcome: state.OutcomeOK, Started: taken()}
	resize := state.Contract{
		Name: "cq_resize_at_least_requested", Severity: state.SeverityCritical, Verdict: state.VerdictSkipped, Reason: state.SkipTimeout,
		Observed: "the process that checked it was killed", CheckedAt: taken().Add(-time.Minute),
	}
	r.add("an earlier process of the contract run was killed", looked(good, resize))
	resize.Reason = state.SkipCrashed
	r.add("an earlier process of the contract run crashed", looked(good, resize))
	r.add("an earlier process and the last one crashed", looked(crashed, resize))
	for _, later := range []time.Duration{0, time.Minute} {
		resize.CheckedAt = taken().Add(later)
		r.add(fmt.Sprint("a process ", later, " after the start of the run"), looked(good, resize))
	}
	resize.CheckedAt = taken()
	r.add("the finding about the last process covers it", looked(crashed, resize))
	s = looked(good, resize)
	s.Contracts.Last = nil
	r.add("before the contract run completed", s)
	for _, reason := range []state.SkipReason{state.SkipNotSupported, state.SkipPortDown, state.SkipNeeds} {
		resize.Reason = reason
		r.add("a contract that was skipped for "+string(reason), looked(good, resize))
	}

	run := state.Run{Outcome: state.OutcomeFailed, Started: taken(), Error: "open the device: EMFILE", FailedVerb: "ibv_open_device", Errno: "EMFILE"}
	r.add("a contract run that failed", looked(run))
	s = looked(run)
	s.Last = failed(run).Last
	r.add("the probes cannot use the device either", s)
	// Leftovers explain it, unless something else failed.
	run.Undestroyed = []state.Undestroyed{{Type: "cq", Errno: "EBUSY", Attempts: 3}}
	r.add("a contract run that failed and left an object", looked(run))
	run.FailedVerb = "ibv_destroy_cq"
	r.add("a contract run that failed since it left an object", looked(run))
}

func failure(subject, verb, errno, message string) state.Failure {
	return state.Failure{Subject: state.Subject{Object: subject}, Verb: verb, Errno: errno, Message: message}
}

func probing(name string, failures ...state.Failure) state.Probe {
	return state.Probe{Name: name, Status: state.StatusFailed, Failures: failures}
}

func TestProbeFailed(t *testing.T) {
	r := recording(t)
	pinning := failure("small", "ibv_create_cq", "ENOMEM", "ibv_create_cq on rxe0: ENOMEM (cannot allocate memory)")
	pinning.Memlock = new(int64(64 << 10))
	forbidden := failure("small", "ibv_create_cq", "EPERM", "no")
	forbidden.Memlock = new(int64)
	noMemory := failure("rc small", "ibv_create_qp", "ENOMEM", "no")
	tooMany := failure("rc small", "ibv_create_qp", "EAGAIN", "no")
	short := failure("small", "ibv_create_cq", "", "asked for cqe 16, given 15")
	broken := failure("rc small", "ibv_modify_qp", "EIO", "no")
	for _, tc := range []struct {
		name     string
		failures []state.Failure
	}{
		{"memory may not be locked", []state.Failure{pinning}},
		{"no memory may be locked", []state.Failure{forbidden}},
		{"memory among others", []state.Failure{broken, noMemory, pinning, short, noMemory}},
		{"no room", []state.Failure{noMemory}},
		{"a cgroup's limit", []state.Failure{tooMany}},
		{"no room among others", []state.Failure{broken, short, noMemory}},
		{"less than requested", []state.Failure{short, short}},
		{"less than requested among others", []state.Failure{short, broken}},
		{"less than requested after others", []state.Failure{broken, short}},
		{"an errno", []state.Failure{broken}},
		{"no errno", []state.Failure{failure("", "", "", "an event for a CQ that does not exist")}},
		{"nothing said", []state.Failure{{}}},
		{"several in one way", []state.Failure{broken, broken, broken}},
		{"many in one way", []state.Failure{broken, broken, broken, broken, broken}},
	} {
		r.add(tc.name, probed(state.Probe{Name: "srq", Status: state.StatusOK}, probing("cq", tc.failures...)))
	}
	s := probed(probing("cq", broken))
	s.Last.Outcome = state.OutcomeTimeout
	r.add("a run that was killed after it", s)
	s.Present = false
	r.add("a device that vanished", s)
	r.add("one for each probe", probed(probing("cq", broken), probing("srq"), probing("qp", broken, broken)))

	busy := failure("small", "ibv_destroy_cq", "EBUSY", "not destroyed")
	s = probed(probing("cq", busy), probing("qp", failure("pd", "ibv_dealloc_pd", "EBUSY", "not destroyed")))
	s.Last.Undestroyed = []state.Undestroyed{{Type: "cq", Errno: "EBUSY", Attempts: 3}}
	r.add("reported as undestroyed", s)
	s.Last.FailedVerb, s.Last.Errno = "ibv_close_device", "EIO"
	r.add("reported as undestroyed, and not closed", s)
	s.Last.Probes[0].Failures = append(s.Last.Probes[0].Failures, broken)
	r.add("reported as undestroyed, and another failure", s)
	s.Last.Undestroyed = nil
	r.add("not reported as undestroyed", s)

	at := func(mode string, vector int, verb, errno string) state.Failure {
		return state.Failure{Subject: state.Subject{Object: "loopback", Profile: mode, Port: 1, Vector: &vector}, Verb: verb, Errno: errno, Message: "no event came"}
	}
	p := probing("notification", at("any", 1, "", ""))
	p.Latencies = []state.Latency{{Port: 1, Path: state.PathLoopback, Mode: state.ModeAny, Vector: 1, Missed: 1}}
	r.add("reported as notification", probed(p))
	for _, other := range []state.Failure{
		at("any", 11, "", ""), at("anyhow", 1, "", ""), at("any", 1, "ibv_post_send", "EIO"), at("any", 1, "ibv_poll_cq", ""), at("any", 1, "", "EIO"),
	} {
		more := p
		more.Failures = append([]state.Failure{other}, p.Failures...)
		r.add(fmt.Sprintf("reported as notification, and %s %s %s", other.Subject, other.Verb, other.Errno), probed(more))
	}
	p.Latencies[0].Missed = 0
	r.add("not reported as notification", probed(p))

	s = probed(probing("notification", broken))
	s.Last.FailedVerb, s.Last.Errno, s.Last.Error = "ibv_query_port", "EIO", "query port 2: ibv_query_port on rxe0: EIO"
	r.add("a port that cannot be queried", s)
	s.Last.Probes[0].Failures = append(s.Last.Probes[0].Failures, failure("loopback port 2", "ibv_query_port", "EIO", "no"))
	r.add("a port that cannot be queried, as a probe reports", s)
	s = probed(probing("cq"))
	s.Last.Error = "cq: failed"
	r.add("for no reason", s)
	s.Last.Error = ""
	r.add("for no reason at all", s)
	s.Last.Outcome = state.OutcomeOK
	r.add("a run that did not fail", s)
}

func TestEmptyMessages(t *testing.T) {
	r := recording(t)
	dev := func(skips ...state.Skip) *state.DeviceState {
		s := probed(state.Probe{Name: "qp", Skips: []state.Skip{{Subject: state.Subject{Object: "qp", QPType: "raw_packet"}, Reason: state.SkipNotPermitted}}}, state.Probe{Name: "notification", Skips: skips})
		s.Last.Outcome = state.OutcomeOK
		return s
	}
	skip := state.Skip{Subject: state.Subject{Object: "message"}, Reason: state.SkipNotPermitted, Detail: "the messages that are measured are empty: ibv_reg_mr on rxe0: EPERM", Memlock: new(int64)}
	r.add("none", dev())
	r.add("with a limit", dev(skip))
	skip.Memlock = nil
	r.add("without a limit", dev(skip))
	s := dev(skip)
	s.Last.Outcome = state.OutcomeFailed
	r.add("a run that failed for no reason is not explained by it", s)
	skip.Reason = state.SkipNeeds
	r.add("for another reason", dev(skip))
	skip.Reason, skip.Subject = state.SkipNotPermitted, state.Subject{Object: "loopback", Profile: "any"}
	r.add("another subject", dev(skip))
}

// TestUnexplained verifies that neither an old measurement nor leftovers explain a failure of the last run.
func TestUnexplained(t *testing.T) {
	r := recording(t)
	s := failed(state.Run{Info: new(state.Device), Error: "a reason of its own", Started: taken()})
	s.Full = &state.Run{Started: taken().Add(-time.Hour), Probes: []state.Probe{{Name: "notification", Latencies: []state.Latency{
		{Port: 1, Path: state.PathFlush, Mode: state.ModeAny, Spurious: 1},
	}}}}
	r.add("an old measurement", s)
	s.Full = nil
	s.Last.Undestroyed = []state.Undestroyed{{Type: "cq", Errno: "EBUSY", Attempts: 2}}
	r.add("leftovers", s)
	s.Last.FailedVerb, s.Last.Info = "ibv_query_port", nil
	r.add("leftovers, on a device that cannot be queried", s)
}

// What was refused to be registered is found by what refused it, with what helps there.
func TestRegistrations(t *testing.T) {
	r := recording(t)
	// refused returns a run in which this refused memory.
	refused := func(by state.RefusedBy, errno string, memories ...state.RegisteredMemory) *state.DeviceState {
		p := state.Probe{Name: "mr", Registrations: []state.Registration{
			{Memory: state.MemoryPage, Bytes: 4096, Result: state.MemoryRegistered, Duration: 1},
		}}
		for _, m := range memories {
			f := state.Failure{Subject: state.Subject{Object: string(m)}, Verb: "ibv_reg_mr", Errno: errno, Message: "ibv_reg_mr on rxe0: " + errno}
			if m == state.MemoryPage {
				p.Registrations = nil
			}
			p.Registrations = append(p.Registrations, state.Registration{Memory: m, Bytes: 4096, Result: state.MemoryRefused, By: by, Errno: errno, Detail: f.Message})
			p.Status, p.Failures = state.StatusFailed, append(p.Failures, f)
		}
		s := probed(p)
		if p.Failures == nil {
			s.Last.Outcome = state.OutcomeOK
		}
		return s
	}
	r.add("none refused", refused("", ""))
	r.add("by the limit of the process, only 2 MiB", refused(state.RefusedByMemlock, "ENOMEM", state.MemoryMany))
	r.add("by the limit of the process", refused(state.RefusedByMemlock, "ENOMEM", state.MemoryPage, state.MemoryMany))
	mute := refused(state.RefusedByMemlock, "EPERM", state.MemoryPage)
	mute.Last.Probes = append(mute.Last.Probes, state.Probe{Name: "notification", Skips: []state.Skip{
		{Subject: state.Subject{Object: "message"}, Reason: state.SkipNotPermitted, Detail: "ibv_reg_mr: EPERM", Memlock: new(int64)},
	}})
	r.add("by the limit of the process, so that messages are empty", mute)
	for _, by := range []state.RefusedBy{state.RefusedByCgroup, state.RefusedByHost, state.RefusedByDevice, "the weather"} {
		r.add("by "+string(by), refused(by, "ENOMEM", state.MemoryMany))
	}
	s := refused(state.RefusedByDevice, "EINVAL", state.MemoryMany)
	s.Last.Probes[0].Failures = append(s.Last.Probes[0].Failures, state.Failure{Subject: state.Subject{Object: "pd"}, Verb: "ibv_alloc_pd", Errno: "EIO", Message: "no"})
	r.add("another failure of the probe has its own finding", s)
}

func TestNotification(t *testing.T) {
	r := recording(t)
	latency := func(change func(*state.Latency)) state.Latency {
		l := state.Latency{Port: 1, Path: state.PathLoopback, Mode: state.ModeAny, Vector: 3, Count: 998}
		change(&l)
		return l
	}
	good := latency(func(*state.Latency) {})
	dev := func(latencies ...state.Latency) *state.DeviceState {
		return probed(state.Probe{Name: "cq"}, state.Probe{Name: "notification", Status: state.StatusFailed, Latencies: latencies})
	}
	missed := dev(good, latency(func(l *state.Latency) { l.Missed = 2 }))
	r.add("missed", missed)
	missed.Present = false
	r.add("missed, of a device that vanished", missed)
	r.add("misdirected", dev(good, latency(func(l *state.Latency) { l.Misdirected = 1 })))
	r.add("missing", dev(good, latency(func(l *state.Latency) { l.Missing, l.Count = 1, 1 })))
	r.add("spurious", dev(good, latency(func(l *state.Latency) { l.Spurious = 5 })))
	r.add("unsuccessful", dev(good, latency(func(l *state.Latency) { l.Unsuccessful = []string{"retry_exc_err", "success", "retry_exc_err"} })))
	var all []state.Latency
	for vector := range 5 {
		all = append(all, latency(func(l *state.Latency) { l.Vector, l.Missed, l.Spurious = vector, vector, 1 }))
	}
	r.add("several", dev(all...))
	odd := latency(func(l *state.Latency) { l.Missed, l.Missing = math.MaxInt, -1 })
	r.add("what cannot be counted", dev(odd, odd))
	s := dev(good)
	s.Last.Outcome = state.OutcomeOK
	broken := latency(func(l *state.Latency) { l.Vector, l.Missed = 5, 2 })
	s.Full = &state.Run{Started: s.Last.Started.Add(-time.Minute), Probes: []state.Probe{{Name: "notification", Latencies: []state.Latency{broken}}}}
	r.add("a vector that the last run did not come to", s)
	s = dev(latency(func(l *state.Latency) { l.Stopped = "the time was used up" }))
	s.Last.Outcome = state.OutcomeOK
	r.add("nothing", s)
	s.Last = nil
	r.add("no run", s)
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
	r := recording(t)
	const us = time.Microsecond
	for _, medians := range [][]time.Duration{
		{},
		{80 * us},
		{5 * us, 5 * us, 24 * us},
		{5 * us, 5 * us, 80 * us},
		{5 * us, 5 * us, 5 * us, 5 * us, 5 * us, 50 * us, 60 * us, 70 * us, 80 * us, 90 * us},
	} {
		s := device(state.Inventory{})
		s.Full = fullRun(medians...)
		r.add(fmt.Sprint("medians: ", medians), s)
		s.Present = false
		r.add(fmt.Sprint("medians, of a device that vanished: ", medians), s)
	}
	r.add("no full run", device(state.Inventory{}))
}
