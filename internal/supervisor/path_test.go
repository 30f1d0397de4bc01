package supervisor

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/path"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// found is a child that finds a path so.
func found(peer string, r state.PathResult) script {
	return script{output: lines(wire.Line{Path: &state.Path{Peer: peer, PeerDevice: "b", Result: r}}, wire.Line{End: &wire.End{}}), takes: time.Second}
}

func newPathBench(t *testing.T, asks of, peers []string, change func(*Config)) *bench {
	t.Helper()
	return benchOf(t, children{next: always(scriptOK(time.Second)), asks: asks}, func(c *Config) {
		c.Paths = Paths{Interval: 5 * time.Minute, Peers: func(string) (targets []state.Path) {
			for _, p := range peers {
				targets = append(targets, state.Path{Peer: p})
			}
			return targets
		}, Slot: slot}
		if change != nil {
			change(c)
		}
	}, "a")
}

func slot(peer string, after time.Time) time.Time { return path.NextSlot(peer, 5*time.Minute, after) }

func pathOf(t *testing.T, b *bench, peer string) state.PathState {
	t.Helper()
	for _, p := range stateOf(t, b.Snapshot(), "a").Paths {
		if p.Peer == peer {
			return p
		}
	}
	t.Fatalf("no path to %s", peer)
	return state.PathState{}
}

// TestPaths verifies that each peer is asked in its slot, once in the interval, and that two runs
// are a minute apart.
func TestPaths(t *testing.T) {
	bubble(t, func(t *testing.T) {
		peers := []string{"one:2", "two:2", "three:3"}
		began := time.Now()
		b := newPathBench(t, func(peer string, _ int) script { return found(peer, state.PathOK) }, peers, nil)
		b.after(21 * time.Minute)
		var all []time.Duration
		for _, peer := range peers {
			starts := b.kids.startsOf(asking(peer))
			if len(starts) != 4 {
				t.Errorf("%s: asked at %v, want 4 times", peer, starts)
			}
			for _, at := range starts {
				due := slot(peer, began.Add(at-5*time.Minute))
				if late := began.Add(at).Sub(due); late < 0 || late > 2*time.Minute {
					t.Errorf("%s: asked %s after its slot", peer, late)
				}
			}
			all = append(all, starts...)
			if p := pathOf(t, b, peer); p.Result != state.PathOK || p.Worked.IsZero() || p.PeerDevice != "b" {
				t.Errorf("%s: %+v", peer, p)
			}
		}
		slices.Sort(all)
		for i := range all[1:] {
			if d := all[i+1] - all[i]; d < pathPause {
				t.Errorf("two runs within %s", d)
			}
		}
	})
}

// TestPathsThatFail verifies that pauses grow, that the past stays, and which result a child
// has that hangs or crashes.
func TestPathsThatFail(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		script func(peer string) script
		result state.PathResult
		verb   string
		// runs of an hour after the first, which works.
		runs int
	}{
		{"works", func(peer string) script { return found(peer, state.PathOK) }, state.PathOK, "", 12},
		{"lost", func(peer string) script { return found(peer, state.PathForward) }, state.PathForward, "", 5},
		{"hangs", func(string) script { return scriptHang() }, state.PathSource, "ibv_destroy_cq", 5},
		{"fails", func(string) script { return scriptFail() }, state.PathControl, "", 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b := newPathBench(t, func(peer string, n int) script {
					if n == 0 {
						return found(peer, state.PathOK)
					}
					return test.script(peer)
				}, []string{"p:1"}, nil)
				b.after(65 * time.Minute)
				if starts := b.kids.startsOf(asking("p:1")); len(starts) != 1+test.runs {
					t.Errorf("%s: asked at %v, want %d times", test.name, starts, 1+test.runs)
				}
				p := pathOf(t, b, "p:1")
				if p.Result != test.result || p.Verb != test.verb || p.PeerDevice != "b" || p.Worked.IsZero() || p.Failed() != (p.Failures > 0) {
					t.Errorf("%s: %+v", test.name, p)
				}
			})
		})
	}
}

