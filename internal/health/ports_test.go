package health_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// withPorts returns a device whose ports are in these states.
func withPorts(name string, states ...string) state.DeviceState {
	d := state.DeviceState{Name: name, Present: true, Last: &state.Run{Outcome: state.OutcomeOK, Info: new(state.Device)}}
	for i, is := range states {
		d.Last.Info.Ports = append(d.Last.Info.Ports, state.Port{Number: i + 1, State: is})
	}
	return d
}

func snapshot(devices ...state.DeviceState) *state.Snapshot {
	return &state.Snapshot{Provider: "libibverbs", Devices: devices}
}

func TestPortsOfThePast(t *testing.T) {
	j := newEvaluator()
	is := func(j *health.Evaluator, want string, states ...string) {
		t.Helper()
		var got []string
		for _, f := range j.Evaluate(snapshot(withPorts("a", states...))).Devices[0].Findings {
			got = append(got, fmt.Sprint(f.Harm, " ", f.Subject))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%v: got %q, want %q", states, got, want)
		}
	}
	is(j, "note ports 1, 2", "down", "down")
	is(j, "note port 2", "active", "down")
	is(j, "outage port 1, note port 2", "down", "down")
	is(j, "degradation port 1", "down", "active")
	is(j, "outage ports 1, 2", "down", "down")
	past := j.History()
	if want := map[string][]int{"a": {1, 2}}; !reflect.DeepEqual(past.Ports, want) {
		t.Errorf("the past is %v, want %v", past.Ports, want)
	}
	again := health.New(health.Default(), past)
	is(again, "outage ports 1, 2", "down", "down")
	is(again, "", "active", "active")
}

func TestPastPortsAreBounded(t *testing.T) {
	s := snapshot()
	for n := range 5000 {
		s.Devices = append(s.Devices, withPorts(fmt.Sprint("d", n), "active"))
	}
	many := withPorts("d0")
	for n := range 1000 {
		many.Last.Info.Ports = append(many.Last.Info.Ports, state.Port{Number: n, State: "active"})
	}
	s.Devices[0] = many
	j := newEvaluator()
	j.Evaluate(s)
	if p := j.History().Ports; len(p) != 4096 || len(p["d0"]) != 256 {
		t.Errorf("%d devices, %d ports of one", len(p), len(p["d0"]))
	}
}

// TestActivePorts verifies what an audit reports without a history, and with an expected number of active ports.
func TestActivePorts(t *testing.T) {
	gone := withPorts("gone", "active")
	gone.Present = false
	blind := state.DeviceState{Name: "c", Present: true, Last: &state.Run{Outcome: state.OutcomeFailed}}
	for _, tc := range []struct {
		name     string
		expect   int
		devices  []state.DeviceState
		warning  bool
		critical bool
		problem  string
	}{
		{"all active", 0, []state.DeviceState{withPorts("a", "active"), withPorts("b", "active_defer")}, false, false, ""},
		{"one device without", 0, []state.DeviceState{withPorts("a", "active"), withPorts("b", "down")}, true, false, ""},
		{"a port of a device", 0, []state.DeviceState{withPorts("a", "active", "down")}, false, false, ""},
		{"none active", 0, []state.DeviceState{withPorts("a", "down"), withPorts("b", "init")}, true, true, ""},
		{"none known", 0, []state.DeviceState{withPorts("a")}, false, false, ""},
		{"as many as expected", 2, []state.DeviceState{withPorts("a", "active"), withPorts("b", "active", "down")}, false, false, ""},
		{"fewer than expected", 3, []state.DeviceState{withPorts("a", "active"), withPorts("b", "active", "down")}, true, true, "3 active ports expected, 2 active of 3 ports on 2 devices: b port 2 is down."},
		{"a device that is missing", 2, []state.DeviceState{withPorts("a", "active")}, true, true, "2 active ports expected, 1 active of 1 port on 1 device."},
		{"one of which nothing is known", 1, []state.DeviceState{blind, gone}, true, true, "1 active port expected, 0 active of 0 ports on 2 devices: the ports of c are not known, the ports of gone are not known."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := once()
			c.ActivePorts = tc.expect
			h := health.New(c, health.History{}).Evaluate(snapshot(tc.devices...))
			if got := h.Fails(health.SeverityWarning, apitest.Now()); got != tc.warning {
				t.Errorf("from warning on: %v", got)
			}
			if got := h.Fails(health.SeverityCritical, apitest.Now()); got != tc.critical {
				t.Errorf("from critical on: %v", got)
			}
			problem := ""
			if h.Problem != nil {
				problem = h.Problem.Message
				if h.Problem.Kind != health.ProblemPorts || h.At(apitest.Now()) != health.Critical {
					t.Errorf("the problem is %+v", h.Problem)
				}
			}
			if problem != tc.problem {
				t.Errorf("got the problem %q, want %q", problem, tc.problem)
			}
		})
	}
}

func TestWorstFirst(t *testing.T) {
	quirk := withPorts("a", "active")
	quirk.Contracts = &state.Contracts{Verdicts: []state.Contract{{Name: "x", Severity: state.SeverityWarning, Verdict: state.VerdictViolated}}}
	dead := withPorts("d", "down")
	dead.Last = &state.Run{Outcome: state.OutcomeTimeout, Verb: "ibv_open_device"}
	j := health.New(health.Default(), health.History{Ports: map[string][]int{"c": {1, 2}}})
	h := j.Evaluate(snapshot(withPorts("0", "active", "down"), quirk, state.DeviceState{Name: "b", Present: true}, withPorts("c", "active", "down"), dead))
	var got []string
	for _, d := range h.Devices {
		got = append(got, d.State.Name)
	}
	if want := []string{"d", "c", "a", "b", "0"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	got = nil
	for _, of := range h.Issues {
		got = append(got, string(of.Harm))
	}
	if want := []string{"outage", "degradation", "quirk", "note"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
