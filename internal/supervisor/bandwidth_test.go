package supervisor

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"rdma_exporter/internal/path"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// moving is a child that moves data so fast.
func moving(rate float64) script {
	return script{output: lines(wire.Line{Bandwidth: moved("0000:3b:00.0", rate)}, wire.Line{End: &wire.End{}}), takes: 20 * time.Second}
}

func moved(pci string, rate float64) *state.Bandwidth {
	cell := state.BandwidthCell{Port: 1, Operation: "write", QPs: 1, BytesPerSecond: 2 * rate}
	large, again := cell, cell
	large.Size, large.BytesPerSecond, again.Size, again.QPs, again.BytesPerSecond = state.LargeMessage, rate/2, state.LargeMessage, 2, rate
	return &state.Bandwidth{
		Device: "a", Hardware: &state.Hardware{Device: "a", Identity: state.Adapter{PCI: pci}}, Cells: []state.BandwidthCell{cell, large, again},
	}
}

// newBandwidthBench returns a bench that measures once a day, at one o'clock.
func newBandwidthBench(t *testing.T, c children, change func(*Config), devices ...string) *bench {
	t.Helper()
	return benchOf(t, c, func(c *Config) {
		c.Interval = 10 * time.Minute
		c.Bandwidth = Bandwidth{Interval: 24 * time.Hour, Slot: func(_ string, after time.Time) time.Time {
			return after.Add(-time.Hour).Truncate(24 * time.Hour).Add(25 * time.Hour)
		}}
		change(c)
	}, devices...)
}

// hours returns when a device was measured, in whole hours since the start.
func (b *bench) hours(device string) (hours []int) {
	for _, at := range b.kids.startsOf(measuring(device)) {
		hours = append(hours, int(at/time.Hour))
	}
	return hours
}

// TestBandwidth verifies when a device is measured, never beside its contracts, and what is known of it
// afterwards: how the last measurement ended, and what the last that ended well and the best moved.
func TestBandwidth(t *testing.T) {
	t.Parallel()
	refused := script{output: lines(wire.Line{Reduced: &state.Reduced{Reason: state.ReducedBusy, Detail: "trainer holds"}}, wire.Line{End: &wire.End{}})}
	broken := script{output: lines(wire.Line{Bandwidth: &state.Bandwidth{Device: "a", Interrupted: "trainer came"}}, wire.Line{End: &wire.End{}})}
	daily, failing := []int{1, 25, 49, 73}, []int{1, 2, 4, 8, 14, 20, 26, 32, 38, 44, 50, 56, 62, 68, 74, 80, 86, 92}
	for _, tc := range []struct {
		name    string
		scripts []script // The last one stays.
		probe   script
		hours   []int // Of four days.
		want    string
	}{
		{"ends well", []script{moving(4), moving(9), moving(5)}, scriptOK(time.Second), daily, "ok , 5 of 9"},
		{"in use", []script{refused}, scriptOK(time.Second), failing, "in_use trainer holds"},
		{"idle later", []script{refused, moving(5)}, scriptOK(time.Second), []int{1, 2, 25, 49, 73}, "ok , 5 of 5"},
		{"interrupted later", []script{moving(5), moving(5), moving(5), broken}, scriptOK(time.Second), append(slices.Clone(daily), 74, 76, 80, 86, 92), "interrupted trainer came, 5 of 5"},
		{"hangs", []script{scriptHang()}, scriptOK(time.Second), failing, "failed timed out after 2m0s in ibv_destroy_cq"},
		{"probes hang", []script{moving(1)}, scriptHang(), nil, " "},
	} {
		subtest(t, tc.name, func(t *testing.T) {
			c := children{next: always(tc.probe), checks: func(string, []string, int) script { return scriptOK(10 * time.Minute) }}
			c.measures = func(_ string, n int) script { return tc.scripts[min(n, len(tc.scripts)-1)] }
			b := newBandwidthBench(t, c, func(c *Config) { c.Contract.Timeout = time.Hour }, "a")
			s := copied(stateOf(t, b.after(96*time.Hour), "a").Bandwidth)
			wantEqual(t, "hours", fmt.Sprint(b.hours("a")), fmt.Sprint(tc.hours))
			got := fmt.Sprint(s.Result, " ", s.Detail)
			for _, c := range s.Large {
				got += fmt.Sprintf(", %g of %g", c.BytesPerSecond, c.Best)
			}
			wantEqual(t, "state", got, tc.want)
		})
	}
}

// TestBandwidthOfSeveral verifies that one device of a host is measured at a time, while none asks a peer.
func TestBandwidthOfSeveral(t *testing.T) {
	bubble(t, func(t *testing.T) {
		answered := found("p:1", state.PathOK)
		answered.takes = 30 * time.Second
		c := children{next: always(scriptOK(time.Second)), measures: always(moving(1)), asks: always(answered)}
		b := newBandwidthBench(t, c, func(c *Config) {
			peers := func(string) []state.Path { return []state.Path{{Peer: "p:1"}} }
			c.Paths = Paths{Interval: 5 * time.Minute, Peers: peers, Slot: func(peer string, after time.Time) time.Time {
				return path.NextSlot(peer, 5*time.Minute, after)
			}}
		}, "a", "b", "c")
		b.after(3 * time.Hour)
		all := slices.Concat(b.kids.startsOf(measuring("a")), b.kids.startsOf(measuring("b")), b.kids.startsOf(measuring("c")))
		slices.Sort(all)
		asked := b.kids.startsOf(asking("p:1"))
		if len(all) != 3 || len(asked) < 50 || all[1]-all[0] < 20*time.Second || all[2]-all[1] < 20*time.Second {
			t.Errorf("measured at %v, asked at %v", all, asked)
		}
		for _, at := range asked {
			if slices.ContainsFunc(all, func(m time.Duration) bool { return at > m-30*time.Second && at < m+20*time.Second }) {
				t.Errorf("asked at %s, measured at %v", at, all)
			}
		}
	})
}

// TestBandwidthBefore verifies what a device that appears has of its past, and when it is measured next.
func TestBandwidthBefore(t *testing.T) {
	t.Parallel()
	const same, other = "0000:3b:00.0", "0000:5e:00.0"
	for _, tc := range []struct {
		name, pci string
		age       time.Duration
		hours     []int
		best      float64
	}{
		{"long ago", same, 30 * time.Hour, []int{1}, 9},
		{"just now", same, time.Second, nil, 9},
		{"in the future", same, -48 * time.Hour, []int{1}, 9},
		{"another adapter", other, 30 * time.Hour, []int{1}, 5},
	} {
		subtest(t, tc.name, func(t *testing.T) {
			past := state.BandwidthState{}.Next(&state.Run{Outcome: state.OutcomeOK, Started: time.Now().Add(50*time.Minute - tc.age), Bandwidth: moved(tc.pci, 9)})
			b := newBandwidthBench(t, children{next: always(scriptOK(time.Second)), measures: always(moving(5))}, func(c *Config) {
				c.Bandwidth.Past = func(string) *state.BandwidthState { return &past }
			})
			b.after(50 * time.Minute)
			b.host(nil, "a")
			if s := stateOf(t, b.after(time.Minute), "a").Bandwidth; s.Large[0].BytesPerSecond != 9 {
				t.Errorf("at first %+v", s)
			}
			s := stateOf(t, b.after(3*time.Hour), "a").Bandwidth
			wantEqual(t, "hours", fmt.Sprint(b.hours("a")), fmt.Sprint(tc.hours))
			wantEqual(t, "best", s.Large[0].Best, tc.best)
		})
	}
}
