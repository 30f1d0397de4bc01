package health_test

import (
	"reflect"
	"strings"
	"testing"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// TestHarmAndSeverity verifies that a less harmful finding is never more severe.
func TestHarmAndSeverity(t *testing.T) {
	least := 0
	for _, harm := range health.Harms() {
		first, last := len(health.Severities()), 0
		for _, e := range health.Catalogue() {
			for i, severity := range e.Severities {
				for j, of := range e.Harms {
					if of == harm && (len(e.Harms) != len(e.Severities) || i == j) {
						n := indexOf(severity)
						first, last = min(first, n), max(last, n)
					}
				}
			}
		}
		if first < least {
			t.Errorf("%s can be more severe than what is worse", harm)
		}
		least = last
	}
}

func indexOf(s health.Severity) int {
	for i, of := range health.Severities() {
		if of == s {
			return i
		}
	}
	return -1
}

func TestRoots(t *testing.T) {
	run := func(outcome state.Outcome, verb string) *state.Run {
		return &state.Run{Outcome: outcome, Verb: verb, Started: taken()}
	}
	hangs := func() *state.DeviceState {
		s := device(state.Inventory{})
		s.Last = run(state.OutcomeTimeout, "ibv_create_qp")
		s.Last.Probes = []state.Probe{probing("srq", failure("small", "ibv_create_srq", "EIO", "no"))}
		s.Contracts = &state.Contracts{Last: run(state.OutcomeTimeout, "ibv_create_qp"), Verdicts: []state.Contract{
			{Name: "x", Verdict: state.VerdictSkipped, Reason: state.SkipTimeout, CheckedAt: taken().Add(-1)},
		}}
		s.Resources.Last.Outcome = state.OutcomeTimeout
		return s
	}
	change := func(f func(s *state.DeviceState)) *state.DeviceState {
		s := hangs()
		f(s)
		return s
	}
	broken := failure("rc small", "ibv_create_qp", "EIO", "no")
	limit := int64(65536)
	pinned := failure("small", "ibv_create_cq", "ENOMEM", "no")
	pinned.Memlock = &limit
	for _, tc := range []struct {
		name  string
		state *state.DeviceState
		want  []string
	}{
		{"a device that hangs", hangs(), []string{
			"run_aborted the probes, in ibv_create_qp: run_aborted the contract run, in ibv_create_qp; run_aborted the contract run, at x; probe_failed srq; inventory_incomplete the inventory",
		}},
		{"and whose processes cannot be killed", change(func(s *state.DeviceState) {
			s.Stuck, s.Resources.Stuck = &state.Stuck{PID: 1}, &state.Stuck{PID: 2}
		}), []string{"stuck pid 1: stuck pid 2; probe_failed srq; inventory_incomplete the inventory"}},
		{"one that cannot be opened", change(func(s *state.DeviceState) {
			s.Last = &state.Run{Outcome: state.OutcomeFailed, FailedVerb: "ibv_open_device", Errno: "EIO"}
		}), []string{"device_unusable ibv_open_device EIO: run_aborted the contract run, in ibv_create_qp; run_aborted the contract run, at x; inventory_incomplete the inventory"}},
		{"one on which only the contracts hang", change(func(s *state.DeviceState) {
			s.Last, s.Resources.Last.Outcome = run(state.OutcomeOK, ""), state.OutcomeOK
		}), []string{"run_aborted the contract run, in ibv_create_qp: run_aborted the contract run, at x"}},
		{"an inventory that hangs beside probes that fail", change(func(s *state.DeviceState) {
			s.Last.Outcome, s.Contracts, s.Resources.Stuck = state.OutcomeFailed, nil, &state.Stuck{PID: 2}
		}), []string{"stuck pid 2: inventory_incomplete the inventory", "probe_failed srq"}},
		{"an inventory that fails on a device that hangs", change(func(s *state.DeviceState) {
			s.Contracts, s.Last.Probes, s.Resources.Last.Outcome = nil, nil, state.OutcomeFailed
		}), []string{"run_aborted the probes, in ibv_create_qp", "inventory_incomplete the inventory"}},
		{"a contract that was judged by the end of its process", change(func(s *state.DeviceState) {
			s.Stuck, s.Resources.Last.Outcome, s.Last = &state.Stuck{PID: 1}, state.OutcomeOK, run(state.OutcomeOK, "")
			s.Contracts.Last.InProgress = "x"
			s.Contracts.Verdicts = []state.Contract{
				{Name: "x", Severity: state.SeverityCritical, Verdict: state.VerdictViolated, CheckedAt: taken()},
				{Name: "y", Severity: state.SeverityCritical, Verdict: state.VerdictViolated, CheckedAt: taken()},
			}
		}), []string{"stuck pid 1: contract_violated x", "contract_violated y"}},
		{"probes that fail alike", probed(probing("notification", broken), probing("qp", broken), probing("srq", failure("small", "ibv_create_srq", "EIO", "no"))), []string{
			"probe_failed qp: probe_failed notification", "probe_failed srq",
		}},
		{"memory that may not be locked", probed(probing("cq", pinned), probing("srq", pinned, broken)), []string{"probe_failed srq: probe_failed cq"}},
		{"what is in use", change(func(s *state.DeviceState) {
			s.Last, s.Contracts, s.Resources.Last.Outcome = run(state.OutcomeOK, ""), nil, state.OutcomeOK
			s.Last.Undestroyed = []state.Undestroyed{{Type: "cq", Errno: "EBUSY"}, {Type: "pd", Errno: "EBUSY"}, {Type: "qp", Errno: "EIO"}}
		}), []string{"undestroyed cq EBUSY: undestroyed pd EBUSY", "undestroyed qp EIO"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := lines(assess(tc.state), false)
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}
