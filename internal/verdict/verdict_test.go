package verdict_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/health/expect"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

// node is a host of eight devices with a port each, an evaluator and a clock.
type node struct {
	at        time.Time
	config    health.Config
	evaluator *health.Evaluator
	snapshot  state.Snapshot
}

func newNode(change func(*health.Config)) *node {
	n := &node{at: apitest.Now(), snapshot: state.Snapshot{Provider: "libibverbs", Ready: true}, config: health.Default()}
	n.config.Now = func() time.Time { return n.at }
	n.config.StaleAfter = map[state.Kind]time.Duration{state.KindProbe: time.Hour}
	if change != nil {
		change(&n.config)
	}
	n.evaluator = health.New(n.config, health.History{})
	for i := range 8 {
		d := apitest.Device(fmt.Sprintf("mlx5_%d", i), 1)
		info := *d.Last.Info
		info.Ports = []state.Port{{Number: 1, State: "active", LinkLayer: "InfiniBand"}}
		d.Info = &info
		d.Last = &state.Run{Started: n.at, Outcome: state.OutcomeOK, Info: &info}
		d.Full, d.Contracts, d.Resources, d.Hardware = d.Last, nil, nil, nil
		n.snapshot.Devices = append(n.snapshot.Devices, d)
	}
	return n
}

// port sets the state of a device's port.
func (n *node) port(device int, is string) {
	info := *n.snapshot.Devices[device].Last.Info
	info.Ports = []state.Port{{Number: 1, State: is, LinkLayer: "InfiniBand"}}
	run := *n.snapshot.Devices[device].Last
	run.Info = &info
	n.snapshot.Devices[device].Last = &run
}

// probed gives all devices a recent run.
func (n *node) probed() {
	for i := range n.snapshot.Devices {
		run := *n.snapshot.Devices[i].Last
		run.Started = n.at
		n.snapshot.Devices[i].Last = &run
	}
}

func (n *node) vanish(devices ...int) {
	for _, i := range devices {
		d := &n.snapshot.Devices[i]
		d.Present, d.Vanished = false, n.at
	}
}

// verdict evaluates a copy of the state, as the supervisor hands it out.
func (n *node) verdict(t *testing.T, query string) verdict.Verdict {
	t.Helper()
	values := running.Must(url.ParseQuery(query))(t)
	options := running.Must(verdict.Parse(values))(t)
	s := n.snapshot
	s.Devices = slices.Clone(s.Devices)
	found := verdict.Of(n.evaluator.Evaluate(&s), options, n.at)
	if !found.Valid() {
		t.Errorf("not valid: %+v", found)
	}
	return found
}

func expecting(devices, ports int) func(*health.Config) {
	return func(c *health.Config) {
		c.Expect = expect.Rules{{Devices: &devices, ActivePorts: &ports}}
	}
}

