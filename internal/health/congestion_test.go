package health_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// traffic is a port whose counters are read every so often.
type traffic struct {
	evaluator *health.Evaluator
	read      time.Time
	counted   map[string]uint64
	members   []string
}

// after returns the findings of the port some time later. Its counters have grown since.
func (p *traffic) after(d time.Duration, grown map[string]uint64) []health.Finding {
	p.read = p.read.Add(d)
	s := adapter(func(h *state.HardwareState) { h.Read = p.read })
	port := &s.Hardware.Latest.Ports[0]
	port.Members = p.members
	for name, n := range grown {
		p.counted[name] += n
	}
	for name, value := range p.counted {
		group := state.GroupEthtool
		switch name {
		case "port_xmit_packets":
			group = state.GroupPort
		case "rp_cnp_handled":
			group = state.GroupHardware
		}
		port.Counters = append(port.Counters, state.Counter{Group: group, Name: name, Value: value})
	}
	found := p.evaluator.Evaluate(snapshot(*s)).Devices[0].Findings
	return slices.DeleteFunc(found, func(f health.Finding) bool { return f.Kind != health.FindingCongested })
}

func newTraffic(names ...string) *traffic {
	p := &traffic{evaluator: health.New(health.Default(), health.History{}), read: taken(), counted: make(map[string]uint64)}
	for _, name := range names {
		p.counted[name] = 1e6
	}
	p.after(0, nil)
	return p
}

// congested returns the findings of a port whose counters grow in ten minutes.
func congested(grown map[string]uint64) []health.Finding {
	var names []string
	for name := range grown {
		names = append(names, name)
	}
	return newTraffic(names...).after(10*time.Minute, grown)
}

func TestPaused(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		grown      map[string]uint64
	}{
		{"not at all", "", map[string]uint64{"rx_prio3_pause_duration": 0}},
		{"nine in a thousand", "", map[string]uint64{"rx_prio3_pause_duration": 5_999_999}},
		{
			"one in a hundred", "info port 1: In the 10 min up to 2026-03-01 12:10:00 UTC priority 3 of port 1 was paused for 1 % of the time.",
			map[string]uint64{"rx_prio3_pause_duration": 6e6},
		},
		{
			"two priorities", "warning port 1: In the 10 min up to 2026-03-01 12:10:00 UTC priority 4 of port 1 was paused for 50 % of the time.",
			map[string]uint64{"rx_prio3_pause_duration": 60e6, "rx_prio4_pause_duration": 300e6},
		},
		{"the other side is paused", "", map[string]uint64{"tx_prio3_pause_duration": 300e6}},
		{"no counter", "", nil},
	} {
		got := ""
		for _, f := range congested(tc.grown) {
			got += fmt.Sprintf("%s %s: %s", f.Severity, f.Subject, f.Message)
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestPausedBetween verifies that readings close to each other, a reset, a counter that is new and a gap of a day
// say nothing.
func TestPausedBetween(t *testing.T) {
	const duration = "rx_prio3_pause_duration"
	p := newTraffic(duration)
	paused := map[string]uint64{duration: 300e6}
	if found := p.after(4*time.Minute, paused); len(found) > 0 {
		t.Errorf("after four minutes: %v", found)
	}
	if found := p.after(time.Minute, nil); len(found) != 1 {
		t.Errorf("after five minutes: %v", found)
	}
	if found := p.after(time.Minute, nil); len(found) != 1 {
		t.Errorf("a minute later it is gone: %v", found)
	}
	p.counted[duration] = 0
	if found := p.after(5*time.Minute, nil); len(found) > 0 {
		t.Errorf("after a reset: %v", found)
	}
	if found := p.after(25*time.Hour, map[string]uint64{duration: 1 << 40}); len(found) > 0 {
		t.Errorf("after a day: %v", found)
	}
	if found := p.after(-time.Hour, nil); len(found) > 0 {
		t.Errorf("when the clock was set back: %v", found)
	}
	if found := p.after(5*time.Minute, map[string]uint64{"rx_prio5_pause_duration": 300e6}); len(found) > 0 {
		t.Errorf("of a counter that is new: %v", found)
	}
}

func TestCNPs(t *testing.T) {
	const packets, cnps = "port_xmit_packets", "rp_cnp_handled"
	p := newTraffic(packets, cnps)
	step := func(n uint64) []health.Finding {
		return p.after(10*time.Minute, map[string]uint64{packets: 1e6, cnps: n})
	}
	if found := step(0); len(found) > 0 {
		t.Errorf("none: %v", found)
	}
	if found := step(1e5); len(found) > 0 {
		t.Errorf("many, of a port that is not known for long: %v", found)
	}
	for range 200 {
		if found := step(1000); len(found) > 0 {
			t.Errorf("as usual: %v", found)
		}
	}
	if found := step(8000); len(found) > 0 {
		t.Errorf("eight times the usual: %v", found)
	}
	found := step(20000)
	if len(found) != 1 || found[0].Severity != health.SeverityInfo {
		t.Fatalf("twenty times the usual: %v", found)
	}
	if got, want := found[0].Message, "In the 10 min up to 2026-03-02 22:00:00 UTC port 1 got 20 CNPs for a thousand packets sent, usually 1.6."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if found := step(1000); len(found) > 0 {
		t.Errorf("as usual again: %v", found)
	}
}

// TestCNPsAfterIdleTime verifies that time without traffic is not what is usual.
func TestCNPsAfterIdleTime(t *testing.T) {
	const packets, cnps = "port_xmit_packets", "rp_cnp_handled"
	p := newTraffic(packets, cnps)
	for range 144 {
		p.after(10*time.Minute, map[string]uint64{packets: 10})
	}
	if found := p.after(10*time.Minute, map[string]uint64{packets: 100, cnps: 50}); len(found) > 0 {
		t.Errorf("hardly any packets: %v", found)
	}
	for range 100 {
		if found := p.after(10*time.Minute, map[string]uint64{packets: 1e6, cnps: 1500}); len(found) > 0 {
			t.Fatalf("the usual, after a day without traffic: %v", found)
		}
	}
}

// TestPausedOfBonds verifies that the share of a bond is the mean of its members, and that one that joins
// brings no pauses of its past.
func TestPausedOfBonds(t *testing.T) {
	const duration = "rx_prio3_pause_duration"
	p := newTraffic(duration)
	p.members = []string{"eth2", "eth3"}
	p.after(10*time.Minute, nil)
	found := p.after(10*time.Minute, map[string]uint64{duration: 60e6})
	if len(found) != 1 || !strings.Contains(found[0].Message, "paused for 5 % of the time") {
		t.Errorf("a minute of one of two: %v", found)
	}
	p.members = []string{"eth2", "eth3", "eth4"}
	if found := p.after(10*time.Minute, map[string]uint64{duration: 1e12}); len(found) > 0 {
		t.Errorf("one has joined: %v", found)
	}
}
