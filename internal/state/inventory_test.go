package state

import (
	"math"
	"testing"
)

func TestCountOf(t *testing.T) {
	t.Parallel()
	list := []TypeCount{{"qp", 3}, {"cq", 5}, {"qp", -2}, {"qp", 4}, {"mr", math.MaxInt64}, {"mr", 1}}
	for typ, want := range map[string]int64{"qp": 7, "cq": 5, "mr": math.MaxInt64, "pd": 0} {
		if got := CountOf(list, typ); got != want {
			t.Errorf("%s: got %d, want %d", typ, got, want)
		}
	}
}

func TestOrphaned(t *testing.T) {
	t.Parallel()
	ownerless := []TypeCount{{"qp", 3}, {"cq", 5}, {"cm_id", 2}, {"mr", 7}}
	i := &Inventory{PIDsVisible: true, Ownerless: ownerless, Incomplete: []Incomplete{
		{Type: "cq", Reason: IncompleteTimeout}, {Type: "mr", Reason: IncompleteInterrupted},
	}}
	for typ, want := range map[string]int64{"qp": 3, "mr": 7, "pd": 0, "cq": -1, "cm_id": -1} {
		if got, told := i.Orphaned(typ); got != max(want, 0) || told != (want >= 0) {
			t.Errorf("%s: %d, %t, want %d", typ, got, told, want)
		}
	}
	if got, told := (&Inventory{Ownerless: ownerless}).Orphaned("qp"); told {
		t.Errorf("where processes cannot be seen: %d", got)
	}
}
