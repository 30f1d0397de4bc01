package inventory_test

import (
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/owner"
	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
)

// TestBudgetHolds makes sure that a table of as many objects as may be looked at is read,
// whether the kernel counts them or not.
func TestBudgetHolds(t *testing.T) {
	for _, counts := range []map[restrack.Type]uint64{nil, {}} {
		k, p := host()
		k.counts = counts
		i := take(t, k, p, func(o *inventory.Options) { o.MaxObjects = 13 }).Inventory
		if want := (state.ObjectCount{Type: "qp", Owner: state.OwnerUser, Objects: 12}); !slices.Contains(i.Objects, want) || i.Incomplete != nil {
			t.Errorf("with counts %v: objects %+v, incomplete %+v", counts, i.Objects, i.Incomplete)
		}
	}
}

// TestLargest makes sure that of completion queues that are too large alike, the first is
// told, and that one that its uses just fill is not.
func TestLargest(t *testing.T) {
	cq := func(thread, entries uint32) restrack.Object {
		return restrack.Object{Thread: thread, Entries: entries, HasEntries: true, Users: 2, HasUsers: true}
	}
	k := &tables{objects: map[restrack.Type][]restrack.Object{restrack.CQ: {cq(10, 200), cq(20, 201), cq(30, 201)}}}
	p := &people{all: map[int]owner.Identity{10: {}, 20: {}, 30: {}}}
	i := take(t, k, p, func(o *inventory.Options) { o.MaxFill = 100 }).Inventory
	if u := i.OversizedCQs; u == nil || u.PID != 20 || u.Objects != 2 || u.Largest != 201 || u.Entries != 402 {
		t.Errorf("got %+v", u)
	}
}

// TestTooManyThreads makes sure that the objects of more threads than are remembered are
// counted as those of others.
func TestTooManyThreads(t *testing.T) {
	const threads = 1<<16 + 3
	var all []restrack.Object
	for n := range uint32(threads) {
		all = append(all, restrack.Object{Thread: n + 1})
	}
	i := take(t, &tables{objects: map[restrack.Type][]restrack.Object{restrack.CMID: all}}, new(people), func(o *inventory.Options) { o.MaxObjects = threads }).Inventory
	wantEqual(t, "others", i.Others, []state.TypeCount{{Type: "cm_id", Objects: threads}})
}

// TestLongNames makes sure that a name is cut only if it is too long, and between
// characters.
func TestLongNames(t *testing.T) {
	for name, want := range map[string]string{
		strings.Repeat("x", 256):       strings.Repeat("x", 256),
		strings.Repeat("x", 257):       strings.Repeat("x", 253) + "…",
		"/" + strings.Repeat("é", 128): "/" + strings.Repeat("é", 126) + "…",
		strings.Repeat("é", 129):       strings.Repeat("é", 126) + "…",
	} {
		k, p := host()
		p.all[10] = owner.Identity{PID: 10, Cgroup: name}
		if got := take(t, k, p, nil).Inventory.Owners[0].Cgroup; got != want {
			t.Errorf("%q: got %q", name, got)
		}
	}
}
