package health_test

import (
	"reflect"
	"testing"
	"time"

	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// since is when the only finding of the only device was seen first, as an age; -1 if there is none.
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
		{Device: "a", Kind: health.FindingPortDown, Subject: "port 1"}: {First: apitest.Now(), Last: before.at},
		{Device: "b", Kind: health.FindingPortDown, Subject: "port 1"}: {First: apitest.Now(), Last: before.at},
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
		t.Errorf("before the contracts were judged: %v", past)
	}
	if got := h.has("a", broken("notify_any")).since(0); got != 135*time.Minute {
		t.Errorf("since %s", got)
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
