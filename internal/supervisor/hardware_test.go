package supervisor

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/child"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// telling is a child that reports this of the hardware of each device.
func telling(takes time.Duration, all ...state.Hardware) script {
	var out string
	for _, h := range all {
		out += lines(wire.Line{Hardware: &h})
	}
	return script{output: out + lines(wire.Line{End: &wire.End{}}), takes: takes}
}

// allOf is a child that reads all requested devices in a second.
func allOf(devices []string, _ int) script { return withPorts(time.Second, devices) }

// withPorts is a child that reports these ports of each device.
func withPorts(takes time.Duration, devices []string, ports ...state.HardwarePort) script {
	var all []state.Hardware
	for _, d := range devices {
		all = append(all, state.Hardware{Device: d, Ports: ports})
	}
	return telling(takes, all...)
}

// hung is a device whose reading did not return.
func hung(device string) state.Hardware {
	return state.Hardware{Device: device, Failure: "no end of /sys/" + device, Reading: "/sys/" + device}
}

func newHardwareBench(t *testing.T, hardware ofHardware, change func(*Config), devices ...string) *bench {
	t.Helper()
	return benchOf(t, children{next: always(scriptOK(0)), hardware: hardware}, change, devices...)
}

// rounds returns which devices the readings since the last call were to read.
func (b *bench) rounds() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, r := range b.requests[state.KindHardware] {
		all = append(all, strings.Join(r.Hardware.Devices, ""))
	}
	b.requests[state.KindHardware] = nil
	return strings.Join(all, "|")
}

func (b *bench) hardware(device string) state.HardwareState {
	b.t.Helper()
	s := stateOf(b.t, b.Snapshot(), device).Hardware
	if s == nil {
		b.t.Fatalf("nothing is known of the hardware of %s", device)
	}
	return *s
}

// TestHardware verifies that one child reads all devices, once in each interval.
func TestHardware(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newHardwareBench(t, allOf, nil, "b", "a")
		snap := b.after(40 * time.Second)
		wantEqual(t, "children", b.kids.startsOf(allHardware), []time.Duration{0, 15 * time.Second, 30 * time.Second})
		wantEqual(t, "of", b.rounds(), "ab|ab|ab")
		last := snap.Hardware
		if last == nil || last.Kind != state.KindHardware || last.Device != "" || last.Outcome != state.OutcomeOK || last.Duration != time.Second || last.Hardware != nil {
			t.Errorf("the last reading: %+v", last)
		}
		for _, device := range []string{"a", "b"} {
			got := b.hardware(device)
			if got.Latest == nil || got.Latest.Device != device || !got.Read.Equal(last.Started) || got.Failures != 0 || !got.Next.IsZero() {
				t.Errorf("%s: %+v", device, got)
			}
			runs := b.sink.runs(hardwareOf(device))
			if len(runs) != 3 || runs[2].Outcome != state.OutcomeOK || len(runs[2].Hardware) != 1 || runs[2].Hardware[0].Device != device {
				t.Errorf("the sink was handed %+v of %s", runs, device)
			}
		}
	})
}

