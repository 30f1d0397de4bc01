package supervisor

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"rdma_exporter/internal/path"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// moving is a child that moves data so fast.
func moving(rate float64) script {
	b := &state.Bandwidth{
		Device: "a", Hardware: &state.Hardware{Device: "a", Identity: state.Adapter{PCI: "0000:3b:00.0"}},
		Cells: []state.BandwidthCell{{Port: 1, Operation: "write", Size: state.LargeMessage, QPs: 1, BytesPerSecond: rate}},
	}
	return script{output: lines(wire.Line{Bandwidth: b}, wire.Line{End: &wire.End{}}), takes: 20 * time.Second}
}

// refused is a child that finds the device in use, and interrupted one that stops for others.
func refused() script {
	return script{output: lines(wire.Line{Reduced: &state.Reduced{Reason: state.ReducedBusy, Detail: "trainer holds queue pairs"}}, wire.Line{End: &wire.End{}})}
}

func interrupted() script {
	return script{output: lines(wire.Line{Bandwidth: &state.Bandwidth{Device: "a", Interrupted: "trainer came"}}, wire.Line{End: &wire.End{}})}
}

// newBandwidthBench returns a bench that measures once a day, at one o'clock.
func newBandwidthBench(t *testing.T, c children, change func(*Config), devices ...string) *bench {
	t.Helper()
	return benchOf(t, c, func(c *Config) {
		c.Bandwidth = Bandwidth{Interval: 24 * time.Hour, Slot: func(_ string, after time.Time) time.Time {
			return after.Add(-time.Hour).Truncate(24 * time.Hour).Add(25 * time.Hour)
		}}
		if change != nil {
			change(c)
		}
	}, devices...)
}

// hours returns when a device was measured, in whole hours since the start.
func (b *bench) hours(device string) (hours []int) {
	for _, at := range b.kids.startsOf(measuring(device)) {
		hours = append(hours, int(at/time.Hour))
	}
	return hours
}

// TestBandwidth verifies when a device is measured, and what is known of it afterwards. The fake
// children report two at once on a device.
func TestBandwidth(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		script func(n int) script
		probes of
		hours  []int // of four days
		result state.BandwidthResult
		detail string
		rate   float64
	}{
		{"ends well", func(n int) script { return moving(float64(10 - n)) }, nil, []int{1, 25, 49, 73}, state.BandwidthOK, "", 7},
		{"in use", func(int) script { return refused() }, nil, []int{1, 2, 4, 8, 14, 20, 26, 32, 38, 44, 50, 56, 62, 68, 74, 80, 86, 92}, state.BandwidthInUse, "trainer holds queue pairs", 0},
		{"idle later", func(n int) script {
			if n == 0 {
				return refused()
			}
			return moving(5)
		}, nil, []int{1, 2, 25, 49, 73}, state.BandwidthOK, "", 5},
		{"interrupted later", func(n int) script {
			if n < 3 {
				return moving(5)
			}
			return interrupted()
		}, nil, []int{1, 25, 49, 73, 74, 76, 80, 86, 92}, state.BandwidthInterrupted, "trainer came", 5},
		{"hangs", func(int) script { return scriptHang() }, nil, []int{1, 2, 4, 8, 14, 20, 26, 32, 38, 44, 50, 56, 62, 68, 74, 80, 86, 92}, state.BandwidthFailed, "timed out after 2m0s in ibv_destroy_cq", 0},
		{"probes hang", func(int) script { return moving(1) }, always(scriptHang()), nil, "", "", 0},
	} {
		subtest(t, tc.name, func(t *testing.T) {
			c := children{next: always(scriptOK(time.Second)), checks: func(string, []string, int) script { return scriptOK(10 * time.Minute) }}
			if tc.probes != nil {
				c.next = tc.probes
			}
			c.measures = func(_ string, n int) script { return tc.script(n) }
			b := newBandwidthBench(t, c, func(c *Config) { c.Interval, c.Contract.Timeout = 10*time.Minute, time.Hour }, "a")
			s := stateOf(t, b.after(96*time.Hour), "a").Bandwidth
			wantEqual(t, "hours", b.hours("a"), tc.hours)
			got := cmp.Or(s, new(state.BandwidthState))
			measured := cmp.Or(got.Measured, &state.Bandwidth{Cells: make([]state.BandwidthCell, 1)})
			if got.Result != tc.result || got.Detail != tc.detail || measured.Cells[0].BytesPerSecond != tc.rate {
				t.Errorf("%+v", got)
			}
			if b.logs("Measuring bandwidth failed") != map[bool]int{true: 1}[tc.result == state.BandwidthFailed] {
				t.Errorf("the log has %s", b.log)
			}
		})
	}
}