// TestStates records status and line of the states of a host.
func TestStates(t *testing.T) {
	const now = "for=0s"
	r := golden.Record(t)
	for _, c := range []struct {
		name, query string
		config      func(*health.Config)
		change      func(n *node)
	}{
		{"healthy", "", nil, func(*node) {}},
		{"healthy, as expected", "expect_devices=8&expect_active_ports=8", nil, func(*node) {}},
		{"a port that was active is down", now, nil, func(n *node) { n.port(3, "down") }},
		{"the same, and warnings count", now + "&fail_on=warning", nil, func(n *node) { n.port(3, "down") }},
		{"the same, accepted", now + "&fail_on=warning&accept=port_down", nil, func(n *node) { n.port(3, "down") }},
		{"the same, one of its subjects accepted", now + "&fail_on=warning&accept=port_down/port+2", nil, func(n *node) { n.port(3, "down") }},
		{"the same, and eight are expected", now + "&expect_active_ports=8", nil, func(n *node) { n.port(3, "down") }},
		{"the same, and seven are expected", now + "&expect_active_ports=7", nil, func(n *node) { n.port(3, "down") }},
		{"the same, and the configuration expects eight", now, expecting(8, 8), func(n *node) { n.port(3, "down") }},
		{"two ports, the first device is named", now + "&expect_active_ports=8", nil, func(n *node) { n.port(5, "down"); n.port(3, "down") }},
		{"all ports", now, nil, func(n *node) {
			for i := range 8 {
				n.port(i, "down")
			}
		}},
		{"one device vanished", now, nil, func(n *node) { n.vanish(2) }},
		{"one device vanished, the configuration expects eight", now, expecting(8, 8), func(n *node) { n.vanish(2) }},
		{"one device vanished, and eight ports are expected", now + "&expect_active_ports=8", nil, func(n *node) { n.vanish(2) }},
		{"a hung device is worse than a port", now + "&fail_on=warning", nil, func(n *node) {
			n.port(3, "down")
			n.snapshot.Devices[6].Stuck = &state.Stuck{PID: 81433, Verb: "ibv_create_cq", Since: n.at}
		}},
		{"one device was never there", now + "&expect_devices=8", nil, func(n *node) { n.snapshot.Devices = n.snapshot.Devices[:7] }},
		{"the same, and its port is missing", now + "&expect_active_ports=8", nil, func(n *node) { n.snapshot.Devices = n.snapshot.Devices[:7] }},
		{"no device", now, nil, func(n *node) { n.snapshot.Devices = nil }},
		{"no device, eight are expected", now + "&expect_devices=8&expect_active_ports=8", nil, func(n *node) { n.snapshot.Devices = nil }},
		{"no device, the configuration expects eight", now, expecting(8, 8), func(n *node) { n.snapshot.Devices = nil }},
		{"no device, and none is expected", now + "&expect_devices=0", nil, func(n *node) { n.snapshot.Devices = nil }},
		{"no device, and the configuration expects none", now, expecting(0, 0), func(n *node) { n.snapshot.Devices = nil }},
		{"no device yet", "", nil, func(n *node) { n.snapshot.Devices, n.snapshot.Ready = nil, false }},
		{"not probed yet", "", nil, func(n *node) { n.snapshot.Devices[0].Last, n.snapshot.Ready = nil, false }},
		{"not listed", "", nil, func(n *node) { n.snapshot.DiscoveryError = "EACCES" }},
		{"no child starts", "", nil, func(n *node) { n.snapshot.StartError = "EAGAIN" }},
		{"one device is stale", "", nil, func(n *node) {
			n.snapshot.Devices[0].Last = &state.Run{Started: n.at.Add(-2 * time.Hour), Outcome: state.OutcomeOK}
		}},
		{"one device is stale, and warnings count", now + "&fail_on=warning", nil, func(n *node) {
			n.snapshot.Devices[0].Last = &state.Run{Started: n.at.Add(-2 * time.Hour), Outcome: state.OutcomeOK}
		}},
		{"all devices vanished, which is accepted", now + "&accept=device_vanished", nil, func(n *node) {
			for i := range 8 {
				n.vanish(i)
			}
		}},
		{"a port went down just now, and flags and configuration expect eight", "expect_active_ports=8&for=2m", expecting(8, 8), func(n *node) {
			n.at = n.at.Add(5 * time.Minute)
			n.port(3, "down")
		}},
		{"all devices are stale", "", nil, func(n *node) { n.at = n.at.Add(2 * time.Hour) }},
	} {
		n := newNode(c.config)
		n.verdict(t, "") // The ports were active.
		c.change(n)
		found := n.verdict(t, c.query)
		again := n.verdict(t, c.query)
		n.at = n.at.Add(31 * time.Second)
		if later := n.verdict(t, c.query); found.Line != again.Line || found.Line != later.Line {
			t.Errorf("%s: the line changes: %q, %q, %q", c.name, found.Line, again.Line, later.Line)
		}
		b := running.Must(json.Marshal(found))(t)
		r.Add(c.name+around(" ?", c.query), fmt.Sprint(found.Status, " ", found.Line), string(b))
	}
	n := newNode(nil)
	if v := verdict.Of(nil, verdict.Default(), n.at); v.Status != verdict.Unknown {
		t.Errorf("nothing known: %+v", v)
	}
}

