package health_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/health/expect"
	"rdma_exporter/internal/state"
)

func finding(found map[string][]health.Finding) *health.Evaluator {
	return health.NewFinder(health.Config{StaleAfter: apitest.StaleAfter()}, health.History{}, func(d *state.DeviceState) []health.Finding { return found[d.Name] })
}

func changed(change func(*state.DeviceState)) state.DeviceState {
	d := apitest.Device("mlx5_0", 4)
	change(&d)
	return d
}

func TestHealth(t *testing.T) {
	found := func(severities ...health.Severity) (all []health.Finding) {
		for _, s := range severities {
			all = append(all, health.Finding{Severity: s, Message: string("a " + s)})
		}
		return all
	}
	aged := func(age time.Duration) state.DeviceState {
		return changed(func(d *state.DeviceState) { d.Last.Started = apitest.Now().Add(-age) })
	}
	ended := func(o state.Outcome) state.DeviceState {
		return changed(func(d *state.DeviceState) { d.Last.Outcome = o })
	}
	says := func(kind health.Kind, message string) []health.Finding {
		return []health.Finding{{Kind: kind, Severity: health.SeverityCritical, Message: message}}
	}
	well := changed(func(*state.DeviceState) {})
	old := func(contracts, inventory time.Duration) state.DeviceState {
		return changed(func(d *state.DeviceState) {
			d.Contracts.Last.Started, d.Resources.Last.Started = apitest.Now().Add(-contracts), apitest.Now().Add(-inventory)
		})
	}
	long := strings.Repeat("long ", 30) + "end."
	tests := []struct {
		name     string
		device   state.DeviceState
		found    []health.Finding
		health   health.Health
		headline string
	}{
		{"healthy", well, found(), health.OK, "No action needed."},
		{"info", well, found(health.SeverityInfo), health.OK, "No action needed."},
		{"warning", well, found(health.SeverityWarning, health.SeverityInfo), health.Warning, "a warning"},
		{"critical", well, found(health.SeverityCritical, health.SeverityWarning, health.SeverityInfo), health.Critical, "a critical"},
		{"not probed", state.DeviceState{Name: "x", Present: true}, nil, health.Unknown, "Not probed yet."},
		{"gone", state.DeviceState{Name: "x"}, nil, health.Unknown, "The device is gone."},
		{"no time", changed(func(d *state.DeviceState) {
			d.OutOfTime = &state.OutOfTime{Kinds: []state.Kind{state.KindContract, state.KindInventory}}
		}), nil, health.Unknown, "Not audited in time: the contracts, the inventory."},
		{"no time for anything", state.DeviceState{Name: "x", Present: true, OutOfTime: &state.OutOfTime{Kinds: []state.Kind{state.KindProbe}}}, nil, health.Unknown, "Not audited in time: the probes."},
		{"young", aged(10 * time.Minute), nil, health.OK, "No action needed."},
		{"old", aged(10*time.Minute + 1), nil, health.Unknown, "Out of date: the last probe run started 10 min ago; the exporter's log may say why."},
		{"of the future", aged(-time.Hour), nil, health.OK, "No action needed."},
		{"failed", changed(func(d *state.DeviceState) { d.Last.Outcome, d.Last.Error = state.OutcomeFailed, "no ink" }), nil, health.Warning, "The last probe run failed. no ink"},
		{"timeout", ended(state.OutcomeTimeout), nil, health.Warning, "The last probe run timed out."},
		{"crashed", ended(state.OutcomeCrashed), nil, health.Warning, "The last probe run crashed."},
		{"unheard of outcome", ended("lost"), nil, health.Warning, `The last probe run ended with "lost".`},
		{"contract", well, says(health.FindingContract, "The device breaks the contract c. Observed: x. Expected: y."), health.Critical, "The device breaks the contract c. Observed: x. Expected: y."},
		{"short finding", well, says(health.FindingPortDown, "Port 1 is down. So is port 2."), health.Critical, "Port 1 is down. So is port 2."},
		{"long finding", well, says(health.FindingUnusable, "It took 1.5 s, i.e. long: EACCES."+strings.Repeat("x", 120)+". And more."), health.Critical, "It took 1.5 s, i.e. long: EACCES." + strings.Repeat("x", 120) + "."},
		{"long sentence", well, says(health.FindingUnusable, long), health.Critical, long},
		{"old contracts", old(3*time.Hour, time.Minute), nil, health.OK, "No action needed. Out of date: the contract run, started 3 h ago."},
		{"an old inventory", old(time.Hour, 6*time.Minute), nil, health.OK, "No action needed. Out of date: the inventory run, started 6 min ago."},
		{"all old", changed(func(d *state.DeviceState) {
			*d = old(49*time.Hour, 6*time.Minute)
			d.Last.Probes[2].Status = state.StatusSkipped
		}), nil, health.OK, "No action needed. Could not be probed: srq. Out of date: the contract run, started 2 days ago, and the inventory run, started 6 min ago."},
		{"stuck", changed(func(d *state.DeviceState) { d.Stuck = &state.Stuck{PID: 7} }), nil, health.Critical, "Process 7 was killed but has not ended."},
		{"a stuck inventory", changed(func(d *state.DeviceState) { d.Resources.Stuck = &state.Stuck{PID: 8} }), nil, health.Critical, "Process 8 was killed but has not ended."},
		{"skipped", changed(func(d *state.DeviceState) {
			d.Last.Probes[2].Status, d.Last.Probes[4].Status = state.StatusSkipped, state.StatusSkipped
		}), nil, health.OK, "No action needed. Could not be probed: srq, notification."},
	}
	for _, tt := range tests {
		h := finding(map[string][]health.Finding{tt.device.Name: tt.found}).Evaluate(&state.Snapshot{Devices: []state.DeviceState{tt.device}})
		if is, headline := h.Devices[0].At(apitest.Now()); is != tt.health || headline != tt.headline || h.At(apitest.Now()) != is {
			t.Errorf("%s: got %s, %q, want %s, %q", tt.name, is, headline, tt.health, tt.headline)
		}
	}
}

