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
	"rdma_exporter/internal/state"
)

// finding returns an Evaluator with these findings by device name.
func finding(found map[string][]health.Finding) *health.Evaluator {
	return health.NewFinder(health.Config{StaleAfter: apitest.StaleAfter()}, health.History{}, func(d *state.DeviceState) []health.Finding { return found[d.Name] })
}

// changed returns a healthy device with one change.
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
	here, gone := state.DeviceState{Name: "a", Present: true}, state.DeviceState{Name: "b"}
	hung := state.DeviceState{Name: "c", Stuck: &state.Stuck{PID: 7}}
	h := health.New(once, health.History{}).Evaluate(&state.Snapshot{Devices: []state.DeviceState{here, gone, hung}})
	var got []string
	for _, d := range h.Devices {
		kinds := d.State.Name
		for _, f := range flat(d.Findings) {
			kinds += " " + string(f.Kind)
		}
		got = append(got, kinds)
	}
	if want := []string{"b device_unusable", "c stuck device_unusable", "a"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if is, headline := h.Devices[0].At(apitest.Now()); is != health.Critical || !strings.Contains(headline, "gone when it ended") {
		t.Errorf("%s: %s", is, headline)
	}
	if found := newEvaluator().Evaluate(&state.Snapshot{Devices: []state.DeviceState{gone}}).Devices[0].Findings; found != nil {
		t.Errorf("found %+v", found)
	}
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

// TestRank verifies the order of devices: by harm, then by severity. A run that failed without a finding is a
// degradation.
func TestRank(t *testing.T) {
	s, found := &state.Snapshot{Ready: true}, make(map[string][]health.Finding)
	for name, f := range map[string]health.Finding{
		"a": {Severity: health.SeverityWarning, Harm: health.HarmDegradation},
		"b": {Severity: health.SeverityWarning, Harm: health.HarmFailure},
		"c": {Severity: health.SeverityCritical, Harm: health.HarmFailure},
		"d": {Severity: health.SeverityWarning, Harm: health.HarmOutage},
	} {
		found[name] = []health.Finding{f}
		s.Devices = append(s.Devices, apitest.Device(name, 4))
	}
	s.Devices = append(s.Devices, changed(func(d *state.DeviceState) { d.Name, d.Last.Outcome = "e", state.OutcomeFailed }))
	var got []string
	for _, d := range finding(found).Evaluate(s).Devices {
		got = append(got, d.State.Name)
	}
	if want := []string{"d", "c", "b", "e", "a"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