// TestHardwareFails verifies that a device that fails in any way is read less and less often,
// the others as before, and that a partial reading does not replace a complete one.
func TestHardwareFails(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		child   func(others []state.Hardware) script
		outcome state.Outcome
		says    string
		reading string
	}{
		{"by itself", func(o []state.Hardware) script {
			return telling(time.Second, append(o, state.Hardware{Device: "b", Failure: "input/output error", Identity: state.Adapter{Slot: "part"}})...)
		}, state.OutcomeFailed, "input/output error", ""},
		{"has no time", func(o []state.Hardware) script {
			return telling(4*time.Second, append(o, state.Hardware{Device: "b", Failure: "the time was up", Late: true})...)
		}, state.OutcomeTimeout, "the time was up", ""},
		{"hangs", func(o []state.Hardware) script { return telling(4*time.Second, append(o, hung("b"))...) }, state.OutcomeTimeout, "no end of /sys/b", "/sys/b"},
		{"is left out", func(o []state.Hardware) script { return telling(time.Second, o...) }, state.OutcomeFailed, "the child reported nothing on the device", ""},
		{"the child hangs", func(o []state.Hardware) script {
			s := telling(-1, o...)
			s.output = strings.TrimSuffix(s.output, `{"end":{}}`+"\n")
			return s
		}, state.OutcomeTimeout, "timed out after 5s", ""},
		{"the child crashes", func(o []state.Hardware) script {
			s := telling(time.Second, o...)
			s.output, s.exit = strings.TrimSuffix(s.output, `{"end":{}}`+"\n"), child.Exit{Signal: 11}
			return s
		}, state.OutcomeCrashed, "killed by SIGSEGV", ""},
		{"the child raves", func(o []state.Hardware) script {
			s := telling(0, o...)
			s.output = strings.TrimSuffix(s.output, `{"end":{}}`+"\n") + "bla\n"
			return s
		}, state.OutcomeCrashed, "bla", ""},
	} {
		subtest(t, tc.name, func(t *testing.T) {
			var well atomic.Bool
			well.Store(true)
			b := newHardwareBench(t, func(devices []string, n int) script {
				if well.Load() || !slices.Contains(devices, "b") {
					return allOf(devices, n)
				}
				var others []state.Hardware
				for _, d := range devices {
					if d != "b" {
						others = append(others, state.Hardware{Device: d})
					}
				}
				return tc.child(others)
			}, nil, "a", "b", "c")
			b.after(2 * time.Second)
			whole := b.hardware("b")
			well.Store(false)
			// From 15 s on it fails. It may be read again 30 s and 60 s later.
			b.after(3 * time.Minute)
			want := "abc|abc|ac|ac|abc|ac|ac|ac|ac|abc|ac|ac|ac"
			if tc.name == "the child raves" { // It is killed at once, and so all is due just in time.
				want = "abc|abc|ac|abc|ac|ac|ac|abc|ac|ac|ac|ac|ac"
			}
			wantEqual(t, "readings", b.rounds(), want)
			got := b.hardware("b")
			if got.Failures != 3 || !strings.Contains(got.Failure, tc.says) || got.Reading != tc.reading || got.Next.IsZero() ||
				got.Latest != whole.Latest || !got.Read.Equal(whole.Read) {
				t.Errorf("%+v", got)
			}
			runs := b.sink.runs(hardwareOf("b"))
			wantEqual(t, "outcomes of b", outcomes(runs), []state.Outcome{state.OutcomeOK, tc.outcome, tc.outcome, tc.outcome})
			for _, device := range []string{"a", "c"} {
				if got := b.hardware(device); got.Failures != 0 || got.Failure != "" || b.sink.count(hardwareOf(device)) != 13 {
					t.Errorf("%s: %+v after %d", device, got, b.sink.count(hardwareOf(device)))
				}
			}
			wantEqual(t, "warnings", b.logs("Hardware of device could not be read"), 1)
			well.Store(true)
			b.after(3 * time.Minute)
			if got := b.hardware("b"); got.Failures != 0 || got.Failure != "" || got.Reading != "" || !got.Next.IsZero() || got.Latest == whole.Latest {
				t.Errorf("%+v", got)
			}
			wantEqual(t, "told that it is well", b.logs("Hardware of device can be read again"), 1)
		})
	}
}

func TestHardwareInPart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newHardwareBench(t, func([]string, int) script {
			return telling(0, state.Hardware{Device: "a", Failure: "x", Identity: state.Adapter{Slot: "part"}})
		}, nil, "a")
		b.after(time.Second)
		if got := b.hardware("a"); got.Latest == nil || got.Latest.Identity.Slot != "part" || got.Failures != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// TestHardwareStuck verifies that devices that a stuck child holds are left out until it exits.
func TestHardwareStuck(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		b := newHardwareBench(t, func(devices []string, n int) script {
			s := allOf(devices, n)
			switch {
			case n == 0:
				s = telling(-1, state.Hardware{Device: "a"}, state.Hardware{Device: "c"}, hung("b"))
				s.unkillable, s.release = true, release
			case slices.Contains(devices, "c") && n < 3:
				s = telling(-1, state.Hardware{Device: "a"})
				s.unkillable, s.release = true, release
			}
			return s
		}, nil, "a", "b", "c")
		b.after(14 * time.Second)
		if got := b.hardware("b"); got.Stuck == nil || got.Reading != "/sys/b" || got.Failures != 1 || b.hardware("a").Stuck != nil || b.hardware("c").Stuck != nil {
			t.Errorf("b: %+v, a: %+v", got, b.hardware("a"))
		}
		b.after(2 * time.Minute)
		wantEqual(t, "readings", b.rounds(), "abc|ac|a|a|a|a|a|a|a")
		if b.hardware("c").Stuck == nil || b.hardware("c").Latest == nil {
			t.Errorf("c: %+v", b.hardware("c"))
		}
		// It comes back as another one, and the child is still there.
		b.host(nil, "a", "c")
		b.after(10 * time.Second)
		b.host(nil, "a", "b", "c")
		b.after(15 * time.Second)
		wantEqual(t, "readings", strings.Trim(b.rounds(), "a|"), "")
		close(release)
		b.after(5 * time.Minute)
		if b.hardware("b").Stuck != nil || b.hardware("c").Stuck != nil || b.hardware("b").Latest == nil || !strings.HasSuffix(b.rounds(), "abc") {
			t.Errorf("b: %+v, c: %+v", b.hardware("b"), b.hardware("c"))
		}
		wantEqual(t, "told that a child does not end", b.logs("A killed child does not end"), 2)
		wantEqual(t, "told that a child has ended", b.logs("The killed child has ended"), 2)
	})
}

