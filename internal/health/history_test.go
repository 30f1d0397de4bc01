package health_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// since is when the only finding of the only device was seen first, as an age; -1 means no finding.
func (h *hosted) since(d time.Duration) time.Duration {
	host := h.after(d)
	if len(host.Devices[0].Findings) == 0 {
		return -1
	}
	return h.at.Sub(host.Devices[0].Findings[0].Since)
}

func TestSince(t *testing.T) {
	h := newHosted(health.History{})
	for i, step := range []struct {
		findings []health.Finding
		later    time.Duration
		want     time.Duration
	}{
		{[]health.Finding{port("1")}, 0, 0},
		{[]health.Finding{port("1")}, time.Hour, time.Hour},
		{nil, time.Minute, -1},
		{[]health.Finding{port("1")}, 9 * time.Minute, 70 * time.Minute},
		{[]health.Finding{port("2")}, time.Minute, 0},
		{nil, time.Hour, -1},
		{[]health.Finding{port("2")}, 10 * time.Minute, 0},
		// The clock was set back.
		{[]health.Finding{port("2")}, -time.Hour, 0},
	} {
		if got := h.has("a", step.findings...).since(step.later); got != step.want {
			t.Errorf("step %d: since %s, want %s", i, got, step.want)
		}
	}
}

