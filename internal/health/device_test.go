package health_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

func TestUnusable(t *testing.T) {
	r := recording(t)
	for _, of := range []string{
		"ibv_open_device EACCES", "ibv_open_device EPERM", "ibv_get_device_list EPERM", "ibv_open_device ENOENT", "ibv_open_device ENXIO",
		"ibv_open_device ENODEV", "ibv_get_device_list ENOSYS", "ibv_open_device EAGAIN", "ibv_open_device ENOMEM", "ibv_open_device EIO",
		"ibv_query_device EACCES", "ibv_query_device ENODEV",
	} {
		verb, errno, _ := strings.Cut(of, " ")
		r.add("by "+of, failed(state.Run{FailedVerb: verb, Errno: errno, Error: "open the device:\n\tno luck"}))
	}
	r.add("by no verb", failed(state.Run{Error: "no luck"}))
	s := failed(state.Run{FailedVerb: "ibv_open_device", Errno: "EIO"})
	s.Failures, s.LastSuccess = 7, taken().Add(-time.Hour)
	r.add("for a while", s)
	s.Failures, s.LastSuccess = 1, time.Time{}
	r.add("for the first time", s)
	s.Present = false
	r.add("a device that vanished", s)
	r.add("a device that was asked", failed(state.Run{Info: &state.Device{}, FailedVerb: "ibv_query_port", Errno: "EACCES"}))
	r.add("a device that was probed", failed(state.Run{Probes: []state.Probe{{Name: "cq"}}}))
	for _, outcome := range []state.Outcome{state.OutcomeOK, state.OutcomeTimeout, state.OutcomeCrashed, "odd"} {
		r.add("a run whose outcome is "+string(outcome), failed(state.Run{Outcome: outcome}))
	}
}

func TestPortDown(t *testing.T) {
	r := recording(t)
	dev := func(states ...string) *state.DeviceState {
		s := device(state.Inventory{})
		s.Last.Info = new(state.Device)
		for n, dev := range states {
			s.Last.Info.Ports = append(s.Last.Info.Ports, state.Port{Number: n + 1, State: dev, LinkLayer: "InfiniBand"})
		}
		return s
	}
	for _, states := range [][]string{
		{"active", "active_defer"},
		{"active_defer"},
		{"down"},
		{"nop"},
		{""},
		{"active", "down"},
		{"init"},
		{"armed", "active"},
		{"armed", "down", "init"},
		{"down", "down", "down", "down", "down"},
	} {
		r.found(fmt.Sprint("in an audit: ", states), health.Assess(dev(states...), once(), health.History{}))
	}
	for _, tc := range []struct {
		states []string
		before []int // the ports that were active once
	}{
		{nil, nil},
		{[]string{"active"}, nil},
		{[]string{"down"}, nil},
		{[]string{"down"}, []int{1}},
		{[]string{"init"}, []int{1}},
		{[]string{"active", "down"}, []int{1}},
		{[]string{"active", "down"}, []int{1, 2}},
		{[]string{"down", "down"}, []int{2}},
		{[]string{"down", "init"}, []int{1, 2}},
		{[]string{"active", "down", "down"}, []int{1, 2, 3}},
	} {
		past := health.History{Ports: map[string][]int{"rxe0": tc.before}}
		r.found(fmt.Sprint("active before: ", tc.before, ", and now: ", tc.states), health.Assess(dev(tc.states...), health.Default(), past))
	}
	s := dev("down")
	s.Info, s.Last.Info = s.Last.Info, nil
	r.add("what an earlier run saw", s)
	s = dev("down")
	s.Present = false
	r.add("a device that vanished", s)
	s = failed(state.Run{FailedVerb: "ibv_open_device", Errno: "EPERM"})
	s.Hardware = &state.HardwareState{Latest: &state.Hardware{Ports: []state.HardwarePort{
		{Number: 1, State: "down", LinkLayer: "InfiniBand"}, {Number: 2, State: "active", LinkLayer: "InfiniBand"},
	}}}
	r.found("a device that cannot be opened, active before: [1 2]", health.Assess(s, health.Default(), health.History{Ports: map[string][]int{"rxe0": {1, 2}}}))
	s.Hardware.Failures = 1
	r.found("a device that can be neither opened nor read", health.Assess(s, health.Default(), health.History{Ports: map[string][]int{"rxe0": {1, 2}}}))
	s = dev("down")
	s.Last.Info.Ports[0].LinkLayer = ""
	r.found("without a link layer, in an audit", health.Assess(s, once(), health.History{}))
}

func TestContractViolated(t *testing.T) {
	r := recording(t)
	verdict := func(name string, severity health.Severity, verdict state.Verdict) state.Contract {
		return state.Contract{
			Name: name, Severity: severity, Verdict: verdict,
			Asked: "an event", Expected: "that it comes.", Observed: "that it\ndoes not",
			Consequence: "It\nhangs.", Remedy: "Clear it\nfirst.",
		}
	}
	dev := func(verdicts ...state.Contract) *state.DeviceState {
		s := device(state.Inventory{})
		s.Contracts = &state.Contracts{Last: &state.Run{Outcome: state.OutcomeOK}, Verdicts: verdicts}
		return s
	}
	r.add("no verdict", dev())
	r.add("none violated", dev(
		verdict("notify_any", health.SeverityCritical, state.VerdictHolds),
		verdict("notify_one_shot", health.SeverityWarning, state.VerdictSkipped),
		verdict("cq_destroy_busy", health.SeverityCritical, ""),
	))
	violated := verdict("notify_any", health.SeverityCritical, state.VerdictViolated)
	known := violated
	known.Known = true
	r.add("a known violation", dev(known))
	r.add("several", dev(
		verdict("cq_comp_vector_rejected", health.SeverityInfo, state.VerdictViolated), violated,
		verdict("notify_one_shot", health.SeverityWarning, state.VerdictViolated),
		verdict("qp_sq_sig_all", health.SeverityCritical, state.VerdictViolated),
		verdict("grave", "grave", state.VerdictViolated),
	))
	bare := dev(state.Contract{Name: "c", Severity: state.SeverityInfo, Verdict: state.VerdictViolated, Observed: strings.Repeat("x", 600)})
	r.add("a long text, and no remedy", bare)
	if f := assess(bare)[0]; f.Meaning == "" {
		t.Error("without a consequence there is no meaning")
	}
	if f := assess(dev(violated))[0]; f.Meaning != "It hangs." {
		t.Errorf("the meaning is %q", f.Meaning)
	}
	vanished := dev(violated)
	vanished.Present = false
	r.add("of a device that vanished", vanished)
	vanished.Present, vanished.Contracts = true, nil
	r.add("of a device without contracts", vanished)
}