func TestHostHealth(t *testing.T) {
	ok, unknown := apitest.Device("a", 4), state.DeviceState{Name: "b", Present: true}
	warning := changed(func(d *state.DeviceState) { d.Last.Outcome = state.OutcomeCrashed })
	tests := []struct {
		name    string
		host    *state.Snapshot
		health  health.Health
		problem health.ProblemKind
	}{
		{"nothing known", nil, health.Unknown, health.ProblemNotListed},
		{"no devices", &state.Snapshot{}, health.Warning, health.ProblemNoDevices},
		{"no simulated devices", &state.Snapshot{Provider: "simulated"}, health.Warning, health.ProblemNoDevices},
		{"not listed", &state.Snapshot{DiscoveryError: "EPERM", Devices: []state.DeviceState{ok}}, health.Critical, health.ProblemDiscovery},
		{"no child", &state.Snapshot{StartError: "EMFILE", Devices: []state.DeviceState{ok}}, health.Critical, health.ProblemStart},
		{"healthy", &state.Snapshot{Devices: []state.DeviceState{ok}}, health.OK, ""},
		{"one unknown", &state.Snapshot{Devices: []state.DeviceState{ok, unknown}}, health.Unknown, ""},
		{"one in trouble", &state.Snapshot{Devices: []state.DeviceState{unknown, warning, ok}}, health.Warning, ""},
	}
	for _, tt := range tests {
		s := finding(nil).Evaluate(tt.host)
		var problem health.ProblemKind
		if s.Problem != nil {
			problem = s.Problem.Kind
			if s.Problem.Message == "" || s.Problem.Action == "" {
				t.Errorf("%s: %+v", tt.name, s.Problem)
			}
		}
		if s.At(apitest.Now()) != tt.health || problem != tt.problem {
			t.Errorf("%s: got %s, %q, want %s, %q", tt.name, s.At(apitest.Now()), problem, tt.health, tt.problem)
		}
	}
	if d := finding(nil).Evaluate(&state.Snapshot{Devices: []state.DeviceState{ok, apitest.Device("0", 4), unknown}}).Devices; d[0].State.Name != "b" || d[1].State.Name != "0" || d[2].State.Name != "a" {
		t.Errorf("devices %q, %q, %q", d[0].State.Name, d[1].State.Name, d[2].State.Name)
	}
}