// TestRenamed verifies that findings follow the node GUID of a device to its new name.
func TestRenamed(t *testing.T) {
	const guid, none = "0002:c903:0001:0001", "0000:0000:0000:0000"
	for _, tc := range []struct {
		name, was, is string
		restart, twin bool
		want          time.Duration
	}{
		{"renamed", guid, guid, false, false, 2 * time.Minute},
		{"renamed while the exporter was stopped", guid, guid, true, false, 2 * time.Minute},
		{"another device", guid, "0002:c903:0001:0002", false, false, 0},
		{"devices without a GUID", none, none, false, false, 0},
		{"two devices of the same GUID, of which one vanishes", guid, guid, false, true, time.Minute},
	} {
		h := newHosted(health.History{})
		add := func(device, guid string) {
			info := *h.has(device, port("1")).snapshot.Devices[0].Info
			info.NodeGUID, h.snapshot.Devices[0].Info = guid, &info
		}
		add("a", tc.was)
		if h.after(0); tc.twin {
			add("b", tc.is)
		}
		add("a", none) // It cannot be opened.
		h.after(time.Minute)
		if tc.restart {
			next := newHosted(h.evaluator.History())
			next.at, h = h.at, next
		}
		h.snapshot = nil
		add("b", tc.is)
		if got := h.since(time.Minute); got != tc.want {
			t.Errorf("%s: since %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestLeftOut(t *testing.T) {
	at := apitest.Now()
	c := health.Default()
	c.Now = func() time.Time { return at }
	evaluator := health.New(c, health.History{})
	last := func(owners int) health.Finding {
		d := device(state.Inventory{})
		for n := range owners {
			d.Resources.Inventory.Owners = append(d.Resources.Inventory.Owners, pinning(n+1, 99, 0, 100))
		}
		found := evaluator.Evaluate(&state.Snapshot{Devices: []state.DeviceState{*d}}).Devices[0].Findings
		return found[len(found)-1]
	}
	first := last(20)
	at = at.Add(time.Minute)
	if again := last(30); first.Subject == again.Subject || !again.Since.Equal(first.Since) || !again.LastSeen.Equal(at) {
		t.Errorf("%q since %s is %q since %s", first.Subject, first.Since, again.Subject, again.Since)
	}
}

// TestPast verifies that a history survives a restart, and that a finding which was absent stays absent.
func TestPast(t *testing.T) {
	before := newHosted(health.History{}).has("a", port("1")).has("b", port("1"))
	before.after(0)
	before.has("b").after(time.Hour)
	past := before.evaluator.History()
	want := map[health.FindingKey]health.Seen{
		{Device: "a", Kind: health.FindingPortDown, Subject: "port 1"}: {First: apitest.Now(), Last: before.at, Severity: health.SeverityWarning},
		{Device: "b", Kind: health.FindingPortDown, Subject: "port 1"}: {First: apitest.Now(), Last: before.at, Severity: health.SeverityWarning},
	}
	if !reflect.DeepEqual(past.Findings, want) {
		t.Errorf("remembered: %v", past.Findings)
	}
	before.after(9 * time.Minute)
	past = before.evaluator.History()
	past.Ports = map[string][]int{"a": {1, 2}}

	for _, tt := range []struct {
		away, a, b time.Duration
	}{
		// It is gone for nine minutes, and then there is no exporter.
		{24 * time.Hour, 25*time.Hour + 9*time.Minute, 25*time.Hour + 9*time.Minute},
		// A clock that was set back by a day knows only how long it was gone.
		{-24 * time.Hour, 0, 9 * time.Minute},
		{8 * 24 * time.Hour, 0, 0},
	} {
		h := newHosted(health.History{})
		h.at = before.at.Add(tt.away)
		h.evaluator = health.NewFinder(h.config, past, func(d *state.DeviceState) []health.Finding { return h.found[d.Name] })
		if again := h.evaluator.History(); !reflect.DeepEqual(again.Ports, past.Ports) {
			t.Errorf("ports %v", again.Ports)
		}
		host := h.has("b", port("1")).has("a", port("1")).after(0)
		for i, want := range []time.Duration{tt.a, tt.b} {
			if got := h.at.Sub(host.Devices[i].Findings[0].Since); got != want {
				t.Errorf("after %s, device %d: %s, want %s", tt.away, i, got, want)
			}
		}
	}
	before.after(time.Minute)
	if past := before.evaluator.History(); len(past.Findings) != 1 {
		t.Errorf("remembered after ten minutes: %v", past.Findings)
	}
}

// TestPastOfTheUnknown verifies that no finding disappears while it cannot be evaluated.
func TestPastOfTheUnknown(t *testing.T) {
	contract := health.FindingKey{Device: "a", Kind: health.FindingContract, Subject: "notify_any"}
	h := newHosted(health.History{Findings: map[health.FindingKey]health.Seen{
		contract: {First: apitest.Now().Add(-time.Hour), Last: apitest.Now()},
		{Device: "a", Kind: health.FindingPortDown, Subject: "port 1"}: {First: apitest.Now().Add(-time.Hour), Last: apitest.Now()},
	}})
	h.snapshot = nil
	if h.after(time.Hour); len(h.evaluator.History().Findings) != 2 {
		t.Errorf("before the devices were listed: %v", h.evaluator.History())
	}
	for range 3 {
		h.has("a").snapshot.Devices[0].Contracts = nil
		h.after(5 * time.Minute)
	}
	if past := h.evaluator.History(); len(past.Findings) != 1 || past.Findings[contract].First.IsZero() {
		t.Errorf("before the contracts were checked: %v", past)
	}
	if got := h.has("a", broken("notify_any")).since(0); got != 135*time.Minute {
		t.Errorf("since %s", got)
	}
}

// TestPastOfNever verifies that findings of runs that have been switched off end.
func TestPastOfNever(t *testing.T) {
	for _, kind := range []health.Kind{health.FindingContract, health.FindingOrphaned, health.FindingFlapping, health.FindingSlowPort} {
		at := apitest.Now()
		key := health.FindingKey{Device: "a", Kind: kind, Subject: "x"}
		for _, off := range []bool{false, true} {
			c := health.Config{Now: func() time.Time { return at }}
			if off {
				c.Never = []state.Kind{state.KindContract, state.KindInventory, state.KindHardware}
			}
			e := health.New(c, health.History{Findings: map[health.FindingKey]health.Seen{key: {First: at, Last: at}}})
			e.Evaluate(&state.Snapshot{Devices: []state.DeviceState{{Name: "a", Present: true, Last: &state.Run{Outcome: state.OutcomeOK, Started: at}}}})
			at = at.Add(time.Hour)
			if _, left := e.History().Findings[key]; left == off {
				t.Errorf("%s is remembered: %t; its runs are off: %t", kind, left, off)
			}
		}
	}
}

func TestOnceSince(t *testing.T) {
	c := health.Config{Once: true, Now: apitest.Now}
	past := health.History{Findings: map[health.FindingKey]health.Seen{
		{Device: "mlx5_0", Kind: health.FindingPortDown, Subject: "port 1"}: {First: apitest.Now().Add(-time.Hour), Last: apitest.Now().Add(-time.Second)},
	}}
	evaluator := health.NewFinder(c, past, func(*state.DeviceState) []health.Finding { return []health.Finding{port("1"), port("2")} })
	found := evaluator.Evaluate(&state.Snapshot{Devices: []state.DeviceState{apitest.Device("mlx5_0", 4)}}).Devices[0].Findings
	if !found[0].Since.Equal(apitest.Now().Add(-time.Hour)) || !found[1].Since.IsZero() {
		t.Errorf("since %s and %s", found[0].Since, found[1].Since)
	}
}

func TestPastLinks(t *testing.T) {
	at := apitest.Now()
	c := health.Default()
	c.Now = func() time.Time { return at }
	links := func(downs uint64) []state.Link { return []state.Link{{Port: 1, Downs: downs}} }
	of := func(name string, links ...state.Link) state.DeviceState {
		latest := &state.Hardware{Identity: state.Adapter{PCI: "0000:3b:00.0"}}
		return state.DeviceState{Name: name, Present: true, Hardware: &state.HardwareState{Latest: latest, Links: links}}
	}
	evaluator := health.New(c, health.History{Links: map[string]state.LinkHistory{
		"a": {Links: links(1), BoardID: "MT_1", Away: at}, "b": {Links: links(2)}, "c": {Links: links(3), Away: at.Add(time.Hour)},
	}})
	a := state.LinkHistory{Links: links(5), PCI: "0000:3b:00.0", BoardID: "MT_1"}
	for _, step := range []struct {
		what  string
		later time.Duration
		s     *state.Snapshot
		want  map[string]state.LinkHistory
	}{
		{"the devices are not known yet", 0, &state.Snapshot{}, map[string]state.LinkHistory{
			"a": {Links: links(1), BoardID: "MT_1", Away: at}, "b": {Links: links(2)}, "c": {Links: links(3), Away: at.Add(time.Hour)},
		}},
		{"one is there", 0, &state.Snapshot{Ready: true, Devices: []state.DeviceState{of("a", links(5)...), of("d")}}, map[string]state.LinkHistory{
			"a": a, "b": {Links: links(2), Away: at}, "c": {Links: links(3), Away: at},
		}},
		{"they cannot be listed", time.Hour, &state.Snapshot{Ready: true, DiscoveryError: "no"}, map[string]state.LinkHistory{
			"a": a, "b": {Links: links(2), Away: at}, "c": {Links: links(3), Away: at},
		}},
		{"one only has a child that does not end", time.Hour, &state.Snapshot{Ready: true, Devices: []state.DeviceState{{Name: "a"}}}, map[string]state.LinkHistory{
			"a": {Links: a.Links, PCI: a.PCI, BoardID: a.BoardID, Away: at.Add(2 * time.Hour)}, "b": {Links: links(2), Away: at}, "c": {Links: links(3), Away: at},
		}},
		{"one is back and not read yet", state.MaxAway - time.Hour, &state.Snapshot{Ready: true, Devices: []state.DeviceState{{Name: "b", Present: true}}}, map[string]state.LinkHistory{
			"a": {Links: a.Links, PCI: a.PCI, BoardID: a.BoardID, Away: at.Add(2 * time.Hour)}, "b": {Links: links(2), Away: at},
		}},
	} {
		at = at.Add(step.later)
		evaluator.Evaluate(step.s)
		if got := evaluator.History().Links; !reflect.DeepEqual(got, step.want) {
			t.Errorf("%s: %+v are remembered, want %+v", step.what, got, step.want)
		}
	}
}

// TestContextHistories: of objects without an owner it is told whose they were when that was last seen, after a
// restart too, and what was left is remembered for a day.
func TestWitnesses(t *testing.T) {
	objects := []state.TypeCount{{Type: "qp", Objects: 3}}
	trainer := state.Owner{PID: 4711, Comm: "trainer", ContainerID: container, PodUID: pod, Objects: objects, Contexts: []uint32{5, 6}}
	look := func(evaluator *health.Evaluator, after time.Duration, i state.Inventory, leaked ...state.LeakedBy) *health.Device {
		i.Index, i.PIDsVisible = 1, true
		d := device(i)
		d.Resources.Taken = taken().Add(after)
		d.Resources.OrphanedSince, d.Resources.LeakedBy = taken().Add(-time.Hour), leaked
		return evaluator.Evaluate(&state.Snapshot{Ready: true, Devices: []state.DeviceState{*d}}).Devices[0]
	}
	says := func(d *health.Device) string {
		var all []string
		for _, f := range flat(d.Findings) {
			all = append(all, f.Message)
		}
		return strings.Join(all, " ")
	}
	orphaned := state.Inventory{Ownerless: objects, Orphans: []state.Orphan{{Context: 5, Objects: objects}, {Context: 9, Objects: []state.TypeCount{{Type: "pd", Objects: 1}}}}}

	evaluator := newEvaluator()
	if d := look(evaluator, 0, state.Inventory{Owners: []state.Owner{trainer}}); len(d.Leftover) != 0 {
		t.Errorf("left of what is in use: %+v", d.Leftover)
	}
	look(evaluator, time.Minute, state.Inventory{Owners: []state.Owner{trainer}})
	evaluator = health.New(health.Default(), evaluator.History())
	d := look(evaluator, 2*time.Minute, orphaned)
	if len(d.Leftover) != 2 || d.Leftover[0].PID != 4711 || d.Leftover[0].PodUID != pod || !d.Leftover[0].First.Equal(taken()) || !d.Leftover[0].Last.Equal(taken().Add(time.Minute)) ||
		!d.Leftover[0].LeftFirst.Equal(taken().Add(2*time.Minute)) || d.Leftover[1].PID != 0 || !d.Leftover[1].First.IsZero() {
		t.Errorf("left: %+v", d.Leftover)
	}
	const want = "They belonged to pid 4711 (trainer), container 3f2a1b2c3d4e, pod 0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0, seen from 2026-03-01 12:00:00 UTC to 2026-03-01 12:01:00 UTC (3 qp)."
	if got := says(d); !strings.Contains(got, want) {
		t.Errorf("the findings say %s", got)
	}
	d = look(evaluator, time.Hour, state.Inventory{})
	if len(d.Leftover) != 2 || !d.Leftover[0].LeftLast.Equal(taken().Add(2*time.Minute)) || strings.Contains(says(d), "They belonged to") {
		t.Errorf("gone: %+v; %s", d.Leftover, says(d))
	}
	// The context has a new owner.
	again := trainer
	again.PID, again.Contexts = 4712, []uint32{5}
	if d := look(evaluator, 2*time.Hour, state.Inventory{Owners: []state.Owner{again}}); len(d.Leftover) != 1 || d.Leftover[0].Context.ID != 9 {
		t.Errorf("in use again: %+v", d.Leftover)
	}
	if d := look(evaluator, 25*time.Hour, state.Inventory{}); len(d.Leftover) != 0 || len(evaluator.History().ContextHistories["rxe0"]) != 1 {
		t.Errorf("a day later: %+v, %+v", d.Leftover, evaluator.History().ContextHistories)
	}

	// A child of the exporter has left the objects.
	evaluator = newEvaluator()
	by := state.LeakedBy{Context: state.Context{Index: 1, ID: 5}, Kind: state.KindProbe, Started: taken(), Outcome: state.OutcomeTimeout, Verb: "ibv_destroy_cq", Objects: objects}
	d = look(evaluator, time.Minute, orphaned, by)
	if len(d.Leftover) != 2 || d.Leftover[0].Run != "probe run, timeout in ibv_destroy_cq" || strings.Contains(says(d), "They belonged to") {
		t.Errorf("left: %+v; %s", d.Leftover, says(d))
	}
	if got := says(look(evaluator, 2*time.Minute, orphaned)); !strings.Contains(got, "They belonged to a child of the exporter (probe run, timeout in ibv_destroy_cq)") {
		t.Errorf("the findings say %s", got)
	}

	// A host on which much ends is remembered to a bound, what was left first.
	var many state.Inventory
	for n := range uint32(1000) {
		many.Owners = append(many.Owners, state.Owner{PID: int(n + 1), Contexts: []uint32{100 + n}})
	}
	many.Orphans = orphaned.Orphans
	evaluator = newEvaluator()
	if d := look(evaluator, 0, many); len(d.Leftover) != 2 || len(evaluator.History().ContextHistories["rxe0"]) != health.MaxContextHistories {
		t.Errorf("%d are remembered, and %+v", len(evaluator.History().ContextHistories["rxe0"]), d.Leftover)
	}
	// Of another device of the same name nothing is known.
	other := orphaned
	evaluator = health.New(health.Default(), health.History{ContextHistories: map[string][]health.ContextHistory{"rxe0": {{Context: state.Context{Index: 2, ID: 5}, PID: 1, First: taken(), Last: taken()}}}})
	if d := look(evaluator, 0, other); d.Leftover[0].PID != 0 {
		t.Errorf("left: %+v", d.Leftover)
	}
}