// TestBandwidthOfSeveral verifies that one device of a host is measured at a time, and that a device
// asks no peer meanwhile.
func TestBandwidthOfSeveral(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := children{next: always(scriptOK(time.Second)), measures: always(moving(1)), asks: always(script{output: okReport, takes: 30 * time.Second})}
		b := newBandwidthBench(t, c, func(c *Config) {
			peers := func(string) []wire.PathTarget { return []wire.PathTarget{{Peer: "p:1"}} }
			c.Paths = Paths{Schedule: Schedule{Interval: 5 * time.Minute, Timeout: time.Minute}, Peers: peers, Slot: func(peer string, after time.Time) time.Time {
				return path.NextSlot(peer, 5*time.Minute, after)
			}}
		}, "a", "b", "c")
		b.after(3 * time.Hour)
		var all []time.Duration
		for _, device := range []string{"a", "b", "c"} {
			wantEqual(t, device, b.hours(device), []int{1})
			all = append(all, b.kids.startsOf(measuring(device))...)
		}
		slices.Sort(all)
		for i := range all[1:] {
			if d := all[i+1] - all[i]; d < 20*time.Second {
				t.Errorf("two devices within %s", d)
			}
		}
	})
}

// TestBandwidthBefore verifies that a restart, and a device that is away for a while, change neither
// what is known nor how often a device is measured, and that another adapter begins anew.
func TestBandwidthBefore(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, pci string
		age       time.Duration
		failures  int
		hours     []int
		best      float64
	}{
		{"long ago", "0000:3b:00.0", 30 * time.Hour, 0, []int{1}, 9},
		{"just now", "0000:3b:00.0", time.Minute, 0, nil, 9},
		{"just refused", "0000:3b:00.0", 0, 1, nil, 9},
		{"in the future", "0000:3b:00.0", -48 * time.Hour, 0, []int{1}, 9},
		{"another adapter", "0000:5e:00.0", 30 * time.Hour, 0, []int{1}, 5},
	} {
		subtest(t, tc.name, func(t *testing.T) {
			run := state.Run{Outcome: state.OutcomeOK, Started: time.Now().Add(-tc.age), Bandwidth: &state.Bandwidth{
				Hardware: &state.Hardware{Identity: state.Adapter{PCI: tc.pci}},
				Cells:    []state.BandwidthCell{{Port: 1, Operation: "write", Size: state.LargeMessage, BytesPerSecond: 9}, {Port: 1, Size: 64, BytesPerSecond: 11}},
			}}
			past := state.BandwidthState{}.Next(&run)
			past.Failures = tc.failures
			b := newBandwidthBench(t, children{next: always(scriptOK(time.Second)), measures: always(moving(5))}, func(c *Config) {
				c.Bandwidth.Past = map[string]*state.BandwidthState{"a": &past}
			}, "a")
			if s := stateOf(t, b.after(time.Minute), "a").Bandwidth; s == nil || s.Best[0].BytesPerSecond != 9 {
				t.Errorf("at first %+v", s)
			}
			b.after(4 * time.Hour)
			b.host(nil)
			b.after(time.Minute)
			b.host(nil, "a")
			s := stateOf(t, b.after(time.Minute), "a").Bandwidth
			wantEqual(t, "hours", b.hours("a"), tc.hours)
			if len(tc.hours) == 0 {
				return
			}
			if len(s.Best) != 1 || s.Best[0].BytesPerSecond != tc.best || s.Measured.Cells[0].BytesPerSecond != 5 || s.Failures != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}