// TestHardwareRefused verifies that refused counters are not read for ten minutes and stay
// refused.
func TestHardwareRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var refused atomic.Bool
		refused.Store(true)
		b := newHardwareBench(t, func([]string, int) script {
			h := state.Hardware{Device: "a", Ports: []state.HardwarePort{{Number: 1}, {Number: 2}}}
			if refused.Load() {
				h.Refused = []state.RefusedCounters{{Group: state.GroupHardware, Errno: "EIO"}}
				h.Ports[0].Refused = []state.RefusedCounters{{Group: state.GroupPort, Detail: "no number"}}
				h.Ports[1].Refused = []state.RefusedCounters{{Group: state.GroupPort, Errno: "EINVAL", Detail: "no"}, {Group: state.GroupEthtool, Errno: "ENODATA"}}
			}
			return telling(0, h)
		}, nil, "a")
		b.after(time.Second)
		refused.Store(false)
		b.after(9 * time.Minute)
		want := []wire.SkipCounters{{Device: "a", Group: state.GroupHardware}, {Device: "a", Port: 2, Group: state.GroupPort}}
		for i := range b.kids.startsOf(allHardware) {
			skip := b.asked(state.KindHardware, i).Hardware.Skip
			slices.SortFunc(skip, func(a, b wire.SkipCounters) int { return a.Port - b.Port })
			if i == 0 && skip != nil || i > 0 && !slices.Equal(skip, want) {
				t.Errorf("reading %d skips %v", i, skip)
			}
		}
		h := b.hardware("a").Latest
		if got := fmt.Sprint(h.Refused, h.Ports[0].Refused, h.Ports[1].Refused); got != "[{hw_counters EIO }] [] [{counters EINVAL no}]" {
			t.Errorf("refused: %s", got)
		}
		b.after(2 * time.Minute)
		if h := b.hardware("a").Latest; h.Refused != nil || h.Ports[1].Refused != nil {
			t.Errorf("refused: %v, %v", h.Refused, h.Ports[1].Refused)
		}
	})
}

// TestHardwareDrops verifies that a lower counter counts as wrapped or reset, and a gauge as
// neither.
func TestHardwareDrops(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name          string
		width         int
		values        []uint64
		resets, wraps uint64
	}{
		{"grows", 32, []uint64{0, 1, 1, 1 << 40}, 0, 0},
		{"wraps", 32, []uint64{1<<32 - 10, 3, 1<<32 - 1, 0}, 0, 2},
		{"begins anew", 32, []uint64{1 << 30, 0, 5, 4}, 2, 0},
		{"both", 8, []uint64{200, 10, 9}, 1, 1},
		{"more than its width", 8, []uint64{1 << 9, 1}, 1, 0},
		{"could not be read for a moment", 64, []uint64{5, 1<<64 - 1, 7}, 0, 0},
		{"the same of fewer bits", 32, []uint64{5, 1<<64 - 1, 7}, 0, 0},
		{"was at its end, and is reset", 64, []uint64{255, 0}, 1, 0},
		{"begins anew at 64 bits", 64, []uint64{1 << 62, 7}, 1, 0},
		{"goes up and down", 0, []uint64{9, 1, 9, 1}, 0, 0},
	} {
		for _, port := range []int{0, 1} {
			s := &Supervisor{cfg: Config{CounterWidth: func(table string, group state.CounterGroup, name string) int {
				if table != "mlx5" || group != state.GroupHardware || name != "x" {
					t.Errorf("asked for %s %s %s", table, group, name)
				}
				return tc.width
			}}}
			var before *state.Hardware
			var drops []state.CounterDrop
			for _, v := range tc.values {
				now := &state.Hardware{Table: "mlx5"}
				c := []state.Counter{{Group: state.GroupHardware, Name: "x", Value: v}}
				if port == 0 {
					now.Counters = c
				} else {
					now.Ports = []state.HardwarePort{{Number: port, Counters: c}}
				}
				if before != nil {
					drops = s.drops(drops, before, now)
				}
				before = now
			}
			want := []state.CounterDrop{{Port: port, Group: state.GroupHardware, Name: "x", Resets: tc.resets, Wraps: tc.wraps}}
			if tc.resets+tc.wraps == 0 {
				want = nil
			}
			if !slices.Equal(drops, want) {
				t.Errorf("%s: %+v, want %+v", tc.name, drops, want)
			}
		}
	}
}

