package probe

import (
	"rdma_exporter/internal/state"
)

// turn says what a run creates: everything, or of each kind of object the smallest
// size, and what else has its turn. Creating objects is work for the firmware of an
// adapter, which others use.
type turn struct {
	// whole tells that everything has its turn.
	whole bool
	// number is that of the turn, and object the kind of object that is created in each
	// size.
	number int
	object string
	// port is the one whose way to itself is measured, 0 for none, and vector the
	// completion vector, once that is settled.
	port, vector int
}

// turnOf returns the turn of a number. Without one, and on a device of which nothing is
// known yet, it is everything.
func (r *run) turnOf(number *int, known bool) turn {
	if number == nil || !known {
		return turn{whole: true}
	}
	kinds := []string{"cq"}
	if r.Attr.Limits.MaxSRQ > 0 {
		kinds = append(kinds, "srq")
	}
	kinds = append(kinds, "mr")
	for _, t := range r.Device.QPTypes() {
		if r.absent(t) == nil {
			kinds = append(kinds, "qp_"+t.Label())
		}
	}
	n := max(*number, 0)
	return turn{number: n, object: kinds[n%len(kinds)]}
}

// sizes returns those of the sizes of a kind of object that have their turn.
func sizes[T any](t turn, object string, all []named[T]) []named[T] {
	if t.whole || t.object == object {
		return all
	}
	return all[:1]
}

// measured returns which of the ways of ports to themselves, and on which completion
// vectors the first way that there is, have their turn: one vector on the first port, or
// the first vector on another port.
func (r *run) measured(ways []*way) ([]*way, []int) {
	vectors := r.Vectors
	if r.cfg.Notification.OneVector {
		vectors = vectors[:1]
	}
	if r.turn.whole {
		return ways, vectors
	}
	i := r.turn.number % (len(vectors) + max(len(ways)-1, 0))
	port, vector := 0, i
	if i >= len(vectors) {
		port, vector = i-len(vectors)+1, 0
	}
	ways = ways[min(port, len(ways)):min(port+1, len(ways))]
	if len(ways) > 0 {
		r.turn.port = ways[0].port
	}
	r.turn.vector = vectors[vector]
	return ways, vectors[vector : vector+1]
}

// modes returns how completions are awaited, in order. If not everything has its turn,
// as many as can follow on one another with the same objects do.
func (r *run) modes() []state.LatencyMode {
	if r.turn.whole {
		return []state.LatencyMode{state.ModeAny, state.ModePoll, state.ModeSolicited}
	}
	return []state.LatencyMode{state.ModeAny, state.ModeSolicited, state.ModePoll}
}

// tellTurn reports what had its turn, unless that was everything.
func (r *run) tellTurn() {
	if !r.turn.whole {
		_ = r.Out.Turn(state.Turn{Object: r.turn.object, Port: r.turn.port, Vector: r.turn.vector})
	}
}