func around(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

// TestKinds records the line of each kind of finding with each of its remedies.
func TestKinds(t *testing.T) {
	r := golden.Record(t)
	shorts := make(map[string]health.Kind)
	values := strings.NewReplacer("{in}", " in ibv_create_qp", "{", "", "}", "")
	for _, e := range health.Catalogue() {
		for _, severity := range e.Severities {
			f := health.Finding{Kind: e.Kind, Severity: severity, Harm: e.Harms[0], Remedy: e.Remedy, Subject: "port 1", Port: 1, Reason: values.Replace(e.Reason)}
			s := state.Snapshot{Ready: true, Devices: []state.DeviceState{apitest.Device("mlx5_3", 1)}}
			h := health.NewFinder(health.Config{}, health.History{}, func(*state.DeviceState) []health.Finding { return []health.Finding{f} }).Evaluate(&s)
			v := verdict.Of(h, verdict.Options{FailOn: health.SeverityWarning, Devices: -1, ActivePorts: -1}, apitest.Now())
			r.Add(strings.TrimSuffix(fmt.Sprintf("%s %s %s", e.Kind, severity, e.Case), " "), fmt.Sprint(v.Status, " ", v.Line))
			if v.Status == verdict.OK {
				continue
			}
			word, _, _ := strings.Cut(strings.TrimPrefix(v.Line, "rdma "), " ")
			if known, ok := shorts[word]; ok && known != e.Kind || len("rdma "+word) > 20 || v.Kind != e.Kind {
				t.Errorf("%s: %s: the word is that of %s, or not within 20 characters", e.Kind, v.Line, known)
			}
			shorts[word] = e.Kind
		}
	}
}

// TestLine verifies that no name and no text breaks a line, and that names that differ at the end stay different.
func TestLine(t *testing.T) {
	long := strings.Repeat("mlx5_abcdefghij", 5)[:62]
	for _, kind := range append(health.Kinds(), verdict.KindUnreachable, verdict.KindRefused, "no_device") {
		for _, name := range []string{
			"", "mlx5_3/1", long + "1/255", "$(reboot)", "`id`", "a\nb", "a;b; do=reboot", "\x1b[2J\x00", "ä\xff", `"'\`, "a: b", strings.Repeat("ü", 63), "--help", "%s%n",
		} {
			for _, remedy := range []health.Remedy{health.RemedyNone, health.RemedyConfiguration} {
				line := verdict.Line(kind, name, "7 of 8 "+name, remedy)
				body, end, _ := strings.Cut(line, "; do=")
				odd := strings.ContainsFunc(body+end, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune("\"'`$;\\<>|&*?", r) })
				if len(line) > 80 || odd || end != string(remedy) || !strings.HasPrefix(line, "rdma ") || strings.Count(line, ": ") < 1 {
					t.Errorf("%q (%d bytes) for %q", line, len(line), name)
				}
				if v := (verdict.Verdict{Line: line}); !v.Valid() {
					t.Errorf("not valid: %q", line)
				}
			}
		}
	}
	if got, want := verdict.Line(health.FindingRunAborted, "mlx5_3", "the run was killed at its deadline in ibv_create_qp", "driver"),
		"rdma run_aborted mlx5_3: the run was killed at its deadline; do=driver"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	seen := make(map[string]bool)
	for i := range 8 {
		seen[verdict.Line(health.FindingPortDown, fmt.Sprintf("%s%d/1", long, i), "7 of 8 ports active", health.RemedyNetwork)] = true
	}
	if len(seen) != 8 {
		t.Errorf("long names look the same: %v", seen)
	}
	for _, line := range []string{"", "rdma ok\n", "ok", "rdma " + strings.Repeat("x", 80), "rdma a; b", "rdma $(x)", "rdma a; do=b; do=c"} {
		if v := (verdict.Verdict{Line: line}); v.Valid() {
			t.Errorf("valid: %q", line)
		}
	}
	if v := (verdict.Verdict{Status: 3, Line: "rdma ok: x"}); v.Valid() {
		t.Error("a status of 3 is valid")
	}
}