// TestStale verifies that each kind of run has its own maximum age, and none without a limit.
func TestStale(t *testing.T) {
	s := &state.Snapshot{Devices: []state.DeviceState{changed(func(d *state.DeviceState) {
		d.Last.Started = apitest.Now().Add(-11 * time.Minute)
		d.Contracts.Last.Started = apitest.Now().Add(-11 * time.Minute)
		d.Resources.Last.Started = apitest.Now().Add(-11 * time.Minute)
	}), {Name: "new", Present: true}}}
	stale := func(d *health.Device) (all []state.Kind) {
		for _, kind := range state.Kinds() {
			if d.Stale(kind, apitest.Now()) {
				all = append(all, kind)
			}
		}
		return all
	}
	h := finding(nil).Evaluate(s)
	if got := stale(h.Devices[1]); !reflect.DeepEqual(got, []state.Kind{state.KindProbe, state.KindInventory}) {
		t.Errorf("stale: %v", got)
	}
	if got := stale(h.Devices[0]); got != nil {
		t.Errorf("stale, and never was: %v", got)
	}
	h = newEvaluator().Evaluate(s)
	if got := stale(h.Devices[1]); got != nil {
		t.Errorf("stale without a limit: %v", got)
	}
	if got, headline := h.Devices[1].At(apitest.Now()); got != health.OK {
		t.Errorf("%s without a limit: %s", got, headline)
	}
}

func TestEvaluateOnce(t *testing.T) {
	var evaluated atomic.Int64
	e := health.NewFinder(health.Default(), health.History{}, func(*state.DeviceState) []health.Finding {
		evaluated.Add(1)
		return []health.Finding{}
	})
	s := &state.Snapshot{Devices: []state.DeviceState{apitest.Device("a", 4), apitest.Device("b", 4), apitest.Device("b", 4)}}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if h := e.Evaluate(s); h.Snapshot != s || len(h.Devices) != len(s.Devices) {
				t.Errorf("got %+v", h)
			}
		})
	}
	wg.Wait()
	if n := evaluated.Load(); n != 3 {
		t.Errorf("%d devices evaluated, want 3", n)
	}
	if e.Evaluate(&state.Snapshot{Devices: s.Devices}); evaluated.Load() != 6 {
		t.Errorf("%d devices evaluated, want 6", evaluated.Load())
	}
}

