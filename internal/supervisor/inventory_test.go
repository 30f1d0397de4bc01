package supervisor

import (
	"fmt"
	"testing"
	"time"

	"rdma_exporter/internal/child"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// inventorying is a child that takes this inventory and completes.
func inventorying(takes time.Duration, i state.Inventory) script {
	return script{output: counted().output + lines(wire.Line{Inventory: &i}, wire.Line{End: &wire.End{}}), takes: takes}
}

// counted is a child that hangs once it has counted, which is what an inventory reports first.
func counted() script {
	i := state.Inventory{Index: 1, PIDsVisible: true, Objects: []state.ObjectCount{{Type: "qp", Owner: state.OwnerUnknown, Objects: 7}}}
	for _, typ := range state.ResourceTypes() {
		i.Incomplete = append(i.Incomplete, state.Incomplete{Type: typ, Reason: state.IncompleteTimeout})
	}
	return script{output: lines(wire.Line{Inventory: &i}), takes: -1}
}

// opening makes a child of the probes report its device context.
func opening(s script, id uint32) script {
	s.output = lines(wire.Line{Context: &state.Context{Index: 1, ID: id}}) + s.output
	return s
}

func newInventoryBench(t *testing.T, next, inventory of, change func(*Config), devices ...string) *bench {
	t.Helper()
	return benchOf(t, children{next: next, inventory: inventory}, change, devices...)
}

// lookedFor returns the ids of the leak candidates of the n-th inventory.
func (b *bench) lookedFor(n int) (ids []uint32) {
	b.t.Helper()
	for _, c := range b.asked(state.KindInventory, n).LeakCandidates {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestInventoryBesideProbes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newInventoryBench(t, always(scriptOK(50*time.Second)), always(inventorying(9*time.Second, state.Inventory{Index: 1})),
			func(c *Config) { c.Concurrency = 1; c.Timeout = 55 * time.Second }, "a")
		b.after(3*time.Minute - time.Second)
		minutes := []time.Duration{0, time.Minute, 2 * time.Minute}
		wantEqual(t, "runs of the probes", b.kids.startsOf("a"), minutes)
		wantEqual(t, "inventories", b.kids.startsOf(inventoryOf("a")), minutes)
		r := stateOf(t, b.Snapshot(), "a").Resources
		if r == nil || r.Last == nil || r.Last.Kind != state.KindInventory || r.Last.Outcome != state.OutcomeOK || r.Last.Inventory != nil ||
			r.Inventory == nil || r.Inventory.Index != 1 || !r.Taken.Equal(r.Last.Started) {
			t.Errorf("resources %+v", r)
		}
		if n := b.sink.count(inventoryOf("a")); n != 3 {
			t.Errorf("the sink was handed %d inventories, want 3", n)
		}
		if fill := b.asked(state.KindInventory, 1).MaxFill; fill != 128 {
			t.Errorf("the second inventory was told that a queue pair has %d completions at most", fill)
		}
	})
}

// TestInventoryHangs verifies that inventories that hang delay neither probes nor inventories
// of other devices, come less and less often, and keep earlier results.
func TestInventoryHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		inventory := func(device string, n int) script {
			if device == "good" || n == 0 {
				return inventorying(time.Second, state.Inventory{Index: 1})
			}
			return counted()
		}
		b := newInventoryBench(t, always(scriptOK(time.Second)), inventory, func(c *Config) { c.Backoff = 4 * time.Minute }, "bad1", "bad2", "bad3", "good")
		b.after(20*time.Minute + 30*time.Second)
		for _, device := range []string{"bad1", "bad2", "bad3", "good"} {
			if got := b.kids.startsOf(device); len(got) != 21 || got[20] != 20*time.Minute {
				t.Errorf("runs of the probes on %s at %v, want one a minute", device, got)
			}
		}
		starts := b.kids.startsOf(inventoryOf("good"))
		// Two may be in its way when they hang for the first time.
		if len(starts) != 21 {
			t.Errorf("%d inventories of the good device in 20 minutes, want 21: %v", len(starts), starts)
		}
		for i := 3; i < len(starts); i++ {
			if starts[i]-starts[i-1] != time.Minute {
				t.Errorf("inventories of the good device at %v", starts)
				break
			}
		}
		if n := len(b.kids.startsOf(inventoryOf("bad1"))); n < 5 || n > 9 {
			t.Errorf("%d inventories of a device on which they hang, want some 7", n)
		}
		r := stateOf(t, b.Snapshot(), "bad1").Resources
		// What the kernel counts is known even so, and as new.
		if r.Last.Outcome != state.OutcomeTimeout || r.Inventory == nil || len(r.Inventory.Objects) != 1 || !r.Taken.Equal(r.Last.Started) {
			t.Errorf("resources %+v, last %+v; want the latest count", r, r.Last)
		}
		if n := b.logs("Inventory of device failed"); n != 3 {
			t.Errorf("%d messages on failed inventories, want one a device:\n%s", n, b.log)
		}
	})
}