// TestHysteresis verifies when a finding begins to count, and how long it does after its end. Each case moves the
// clock and has the port of mlx5_3 up or down.
func TestHysteresis(t *testing.T) {
	const (
		expected = "expect_active_ports=8"
		up       = true
		down     = false
		unknown  = -1
	)
	type step struct {
		after time.Duration // Since the step before.
		up    bool
		want  int
		good  time.Duration // For how long it has been good.
	}
	flapping := []step{{5 * time.Minute, up, 0, unknown}}
	for i := range 30 { // It is down at 20 s, 60 s, 100 s, …, and up between these.
		want, good := 0, time.Duration(unknown)
		if i >= 3 { // It was down first two minutes before.
			want, good = 1, 0
		}
		flapping = append(flapping, step{20 * time.Second, down, want, unknown}, step{20 * time.Second, up, want, good})
	}
	for name, c := range map[string]struct {
		query string
		steps []step
	}{
		"healthy":     {expected, []step{{0, up, 0, unknown}, {time.Hour, up, 0, unknown}}},
		"brief":       {expected, []step{{5 * time.Minute, up, 0, unknown}, {1, down, 0, unknown}, {119 * time.Second, down, 0, unknown}, {0, up, 0, unknown}}},
		"long enough": {expected, []step{{5 * time.Minute, up, 0, unknown}, {1, down, 0, unknown}, {2 * time.Minute, down, 1, unknown}, {time.Hour, down, 1, unknown}}},
		"mended": {expected, []step{
			{5 * time.Minute, up, 0, unknown},
			{1, down, 0, unknown},
			{10 * time.Minute, down, 1, unknown},
			{time.Second, up, 1, 0},
			{299 * time.Second, up, 1, 299 * time.Second},
			{time.Second, up, 0, unknown},
			{4 * time.Minute, up, 0, unknown},
			{time.Minute, up, 0, unknown},
		}},
		"down again while held": {expected, []step{
			{5 * time.Minute, up, 0, unknown},
			{1, down, 0, unknown},
			{3 * time.Minute, down, 1, unknown},
			{1, up, 1, 0},
			{4 * time.Minute, down, 1, unknown},
			{1, up, 1, 0},
			{299 * time.Second, up, 1, 299 * time.Second},
			{time.Second, up, 0, unknown},
		}},
		"flapping":       {expected, flapping},
		"no hysteresis":  {expected + "&for=0s&clear_after=0s", []step{{5 * time.Minute, up, 0, unknown}, {1, down, 1, unknown}, {1, up, 0, unknown}, {1, down, 1, unknown}}},
		"a warning":      {"fail_on=warning", []step{{5 * time.Minute, up, 0, unknown}, {1, down, 0, unknown}, {2 * time.Minute, down, 1, unknown}, {1, up, 1, 0}, {5 * time.Minute, up, 0, 5 * time.Minute}}},
		"does not count": {"", []step{{5 * time.Minute, up, 0, unknown}, {1, down, 0, unknown}, {time.Hour, down, 0, unknown}, {1, up, 0, unknown}}},
		"from the start": {expected, []step{{0, down, 2, unknown}, {119 * time.Second, down, 2, unknown}, {time.Second, down, 1, unknown}, {1, up, 1, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(nil)
			for i, s := range c.steps {
				n.at = n.at.Add(s.after)
				n.port(3, map[bool]string{up: "active", down: "down"}[s.up])
				n.probed()
				v := n.verdict(t, c.query)
				good := time.Duration(unknown)
				if !v.GoodSince.IsZero() {
					good = n.at.Sub(v.GoodSince)
				}
				if v.Status != s.want || good != s.good {
					t.Errorf("step %d, %+v: status %d, good for %s: %s", i, s, v.Status, good, v.Line)
				}
			}
		})
	}
}

// TestRestart verifies that an exporter that remembers holds a verdict over its restart, and that one that does not
// has none until it has looked for long enough.
func TestRestart(t *testing.T) {
	for _, remembers := range []bool{true, false} {
		n := newNode(nil)
		n.verdict(t, "")
		n.port(3, "down")
		n.verdict(t, "")
		n.at = n.at.Add(3 * time.Minute)
		past := n.evaluator.History()
		if !remembers {
			past = health.History{}
		}
		n.at = n.at.Add(time.Minute)
		n.evaluator = health.New(n.config, past)
		n.snapshot.Ready = false
		probed := n.snapshot.Devices[3].Last
		n.snapshot.Devices[3].Last = nil
		want := map[bool][3]int{true: {1, 1, 0}, false: {2, 2, 0}}[remembers]
		for i, next := range []func(){
			func() {},
			func() { n.snapshot.Devices[3].Last, n.snapshot.Ready = probed, true },
			func() {
				n.port(3, "active")
				n.at = n.at.Add(time.Second)
				n.verdict(t, "")
				n.at = n.at.Add(5 * time.Minute)
				n.probed()
			},
		} {
			next()
			if v := n.verdict(t, "expect_active_ports=8"); v.Status != want[i] {
				t.Errorf("remembers %t, step %d: status %d, want %d: %s", remembers, i, v.Status, want[i], v.Line)
			}
		}
	}
}