// TestHardwareDropsOfBonds verifies that a sum over other members of a bond is no counter that was
// reset.
func TestHardwareDropsOfBonds(t *testing.T) {
	t.Parallel()
	s := &Supervisor{}
	reading := func(value uint64, members ...string) *state.Hardware {
		c := []state.Counter{{Group: state.GroupEthtool, Name: "x", Value: value}, {Group: state.GroupHardware, Name: "y", Value: value}}
		return &state.Hardware{Ports: []state.HardwarePort{{Number: 1, Members: members, Counters: c}}}
	}
	for _, tc := range []struct {
		before, now *state.Hardware
		want        string
	}{
		{reading(9, "eth0", "eth1"), reading(5, "eth0", "eth1"), "xy"},
		{reading(9, "eth0", "eth1"), reading(5, "eth0"), "y"},
		{reading(9, "eth0"), reading(5), "y"},
		{reading(9), reading(5), "xy"},
	} {
		got := ""
		for _, d := range s.drops(nil, tc.before, tc.now) {
			got += d.Name
		}
		if got != tc.want {
			t.Errorf("%v, then %v: %q dropped, want %q", tc.before.Ports[0].Members, tc.now.Ports[0].Members, got, tc.want)
		}
	}
}

// TestVanishedIsForgotten verifies that a device that vanishes during a reading and an inventory is
// forgotten once, after which nothing of it is observed, and that another of its name starts without
// leak candidates.
func TestVanishedIsForgotten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		left := []state.Leftover{{Context: state.Context{Index: 1, ID: 100}, Type: "qp", Objects: 1}}
		b := benchOf(t, children{
			next:      func(_ string, n int) script { return opening(scriptOK(time.Second), uint32(100+n)) },
			inventory: always(inventorying(5*time.Second, state.Inventory{Leftover: left})),
			hardware:  func(devices []string, _ int) script { return withPorts(4*time.Second, devices) },
		}, func(c *Config) { c.Discovery = time.Second }, "a")
		b.after(62 * time.Second)
		b.host(nil)
		b.after(10 * time.Second)
		wantEqual(t, "devices", names(b.Snapshot()), []string(nil))
		before := len(b.kids.startsOf(inventoryOf("a")))
		b.host(nil, "a")
		b.after(2 * time.Second)
		if h := stateOf(t, b.Snapshot(), "a").Hardware; h != nil {
			t.Errorf("of the hardware of the new one is known %+v", h)
		}
		b.after(10 * time.Second)
		if r := stateOf(t, b.Snapshot(), "a").Resources; b.hardware("a").Latest == nil || r == nil || r.Last == nil {
			t.Errorf("hardware %+v, resources %+v of the new one", b.hardware("a"), r)
		}
		wantEqual(t, "leak candidates of the new one", b.lookedFor(before), []uint32(nil))
		_, after, _ := strings.Cut(strings.Join(b.sink.told(), ", "), "a forgotten, ")
		wantEqual(t, "observers of the new device", after, "a ok, inventory of a ok, hardware of a ok")
	})
}

func TestHardwareOnce(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		within  time.Duration
		child   func() script
		stuck   bool
		missing []state.Kind
	}{
		{"well", 0, func() script { return allOf([]string{"a"}, 0) }, false, nil},
		{"stuck", 0, scriptUnkillable, true, nil},
		{"no time", 2 * time.Second, func() script { return telling(-1) }, false, []state.Kind{state.KindHardware}},
	} {
		subtest(t, tc.name, func(t *testing.T) {
			child := tc.child()
			b := newHardwareBench(t, func([]string, int) script { return child }, func(c *Config) { c.Within = tc.within }, "a")
			if err := b.RunOnce(t.Context()); err != nil {
				t.Error(err)
			}
			wantEqual(t, "readings", b.rounds(), "a")
			dev := stateOf(t, b.Snapshot(), "a")
			if h := dev.Hardware; (h != nil && h.Stuck != nil) != tc.stuck {
				t.Errorf("stuck: %+v", h)
			}
			wantEqual(t, "what there was no time for", missingOf(dev), tc.missing)
			if child.release != nil {
				close(child.release)
				synctest.Wait()
			}
		})
	}
}