func TestLeaked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		left := func(id uint32, typ string, n int64) state.Leftover {
			return state.Leftover{Context: state.Context{Index: 1, ID: id}, Type: typ, Objects: n}
		}
		found := []state.Inventory{
			{}, // before any child has ended
			{Leftover: []state.Leftover{left(100, "qp", 2), left(100, "ctx", 1)}},
			{Leftover: []state.Leftover{left(100, "qp", 1), left(101, "qp", 4)}},
			{Leftover: []state.Leftover{left(101, "ctx", 1)}, Incomplete: []state.Incomplete{{Type: "pd", Reason: state.IncompleteTimeout}}},
			{},
			{},
		}
		next := func(_ string, n int) script { return opening(scriptOK(time.Second), uint32(100+n)) }
		// A child of the probes ends in the midst of each.
		inventory := func(_ string, n int) script { return inventorying(5*time.Second, found[min(n, len(found)-1)]) }
		b := newInventoryBench(t, next, inventory, nil, "a")
		b.start()
		began := time.Now()
		leaks := func() []state.Leaked { return stateOf(t, b.Snapshot(), "a").Resources.Leaked }

		b.after(30 * time.Second)
		wantEqual(t, "looked for at first", b.lookedFor(0), []uint32(nil))
		if l := leaks(); l != nil {
			t.Errorf("leaked %v at first", l)
		}
		b.after(time.Minute)
		wantEqual(t, "looked for after one child", b.lookedFor(1), []uint32{100})
		minute := began.Add(time.Minute)
		wantEqual(t, "leaked", leaks(), []state.Leaked{{Type: "qp", Objects: 2, Since: minute}, {Type: "ctx", Objects: 1, Since: minute}})
		by := stateOf(t, b.Snapshot(), "a").Resources.LeakedBy
		if len(by) != 1 || by[0].Context.ID != 100 || by[0].Kind != state.KindProbe || by[0].Outcome != state.OutcomeOK || by[0].Started.IsZero() || len(by[0].Objects) != 2 {
			t.Errorf("left by %+v", by)
		}
		b.after(time.Minute)
		wantEqual(t, "looked for after two children", b.lookedFor(2), []uint32{100, 101})
		wantEqual(t, "leaked", leaks(), []state.Leaked{{Type: "qp", Objects: 5, Since: minute}})
		b.after(time.Minute)
		wantEqual(t, "looked for after three", b.lookedFor(3), []uint32{100, 101, 102})
		// This one could not look for queue pairs.
		wantEqual(t, "leaked", leaks(), []state.Leaked{
			{Type: "qp", Objects: 5, Since: minute}, {Type: "ctx", Objects: 1, Since: began.Add(3 * time.Minute)},
		})
		b.after(time.Minute)
		// What the table of the protection domains would have told was not known.
		wantEqual(t, "looked for after an inventory that could not tell", b.lookedFor(4), []uint32{100, 101, 102, 103})
		if l, by := leaks(), stateOf(t, b.Snapshot(), "a").Resources.LeakedBy; l != nil || by != nil {
			t.Errorf("leaked %v at last, by %v", l, by)
		}
		b.after(time.Minute)
		wantEqual(t, "looked for when nothing is left", b.lookedFor(5), []uint32{104})
		if warned, over := b.logs("still holds objects of ended children"), b.logs("Objects of ended children are gone"); warned != 3 || over != 1 {
			t.Errorf("%d warnings, %d of its end; want one for each of 3 changes, and 1:\n%s", warned, over, b.log)
		}
	})
}

