package contract

import (
	"testing"

	"rdma_exporter/verbs"
)

// TestReading verifies which completions of an extended queue have correct fields.
func TestReading(t *testing.T) {
	t.Parallel()
	const mask = 1<<8 - 1
	second := func(id uint64, number, length uint32, timestamp uint64) verbs.WC {
		return verbs.WC{ID: id, QPNum: number, ByteLen: length, Timestamp: timestamp}
	}
	for _, tt := range []struct {
		name  string
		first uint64 // its timestamp
		wc    verbs.WC
		want  bool
	}{
		{"right", 7, second(2, 5, 8, 9), true},
		{"in the same tick", 7, second(2, 5, 8, 7), true},
		{"from the start again", 250, second(2, 5, 8, 3), true},
		{"another work request", 7, second(1, 5, 8, 9), false},
		{"another QP", 7, second(2, 4, 8, 9), false},
		{"another length", 7, second(2, 5, 0, 9), false},
		{"before the first", 7, second(2, 5, 8, 6), false},
		{"beyond the mask", 7, second(2, 5, 8, mask+1), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := reading{number: 5, length: 8, mask: mask, ordered: true}
			if !r.inOrder(second(1, 5, 8, tt.first)) || !r.right(second(1, 5, 8, tt.first)) {
				t.Error("the first is wrong")
			}
			if got := r.inOrder(tt.wc) && r.right(tt.wc); got != tt.want {
				t.Errorf("%+v after %d: %t", tt.wc, tt.first, got)
			}
		})
	}
	// Of no clock that is soon round, and of none.
	for _, r := range []reading{{number: 5, mask: mask}, {number: 5}} {
		if !r.inOrder(second(1, 5, 0, mask+1)) || !r.inOrder(second(2, 5, 0, 0)) {
			t.Errorf("timestamps are checked with mask %#x", r.mask)
		}
	}
}

// TestOrder: a timestamp goes back only where the clock cannot have come round meanwhile.
// That of irdma has 17 bits.
func TestOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		mask    uint64
		clock   uint64 // in kHz
		ordered bool
	}{
		{"63 bits", 1<<63 - 1, 1_000_000, true},
		{"48 bits, of an unknown clock", 1<<48 - 1, 0, true},
		{"32 bits", 1<<32 - 1, 1_000_000, false},
		{"32 bits of a slow clock", 1<<32 - 1, 1000, true},
		{"17 bits", 1<<17 - 1, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newReading(verbs.WCStandard|verbs.WCTimestamp, verbs.ExtendedAttr{TimestampMask: tt.mask, CoreClock: tt.clock})
			if !r.inOrder(verbs.WC{ID: 1, Timestamp: 7}) || !r.right(verbs.WC{ID: 1}) || r.inOrder(verbs.WC{ID: 2, Timestamp: 6}) == tt.ordered {
				t.Errorf("a timestamp that goes back: ordered %t", r.ordered)
			}
		})
	}
}
