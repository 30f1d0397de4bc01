package state

import (
	"math"
	"testing"
)

// Objects of one type are summed up to the most that there can be.
func TestCountOf(t *testing.T) {
	t.Parallel()
	list := []TypeCount{{"qp", 3}, {"cq", 5}, {"qp", -2}, {"qp", 4}, {"mr", math.MaxInt64}, {"mr", 1}}
	for typ, want := range map[string]int64{"qp": 7, "cq": 5, "mr": math.MaxInt64, "pd": 0} {
		if got := CountOf(list, typ); got != want {
			t.Errorf("%s: got %d, want %d", typ, got, want)
		}
	}
}