func TestVanished(t *testing.T) {
	once := health.Default()
	once.Once = true
	here, gone := state.DeviceState{Name: "a", Present: true}, state.DeviceState{Name: "b", Vanished: taken()}
	hung := state.DeviceState{Name: "c", Vanished: taken(), Stuck: &state.Stuck{PID: 7}}
	transient := state.DeviceState{Name: "d"}
	h := health.New(once, health.History{}).Evaluate(&state.Snapshot{Devices: []state.DeviceState{here, gone, hung, transient}})
	var got []string
	for _, d := range h.Devices {
		kinds := d.State.Name
		for _, f := range flat(d.Findings) {
			kinds += " " + string(f.Kind)
		}
		got = append(got, kinds)
	}
	if want := []string{"b device_vanished", "c device_vanished stuck", "a", "d"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	is := func(e *health.Evaluator, d state.DeviceState, wantHost health.Health, want string) {
		t.Helper()
		h := e.Evaluate(&state.Snapshot{Ready: true, Devices: []state.DeviceState{d}})
		if got, headline := h.Devices[0].At(apitest.Now()); got != wantHost || h.At(apitest.Now()) != wantHost || headline != want {
			t.Errorf("%s: %s: %s", h.At(apitest.Now()), got, headline)
		}
	}
	const since = "The device was there until 2026-03-01 12:00:00 UTC, and is gone."
	is(health.New(once, health.History{}), gone, health.Critical, since)
	is(newEvaluator(), gone, health.Critical, since)
	is(newEvaluator(), transient, health.Unknown, "The device is gone.")
	once.Accept = []health.Accept{{Finding: health.FindingVanished, Device: "b", Reason: "sold"}}
	is(health.New(once, health.History{}), gone, health.OK, "The device is gone. Accepted: 1 finding.")
}

func TestFails(t *testing.T) {
	contract := health.Finding{Kind: health.FindingContract, Severity: health.SeverityCritical, Subject: "notify_any"}
	port := health.Finding{Kind: health.FindingPortDown, Severity: health.SeverityWarning, Subject: "port 1"}
	info := health.Finding{Kind: health.FindingSlowVector, Severity: health.SeverityInfo}
	well := apitest.Device("mlx5_0", 4)
	crashed := changed(func(d *state.DeviceState) { d.Last.Outcome = state.OutcomeCrashed })
	stuck := changed(func(d *state.DeviceState) { d.Stuck = new(state.Stuck) })
	fresh := state.DeviceState{Name: "mlx5_0", Present: true}
	for _, c := range []struct {
		name              string
		device            state.DeviceState
		findings          []health.Finding
		accepted          []string
		warning, critical bool
	}{
		{"well", well, nil, nil, false, false},
		{"worth knowing", well, []health.Finding{info}, nil, false, false},
		{"not probed", fresh, nil, nil, true, false},
		{"not probed, with a finding that is accepted", fresh, []health.Finding{info}, []string{"slow_vector"}, true, false},
		{"crashed", crashed, nil, nil, true, false},
		{"stuck", stuck, []health.Finding{info}, []string{"slow_vector"}, true, true},
		{"crashed, and that is accepted", crashed, []health.Finding{port}, []string{"port_down"}, false, false},
		{"no time", changed(func(d *state.DeviceState) { d.OutOfTime = &state.OutOfTime{Kinds: []state.Kind{state.KindContract}} }), nil, nil, true, false},
		{"no time for the probes", changed(func(d *state.DeviceState) { d.OutOfTime = &state.OutOfTime{Kinds: []state.Kind{state.KindProbe}} }), nil, nil, true, true},
		{"nothing accepted", well, []health.Finding{contract}, nil, true, true},
		{"the finding", well, []health.Finding{contract}, []string{"contract_violated/notify_any"}, false, false},
		{"the kind", well, []health.Finding{contract}, []string{"contract_violated"}, false, false},
		{"another one", well, []health.Finding{contract}, []string{"contract_violated/notify_one_shot"}, true, true},
		{"one of two", well, []health.Finding{contract, port}, []string{"contract_violated"}, true, false},
		{"both", well, []health.Finding{contract, port}, []string{"contract_violated", "port_down/port 1"}, false, false},
	} {
		config := health.Config{StaleAfter: apitest.StaleAfter()}
		for _, accepted := range c.accepted {
			kind, subject, _ := strings.Cut(accepted, "/")
			config.Accept = append(config.Accept, health.Accept{Finding: health.Kind(kind), Subject: subject})
		}
		h := health.NewFinder(config, health.History{}, func(*state.DeviceState) []health.Finding { return c.findings }).Evaluate(&state.Snapshot{Devices: []state.DeviceState{c.device}})
		if got := h.Fails(health.SeverityWarning, apitest.Now()); got != c.warning {
			t.Errorf("%s, from warning on: %v", c.name, got)
		}
		if got := h.Fails(health.SeverityCritical, apitest.Now()); got != c.critical {
			t.Errorf("%s, from critical on: %v", c.name, got)
		}
	}
}

// TestStalePaths verifies that the newest result for a pair says whether paths are out of date.
func TestStalePaths(t *testing.T) {
	old := apitest.Now().Add(-10 * time.Minute)
	d := changed(func(d *state.DeviceState) {
		d.Paths = []state.PathState{{At: old, Path: state.Path{Peer: "b", Result: state.PathMTU}}, {At: old.Add(-time.Hour), Path: state.Path{Result: state.PathOK}}}
	})
	for limit, want := range map[time.Duration]bool{9 * time.Minute: true, 11 * time.Minute: false} {
		c := health.Default()
		c.StaleAfter = map[state.Kind]time.Duration{state.KindAsk: limit}
		got := health.New(c, health.History{}).Evaluate(&state.Snapshot{Devices: []state.DeviceState{d}}).Devices[0]
		_, headline := got.At(apitest.Now())
		if got.Stale(state.KindAsk, apitest.Now()) != want || strings.Contains(headline, "Out of date: the ask run, started 10 min ago") != want {
			t.Errorf("%s: %q", limit, headline)
		}
		if len(got.Findings) != 1 || got.Findings[0].Kind != health.FindingPathFailed {
			t.Errorf("%+v", got.Findings)
		}
	}
}

// TestPathOfDeadPort verifies that a port that is down explains that no path works, and no other port does.
func TestPathOfDeadPort(t *testing.T) {
	for active, want := range map[string]string{"down": "port_down: path_failed, port_down", "active": "path_failed, port_down"} {
		d := asking()[0]
		d.Last.Info = &state.Device{Ports: []state.Port{{Number: 1, State: "down"}, {Number: 2, State: active}}}
		var got []string
		for _, f := range health.Assess(d, health.Default(), health.History{Ports: map[string][]int{d.Name: {1}}}) {
			line := string(f.Kind)
			for _, c := range f.Consequences {
				line += ": " + string(c.Kind)
			}
			got = append(got, line)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %q, want %q", active, got, want)
		}
	}
}

func TestIssues(t *testing.T) {
	s := new(state.Snapshot)
	var names []string
	for n := range 4 {
		name := fmt.Sprintf("mlx5_%d", n)
		if n%2 == 1 {
			name += " $x" // which a shell needs in quotes
		}
		names = append(names, name)
		d := changed(func(d *state.DeviceState) {
			d.Name = name
			d.Last.Outcome, d.Last.Error, d.Last.FailedVerb, d.Last.Errno = state.OutcomeFailed, fmt.Sprint("no ", n), "ibv_open_device", "EACCES"
			d.Last.Probes, d.Last.Info = nil, nil
			for i := range d.Contracts.Verdicts[:2] {
				v := &d.Contracts.Verdicts[i]
				v.Verdict, v.Severity = state.VerdictViolated, state.SeverityInfo
			}
			if n == 3 {
				d.Stuck = &state.Stuck{PID: 815}
			}
		})
		s.Devices = append(s.Devices, d)
	}
	// Of one no finding says what is wrong.
	s.Devices = append(s.Devices, state.DeviceState{Name: "z", Last: &state.Run{Outcome: state.OutcomeCrashed}})
	h := newEvaluator().Evaluate(s)
	var got []string
	for _, tr := range h.Issues {
		line := fmt.Sprintf("%s %s, for %q:", tr.Severity, tr.Kind, tr.For)
		for _, p := range tr.Places {
			subject := "-"
			if p.Finding >= 0 {
				f := h.Devices[p.Device].Findings[p.Finding]
				subject = f.Subject
				if f.Kind != tr.Kind || f.Severity != tr.Severity || f.Meaning != tr.Meaning || f.Action != tr.Action && tr.For == "" {
					t.Errorf("%+v is told as %+v", f, tr)
				}
			}
			line += fmt.Sprintf(" %d %s;", p.Device, subject)
		}
		got = append(got, line)
	}
	const denied = "ibv_open_device EACCES"
	want := []string{
		"critical device_unusable, for \"" + names[0] + "\": 0 " + denied + "; 1 " + denied + "; 2 " + denied + ";",
		"critical stuck, for \"\": 3 pid 815;",
		"warning , for \"\": 4 -;",
		"info contract_violated, for \"\": 0 cq_at_least_requested; 1 cq_at_least_requested; 2 cq_at_least_requested; 3 cq_at_least_requested;",
		"info contract_violated, for \"\": 0 cq_destroy_busy; 1 cq_destroy_busy; 2 cq_destroy_busy; 3 cq_destroy_busy;",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if action := h.Issues[0].Action; !strings.Contains(action, names[0]) || strings.Contains(action, names[1]) {
		t.Errorf("what is to be done is %s", action)
	}
}

// TestRank verifies the order of devices and issues: by harm, then by severity. A run that failed without a finding is
// a degradation. An unknown device ranks before a healthy one.
func TestRank(t *testing.T) {
	s, found := &state.Snapshot{Ready: true}, make(map[string][]health.Finding)
	for name, f := range map[string]health.Finding{
		"a": {Severity: health.SeverityWarning, Harm: health.HarmDegradation},
		"b": {Severity: health.SeverityWarning, Harm: health.HarmFailure},
		"c": {Severity: health.SeverityCritical, Harm: health.HarmFailure},
		"d": {Severity: health.SeverityWarning, Harm: health.HarmOutage},
		"g": {Severity: health.SeverityWarning, Harm: health.HarmQuirk},
		"0": {Severity: health.SeverityInfo, Harm: health.HarmNote},
	} {
		found[name] = []health.Finding{f}
		s.Devices = append(s.Devices, apitest.Device(name, 4))
	}
	s.Devices = append(s.Devices, changed(func(d *state.DeviceState) { d.Name, d.Last.Outcome = "e", state.OutcomeFailed }))
	s.Devices = append(s.Devices, state.DeviceState{Name: "f", Present: true})
	h := finding(found).Evaluate(s)
	var got []string
	for _, d := range h.Devices {
		got = append(got, d.State.Name)
	}
	for _, of := range h.Issues {
		got = append(got, string(of.Harm))
	}
	if want := []string{
		"d", "c", "b", "e", "a", "g", "f", "0", "outage", "failure", "failure", "degradation", "quirk", "note",
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

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
	blind := state.DeviceState{Name: "c", Present: true, Last: &state.Run{Outcome: state.OutcomeFailed}}
	gone := state.DeviceState{Name: "d", Vanished: taken()}
	for _, tc := range []struct {
		name     string
		expect   int
		devices  []state.DeviceState
		warning  bool
		critical bool
		// found are the findings of kind unexpected, of the host first.
		found string
	}{
		{"all active", 0, []state.DeviceState{withPorts("a", "active"), withPorts("b", "active_defer")}, false, false, ""},
		{"one device without", 0, []state.DeviceState{withPorts("a", "active"), withPorts("b", "down")}, true, false, ""},
		{"a port of a device", 0, []state.DeviceState{withPorts("a", "active", "down")}, false, false, ""},
		{"none active", 0, []state.DeviceState{withPorts("a", "down"), withPorts("b", "init")}, true, true, ""},
		{"none known", 0, []state.DeviceState{withPorts("a")}, false, false, ""},
		{"as many as expected", 2, []state.DeviceState{withPorts("a", "active"), withPorts("b", "active", "down")}, false, false, ""},
		{"all expected", 3, []state.DeviceState{withPorts("a", "active"), withPorts("b", "active", "down")}, true, true, "b: `active_ports: 3` is expected, but 2 of 3 ports are active, port 2 is down."},
		{"one of several, which are not all cabled", 2, []state.DeviceState{withPorts("a", "active", "down"), withPorts("b", "down", "init")}, true, true, "b: `active_ports: 2` is expected, but 1 of 4 ports are active, port 1 is down, port 2 is init."},
		{"it is not known which", 3, []state.DeviceState{withPorts("a", "active", "down"), withPorts("b", "active", "down")}, true, true, ": `active_ports: 3` is expected, but 2 of 4 ports are active, a port 2 is down, b port 2 is down."},
		{"a device that is missing", 2, []state.DeviceState{withPorts("a", "active")}, true, true, ": `active_ports: 2` is expected, but 1 of 1 port is active."},
		{"no device", 2, nil, true, true, ": `active_ports: 2` is expected, but 0 of 0 ports are active."},
		{"a device that vanished", 2, []state.DeviceState{withPorts("a", "active"), gone}, true, true, ""},
		{"one unknown device", 1, []state.DeviceState{blind}, true, true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := once()
			c.Expect = expect.Rules{{Device: ".*", ActivePorts: &tc.expect}}
			h := health.New(c, health.History{}).Evaluate(snapshot(tc.devices...))
			if got := h.Fails(health.SeverityWarning, apitest.Now()); got != tc.warning {
				t.Errorf("from warning on: %v", got)
			}
			if got := h.Fails(health.SeverityCritical, apitest.Now()); got != tc.critical || (h.At(apitest.Now()) == health.Critical) != tc.critical {
				t.Errorf("from critical on: %v, health %s", got, h.At(apitest.Now()))
			}
			var found []string
			add := func(device string, all []health.Finding) {
				for _, f := range all {
					if f.Kind == health.FindingUnexpected && f.Severity == health.SeverityCritical {
						found = append(found, device+": "+f.Message)
					}
				}
			}
			add("", h.Findings)
			for _, d := range h.Devices {
				add(d.State.Name, d.Findings)
			}
			if got := strings.Join(found, " "); got != tc.found {
				t.Errorf("got %q, want %q", got, tc.found)
			}
		})
	}
}

// TestNoDevice verifies when it is a problem that there is no device.
func TestNoDevice(t *testing.T) {
	for _, tc := range []struct {
		name    string
		expect  expect.Rules
		limit   *int64
		health  health.Health
		problem bool
	}{
		{"nothing is expected", nil, nil, health.Warning, true},
		{"some are", expect.Rules{{Devices: new(1)}}, nil, health.Critical, false},
		{"ports are", expect.Rules{{ActivePorts: new(1)}}, nil, health.Critical, false},
		{"none is", expect.Rules{{Devices: new(0)}}, nil, health.OK, false},
		{"memory is", expect.Rules{{Memlock: "unlimited"}}, new(int64(65536)), health.Warning, true},
	} {
		c := once()
		c.Expect, c.Memlock = tc.expect, tc.limit
		h := health.New(c, health.History{}).Evaluate(&state.Snapshot{})
		if got := h.At(apitest.Now()); got != tc.health || (h.Problem != nil) != tc.problem {
			t.Errorf("%s: %s, problem %+v", tc.name, got, h.Problem)
		}
		// Nothing is judged that could not be listed, or not yet.
		for _, s := range []*state.Snapshot{{DiscoveryError: "EPERM"}, {StartError: "EMFILE"}} {
			if h := health.New(c, health.History{}).Evaluate(s); len(h.Findings) > 0 {
				t.Errorf("%s, %+v: %+v", tc.name, s, h.Findings)
			}
		}
		c.Once = false
		if h := health.New(c, health.History{}).Evaluate(&state.Snapshot{}); len(h.Findings) > 0 {
			t.Errorf("%s, not ready: %+v", tc.name, h.Findings)
		}
	}
}