// TestLeakIsSoonLookedFor verifies that an inventory follows soon on a child that was killed,
// crashed or left an object.
func TestLeakIsSoonLookedFor(t *testing.T) {
	t.Parallel()
	undestroyed := scriptOK(time.Second)
	undestroyed.output = `{"undestroyed":{"type":"cq","errno":"EBUSY","attempts":5}}` + "\n" + undestroyed.output
	crash := scriptHang()
	crash.takes, crash.exit = time.Second, child.Exit{Signal: 11}
	for name, tc := range map[string]struct {
		child script
		want  time.Duration
	}{
		"ok":          {scriptOK(time.Second), time.Hour},
		"failed":      {script{output: scriptFail().output, takes: time.Second}, time.Hour},
		"undestroyed": {undestroyed, 6 * time.Minute},
		"crash":       {crash, 6 * time.Minute},
		"timeout":     {scriptHang(), 6 * time.Minute},
	} {
		subtest(t, name, func(t *testing.T) {
			once := func(_ string, n int) script {
				if n == 0 {
					return opening(tc.child, 100)
				}
				return scriptOK(time.Second)
			}
			b := newInventoryBench(t, once, always(inventorying(0, state.Inventory{})), func(c *Config) { c.Inventory.Interval = time.Hour }, "a")
			b.after(tc.want + time.Second)
			wantEqual(t, "inventories", b.kids.startsOf(inventoryOf("a")), []time.Duration{0, tc.want})
			wantEqual(t, "looked for", b.lookedFor(1), []uint32{100})
		})
	}
}

// TestInventoryStuckOfVanished verifies that a stuck child of an inventory only delays
// inventories, also if the device vanishes and appears again, and is shown all the time.
func TestInventoryStuckOfVanished(t *testing.T) {
	bubble(t, func(t *testing.T) {
		unkillable := scriptUnkillable()
		inventory := func(_ string, n int) script {
			if n == 0 {
				return unkillable
			}
			return inventorying(0, state.Inventory{Index: 1})
		}
		b := newInventoryBench(t, always(scriptOK(time.Second)), inventory, nil, "a")
		b.after(2*time.Minute + 30*time.Second)
		wantEqual(t, "probe runs", len(b.kids.startsOf("a")), 3)
		wantEqual(t, "stuck probe runs", stateOf(t, b.Snapshot(), "a").Stuck, (*state.Stuck)(nil))
		shown := func(present bool) {
			t.Helper()
			a := stateOf(t, b.Snapshot(), "a")
			if a.Present != present || a.Resources == nil || a.Resources.Stuck == nil {
				t.Errorf("present %t, resources %+v; want a child that is stuck", a.Present, a.Resources)
			}
		}
		shown(true)
		b.host(nil)
		b.after(time.Minute)
		shown(false)
		if events := b.sink.told(); events[len(events)-1] != "a forgotten" {
			t.Errorf("the sink was told %v, want a forgotten at last", events)
		}
		b.host(nil, "a")
		before := len(b.kids.startsOf("a"))
		b.after(3 * time.Minute)
		shown(true)
		if n := len(b.kids.startsOf("a")) - before; n < 3 {
			t.Errorf("%d runs on the device that came back in 3 minutes", n)
		}
		wantEqual(t, "inventories", len(b.kids.startsOf(inventoryOf("a"))), 1)
		b.host(nil)
		b.after(time.Minute)
		shown(false)
		b.host(nil, "a")
		b.after(time.Minute)
		shown(true)
		close(unkillable.release)
		r := stateOf(t, b.after(2*time.Minute), "a").Resources
		if r.Stuck != nil || r.Last == nil || r.Last.Outcome != state.OutcomeOK {
			t.Errorf("resources %+v after the end of the child", r)
		}
	})
}

// TestOrphans verifies that the time since which there are ownerless objects is that of an
// unbroken series of inventories that could tell.
func TestOrphans(t *testing.T) {
	t.Parallel()
	some := []state.TypeCount{{Type: "qp", Objects: 1}}
	blind := []state.Incomplete{{Type: "pd", Reason: state.IncompleteTimeout}}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var r *state.Resources
	for n, tt := range []struct {
		found state.Inventory
		since int // the number of the inventory; −1 for none
	}{
		{state.Inventory{PIDsVisible: true, Ownerless: some}, 0},
		{state.Inventory{PIDsVisible: true, Ownerless: some}, 0},
		{state.Inventory{PIDsVisible: true, Incomplete: blind}, 0},
		{state.Inventory{PIDsVisible: true}, -1},
		{state.Inventory{PIDsVisible: true, Ownerless: some}, 4},
		{state.Inventory{Ownerless: some}, -1},
	} {
		minute := func(n int) time.Time { return at.Add(time.Duration(n) * time.Minute) }
		r = resources(r, &state.Run{Kind: state.KindInventory, Started: minute(n), Inventory: &tt.found})
		var want time.Time
		if tt.since >= 0 {
			want = minute(tt.since)
		}
		wantEqual(t, fmt.Sprint("orphaned since, inventory ", n), r.OrphanedSince, want)
	}
}