// TestPathsBefore verifies that peers that are no longer listed are forgotten, and that what
// worked before a restart is known.
func TestPathsBefore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		worked := state.PathState{Path: state.Path{Peer: "p:1", PeerDevice: "b", Result: state.PathOK}, Worked: time.Now().Add(-time.Hour)}
		gone := state.PathState{Path: state.Path{Peer: "gone:1", PeerDevice: "b", Result: state.PathOK}}
		b := newPathBench(t, func(peer string, _ int) script { return found(peer, state.PathMTU) }, []string{"p:1"}, func(c *Config) {
			c.Paths.Worked = map[string][]state.PathState{"a": {worked, gone}}
		})
		b.after(6 * time.Minute)
		if all := stateOf(t, b.Snapshot(), "a").Paths; len(all) != 1 || !all[0].Worked.Equal(worked.Worked) || all[0].Result != state.PathMTU || all[0].Failures != 1 {
			t.Errorf("%+v", all)
		}
	})
}

// TestPathsOfHungDevice verifies that a device whose probes hang asks no peer.
func TestPathsOfHungDevice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := benchOf(t, children{next: always(scriptHang())}, func(c *Config) {
			c.Paths = Paths{Interval: 5 * time.Minute, Peers: func(string) []state.Path { return []state.Path{{Peer: "p:1"}} }, Slot: slot}
		}, "a")
		b.after(16 * time.Minute)
		if starts := b.kids.startsOf(asking("p:1")); len(starts) != 0 {
			t.Errorf("asked at %v", starts)
		}
	})
}

// TestPathsOfAudit verifies that an audit asks two peers of a device, the first and the last.
func TestPathsOfAudit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		peers := []string{"near:1", "other:1", "far:1"}
		b := newPathBench(t, func(peer string, _ int) script { return found(peer, state.PathOK) }, peers, nil)
		if _, err := b.once(t.Context()); err != nil {
			t.Error(err)
		}
		for i, peer := range peers {
			if n := len(b.kids.startsOf(asking(peer))); n != (i+1)%2 {
				t.Errorf("%s: asked %d times", peer, n)
			}
		}
	})
}

// TestPathsStuck verifies that nothing waits for a child that does not end, and that the device asks
// no peer until it does.
func TestPathsStuck(t *testing.T) {
	t.Parallel()
	for name, once := range map[string]bool{"once": true, "schedule": false} {
		subtest(t, name, func(t *testing.T) {
			s := scriptUnkillable()
			b := newPathBench(t, func(string, int) script { return s }, []string{"one:1", "two:2"}, nil)
			asked := func() int { return len(b.kids.startsOf(asking("one:1"))) + len(b.kids.startsOf(asking("two:2"))) }
			if once {
				_, err := b.once(t.Context())
				wantEqual(t, "error", err, nil)
			} else {
				b.after(16 * time.Minute)
			}
			wantEqual(t, "runs", asked(), 1)
			if dev := stateOf(t, b.Snapshot(), "a"); dev.Stuck == nil {
				t.Errorf("it is not shown: %+v", dev)
			}
			close(s.release)
			synctest.Wait()
			if !once {
				b.after(32 * time.Minute)
				wantEqual(t, "asked again", asked() > 1, true)
			}
		})
	}
}

// TestPathsMadeUp verifies that a run whose slot passed in the pause waits until the lease of the
// peer's responder, which began with the slot, is over.
func TestPathsMadeUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		offset := map[string]time.Duration{"one:1": time.Minute, "two:2": time.Minute + 5*time.Second}
		b := newPathBench(t, func(peer string, _ int) script { return found(peer, state.PathOK) }, []string{"one:1", "two:2"}, func(c *Config) {
			c.Paths.Slot = func(peer string, after time.Time) time.Time {
				return after.Add(-offset[peer]).Truncate(c.Paths.Interval).Add(c.Paths.Interval + offset[peer])
			}
		})
		b.after(21 * time.Minute)
		first, second := b.kids.startsOf(asking("one:1")), b.kids.startsOf(asking("two:2"))
		if len(first) < 3 || len(second) < 3 {
			t.Fatalf("asked at %v and %v", first, second)
		}
		for i := range min(len(first), len(second)) {
			if d := second[i] - first[i]; d < pathPause+offset["two:2"]-offset["one:1"] {
				t.Errorf("made up for %s after the run before", d)
			}
		}
	})
}
